/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Priorities with request and limit. What classes have under their request goes by clocks of their own; what is left of
 * the pool's total is divided between the levels once a window, whatever the number of classes. Level 2 comes first.
 */
#ifndef COLOCATION_LEVELS_H
#define COLOCATION_LEVELS_H

#include "waterline.h"

struct sums {
	__u64 online, offline, outside, level[LEVELS], waits[LEVELS];
};

INLINE void sum_shards(struct shards *shards, struct sums *sums)
{
	__builtin_memset(sums, 0, sizeof(*sums));
	for (int i = 0; i < SHARDS; i++) {
		struct shard *shard = &shards->shard[i];

		sums->online += shard->online;
		sums->offline += shard->offline;
		sums->outside += shard->outside;
#pragma clang loop unroll(full)
		for (int level = 0; level < LEVELS; level++) {
			sums->level[level] += shard->level[level];
			sums->waits[level] += shard->waits[level];
		}
	}
}

INLINE __u64 per_second(__u64 bytes, __u64 elapsed)
{
	return elapsed ? bytes * NS / elapsed : 0;
}

/* A level that nobody waits in keeps a quarter more than it uses; those where packets wait share the rest by weight. */
INLINE void divide(struct pool_config *config, struct pool_state *state, struct sums *sums, __u64 elapsed)
{
	__u64 outside = per_second(sums->outside - state->outside_base, elapsed);
	__u64 spare = config->total > outside ? config->total - outside : 0, weights = 0, floor = config->floor;
	__u32 waiting = 0;

#pragma clang loop unroll(full)
	for (int level = 0; level < LEVELS; level++) {
		__u64 used = per_second(sums->level[level] - state->level_base[level], elapsed);
		__u64 keeps = used + used / 4;

		if (sums->waits[level] != state->waits_base[level]) {
			waiting |= 1 << level;
			weights += config->weights[level];
			continue;
		}
		keeps = keeps < floor ? floor : keeps;
		state->level_rate[level] = keeps;
		spare = spare > keeps ? spare - keeps : 0;
	}
#pragma clang loop unroll(full)
	for (int level = LEVELS - 1; level >= 0; level--) {
		__u64 share;

		if (!(waiting >> level & 1))
			continue;
		if (config->flags & POOL_STRICT) {
			/* The highest level takes all but a floor for each one below. */
			__u64 kept = floor * level;

			share = spare > kept ? spare - kept : floor;
			spare = spare > share ? spare - share : 0;
		} else {
			share = weights ? spare * config->weights[level] / weights : 0;
		}
		state->level_rate[level] = share < floor ? floor : share;
	}
}

INLINE void keep_bases(struct pool_state *state, struct sums *sums)
{
	state->window_base = sums->online;
	state->offline_base = sums->offline;
	state->outside_base = sums->outside;
#pragma clang loop unroll(full)
	for (int level = 0; level < LEVELS; level++) {
		state->level_base[level] = sums->level[level];
		state->waits_base[level] = sums->waits[level];
	}
}

/* Close the window when it is over. Only the CPU that moves its start does, and it loses no byte: counters only grow. */
INLINE void close_window(struct pool_config *config, struct pool_state *state, struct shards *shards, __u32 pool,
			 __u64 now)
{
	__u64 start = *(volatile __u64 *)&state->window_start, elapsed = now - start;
	struct sums sums;

	if (!AFTER(now, start) || elapsed < config->window_ns || !exchange(&state->lock, &state->window_start, start, now))
		return;
	sum_shards(shards, &sums);
	state->online_rate = per_second(sums.online - state->window_base, elapsed);
	state->offline_rate = per_second(sums.offline - state->offline_base, elapsed);
	if (config->flags & POOL_LEVELS)
		divide(config, state, &sums, elapsed);
	keep_bases(state, &sums);
	if (config->flags & POOL_WATERLINE)
		judge_window(config, state, pool, now, elapsed);
}

#endif
