/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decision how much offline classes may have, taken by packets themselves: at once when online classes have used up
 * the window's budget, back after `hold` quiet windows. No timer, so nothing runs while no packet does.
 */
#ifndef COLOCATION_WATERLINE_H
#define COLOCATION_WATERLINE_H

#include "clock.h"

INLINE void note_event(__u32 pool, __u64 number, __u64 now, __u64 to, __u64 rate, __u32 reason)
{
	__u32 key = pool * EVENTS_EACH + (number & (EVENTS_EACH - 1));
	struct event *event = map_lookup(&events, &key);

	if (!event)
		return;
	event->time_ns = now;
	event->rate = rate;
	event->number = number;
	event->pool = pool;
	event->to = to;
	event->reason = reason;
}

INLINE void change_state(struct pool_state *state, __u32 pool, __u64 now, __u64 to, __u64 rate, __u32 reason)
{
	if (!exchange(&state->lock, &state->state, !to, to))
		return;
	state->since = now;
	note_event(pool, next_number(&state->lock, &state->transitions), now, to, rate, reason);
}

INLINE __u64 sum_online(struct shards *shards)
{
	__u64 sum = 0;

#pragma clang loop unroll(full)
	for (int i = 0; i < SHARDS; i++)
		sum += *(volatile __u64 *)&shards->shard[i].online;
	return sum;
}

/*
 * Begin to count anew with this packet, when the last count is a window old. Counts begin with a packet, not with a window
 * of the accounts: a burst that began late in one of those would be split in two, and noticed up to a window later.
 */
INLINE void begin_count(struct pool_state *state, struct shards *shards, struct packet *packet, __u64 start)
{
	if (!exchange(&state->lock, &state->trip_busy, 0, 1))
		return;
	/* The base first: with the new start and the old base another CPU would see too much. */
	*(volatile __u64 *)&state->trip_base = sum_online(shards) - packet->bytes;
	exchange(&state->lock, &state->trip_start, start, packet->now);
	*(volatile __u64 *)&state->trip_busy = 0;
}

/* Count bytes of an online class, and throttle the offline ones as soon as the budget of a window is gone. */
INLINE void count_online(struct pool_config *config, struct pool_state *state, struct shards *shards,
			 struct shard *shard, __u32 pool, struct packet *packet)
{
	__u64 before = shard->online, start, used;

	ADD(&shard->online, packet->bytes);
	if (!(config->flags & POOL_WATERLINE) || state->state == STATE_LOW)
		return;
	start = *(volatile __u64 *)&state->trip_start;
	if (AFTER(packet->now, start) && packet->now - start >= config->window_ns)
		begin_count(state, shards, packet, start);
	/* All shards are added up only when this one has passed another step of the budget. */
	else if (before >> (config->step_shift & 63) == (before + packet->bytes) >> (config->step_shift & 63))
		return;
	if (*(volatile __u64 *)&state->trip_busy)
		return;
	used = sum_online(shards) - *(volatile __u64 *)&state->trip_base;
	if (used < config->budget)
		return;
	/* Windows counted as quiet so far are over. */
	state->below = 0;
	change_state(state, pool, packet->now, STATE_LOW, used, REASON_TRIP);
}

INLINE __u64 clamp(__u64 value, __u64 low, __u64 high)
{
	return value < low ? low : value > high ? high : value;
}

INLINE void judge_window(struct pool_config *config, struct pool_state *state, __u32 pool, __u64 now, __u64 elapsed)
{
	__u64 rate = state->online_rate, windows = config->window_ns ? elapsed / config->window_ns : 1;

	if (config->flags & POOL_CONTINUOUS)
		state->allowed_rate = clamp(config->total > rate ? config->total - rate : 0, config->low, config->high);
	if (rate >= config->waterline) {
		state->below = 0;
		change_state(state, pool, now, STATE_LOW, rate, REASON_WINDOW);
	} else if (rate >= config->clear) {
		state->below = 0;
	} else {
		/* After a pause the packets that would have closed the windows were not there: they were quiet ones. */
		state->below += windows;
		if (state->below >= config->hold)
			change_state(state, pool, now, STATE_HIGH, rate, REASON_HOLD);
	}
}

/* Bytes a second that offline classes may have together now. */
INLINE __u64 offline_rate(struct pool_config *config, struct pool_state *state)
{
	if (state->state == STATE_LOW)
		return config->low;
	if (config->flags & POOL_CONTINUOUS)
		return clamp(state->allowed_rate, config->low, config->high);
	return config->high;
}

#endif
