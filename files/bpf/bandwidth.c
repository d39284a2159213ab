/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs: `shape` on the way out of a device, `police` on the way in, `stamp` where packets of a pod enter the
 * host; `divert` where they arrive, to let them pass a device of ours first, and `learn` where they leave, so that
 * `divert` knows their sockets. What is done on a device is in map `devices`, nothing on one that isn't there.
 */
#include "classify.h"
#include "describe.h"
#include "pace.h"
#include "socket.h"

#define HOOK_OUT 0
#define HOOK_IN 1
/* Results of a filter that is not of direct action (net/sched/cls_bpf.c): no match; match. */
#define STAY 0
#define MOVE (-1)
/* Beyond what fq takes; such a time is a leftover of reception, on another clock. */
#define FAR_NS (10 * NS)

struct places {
	struct pool_config *pool_config;
	struct pool_state *pool_state;
	struct shards *shards;
	struct shard *shard;
	struct class_config *class_config;
	struct class_state *class_state;
	struct stats *stats;
	__u32 pool;
};

INLINE int find_places(struct meta *meta, struct device *device, __u32 class, struct places *places)
{
	__u32 generation = meta->generation & 1, key = generation * CLASSES + (class & (CLASSES - 1));

	places->class_config = map_lookup(&class_configs, &key);
	if (!places->class_config)
		return 0;
	places->pool = (class ? places->class_config->pool : device->pool) & (POOLS - 1);
	/* Numbers below POOLS stand for what no class claims. */
	class = class ? class & (CLASSES - 1) : places->pool;
	places->class_state = map_lookup(&class_states, &class);
	places->stats = map_lookup(&class_stats, &class);
	places->pool_state = map_lookup(&pool_states, &places->pool);
	places->shards = map_lookup(&pool_shards, &places->pool);
	key = generation * POOLS + places->pool;
	places->pool_config = map_lookup(&pool_configs, &key);
	if (!places->class_state || !places->stats || !places->pool_state || !places->shards || !places->pool_config)
		return 0;
	places->shard = &places->shards->shard[cpu_number() & (SHARDS - 1)];
	return 1;
}

INLINE void read_limits(struct places *places, __u32 class, struct limits *limits)
{
	struct class_config *config = places->class_config;

	limits->role = class ? config->role : ROLE_ONLINE;
	limits->limit = class ? config->limit : 0;
	limits->request = class ? config->request : 0;
	limits->level = config->level;
	limits->burst_ns = config->burst_ns;
	limits->horizon_ns = config->horizon_ns;
	limits->ecn_ns = config->ecn_ns;
}

INLINE void read_times(struct __sk_buff *skb, struct meta *meta, struct packet *packet, __u32 hook)
{
	/* On the way in the field holds the time of reception. */
	__u64 wanted = hook == HOOK_OUT ? skb->tstamp : 0;

	packet->now = meta->test_clock ? meta->test_clock : clock_ns();
	packet->ready = packet->now;
	if (!wanted)
		return;
	if (AFTER(wanted, packet->now + FAR_NS))
		skb->tstamp = 0;
	else if (AFTER(wanted, packet->now))
		packet->ready = wanted;
}

INLINE void steer(struct __sk_buff *skb, struct device *device, struct places *places, __u32 class, __u32 role)
{
	volatile struct __sk_buff *place = skb;
	struct class_config *config = places->class_config;

	/* Always assigned: what the sender put there (TOS, SO_PRIORITY) chooses no class. */
	if (!class || !config->htb_high)
		place->priority = device->htb_default;
	else if (role == ROLE_OFFLINE && places->pool_state->state == STATE_LOW && config->htb_low)
		place->priority = config->htb_low;
	else
		place->priority = config->htb_high;
}

