// SPDX-License-Identifier: GPL-2.0-only

#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <net/page_pool/helpers.h>
#include <rdma/ib_cache.h>

#include "inline.h"

/* Packets */

int oxib_skb_linearize(struct sk_buff *skb)
{
	return skb_linearize(skb);
}

/* What dev_consume_skb_any() does, with fewer calls on the way; netpoll sends with interrupts off. */
void oxib_consume_skb(struct sk_buff *skb)
{
	if (in_hardirq() || irqs_disabled())
		dev_consume_skb_any(skb);
	else
		consume_skb(skb);
}

void oxib_skb_set_pkt_type(struct sk_buff *skb, u8 type)
{
	skb->pkt_type = type;
}

void oxib_skb_mark_for_recycle(struct sk_buff *skb)
{
	skb_mark_for_recycle(skb);
}

/* Pages */

u32 oxib_page_pool_pages(struct page_pool *pool)
{
	return READ_ONCE(pool->pages_state_hold_cnt) -
	       (u32)atomic_read(&pool->pages_state_release_cnt);
}

void *oxib_page_address(struct page *page)
{
	return page_address(page);
}

u64 oxib_page_pool_dma_addr(struct page *page)
{
	return page_pool_get_dma_addr(page);
}

void oxib_page_pool_sync_for_cpu(struct page_pool *pool, struct page *page, u32 offset, u32 length)
{
	page_pool_dma_sync_for_cpu(pool, page, offset, length);
}

void oxib_page_pool_sync_for_device(struct page_pool *pool, struct page *page, u32 offset,
				    u32 length)
{
	dma_sync_single_range_for_device(pool->p.dev, page_pool_get_dma_addr(page), offset, length,
					 DMA_FROM_DEVICE);
}

void oxib_page_pool_put(struct page_pool *pool, struct page *page)
{
	page_pool_put_full_page(pool, page, false);
}

/* NAPI */

void oxib_napi_add(struct net_device *dev, struct napi_struct *napi,
		   int (*poll)(struct napi_struct *, int), bool transmit)
{
	if (transmit)
		netif_napi_add_tx(dev, napi, poll);
	else
		netif_napi_add(dev, napi, poll);
}

void oxib_napi_del(struct napi_struct *napi)
{
	netif_napi_del(napi);
}

void oxib_napi_schedule(struct napi_struct *napi)
{
	napi_schedule(napi);
}

struct gro_node *oxib_napi_gro(struct napi_struct *napi)
{
	return &napi->gro;
}

/* Transmit queues */

void oxib_tx_lock(struct netdev_queue *queue, bool disable_bh)
{
	if (disable_bh)
		__netif_tx_lock_bh(queue);
	else
		__netif_tx_lock(queue, smp_processor_id());
}

void oxib_tx_unlock(struct netdev_queue *queue, bool disable_bh)
{
	if (disable_bh)
		__netif_tx_unlock_bh(queue);
	else
		__netif_tx_unlock(queue);
}

void oxib_tx_stop_queue(struct netdev_queue *queue)
{
	netif_tx_stop_queue(queue);
}

void oxib_tx_wake_if_stopped(struct netdev_queue *queue)
{
	if (netif_tx_queue_stopped(queue))
		netif_tx_wake_queue(queue);
}

bool oxib_tx_sent(struct netdev_queue *queue, u32 bytes)
{
	return __netdev_tx_sent_queue(queue, bytes, netdev_xmit_more());
}

void oxib_tx_set_min_limit(struct netdev_queue *queue, u32 bytes)
{
	netdev_queue_set_dql_min_limit(queue, bytes);
}

void oxib_tx_completed(struct netdev_queue *queue, u32 packets, u32 bytes)
{
	netdev_tx_completed_queue(queue, packets, bytes);
}

void oxib_tx_reset(struct netdev_queue *queue)
{
	netdev_tx_reset_queue(queue);
}

bool oxib_xmit_more(void)
{
	return netdev_xmit_more();
}

/* Net devices */

void oxib_netdev_setup(struct net_device *dev)
{
	dev->features |= NETIF_F_VLAN_CHALLENGED | NETIF_F_HIGHDMA;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
}

void oxib_netdev_set_parent(struct net_device *dev, struct ib_device *parent, u32 port)
{
	SET_NETDEV_DEV(dev, parent->dev.parent);
	dev_net_set(dev, rdma_dev_net(parent));
	dev->dev_port = port;
}

void oxib_start_queues(struct net_device *dev)
{
	netif_tx_wake_all_queues(dev);
}

void oxib_stop_queues(struct net_device *dev)
{
	netif_tx_disable(dev);
}

void oxib_set_address(struct net_device *dev, const u8 *address)
{
	if (!memcmp(dev->dev_addr, address, dev->addr_len))
		return;
	__dev_addr_set(dev, address, dev->addr_len);
	if (dev->reg_state == NETREG_REGISTERED)
		call_netdevice_notifiers(NETDEV_CHANGEADDR, dev);
}

