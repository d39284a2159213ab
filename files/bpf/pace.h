/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a packet may leave by all clocks that concern it, and what follows from that. */
#ifndef COLOCATION_PACE_H
#define COLOCATION_PACE_H

#include "levels.h"

struct limits {
	__u64 burst_ns, horizon_ns, ecn_ns;
	__u64 limit, request;
	__u32 role, level;
};

#define SLOTS_IN_BURST 2

/* What was claimed from each clock, to give it back when the packet is dropped. */
struct claims {
	__u64 limit, request, offline, level;
	__u64 departure; /* when the last byte has had its time */
	__u64 start;     /* the latest time at which a clock lets the first byte begin */
	__u32 refused;   /* a rate is 0: nothing may pass */
};

INLINE __u64 take(lock_t *lock, __u64 *clock, __u64 earliest, __u64 bytes, __u64 rate, struct claims *claims)
{
	__u64 cost, next;

	if (!rate) {
		claims->refused = 1;
		return 0;
	}
	cost = cost_ns(bytes, rate);
	next = claim(lock, clock, earliest, cost);
	if (AFTER(next, claims->departure))
		claims->departure = next;
	if (AFTER(next - cost, claims->start))
		claims->start = next - cost;
	return cost;
}

/* Under its request a class goes by its own clock, above by its level's: whichever lets the packet go sooner. */
INLINE void take_share(struct limits *limits, struct class_state *own, struct pool_state *pool, struct shard *shard,
		       struct packet *packet, __u64 earliest, struct claims *claims)
{
	__u32 level = limits->level & (LEVEL_SLOTS - 1);
	__u64 rate = pool->level_rate[level], before = claims->departure, alone, shared;

	shared = foresee(&pool->level_clock[level], earliest, cost_ns(packet->bytes, rate));
	alone = foresee(&own->request_clock, earliest, cost_ns(packet->bytes, limits->request));
	if (limits->request && (!rate || !AFTER(alone, shared))) {
		claims->request = take(&own->lock, &own->request_clock, earliest, packet->bytes, limits->request, claims);
		ADD(&shard->outside, packet->bytes);
	} else {
		claims->level = take(&pool->lock, &pool->level_clock[level], earliest, packet->bytes, rate, claims);
		ADD(&shard->level[level], packet->bytes);
	}
	/* Who waits would take more, by either clock: its level asks for a share. */
	if (AFTER(claims->departure, before))
		ADD(&shard->waits[level], 1);
}

INLINE void give_back(struct limits *limits, struct class_state *own, struct pool_state *pool, struct claims *claims)
{
	__u32 level = limits->level & (LEVEL_SLOTS - 1);

	if (claims->limit)
		refund(&own->lock, &own->limit_clock, claims->limit);
	if (claims->request)
		refund(&own->lock, &own->request_clock, claims->request);
	if (claims->offline)
		refund(&pool->lock, &pool->offline_clock, claims->offline);
	if (claims->level)
		refund(&pool->lock, &pool->level_clock[level], claims->level);
}

/* Packets of a class go by one of two clocks; one must not overtake another, or TCP would see them out of order. */
INLINE void keep_order(struct class_state *own, struct claims *claims)
{
	__u64 last = *(volatile __u64 *)&own->last_departure;

	if (AFTER(last, claims->departure))
		claims->departure = last;
	else
		*(volatile __u64 *)&own->last_departure = claims->departure;
}

/* What TCP sends before it hears anything (ten full frames, RFC 6928) must find room even where the rate is slow. */
#define LEAST_QUEUE 15140
/* Far below fq's own horizon (10 s), behind which a packet would be dropped and its time not given back. */
#define LEAST_QUEUE_MAX_NS (2 * NS)

INLINE __u64 least_queue_ns(struct claims *claims, __u64 bytes)
{
	__u64 slowest = claims->limit, needed;

	if (claims->request > slowest)
		slowest = claims->request;
	if (claims->offline > slowest)
		slowest = claims->offline;
	if (claims->level > slowest)
		slowest = claims->level;
	needed = bytes ? slowest * LEAST_QUEUE / bytes : 0;
	return needed < LEAST_QUEUE_MAX_NS ? needed : LEAST_QUEUE_MAX_NS;
}

/* By the start, so that one packet longer than the horizon at a low rate still passes an idle clock. */
INLINE int is_too_late(struct limits *limits, struct claims *claims, struct packet *packet, __u32 plane)
{
	if (claims->refused)
		return 1;
	if (plane == PLANE_POLICE)
		return AFTER(claims->start, packet->now);
	return AFTER(claims->start, packet->now + limits->horizon_ns) &&
	       AFTER(claims->start, packet->now + least_queue_ns(claims, packet->bytes));
}

INLINE int drop(struct stats *stats, struct packet *packet)
{
	stats->dropped++;
	stats->dropped_bytes += packet->bytes;
	return DROP;
}

INLINE void note_delay(struct stats *stats, __u64 delay)
{
	stats->delayed++;
	stats->delay_ns += delay;
	if (delay > stats->delay_max_ns)
		stats->delay_max_ns = delay;
}

/* On a packet that arrived, the same field is the time of reception unless it is marked as a departure (Linux 5.18). */
INLINE void set_time(struct __sk_buff *skb, __u64 departure, __u32 arrived)
{
	skb->tstamp = departure;
	if (arrived)
		set_departure(skb, departure, BPF_SKB_TSTAMP_DELIVERY_MONO);
}

/*
 * The end of the half of a burst in which a packet would leave. Those of all classes coincide, so that one timer lets
 * everything go that is due, instead of one for each packet; the clocks stay exact.
 */
INLINE __u64 slot_end(__u64 departure, __u64 burst_ns)
{
	__u64 slot = burst_ns / SLOTS_IN_BURST, into = slot ? departure % slot : 0;

	return into ? departure + slot - into : departure;
}

INLINE int pace(struct __sk_buff *skb, struct limits *limits, struct pool_config *config, struct class_state *own,
		struct pool_state *pool, struct shard *shard, struct stats *stats, struct packet *packet, __u32 plane, __u32 arrived)
{
	__u64 earliest = packet->ready - limits->burst_ns;
	struct claims claims = { 0, 0, 0, 0, packet->ready, packet->ready, 0 };

	if (limits->limit)
		claims.limit = take(&own->lock, &own->limit_clock, earliest, packet->bytes, limits->limit, &claims);
	if (limits->role == ROLE_OFFLINE && config->high)
		claims.offline = take(&pool->lock, &pool->offline_clock, earliest, packet->bytes,
				      offline_rate(config, pool), &claims);
	if (config->flags & POOL_LEVELS)
		take_share(limits, own, pool, shard, packet, earliest, &claims);
	if (is_too_late(limits, &claims, packet, plane)) {
		give_back(limits, own, pool, &claims);
		return drop(stats, packet);
	}
	if (plane == PLANE_POLICE)
		return GO_ON;
	if (config->flags & POOL_LEVELS)
		keep_order(own, &claims);
	if (limits->ecn_ns && AFTER(claims.start, packet->now + limits->ecn_ns) && set_congestion_mark(skb))
		stats->marked++;
	if (AFTER(claims.departure, packet->ready)) {
		claims.departure = slot_end(claims.departure, limits->burst_ns);
		note_delay(stats, claims.departure - packet->now);
		set_time(skb, claims.departure, arrived);
	}
	return GO_ON;
}

#endif
