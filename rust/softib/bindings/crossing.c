// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames on their way from one end of a cable to the other, and those that are kept for the next ones. Soft interrupts do not
 * come between wherever either is used.
 *
 * Frames that are on their way to one queue pair at one end arrive in the order in which they were sent, whichever processors
 * send them: they have one queue, which one processor at a time takes from.
 */

#include <linux/cache.h>
#include <linux/etherdevice.h>
#include <linux/hash.h>
#include <linux/percpu.h>
#include <linux/unaligned.h>
#include <net/sch_generic.h>

#include "inline.h"

/* The queues of data, with more of which fewer queue pairs share one, and as many of subnet management. */
#define QUEUE_BITS 4
#define QUEUES (1 << QUEUE_BITS)

/* As many as wait in each queue at the most: of the longest packets 256 MiB in those of data. What comes then is lost. */
#define WAITING 2048

/* Connections, whose packets InfiniBand does not lose, wait while as many do. The rest is for what was begun before that. */
#define CROWD (WAITING / 2)

/* So many frames of each size are kept without a use, for each processor: of all sizes together these are 2 MiB. */
#define SPARE 128

/* Bytes of the link header, and of the global one. */
#define LOCAL_HEADER 8
#define GLOBAL_HEADER 40

/* The lane of subnet management, and the first byte of a signal of a cable. */
#define MANAGEMENT_LANE 15
#define SIGNAL_MARK 0x0f

struct crossing {
	struct napi_struct napi;
	/* On their way, each with the net device of the other end. */
	struct sk_buff_head frames;
} ____cacheline_aligned_in_smp;

static struct crossing crossings[2 * QUEUES];

/* Frames without a use. */
struct spares {
	struct sk_buff_head of_size[SOFTIB_SIZES];
};

static DEFINE_PER_CPU(struct spares, spares);

/* What a NAPI context has to belong to; it is no device that anybody sees. */
static struct net_device *owner;

static void take(struct crossing *crossing, struct sk_buff_head *taken, int number)
{
	struct sk_buff *skb;

	spin_lock(&crossing->frames.lock);
	while (number-- && (skb = __skb_dequeue(&crossing->frames)))
		__skb_queue_tail(taken, skb);
	spin_unlock(&crossing->frames.lock);
}

static void arrive(struct sk_buff *skb)
{
	struct softib_end *end;

	if (likely(rcu_dereference(skb->dev->rx_handler) == softib_take_frame)) {
		end = rcu_dereference(skb->dev->rx_handler_data);
		end->receive(end, skb);
	} else {
		kfree_skb(skb);
	}
}

