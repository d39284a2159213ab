/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel helpers, maps and what a program knows of the packet at hand. */
#ifndef COLOCATION_BASE_H
#define COLOCATION_BASE_H

#include "layout.h"

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline
#define NS 1000000000ULL

/* Of linux/pkt_cls.h: go on with the next filter; drop. */
#define GO_ON (-1)
#define DROP 2

static void *(*map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static __u64 (*clock_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u32 (*cpu_number)(void) = (void *)BPF_FUNC_get_smp_processor_id;
static long (*load_bytes)(const void *skb, __u32 offset, void *to, __u32 length) = (void *)BPF_FUNC_skb_load_bytes;
static long (*set_congestion_mark)(void *skb) = (void *)BPF_FUNC_skb_ecn_set_ce;
static __u64 (*cgroup_id)(void *skb) = (void *)BPF_FUNC_skb_cgroup_id;
static __u64 (*ancestor_id)(void *skb, int level) = (void *)BPF_FUNC_skb_ancestor_cgroup_id;
/* The loader puts 0 in the place of this call on kernels that lack it (CONFIG_CGROUP_NET_CLASSID). */
static __u64 (*cgroup_classid)(const void *skb) = (void *)BPF_FUNC_skb_cgroup_classid;

/* What a kernel may lack; the loader puts 0 in the place of these calls there. */
static void *(*find_tcp)(void *skb, struct bpf_sock_tuple *tuple, __u32 size, __u64 netns, __u64 flags) =
	(void *)BPF_FUNC_sk_lookup_tcp;
static void *(*find_udp)(void *skb, struct bpf_sock_tuple *tuple, __u32 size, __u64 netns, __u64 flags) =
	(void *)BPF_FUNC_sk_lookup_udp;
static long (*release)(void *socket) = (void *)BPF_FUNC_sk_release;
static void *(*full_socket)(void *socket) = (void *)BPF_FUNC_sk_fullsock;
static void *(*socket_storage)(void *map, void *socket, void *value, __u64 flags) = (void *)BPF_FUNC_sk_storage_get;
static long (*find_route)(void *skb, struct bpf_fib_lookup *route, int size, __u32 flags) =
	(void *)BPF_FUNC_fib_lookup;
static long (*set_departure)(void *skb, __u64 time, __u32 type) = (void *)BPF_FUNC_skb_set_tstamp;

struct map {
	__u32 type;
	__u32 key_size;
	__u32 value_size;
	__u32 max_entries;
	__u32 flags;
};

#define MAP(name, kind, key, value, entries, how) \
	struct map SECTION("maps") name = { BPF_MAP_TYPE_##kind, sizeof(key), sizeof(value), entries, how }

MAP(meta, ARRAY, __u32, struct meta, 1, 0);
MAP(devices, HASH, __u32, struct device, DEVICES, BPF_F_NO_PREALLOC);
MAP(pool_configs, ARRAY, __u32, struct pool_config, 2 * POOLS, 0);
MAP(class_configs, ARRAY, __u32, struct class_config, 2 * CLASSES, 0);
MAP(pool_states, ARRAY, __u32, struct pool_state, POOLS, 0);
MAP(class_states, ARRAY, __u32, struct class_state, CLASSES, 0);
MAP(pool_shards, ARRAY, __u32, struct shards, POOLS, 0);
MAP(class_stats, PERCPU_ARRAY, __u32, struct stats, CLASSES, 0);
MAP(events, ARRAY, __u32, struct event, POOLS * EVENTS_EACH, 0);
MAP(by_cgroup, HASH, __u64, struct member, MEMBERS, BPF_F_NO_PREALLOC);
MAP(by_classid, HASH, __u32, struct member, MEMBERS, BPF_F_NO_PREALLOC);
MAP(by_device, HASH, __u32, struct member, MEMBERS, BPF_F_NO_PREALLOC);
MAP(by_prefix4, LPM_TRIE, struct prefix4, struct member, MEMBERS, BPF_F_NO_PREALLOC);
MAP(by_prefix6, LPM_TRIE, struct prefix6, struct member, MEMBERS, BPF_F_NO_PREALLOC);

/* Epoch (upper half) and class of a socket. The loader puts another map in its place on kernels that lack such maps. */
MAP(sockets, SK_STORAGE, __u32, __u64, 0, BPF_F_NO_PREALLOC);

struct packet {
	__u64 now;       /* ns, CLOCK_MONOTONIC */
	__u64 ready;     /* when its sender wants it to leave, at least now */
	__u64 bytes;     /* as the pool's accounting counts it */
	__u32 network;   /* offset of the IP header, 0 until it was looked for */
	__u32 protocol;  /* ethertype of what is there, host order */
	__u32 device;    /* index of the device that classes are asked for */
};

/* Signed, so that a clock that wraps keeps its order. */
#define AFTER(a, b) ((__s64)((a) - (b)) > 0)

#endif
