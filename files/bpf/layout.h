/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What user space and the programs share. Every structure is one list of fields, from which both the structure and its
 * description are made; the description travels in section "layout" of the object, and user space reads it from there.
 */
#ifndef COLOCATION_LAYOUT_H
#define COLOCATION_LAYOUT_H

#include <linux/bpf.h>

/* Raised whenever a structure or the meaning of a field changes. */
#define LAYOUT_VERSION 2

#define POOLS 16
/* Class numbers below POOLS stand for what no class claims, one for each pool. */
#define CLASSES 1024
#define SHARDS 16
#define LEVELS 3
/* One more, so that a mask keeps an index inside for every verifier. */
#define LEVEL_SLOTS 4
#define SOURCES 5
#define EVENTS_EACH 64
#define MEMBERS 4096
#define DEVICES 1024

enum source { SOURCE_NONE, SOURCE_STAMP, SOURCE_CGROUP, SOURCE_CLASSID, SOURCE_DEVICE, SOURCE_PREFIX };
enum role { ROLE_ONLINE, ROLE_OFFLINE, ROLE_EXEMPT };
enum plane { PLANE_EDT, PLANE_HTB, PLANE_POLICE };
enum direction { DIRECTION_EGRESS, DIRECTION_INGRESS };
enum accounting { ACCOUNT_WIRE, ACCOUNT_L1, ACCOUNT_SKB, ACCOUNT_PAYLOAD };
enum carrier { CARRIER_NONE, CARRIER_MARK, CARRIER_QUEUE };
enum state { STATE_HIGH, STATE_LOW };
enum reason { REASON_TRIP = 1, REASON_WINDOW, REASON_HOLD };
enum pool_flag { POOL_WATERLINE = 1, POOL_CONTINUOUS = 2, POOL_LEVELS = 4, POOL_STRICT = 8 };
/*
 * OWN_WIRE_LENGTH: the kernel's wire_len counts no segment headers on packets that came in through this device.
 * INTERMEDIATE: a device of ours, which packets pass on their way in; the one that they arrived at is what counts.
 */
enum device_flag { DEVICE_OWN_WIRE_LENGTH = 1, DEVICE_INTERMEDIATE = 2 };

#ifdef VARIANT_SPIN
typedef struct bpf_spin_lock lock_t;
#else
typedef __u32 lock_t;
#endif

/* F(structure, type, field) is one value, A(structure, type, field, count) an array. Rates are bytes a second. */
#define META_FIELDS(S, F, A) \
	F(S, __u32, layout) F(S, __u32, generation) \
	/* Time in ns that stands in for the clock; 0 except in tests. */ \
	F(S, __u64, test_clock) \
	F(S, __u32, levels_mask) F(S, __u32, carrier) F(S, __u32, mark_mask) F(S, __u32, mark_shift) \
	A(S, __u32, order, SOURCES) \
	/* Epoch of what is noted at sockets; 0 where nothing has to be. */ \
	F(S, __u32, sockets)

#define DEVICE_FIELDS(S, F, A) \
	F(S, __u32, pool) F(S, __u32, plane) F(S, __u32, direction) F(S, __u32, flags) F(S, __u32, htb_default) \
	F(S, __u32, spare)

#define MEMBER_FIELDS(S, F, A) F(S, __u16, egress) F(S, __u16, ingress)

#define POOL_CONFIG_FIELDS(S, F, A) \
	F(S, __u64, total) F(S, __u64, waterline) F(S, __u64, clear) F(S, __u64, low) F(S, __u64, high) \
	F(S, __u64, window_ns) F(S, __u64, budget) F(S, __u64, floor) \
	F(S, __u32, hold) F(S, __u32, step_shift) F(S, __u32, flags) F(S, __u32, accounting) F(S, __u32, overhead) \
	A(S, __u32, weights, LEVELS) F(S, __u64, burst_ns) F(S, __u64, horizon_ns) F(S, __u64, ecn_ns)

#define CLASS_CONFIG_FIELDS(S, F, A) \
	F(S, __u64, limit) F(S, __u64, request) \
	F(S, __u64, burst_ns) F(S, __u64, horizon_ns) F(S, __u64, ecn_ns) \
	F(S, __u32, htb_high) F(S, __u32, htb_low) \
	F(S, __u16, pool) F(S, __u8, role) F(S, __u8, level) F(S, __u32, spare0) F(S, __u64, spare1)

/* One cache line for each class, never written by user space while packets flow. */
#define CLASS_STATE_FIELDS(S, F, A) \
	F(S, lock_t, lock) F(S, __u32, spare0) F(S, __u64, limit_clock) F(S, __u64, request_clock) \
	F(S, __u64, last_departure) A(S, __u64, spare1, 4)

#define POOL_STATE_FIELDS(S, F, A) \
	F(S, lock_t, lock) F(S, __u32, spare0) F(S, __u64, offline_clock) A(S, __u64, level_clock, LEVEL_SLOTS) \
	A(S, __u64, spare1, 2) \
	F(S, __u64, window_start) F(S, __u64, window_base) F(S, __u64, state) F(S, __u64, since) F(S, __u64, below) \
	F(S, __u64, transitions) F(S, __u64, online_rate) F(S, __u64, offline_rate) \
	F(S, __u64, allowed_rate) F(S, __u64, offline_base) F(S, __u64, outside_base) \
	A(S, __u64, level_rate, LEVEL_SLOTS) A(S, __u64, level_base, LEVELS) A(S, __u64, waits_base, LEVELS) \
	/* The count that may trip the waterline: since when, from what sum, and who begins it anew. */ \
	F(S, __u64, trip_start) F(S, __u64, trip_base) F(S, __u64, trip_busy)

/* Bytes counted by some of the CPUs; they only ever grow. */
#define SHARD_FIELDS(S, F, A) \
	F(S, __u64, online) F(S, __u64, offline) F(S, __u64, outside) A(S, __u64, level, LEVEL_SLOTS) \
	A(S, __u64, waits, LEVEL_SLOTS) A(S, __u64, spare, 5)

#define STATS_FIELDS(S, F, A) \
	F(S, __u64, bytes) F(S, __u64, packets) F(S, __u64, delayed) F(S, __u64, marked) F(S, __u64, dropped) \
	F(S, __u64, dropped_bytes) F(S, __u64, delay_ns) F(S, __u64, delay_max_ns)

#define EVENT_FIELDS(S, F, A) \
	F(S, __u64, time_ns) F(S, __u64, rate) F(S, __u32, number) F(S, __u32, pool) F(S, __u32, to) F(S, __u32, reason)

#define FIELD(S, type, field) type field;
#define ARRAY(S, type, field, count) type field[count];
#define STRUCTURE(S, LIST) struct S { LIST(S, FIELD, ARRAY) };

STRUCTURE(meta, META_FIELDS)
STRUCTURE(device, DEVICE_FIELDS)
STRUCTURE(member, MEMBER_FIELDS)
STRUCTURE(pool_config, POOL_CONFIG_FIELDS)
STRUCTURE(class_config, CLASS_CONFIG_FIELDS)
STRUCTURE(class_state, CLASS_STATE_FIELDS)
STRUCTURE(pool_state, POOL_STATE_FIELDS)
STRUCTURE(shard, SHARD_FIELDS)
STRUCTURE(stats, STATS_FIELDS)
STRUCTURE(event, EVENT_FIELDS)

struct shards {
	struct shard shard[SHARDS];
};

struct prefix4 {
	__u32 length;
	__u8 address[4];
};

struct prefix6 {
	__u32 length;
	__u8 address[16];
};

#endif
