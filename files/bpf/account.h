/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many bytes a packet counts for. */
#ifndef COLOCATION_ACCOUNT_H
#define COLOCATION_ACCOUNT_H

#include "base.h"

#define ETHERNET_TYPE 12
#define ETHERNET_HEADER 14
#define VLAN_TAGS 2
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define TYPE_VLAN 0x8100
#define TYPE_VLAN_OUTER 0x88a8
#define IPV6_HEADER 40
#define UDP_HEADER 8
#define TCP 6
#define UDP 17
/* Preamble, start delimiter, checksum and gap between frames of Ethernet (IEEE 802.3). */
#define LINE_OVERHEAD 24

INLINE __u32 host16(__u32 network_order)
{
	return (__u16)__builtin_bswap16(network_order);
}

INLINE int is_vlan(__u32 type)
{
	return type == TYPE_VLAN || type == TYPE_VLAN_OUTER;
}

INLINE int may_be_ip(__u32 type)
{
	return type == TYPE_IPV4 || type == TYPE_IPV6 || is_vlan(type);
}

/* Find the IP header behind an Ethernet header and its tags, or at the start of a packet without one. */
INLINE void find_network(struct __sk_buff *skb, struct packet *packet)
{
	__u32 type, offset = ETHERNET_HEADER, outer = host16(skb->protocol);
	__u16 raw = 0;

	if (packet->protocol)
		return;
	packet->protocol = outer;
	packet->network = 0;
	if (load_bytes(skb, ETHERNET_TYPE, &raw, sizeof(raw)) < 0)
		return;
	type = host16(raw);
	/* A device without link layer (tun, wireguard): the bytes there belong to an address. */
	if (type != outer && !is_vlan(type) && !is_vlan(outer))
		return;
#pragma clang loop unroll(full)
	for (int tag = 0; tag < VLAN_TAGS; tag++) {
		if (!is_vlan(type))
			break;
		if (load_bytes(skb, offset + 2, &raw, sizeof(raw)) < 0)
			break;
		type = host16(raw);
		offset += 4;
	}
	packet->protocol = type;
	packet->network = offset;
}

struct shape {
	__u32 headers;   /* all headers up to and with the transport's */
	__u32 transport; /* protocol number */
};

INLINE struct shape measure_headers(struct __sk_buff *skb, struct packet *packet)
{
	struct shape shape = { 0, 0 };
	__u8 byte = 0;

	find_network(skb, packet);
	shape.headers = packet->network;
	if (packet->protocol == TYPE_IPV4) {
		if (load_bytes(skb, packet->network, &byte, 1) < 0)
			return shape;
		shape.headers += (byte & 15) * 4;
		load_bytes(skb, packet->network + 9, &byte, 1);
	} else if (packet->protocol == TYPE_IPV6) {
		shape.headers += IPV6_HEADER;
		if (load_bytes(skb, packet->network + 6, &byte, 1) < 0)
			return shape;
	} else {
		return shape;
	}
	shape.transport = byte;
	if (shape.transport == UDP)
		shape.headers += UDP_HEADER;
	if (shape.transport == TCP && load_bytes(skb, shape.headers + 12, &byte, 1) == 0)
		shape.headers += (byte >> 4) * 4;
	return shape;
}

INLINE __u32 segments(__u32 length, __u32 headers, __u32 count, __u32 size)
{
	if (count)
		return count;
	/* What a guest or a tap sends in one piece may say the size of its segments only. */
	if (size && length > headers)
		return (length - headers + size - 1) / size;
	return 1;
}

INLINE __u64 count_payload(__u32 length, struct shape shape)
{
	if (length > shape.headers)
		return length - shape.headers;
	/* Acknowledgements are free, as they carry nothing; an empty datagram isn't, or a flood of them would be free. */
	return shape.transport == TCP ? 0 : length;
}

INLINE __u64 count_bytes(struct __sk_buff *skb, struct packet *packet, struct pool_config *pool, __u32 own_length)
{
	__u32 length = skb->len, wire = skb->wire_len, count = skb->gso_segs, size = skb->gso_size;
	struct shape shape = { 0, 0 };

	/* Left to itself the compiler loads from a computed place in the context, which the verifier refuses. */
	asm volatile("" : "+r"(length), "+r"(wire), "+r"(count), "+r"(size));
	if (pool->accounting == ACCOUNT_SKB)
		return length;
	if (pool->accounting == ACCOUNT_PAYLOAD || (own_length && (count > 1 || size)))
		shape = measure_headers(skb, packet);
	if (pool->accounting == ACCOUNT_PAYLOAD)
		return count_payload(length, shape);
	count = segments(length, shape.headers, count, size);
	if (own_length || !wire)
		wire = length + (count - 1) * shape.headers;
	if (pool->accounting == ACCOUNT_L1)
		wire += count * LINE_OVERHEAD;
	return wire + (__u64)count * pool->overhead;
}

#endif
