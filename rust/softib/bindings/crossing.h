/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cables with both ends in this kernel, as those of a pair of veth devices are: frames that nothing waits for on the way go
 * from one end to the other without the network stack.
 */

#ifndef SOFTIB_CROSSING_H
#define SOFTIB_CROSSING_H

#include <linux/if_ether.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>

/* What any net device puts before a packet, without another copy. */
#define SOFTIB_HEADROOM ALIGN(ETH_HLEN + LL_MAX_HEADER, 16)

/* A frame up to that many bytes is a small one; all of those have the same room. */
#define SOFTIB_SMALL 256
#define SOFTIB_SMALL_ROOM SKB_DATA_ALIGN(SOFTIB_HEADROOM + SOFTIB_SMALL)

/* The receiver of the frames of a net device: its receive handler is softib_take_frame, with a pointer to this. */
struct softib_end {
	void (*receive)(struct softib_end *end, struct sk_buff *skb);
};

/* What we know of a frame while it is ours, in its control block. */
struct softib_frame {
	/* The port that it is for. */
	u8 port;
	/* We made it, and nobody but us has had it since. */
	bool own;
	/* The room for its invariant CRC is not filled in. */
	bool open;
	/* It is a packet of a connection. */
	bool connected;
};

int softib_crossing_begin(void);
void softib_crossing_end(void);
struct sk_buff *softib_crossing_spare(void);
bool softib_crossing_keep(struct sk_buff *skb);
bool softib_crossing_send(struct sk_buff *skb, struct net_device *dev);
void softib_crossing_forget(const struct net_device *dev);
rx_handler_result_t softib_take_frame(struct sk_buff **skb);

static inline struct softib_frame *softib_frame_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct softib_frame) > sizeof(skb->cb));
	return (struct softib_frame *)skb->cb;
}

#endif
