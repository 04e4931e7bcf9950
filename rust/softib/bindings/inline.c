// SPDX-License-Identifier: GPL-2.0-only

#include <linux/crc32.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/io.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <net/checksum.h>

#include "inline.h"

/* Frames */

static bool in_bottom_half(void)
{
	return in_softirq() && !in_hardirq() && !irqs_disabled();
}

static struct sk_buff *alloc_at_hand(u32 room)
{
	u32 size = room + SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	void *data = napi_alloc_frag(size);
	struct sk_buff *skb;

	if (!data)
		return NULL;
	skb = napi_build_skb(data, size);
	if (!skb)
		skb_free_frag(data);
	return skb;
}

/* Nobody else on this processor is at what soft interrupts use, nor will be before the caller is done. */
static bool is_exclusive(void)
{
	return !in_hardirq() && (in_softirq() || irqs_disabled());
}

static struct sk_buff *alloc_of_size(enum softib_size size)
{
	struct sk_buff *skb = is_exclusive() ? softib_crossing_spare(size) : NULL;
	u32 room = softib_room_of(size);

	if (skb)
		return skb;
	/* Each processor keeps memory at hand for short ones in soft interrupts. */
	return size == SOFTIB_SMALL && in_bottom_half() ? alloc_at_hand(room) : alloc_skb(room, GFP_ATOMIC | __GFP_NOWARN);
}

struct sk_buff *softib_frame_alloc(u32 length)
{
	enum softib_size size = SOFTIB_SMALL;
	struct sk_buff *skb;

	while (size < SOFTIB_SIZES && length > softib_length_of(size))
		size++;
	if (size < SOFTIB_SIZES)
		skb = alloc_of_size(size);
	else
		skb = alloc_skb(SOFTIB_HEADROOM + length, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, SOFTIB_HEADROOM);
	skb_put(skb, length);
	*softib_frame_of(skb) = (struct softib_frame) { .own = true };
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
	if (is_exclusive() && softib_crossing_keep(skb))
		return;
	if (in_bottom_half())
		napi_consume_skb(skb, 1);
	else
		consume_skb(skb);
}

/*
 * Sends a frame by the network stack. A cable has two ends: each frame is for the other. One that is longer than the net device
 * carries is lost. Under RCU.
 */
int softib_frame_send(struct sk_buff *skb, struct net_device *dev)
{
	struct ethhdr *header;

	if (!softib_fits(skb, dev)) {
		dev_core_stats_tx_dropped_inc(dev);
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
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

u32 softib_queue_length(const struct sk_buff_head *queue)
{
	return skb_queue_len_lockless(queue);
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

/* As from the handler of an interrupt. */
void softib_notify_cq_by_interrupt(struct ib_cq *cq)
{
	unsigned long flags;

	local_irq_save(flags);
	softib_notify_cq(cq);
	local_irq_restore(flags);
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

int softib_processor(u32 number)
{
	unsigned int processor = cpumask_nth(number, cpu_possible_mask);

	return processor < nr_cpu_ids ? processor : -1;
}

bool softib_may_run_here(u32 processor)
{
	return processor == raw_smp_processor_id() || !cpu_online(processor);
}

bool softib_queue_work_on(int processor, struct work_struct *work)
{
	if (processor < 0 || !cpu_online(processor))
		return queue_work(system_bh_wq, work);
	return queue_work_on(processor, system_bh_wq, work);
}

void softib_fill_device(struct ib_device *device, struct faux_device *parent)
{
	device->num_comp_vectors = num_possible_cpus();
	device->dev.parent = &parent->dev;
}

/* The parent reaches all memory. Only HCAs with the option `dma` have memory mapped for it. */
static u64 dma_mask = DMA_BIT_MASK(64);
static struct device_dma_parameters dma_parameters = {
	.max_segment_size = UINT_MAX,
	.segment_boundary_mask = ULONG_MAX,
};

struct faux_device *softib_parent_create(void)
{
	struct faux_device *parent = faux_device_create("softib", NULL, NULL);

	if (parent) {
		parent->dev.dma_mask = &dma_mask;
		parent->dev.coherent_dma_mask = DMA_BIT_MASK(64);
		parent->dev.dma_parms = &dma_parameters;
	}
	return parent;
}

void softib_parent_destroy(struct faux_device *parent)
{
	faux_device_destroy(parent);
}

struct device *softib_dma_device(struct faux_device *parent)
{
	return &parent->dev;
}

/* Memory */

/* Without an IOMMU a mapping is the physical address, which the direct map has at this distance. */
u64 softib_direct_map(void)
{
	return (u64)(uintptr_t)phys_to_virt(0);
}

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
