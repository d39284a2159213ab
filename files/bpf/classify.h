/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which class a packet belongs to: the sources in the order that user space set, the first that knows it wins. */
#ifndef COLOCATION_CLASSIFY_H
#define COLOCATION_CLASSIFY_H

#include "account.h"

#define CGROUP_LEVELS 16
/* Far from the numbers of real queues, which veth leaves in the same field. */
#define QUEUE_STAMP 0x6000

INLINE __u32 class_of(struct member *member, __u32 direction)
{
	if (!member)
		return 0;
	return direction == DIRECTION_EGRESS ? member->egress : member->ingress;
}

INLINE __u32 class_by_stamp(struct __sk_buff *skb, struct meta *meta)
{
	__u32 queue = skb->queue_mapping;

	if (meta->carrier == CARRIER_MARK)
		return (skb->mark & meta->mark_mask) >> (meta->mark_shift & 31);
	if (meta->carrier == CARRIER_QUEUE && queue >= QUEUE_STAMP && queue < QUEUE_STAMP + CLASSES)
		return queue - QUEUE_STAMP;
	return 0;
}

/* Stamps are for this device only: a real queue is chosen from what is left, and marks have other users. */
INLINE void remove_stamp(struct __sk_buff *skb, struct meta *meta)
{
	volatile struct __sk_buff *place = skb;

	if (meta->carrier == CARRIER_MARK)
		place->mark = skb->mark & ~meta->mark_mask;
	else if (meta->carrier == CARRIER_QUEUE && skb->queue_mapping >= QUEUE_STAMP)
		place->queue_mapping = 0;
}

INLINE void put_stamp(struct __sk_buff *skb, struct meta *meta, __u32 class)
{
	volatile struct __sk_buff *place = skb;

	if (meta->carrier == CARRIER_MARK)
		place->mark = (skb->mark & ~meta->mark_mask) | (class << (meta->mark_shift & 31) & meta->mark_mask);
	else if (meta->carrier == CARRIER_QUEUE && class)
		place->queue_mapping = QUEUE_STAMP + class;
}

INLINE __u32 class_by_cgroup(struct __sk_buff *skb, struct meta *meta, __u32 direction)
{
	__u64 id = cgroup_id(skb);
	__u32 class;

	if (!id)
		return 0;
	class = class_of(map_lookup(&by_cgroup, &id), direction);
	for (int level = CGROUP_LEVELS - 1; !class && level > 0; level--) {
		if (!(meta->levels_mask >> level & 1))
			continue;
		id = ancestor_id(skb, level);
		if (id)
			class = class_of(map_lookup(&by_cgroup, &id), direction);
	}
	return class;
}

INLINE __u32 class_by_prefix(struct __sk_buff *skb, struct packet *packet, __u32 direction)
{
	find_network(skb, packet);
	if (packet->protocol == TYPE_IPV4) {
		struct prefix4 key = { 32, { 0 } };
		__u32 offset = packet->network + (direction == DIRECTION_EGRESS ? 12 : 16);

		if (load_bytes(skb, offset, key.address, sizeof(key.address)) < 0)
			return 0;
		return class_of(map_lookup(&by_prefix4, &key), direction);
	}
	if (packet->protocol == TYPE_IPV6) {
		struct prefix6 key = { 128, { 0 } };
		__u32 offset = packet->network + (direction == DIRECTION_EGRESS ? 8 : 24);

		if (load_bytes(skb, offset, key.address, sizeof(key.address)) < 0)
			return 0;
		return class_of(map_lookup(&by_prefix6, &key), direction);
	}
	return 0;
}

INLINE __u32 class_by_device(__u32 device, __u32 direction)
{
	return class_of(map_lookup(&by_device, &device), direction);
}

/* Where packets come from counts on their way out, where they go to on their way in. */
INLINE void find_device(struct __sk_buff *skb, struct packet *packet, __u32 direction, __u32 flags)
{
	__u32 from = skb->ingress_ifindex, to = skb->ifindex;

	/* Both are read here: the verifier refuses a load from a computed place in the context. */
	asm volatile("" : "+r"(from), "+r"(to));
	packet->device = direction == DIRECTION_EGRESS || flags & DEVICE_INTERMEDIATE ? from : to;
}

INLINE __u32 class_by(__u32 source, struct __sk_buff *skb, struct meta *meta, struct packet *packet, __u32 direction)
{
	__u32 classid;

	switch (source) {
	case SOURCE_STAMP:
		return class_by_stamp(skb, meta);
	case SOURCE_CGROUP:
		return class_by_cgroup(skb, meta, direction);
	case SOURCE_CLASSID:
		classid = cgroup_classid(skb);
		return classid ? class_of(map_lookup(&by_classid, &classid), direction) : 0;
	case SOURCE_DEVICE:
		return class_by_device(packet->device, direction);
	case SOURCE_PREFIX:
		return class_by_prefix(skb, packet, direction);
	}
	return 0;
}

INLINE __u32 classify(struct __sk_buff *skb, struct meta *meta, struct packet *packet, __u32 direction)
{
	__u32 class = 0;

	for (int i = 0; i < SOURCES; i++) {
		if (!meta->order[i])
			break;
		class = class_by(meta->order[i], skb, meta, packet, direction);
		if (class)
			break;
	}
	return class;
}

#endif
