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

/* What the headers of a packet take at the most (IBTA 5.2), and room to spare. */
#define SOFTIB_HEADERS 128

/* The sizes of frames: each frame has the room of the smallest size that it fits into. */
enum softib_size {
	/* Messages of management, acknowledgements and other short packets. */
	SOFTIB_SMALL,
	/* The longest packets of these MTUs. */
	SOFTIB_MTU_1024,
	SOFTIB_MTU_2048,
	SOFTIB_MTU_4096,
	SOFTIB_SIZES
};

/* The receiver of the frames of a net device: its receive handler is softib_take_frame, with a pointer to this. */
struct softib_end {
	void (*receive)(struct softib_end *end, struct sk_buff *skb);
};

/* What we know of a frame while it is ours, in its control block. */
struct softib_frame {
	/* The port that it is for. */
	u8 port;
	/* The switches that it has come to since it was made, left a router, or came out of the network stack. */
	u8 switches;
	/* We made it, and nobody but us has had it since. */
	bool own;
	/* The room for its invariant CRC is not filled in. */
	bool open;
	/* It is a packet of a connection. */
	bool connected;
};

int softib_crossing_begin(void);
void softib_crossing_end(void);
struct sk_buff *softib_crossing_spare(enum softib_size size);
bool softib_crossing_keep(struct sk_buff *skb);
bool softib_crossing_send(struct sk_buff *skb, struct net_device *dev);
u32 softib_crossing_queue(const struct sk_buff *skb, const struct net_device *end);
bool softib_crossing_is_crowded(struct net_device *dev, u32 pair);
void softib_crossing_forget(const struct net_device *dev);
rx_handler_result_t softib_take_frame(struct sk_buff **skb);

/* The bytes that a frame of a size may have. */
static inline u32 softib_length_of(enum softib_size size)
{
	static const u32 lengths[] = {
		[SOFTIB_SMALL] = 256,
		[SOFTIB_MTU_1024] = 1024 + SOFTIB_HEADERS,
		[SOFTIB_MTU_2048] = 2048 + SOFTIB_HEADERS,
		[SOFTIB_MTU_4096] = 4096 + SOFTIB_HEADERS,
	};

	return lengths[size];
}

/* The room of a frame of a size, with what net devices put before it. */
static inline u32 softib_room_of(enum softib_size size)
{
	return SKB_DATA_ALIGN(SOFTIB_HEADROOM + softib_length_of(size));
}

/* Whether a frame is no longer than a net device carries. Drivers rely on that, and the network stack does not look. */
static inline bool softib_fits(const struct sk_buff *skb, const struct net_device *dev)
{
	return skb->len <= READ_ONCE(dev->mtu);
}

static inline struct softib_frame *softib_frame_of(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct softib_frame) > sizeof(skb->cb));
	return (struct softib_frame *)skb->cb;
}

#endif
