// SPDX-License-Identifier: GPL-2.0-only

#include <linux/crc32.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <net/checksum.h>

#include "inline.h"

/* What any net device puts before a packet, without another copy. */
#define HEADROOM ALIGN(ETH_HLEN + LL_MAX_HEADER, 16)

/* Frames */

struct sk_buff *softib_frame_alloc(u32 length)
{
	struct sk_buff *skb = alloc_skb(HEADROOM + length, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb)
		return NULL;
	skb_reserve(skb, HEADROOM);
	skb_put(skb, length);
	return skb;
}

struct sk_buff *softib_frame_own(struct sk_buff *skb)
{
	skb = skb_share_check(skb, GFP_ATOMIC);
	if (skb && skb_linearize(skb)) {
		kfree_skb(skb);
		return NULL;
	}
	return skb;
}

int softib_frame_writable(struct sk_buff *skb)
{
	return skb_unclone(skb, GFP_ATOMIC);
}

void softib_frame_shrink(struct sk_buff *skb, u32 length)
{
	skb_trim(skb, length);
}

void softib_frame_free(struct sk_buff *skb)
{
	consume_skb(skb);
}

/* A cable has two ends: each frame is for the other. */
int softib_frame_send(struct sk_buff *skb, struct net_device *dev)
{
	struct ethhdr *header;

	if (skb_cow_head(skb, ETH_HLEN)) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	skb->dev = dev;
	skb->protocol = htons(SOFTIB_ETHERTYPE);
	skb->ip_summed = CHECKSUM_NONE;
	skb_clear_tstamp(skb);
	skb_reset_network_header(skb);
	header = skb_push(skb, ETH_HLEN);
	skb_reset_mac_header(skb);
	eth_broadcast_addr(header->h_dest);
	ether_addr_copy(header->h_source, dev->dev_addr);
	header->h_proto = htons(SOFTIB_ETHERTYPE);
	return dev_queue_xmit(skb);
}

bool softib_is_frame(const struct sk_buff *skb)
{
	return skb->protocol == htons(SOFTIB_ETHERTYPE);
}

u32 softib_crc32(u32 crc, const u8 *bytes, size_t length)
{
	return crc32_le(crc, bytes, length);
}

u16 softib_sum(const u8 *bytes, u32 length)
{
	return ntohs((__force __be16)csum_from32to16(csum_partial(bytes, length, 0)));
}

void softib_queue_init(struct sk_buff_head *queue)
{
	skb_queue_head_init(queue);
}

bool softib_queue_is_empty(const struct sk_buff_head *queue)
{
	return skb_queue_empty_lockless(queue);
}

void softib_queue_purge(struct sk_buff_head *queue)
{
	skb_queue_purge(queue);
}

/* Net devices */

void *softib_rx_handler_data(const struct sk_buff *skb)
{
	return rcu_dereference(skb->dev->rx_handler_data);
}

struct net_device *softib_notified_device(void *info)
{
	return netdev_notifier_info_to_dev(info);
}

bool softib_is_registered(const struct net_device *dev)
{
	return dev->reg_state == NETREG_REGISTERED;
}

bool softib_has_carrier(const struct net_device *dev)
{
	return netif_running(dev) && netif_carrier_ok(dev);
}

void softib_dev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

void softib_dev_put(struct net_device *dev)
{
	dev_put(dev);
}

void softib_raise_mtu(struct net_device *dev, u32 mtu)
{
	if (dev->max_mtu && mtu > dev->max_mtu)
		mtu = dev->max_mtu;
	if (dev->mtu < mtu)
		dev_set_mtu(dev, mtu);
}

struct net_device *softib_find_device(const char *name)
{
	return dev_get_by_name(current->nsproxy->net_ns, name);
}

bool softib_is_ethernet(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER && dev->addr_len == ETH_ALEN;
}

struct net *softib_dev_net(const struct net_device *dev)
{
	return dev_net(dev);
}

void softib_hardware_address(const struct net_device *dev, u8 *address)
{
	ether_addr_copy(address, dev->dev_addr);
}

bool softib_in_interrupt(void)
{
	return in_hardirq() || irqs_disabled();
}

void softib_bh_disable(void)
{
	local_bh_disable();
}

void softib_bh_enable(void)
{
	local_bh_enable();
}

/* RDMA devices */

bool softib_device_try_get(struct ib_device *device)
{
	return ib_device_try_get(device);
}

void softib_notify_cq(struct ib_cq *cq)
{
	if (cq->comp_handler)
		cq->comp_handler(cq, cq->cq_context);
}

void softib_notify_qp(struct ib_qp *qp, enum ib_event_type type)
{
	struct ib_event event = { .device = qp->device, .element.qp = qp, .event = type };

	if (qp->event_handler)
		qp->event_handler(&event, qp->qp_context);
}

void softib_notify_srq(struct ib_srq *srq, enum ib_event_type type)
{
	struct ib_event event = { .device = srq->device, .element.srq = srq, .event = type };

	if (srq->event_handler)
		srq->event_handler(&event, srq->srq_context);
}

void softib_fill_device(struct ib_device *device)
{
	device->num_comp_vectors = num_possible_cpus();
}

/* Memory */

bool softib_is_memory(u64 address, size_t length)
{
	u64 page, last = address + length - 1;

	if (last < address)
		return false;
	for (page = address & PAGE_MASK; page <= (last & PAGE_MASK); page += PAGE_SIZE)
		if (!virt_addr_valid((void *)(uintptr_t)page))
			return false;
	return true;
}