void oxib_store_mtu(struct net_device *dev, u32 mtu)
{
	WRITE_ONCE(dev->mtu, mtu);
}

int oxib_mc_count(struct net_device *dev)
{
	return netdev_mc_count(dev);
}

void oxib_for_each_mc(struct net_device *dev, void (*use)(void *context, const u8 *address),
		      void *context)
{
	struct netdev_hw_addr *address;

	netif_addr_lock_bh(dev);
	netdev_for_each_mc_addr(address, dev)
		use(context, address->addr);
	netif_addr_unlock_bh(dev);
}

void oxib_count_tx(struct net_device *dev, u32 packets, u32 bytes)
{
	dev_sw_netstats_tx_add(dev, packets, bytes);
}

void oxib_count_rx(struct net_device *dev, u32 packets, u32 bytes)
{
	struct pcpu_sw_netstats *stats = this_cpu_ptr(dev->tstats);

	u64_stats_update_begin(&stats->syncp);
	u64_stats_add(&stats->rx_packets, packets);
	u64_stats_add(&stats->rx_bytes, bytes);
	u64_stats_update_end(&stats->syncp);
}

void oxib_count_multicast(struct net_device *dev)
{
	DEV_STATS_INC(dev, multicast);
}

void oxib_count_tx_dropped(struct net_device *dev)
{
	dev_core_stats_tx_dropped_inc(dev);
}

void oxib_count_rx_dropped(struct net_device *dev)
{
	dev_core_stats_rx_dropped_inc(dev);
}

void oxib_dev_put(struct net_device *dev)
{
	dev_put(dev);
}

bool oxib_gid_has_vlan(const struct ib_gid_attr *attr)
{
	u16 vlan = 0xffff;

	return rdma_read_gid_l2_fields(attr, &vlan, NULL) || vlan != 0xffff;
}

int oxib_roce_mtu(const struct net_device *dev)
{
	return ib_mtu_enum_to_int(iboe_get_mtu(READ_ONCE(dev->mtu)));
}

struct in_device *oxib_in_dev_get(const struct net_device *dev)
{
	return __in_dev_get_rtnl(dev);
}

void oxib_ip_mc_dec_group(struct in_device *in_dev, u32 group)
{
	ip_mc_dec_group(in_dev, (__force __be32)group);
}

/* RDMA */

void oxib_device_get(struct ib_device *device)
{
	WARN_ON(!ib_device_try_get(device));
}

const char *oxib_device_name(const struct ib_device *device)
{
	return dev_name(&device->dev);
}

struct device *oxib_device_dev(struct ib_device *device)
{
	return &device->dev;
}

u32 oxib_first_port(const struct ib_device *device)
{
	return rdma_start_port(device);
}

u32 oxib_last_port(const struct ib_device *device)
{
	return rdma_end_port(device);
}

bool oxib_cap_ib_cm(const struct ib_device *device, u32 port)
{
	return rdma_cap_ib_cm(device, port);
}

struct ib_mad_send_buf *oxib_create_send_mad(struct ib_mad_agent *agent, u32 qpn, u16 pkey_index)
{
	return ib_create_send_mad(agent, qpn, pkey_index, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
				  GFP_ATOMIC, IB_MGMT_BASE_VERSION);
}

bool oxib_protocol_ib(const struct ib_device *device, u32 port)
{
	return rdma_protocol_ib(device, port);
}

bool oxib_protocol_roce_v2(const struct ib_device *device, u32 port)
{
	return rdma_protocol_roce_udp_encap(device, port);
}

u32 oxib_gid_table_length(struct ib_device *device, u32 port)
{
	return device->port_data[port].immutable.gid_tbl_len;
}

bool oxib_uses_virt_dma(struct ib_device *device)
{
	return ib_uses_virt_dma(device);
}

u64 oxib_dma_map(struct ib_device *device, void *address, size_t length)
{
	return ib_dma_map_single(device, address, length, DMA_TO_DEVICE);
}

bool oxib_dma_mapping_error(struct ib_device *device, u64 address)
{
	return ib_dma_mapping_error(device, address);
}

void oxib_dma_unmap(struct ib_device *device, u64 address, size_t length)
{
	ib_dma_unmap_single(device, address, length, DMA_TO_DEVICE);
}

void oxib_gid_to_ip(struct sockaddr *out, const u8 *gid)
{
	rdma_gid2ip(out, (const union ib_gid *)gid);
}

int oxib_resolve_ip(struct sockaddr *from, const struct sockaddr *to, struct rdma_dev_addr *device,
		    unsigned long timeout_ms,
		    void (*done)(int status, struct sockaddr *from, struct rdma_dev_addr *device,
				 void *context),
		    void *context)
{
	device->net = &init_net;
	return rdma_resolve_ip(from, to, device, timeout_ms, done, true, context);
}