static int poll(struct napi_struct *napi, int budget)
{
	struct crossing *crossing = container_of(napi, struct crossing, napi);
	struct sk_buff_head taken;
	struct sk_buff *skb;
	int before, done = 0;

	__skb_queue_head_init(&taken);
	/* softib_crossing_forget() waits for those that are taken here. */
	rcu_read_lock();
	do {
		before = done;
		take(crossing, &taken, budget - done);
		while ((skb = __skb_dequeue(&taken))) {
			arrive(skb);
			done++;
		}
	} while (done != before && done < budget);
	rcu_read_unlock();
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

/* The number of the queue of data to a queue pair at an end. */
static u32 data_queue(const struct net_device *end, u32 pair)
{
	return hash_64((uintptr_t)end + pair, QUEUE_BITS);
}

/*
 * Whether a frame neither waits behind data nor finds its queue full of it. By the lane (IBTA 7.6): any program can send data to
 * queue pair 0.
 */
static bool is_management(const struct sk_buff *skb)
{
	return skb->len && (skb->data[0] >> 4 == MANAGEMENT_LANE || skb->data[0] == SIGNAL_MARK);
}

/* The number of the queue of a frame to an end: by the end, and by the queue pair if it is a packet (IBTA 7.7, 9.2). */
u32 softib_crossing_queue(const struct sk_buff *skb, const struct net_device *end)
{
	const u8 *bytes = skb->data;
	/* Its link header says whether a global one is before the transport's. */
	unsigned int transport = skb->len > LOCAL_HEADER && (bytes[1] & 3) == 3 ? LOCAL_HEADER + GLOBAL_HEADER : LOCAL_HEADER;
	u32 pair = skb->len >= transport + 8 ? get_unaligned_be32(bytes + transport + 4) & 0xffffff : 0;

	return data_queue(end, pair) + (is_management(skb) ? QUEUES : 0);
}

static void send(struct sk_buff *skb)
{
	struct crossing *crossing = &crossings[softib_crossing_queue(skb, skb->dev)];
	u32 length;

	spin_lock(&crossing->frames.lock);
	length = skb_queue_len(&crossing->frames);
	if (likely(length < WAITING))
		__skb_queue_tail(&crossing->frames, skb);
	spin_unlock(&crossing->frames.lock);
	if (unlikely(length >= WAITING)) {
		dev_core_stats_rx_dropped_inc(skb->dev);
		kfree_skb(skb);
	} else if (!length || !test_bit(NAPI_STATE_SCHED, &crossing->napi.state)) {
		/*
		 * Whoever found it empty comes here after its frame is in, so that no frame stays: a processor that takes from the
		 * queue looks once more. If one has put a frame in and has not come here yet, this one takes both.
		 */
		napi_schedule(&crossing->napi);
	}
}

/* Whether anything is to happen to what leaves a net device: a queueing discipline, a filter, a capture. */
static bool is_watched(const struct net_device *dev)
{
	const struct netdev_queue *queue = netdev_get_tx_queue(dev, 0);

	if (dev->real_num_tx_queues != 1 || rcu_dereference(queue->qdisc)->enqueue || dev_nit_active_rcu(dev))
		return true;
#ifdef CONFIG_NET_XGRESS
	if (rcu_access_pointer(dev->tcx_egress))
		return true;
#endif
#ifdef CONFIG_NETFILTER_EGRESS
	if (rcu_access_pointer(dev->nf_hooks_egress))
		return true;
#endif
	return false;
}

/* The same for what arrives at one. */
static bool is_guarded(const struct net_device *dev)
{
	if (dev->xdp_state[XDP_MODE_DRV].prog || rcu_access_pointer(dev->xdp_prog) || dev_nit_active_rcu(dev))
		return true;
#ifdef CONFIG_NET_XGRESS
	if (rcu_access_pointer(dev->tcx_ingress))
		return true;
#endif
#ifdef CONFIG_NETFILTER_INGRESS
	if (rcu_access_pointer(dev->nf_hooks_ingress))
		return true;
#endif
	return false;
}

/* The other end of a cable, if it is ours too and nothing is to happen between both. Under RCU. */
static struct net_device *other_end(struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;
	struct net_device *peer;

	if (!ops->ndo_get_peer_dev || dev->pcpu_stat_type != NETDEV_PCPU_STAT_TSTATS || !softib_has_carrier(dev))
		return NULL;
	peer = ops->ndo_get_peer_dev(dev);
	if (!peer || !(peer->flags & IFF_UP) || rcu_access_pointer(peer->rx_handler) != softib_take_frame)
		return NULL;
	return is_watched(dev) || is_guarded(peer) ? NULL : peer;
}

/* Takes a frame to the other end of its cable, if it can go there by itself; if not, it is left to the caller. Under RCU. */
bool softib_crossing_send(struct sk_buff *skb, struct net_device *dev)
{
	struct net_device *peer = other_end(dev);

	if (!peer || !softib_fits(skb, dev) || !softib_fits(skb, peer))
		return false;
	skb->dev = peer;
	local_bh_disable();
	dev_sw_netstats_tx_add(dev, 1, skb->len + ETH_HLEN);
	send(skb);
	local_bh_enable();
	return true;
}

/* Whether so many frames wait for a queue pair at the other end of a cable that connections are to send no more. Under RCU. */
bool softib_crossing_is_crowded(struct net_device *dev, u32 pair)
{
	struct net_device *peer = other_end(dev);

	return peer && skb_queue_len_lockless(&crossings[data_queue(peer, pair)].frames) >= CROWD;
}

/* The receive handler of net devices that are cables: what the network stack brings. */
rx_handler_result_t softib_take_frame(struct sk_buff **pskb)
{
	struct sk_buff *skb = *pskb;
	struct softib_end *end;

	if (skb->protocol != htons(SOFTIB_ETHERTYPE))
		return RX_HANDLER_PASS;
	end = rcu_dereference(skb->dev->rx_handler_data);
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return RX_HANDLER_CONSUMED;
	if (skb_linearize(skb)) {
		kfree_skb(skb);
		return RX_HANDLER_CONSUMED;
	}
	*softib_frame_of(skb) = (struct softib_frame) { };
	end->receive(end, skb);
	return RX_HANDLER_CONSUMED;
}

/* Loses the frames that are on their way to a net device without its former receive handler. */
void softib_crossing_forget(const struct net_device *dev)
{
	struct sk_buff *skb, *next;
	struct sk_buff_head *frames;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(crossings); i++) {
		frames = &crossings[i].frames;
		spin_lock_bh(&frames->lock);
		skb_queue_walk_safe(frames, skb, next) {
			if (skb->dev == dev) {
				__skb_unlink(skb, frames);
				kfree_skb(skb);
			}
		}
		spin_unlock_bh(&frames->lock);
	}
	synchronize_net();
}