INLINE int handle(struct __sk_buff *skb, struct meta *meta, struct device *device, __u32 hook)
{
	struct packet packet = { 0, 0, 0, 0, 0, 0 };
	struct places places = {};
	struct limits limits = {};
	__u32 class, plane = device->plane, arrived = device->flags & DEVICE_INTERMEDIATE;

	find_device(skb, &packet, device->direction, device->flags);
	class = classify(skb, meta, &packet, device->direction);
	remove_stamp(skb, meta);
	if (!find_places(meta, device, class, &places))
		return GO_ON;
	if (hook == HOOK_IN)
		plane = PLANE_POLICE;
	read_limits(&places, class, &limits);
	read_times(skb, meta, &packet, hook);
	packet.bytes = count_bytes(skb, &packet, places.pool_config,
				   hook == HOOK_IN || device->flags & DEVICE_OWN_WIRE_LENGTH);
	close_window(places.pool_config, places.pool_state, places.shards, places.pool, packet.now);
	places.stats->packets++;
	places.stats->bytes += packet.bytes;
	if (limits.role == ROLE_ONLINE)
		count_online(places.pool_config, places.pool_state, places.shards, places.shard, places.pool, &packet);
	else if (limits.role == ROLE_OFFLINE)
		ADD(&places.shard->offline, packet.bytes);
	if (plane == PLANE_HTB) {
		steer(skb, device, &places, class, limits.role);
		return GO_ON;
	}
	if (!class || limits.role == ROLE_EXEMPT) {
		ADD(&places.shard->outside, packet.bytes);
		return GO_ON;
	}
	return pace(skb, &limits, places.pool_config, places.class_state, places.pool_state, places.shard, places.stats,
		    &packet, plane, arrived);
}

INLINE int run(struct __sk_buff *skb, __u32 hook)
{
	__u32 zero = 0, key = skb->ifindex << 1 | hook;
	struct device *device = map_lookup(&devices, &key);
	struct meta *settings = map_lookup(&meta, &zero);

	/* Neighbour discovery of IPv4 and whatever else isn't IP is never held up. */
	if (!device || !settings || !may_be_ip(host16(skb->protocol)))
		return GO_ON;
	return handle(skb, settings, device, hook);
}

SECTION("classifier/shape") int shape(struct __sk_buff *skb)
{
	return run(skb, HOOK_OUT);
}

SECTION("classifier/police") int police(struct __sk_buff *skb)
{
	return run(skb, HOOK_IN);
}

SECTION("classifier/stamp") int stamp(struct __sk_buff *skb)
{
	struct packet packet = { 0, 0, 0, 0, 0, 0 };
	struct meta *settings;
	__u32 zero = 0, class;

	settings = map_lookup(&meta, &zero);
	if (!settings)
		return GO_ON;
	/* The socket's group is still known here, and this device's number is that of the pod's link. */
	class = class_by_device(skb->ifindex, DIRECTION_EGRESS);
	if (!class)
		class = class_by_cgroup(skb, settings, DIRECTION_EGRESS);
	if (!class)
		class = class_by_prefix(skb, &packet, DIRECTION_EGRESS);
	put_stamp(skb, settings, class);
	return GO_ON;
}

SECTION("classifier/learn") int learn(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct meta *settings = map_lookup(&meta, &zero);

	if (settings && settings->sockets)
		note_class(skb, settings);
	return GO_ON;
}

/* Not of direct action: what is not 0 is carried out by the action behind it, which moves the packet. */
SECTION("classifier/divert") int divert(struct __sk_buff *skb)
{
	struct packet packet = { 0, 0, 0, 0, 0, 0 };
	struct meta *settings;
	__u32 zero = 0, class;

	settings = map_lookup(&meta, &zero);
	if (!settings || !may_be_ip(host16(skb->protocol)))
		return STAY;
	if (settings->sockets) {
		class = class_by_socket(skb, settings, &packet);
		if (class)
			put_stamp(skb, settings, class);
	}
	return MOVE;
}

const char license_text[] SECTION("license") = "GPL";
