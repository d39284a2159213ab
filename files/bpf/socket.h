/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The class of the socket that a packet will arrive at. On its way in a packet has no socket yet, one can be looked up, but
 * programs of this kind may not ask for its control group. So the class is noted at the socket when a packet leaves it.
 */
#ifndef COLOCATION_SOCKET_H
#define COLOCATION_SOCKET_H

#include "classify.h"

/* Of linux/socket.h, which is not for programs. */
#define FAMILY_IPV4 2
#define FAMILY_IPV6 10
#define THIS_NAMESPACE ((__u64)(__s32)BPF_F_CURRENT_NETNS)
#define IPV4_FRAGMENT_OFFSET 0x1fff

struct endpoints {
	struct bpf_sock_tuple tuple;
	__u32 transport; /* protocol number */
	__u32 family;    /* 0 for a packet without ports */
};

INLINE void read_ipv4(struct __sk_buff *skb, struct packet *packet, struct endpoints *found)
{
	__u16 fragment = 0;
	__u8 first = 0, transport = 0;

	if (load_bytes(skb, packet->network, &first, 1) < 0 || load_bytes(skb, packet->network + 6, &fragment, 2) < 0 ||
	    load_bytes(skb, packet->network + 9, &transport, 1) < 0)
		return;
	/* Only the first fragment has ports. */
	if (host16(fragment) & IPV4_FRAGMENT_OFFSET)
		return;
	if (load_bytes(skb, packet->network + 12, &found->tuple.ipv4.saddr, 8) < 0 ||
	    load_bytes(skb, packet->network + (first & 15) * 4, &found->tuple.ipv4.sport, 4) < 0)
		return;
	found->transport = transport;
	found->family = FAMILY_IPV4;
}

INLINE void read_ipv6(struct __sk_buff *skb, struct packet *packet, struct endpoints *found)
{
	__u8 transport = 0;

	/* Extension headers are not followed. */
	if (load_bytes(skb, packet->network + 6, &transport, 1) < 0 ||
	    load_bytes(skb, packet->network + 8, &found->tuple.ipv6.saddr, 32) < 0 ||
	    load_bytes(skb, packet->network + IPV6_HEADER, &found->tuple.ipv6.sport, 4) < 0)
		return;
	found->transport = transport;
	found->family = FAMILY_IPV6;
}

/* A socket that is bound to all addresses would answer for packets that are only passing through. */
INLINE int ends_here(struct __sk_buff *skb, struct endpoints *found)
{
	struct bpf_fib_lookup route = {};
	long result;

	route.family = found->family;
	route.l4_protocol = found->transport;
	route.ifindex = skb->ifindex;
	if (found->family == FAMILY_IPV4) {
		route.ipv4_src = found->tuple.ipv4.saddr;
		route.ipv4_dst = found->tuple.ipv4.daddr;
	} else {
		__builtin_memcpy(route.ipv6_src, found->tuple.ipv6.saddr, 16);
		__builtin_memcpy(route.ipv6_dst, found->tuple.ipv6.daddr, 16);
	}
	result = find_route(skb, &route, sizeof(route), 0);
	return result == BPF_FIB_LKUP_RET_NOT_FWDED || result == BPF_FIB_LKUP_RET_FWD_DISABLED;
}

INLINE void *find_socket(struct __sk_buff *skb, struct endpoints *found)
{
	/* Constant sizes: verifiers lose track of one that was chosen before. */
	if (found->family == FAMILY_IPV4) {
		if (found->transport == TCP)
			return find_tcp(skb, &found->tuple, sizeof(found->tuple.ipv4), THIS_NAMESPACE, 0);
		if (found->transport == UDP && ends_here(skb, found))
			return find_udp(skb, &found->tuple, sizeof(found->tuple.ipv4), THIS_NAMESPACE, 0);
	} else if (found->family == FAMILY_IPV6) {
		if (found->transport == TCP)
			return find_tcp(skb, &found->tuple, sizeof(found->tuple.ipv6), THIS_NAMESPACE, 0);
		if (found->transport == UDP && ends_here(skb, found))
			return find_udp(skb, &found->tuple, sizeof(found->tuple.ipv6), THIS_NAMESPACE, 0);
	}
	return 0;
}

INLINE __u32 class_by_socket(struct __sk_buff *skb, struct meta *meta, struct packet *packet)
{
	struct endpoints found = {};
	__u64 *noted;
	void *socket;
	__u32 class = 0;

	find_network(skb, packet);
	if (packet->protocol == TYPE_IPV4)
		read_ipv4(skb, packet, &found);
	else if (packet->protocol == TYPE_IPV6)
		read_ipv6(skb, packet, &found);
	socket = find_socket(skb, &found);
	if (!socket)
		return 0;
	noted = socket_storage(&sockets, socket, 0, 0);
	if (noted && *noted >> 32 == meta->sockets)
		class = *noted & (CLASSES - 1);
	release(socket);
	return class;
}

INLINE void note_class(struct __sk_buff *skb, struct meta *meta)
{
	struct bpf_sock *socket = skb->sk;
	__u32 class, classid;
	__u64 *noted;

	if (!socket)
		return;
	socket = full_socket(socket);
	if (!socket)
		return;
	noted = socket_storage(&sockets, socket, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!noted || *noted >> 32 == meta->sockets)
		return;
	class = class_by_cgroup(skb, meta, DIRECTION_INGRESS);
	classid = class ? 0 : cgroup_classid(skb);
	if (classid)
		class = class_of(map_lookup(&by_classid, &classid), DIRECTION_INGRESS);
	*noted = (__u64)meta->sockets << 32 | class;
}

#endif
