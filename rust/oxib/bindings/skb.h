/* SPDX-License-Identifier: GPL-2.0-only */
/* Inline functions and macros of the kernel for packets, as functions that Rust can call. */

#ifndef OXIB_SKB_H
#define OXIB_SKB_H

#include <linux/skbuff.h>

enum {
	/* Bytes at the end of a receive buffer that build_skb() takes. */
	OXIB_SKB_SHARED_INFO = SKB_DATA_ALIGN(sizeof(struct skb_shared_info)),
	/* Where fields are that bindgen hides in anonymous unions, numbered by configuration. */
	OXIB_SKB_DEV = offsetof(struct sk_buff, dev),
	OXIB_SKB_PROTOCOL = offsetof(struct sk_buff, protocol),
	OXIB_SKB_QUEUE_MAPPING = offsetof(struct sk_buff, queue_mapping),
	OXIB_SKB_MAC_HEADER = offsetof(struct sk_buff, mac_header),
	/* Most pieces of memory of a packet. */
	OXIB_SKB_PIECES = MAX_SKB_FRAGS + 1,
	OXIB_PACKET_BROADCAST = PACKET_BROADCAST,
	OXIB_PACKET_MULTICAST = PACKET_MULTICAST,
};

/* The work on a packet that the stack leaves to its sender. */
struct oxib_wishes {
	/* The checksum of its protocol is to be computed. */
	bool checksum;
	/* It is that of TCP or UDP in IPv4, right behind its header: devices do no other. */
	bool plain;
	/* It is to be cut into TCP segments of so much data, its headers being so long; or 0. */
	u32 mss;
	u32 headers;
};

struct sk_buff *oxib_skb_copy(const struct sk_buff *skb);
int oxib_skb_linearize(struct sk_buff *skb);
bool oxib_skb_may_change(const struct sk_buff *skb);
void oxib_consume_skb(struct sk_buff *skb);
void oxib_skb_leave(struct sk_buff *skb);
void oxib_skb_set_pkt_type(struct sk_buff *skb, u8 type);
void oxib_skb_mark_for_recycle(struct sk_buff *skb);
u32 oxib_skb_frags(const struct sk_buff *skb);
void *oxib_skb_frag(const struct sk_buff *skb, u32 index, u32 *length);
void oxib_skb_add_page(struct sk_buff *skb, struct page *page, u32 length, u32 size);
void oxib_skb_update_pmtu(struct sk_buff *skb, u32 mtu);
void oxib_skb_too_big(struct sk_buff *skb, u32 mtu);
bool oxib_skb_is_plain(const struct sk_buff *skb);
void oxib_skb_wishes(const struct sk_buff *skb, struct oxib_wishes *wishes);
int oxib_skb_checksum_help(struct sk_buff *skb);
void oxib_skb_is_checked(struct sk_buff *skb);
u16 oxib_skb_sum(const struct sk_buff *skb, u32 offset, u32 length);

#endif