/* A frame of a size that was used before, empty; NULL if there is none. */
struct sk_buff *softib_crossing_spare(enum softib_size size)
{
	struct sk_buff *skb = __skb_dequeue(&this_cpu_ptr(&spares)->of_size[size]);

	if (skb) {
		skb->data = skb->head;
		skb->len = 0;
		skb_reset_tail_pointer(skb);
	}
	return skb;
}

/* The list for a frame without a use; NULL if it has the room of none. An allocator may have rounded its room up. */
static struct sk_buff_head *spare_of(const struct sk_buff *skb)
{
	u32 room = skb_end_offset(skb);
	int size = SOFTIB_SIZES;

	while (size--)
		if (room >= softib_room_of(size))
			return room < 2 * softib_room_of(size) ? &this_cpu_ptr(&spares)->of_size[size] : NULL;
	return NULL;
}

/* Keeps a frame for the next one, if nobody but us has had it, and if its memory is none that is reserved for emergencies. */
bool softib_crossing_keep(struct sk_buff *skb)
{
	struct sk_buff_head *spare;

	if (!softib_frame_of(skb)->own || skb->cloned || skb_shared(skb) || skb_pfmemalloc(skb))
		return false;
	spare = spare_of(skb);
	if (!spare || skb_queue_len(spare) >= SPARE)
		return false;
	__skb_queue_head(spare, skb);
	return true;
}

int softib_crossing_begin(void)
{
	struct crossing *crossing;
	int processor, size;

	owner = alloc_netdev_dummy(0);
	if (!owner)
		return -ENOMEM;
	for_each_possible_cpu(processor)
		for (size = 0; size < SOFTIB_SIZES; size++)
			skb_queue_head_init(&per_cpu(spares, processor).of_size[size]);
	for (crossing = crossings; crossing < crossings + ARRAY_SIZE(crossings); crossing++) {
		skb_queue_head_init(&crossing->frames);
		netif_napi_add(owner, &crossing->napi, poll);
		napi_enable(&crossing->napi);
	}
	return 0;
}

/* When there are no cables any more. */
void softib_crossing_end(void)
{
	struct crossing *crossing;
	int processor, size;

	for (crossing = crossings; crossing < crossings + ARRAY_SIZE(crossings); crossing++) {
		napi_disable(&crossing->napi);
		skb_queue_purge(&crossing->frames);
	}
	for_each_possible_cpu(processor)
		for (size = 0; size < SOFTIB_SIZES; size++)
			skb_queue_purge(&per_cpu(spares, processor).of_size[size]);
	/* With its NAPI contexts, after one grace period for all of them. */
	free_netdev(owner);
}
