/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual clocks. A clock says when the bytes that were let through so far have had their time at the rate; it may lag
 * behind by the burst at most. No update is lost when several CPUs claim at once: with atomics (Linux 5.12) by adding
 * and taking the sum in one instruction, without by the lock in the same cache line.
 */
#ifndef COLOCATION_CLOCK_H
#define COLOCATION_CLOCK_H

#include "base.h"

#define ADD(place, value) ((void)__sync_fetch_and_add(place, value))

#ifdef VARIANT_SPIN
static long (*lock_take)(struct bpf_spin_lock *lock) = (void *)BPF_FUNC_spin_lock;
static long (*lock_give)(struct bpf_spin_lock *lock) = (void *)BPF_FUNC_spin_unlock;

INLINE __u64 claim(lock_t *lock, __u64 *clock, __u64 earliest, __u64 cost)
{
	__u64 next;

	lock_take(lock);
	next = *clock;
	if (AFTER(earliest, next))
		next = earliest;
	next += cost;
	*clock = next;
	lock_give(lock);
	return next;
}

INLINE void refund(lock_t *lock, __u64 *clock, __u64 cost)
{
	lock_take(lock);
	*clock -= cost;
	lock_give(lock);
}

INLINE int exchange(lock_t *lock, __u64 *place, __u64 from, __u64 to)
{
	int won = 0;

	lock_take(lock);
	if (*place == from) {
		*place = to;
		won = 1;
	}
	lock_give(lock);
	return won;
}

INLINE __u64 next_number(lock_t *lock, __u64 *counter)
{
	__u64 number;

	lock_take(lock);
	number = *counter;
	*counter = number + 1;
	lock_give(lock);
	return number;
}
#else
INLINE __u64 claim(lock_t *lock, __u64 *clock, __u64 earliest, __u64 cost)
{
	__u64 seen = *(volatile __u64 *)clock;

	if (AFTER(earliest, seen))
		(void)__sync_val_compare_and_swap(clock, seen, earliest);
	return __sync_fetch_and_add(clock, cost) + cost;
}

INLINE void refund(lock_t *lock, __u64 *clock, __u64 cost)
{
	ADD(clock, -cost);
}

INLINE int exchange(lock_t *lock, __u64 *place, __u64 from, __u64 to)
{
	return __sync_val_compare_and_swap(place, from, to) == from;
}

INLINE __u64 next_number(lock_t *lock, __u64 *counter)
{
	return __sync_fetch_and_add(counter, 1);
}
#endif

/* The clock's next value, if it were claimed now: to choose between clocks. */
INLINE __u64 foresee(__u64 *clock, __u64 earliest, __u64 cost)
{
	__u64 seen = *(volatile __u64 *)clock;

	return (AFTER(earliest, seen) ? earliest : seen) + cost;
}

/* ns that bytes take at a rate, to the nearest. 64 KiB at 1 byte a second is far from an overflow. */
INLINE __u64 cost_ns(__u64 bytes, __u64 rate)
{
	return rate ? (bytes * NS + rate / 2) / rate : 0;
}

#endif
