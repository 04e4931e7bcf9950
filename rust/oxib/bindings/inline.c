// SPDX-License-Identifier: GPL-2.0-only

#include <linux/icmpv6.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/kmemleak.h>
#include <linux/rtnetlink.h>
#include <linux/sched/mm.h>
#include <net/addrconf.h>
#include <net/dst.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/neighbour.h>
#include <net/net_namespace.h>
#include <net/page_pool/helpers.h>
#include <rdma/ib_cache.h>

#include "inline.h"

/* Memory */

unsigned int oxib_memalloc_noio_save(void)
{
	return memalloc_noio_save();
}

void oxib_memalloc_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}

/* Packets */

struct sk_buff *oxib_skb_copy(const struct sk_buff *skb)
{
	return skb_copy(skb, GFP_ATOMIC);
}

int oxib_skb_linearize(struct sk_buff *skb)
{
	return skb_linearize(skb);
}

/* Whether others may write to its pieces: pages of a file, or of a program that sends without a copy. */
bool oxib_skb_may_change(const struct sk_buff *skb)
{
	return skb_has_shared_frag(skb);
}

/* What dev_consume_skb_any() does, with fewer calls on the way; netpoll sends with interrupts off. */
void oxib_consume_skb(struct sk_buff *skb)
{
	if (in_hardirq() || irqs_disabled())
		dev_consume_skb_any(skb);
	else
		consume_skb(skb);
}

/*
 * Lets go of all but the packet's memory, which stays with a device for good: sockets, routes and network namespaces
 * would wait for it.
 */
void oxib_skb_leave(struct sk_buff *skb)
{
	struct sk_buff_fclones *clones = container_of(skb, struct sk_buff_fclones, skb2);

	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	kmemleak_not_leak(skb->fclone == SKB_FCLONE_CLONE ? &clones->skb1 : skb);
}

void oxib_skb_set_pkt_type(struct sk_buff *skb, u8 type)
{
	skb->pkt_type = type;
}

void oxib_skb_mark_for_recycle(struct sk_buff *skb)
{
	skb_mark_for_recycle(skb);
}

/* Whether it is one piece of memory, to be sent as it is. */
bool oxib_skb_is_plain(const struct sk_buff *skb)
{
	return !skb_is_nonlinear(skb) && skb->ip_summed != CHECKSUM_PARTIAL && !skb_is_gso(skb);
}

/*
 * Whether a checksum is one that devices compute, of TCP or UDP in IPv4: of what is in a tunnel it is further inside,
 * and that of the tunnel's own UDP is there already.
 */
static bool is_plain_checksum(const struct sk_buff *skb)
{
	u8 protocol;

	if (skb->protocol != htons(ETH_P_IP) || !skb_transport_header_was_set(skb) ||
	    skb_checksum_start_offset(skb) != skb_transport_offset(skb) ||
	    skb_transport_header(skb) != skb_network_header(skb) + ip_hdrlen(skb))
		return false;
	protocol = ip_hdr(skb)->protocol;
	return (protocol == IPPROTO_TCP && skb->csum_offset == offsetof(struct tcphdr, check)) ||
	       (protocol == IPPROTO_UDP && skb->csum_offset == offsetof(struct udphdr, check));
}

void oxib_skb_wishes(const struct sk_buff *skb, struct oxib_wishes *wishes)
{
	wishes->checksum = skb->ip_summed == CHECKSUM_PARTIAL;
	wishes->plain = wishes->checksum && is_plain_checksum(skb);
	wishes->mss = skb_shinfo(skb)->gso_size;
	wishes->headers = wishes->mss ? skb_tcp_all_headers(skb) : 0;
}

int oxib_skb_checksum_help(struct sk_buff *skb)
{
	return skb_checksum_help(skb);
}

/* The sum as 16-bit numbers in network order. */
u16 oxib_skb_sum(const struct sk_buff *skb, u32 offset, u32 length)
{
	return ntohs((__force __be16)~csum_fold(skb_checksum(skb, offset, length, 0)));
}

/* The device has found the checksum right. */
void oxib_skb_is_checked(struct sk_buff *skb)
{
	if (skb->dev->features & NETIF_F_RXCSUM)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
}

u32 oxib_skb_frags(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->nr_frags;
}

void *oxib_skb_frag(const struct sk_buff *skb, u32 index, u32 *length)
{
	const skb_frag_t *frag = &skb_shinfo(skb)->frags[index];

	*length = skb_frag_size(frag);
	return skb_frag_address_safe(frag);
}

void oxib_skb_add_page(struct sk_buff *skb, struct page *page, u32 length, u32 size)
{
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, length, size);
}

void oxib_skb_update_pmtu(struct sk_buff *skb, u32 mtu)
{
	skb_dst_update_pmtu(skb, mtu);
}

/* Says to where the packet came from that it is longer than mtu. Process context; the packet stays the caller's. */
void oxib_skb_too_big(struct sk_buff *skb, u32 mtu)
{
	local_bh_disable();
	if (skb->protocol == htons(ETH_P_IP)) {
		memset(IPCB(skb), 0, sizeof(*IPCB(skb)));
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
	} else if (skb->protocol == htons(ETH_P_IPV6)) {
		memset(IP6CB(skb), 0, sizeof(*IP6CB(skb)));
		icmpv6_send(skb, ICMPV6_PKT_TOOBIG, 0, mtu);
	}
	local_bh_enable();
}

/* Pages */

u32 oxib_page_pool_pages(struct page_pool *pool)
{
	return READ_ONCE(pool->pages_state_hold_cnt) -
	       (u32)atomic_read(&pool->pages_state_release_cnt);
}

/* The pool stays for good, even if it is destroyed. */
void oxib_page_pool_get(struct page_pool *pool)
{
	page_pool_get(pool);
}

/* The memory stays with a device for good. */
void oxib_not_leak(const void *memory)
{
	kmemleak_not_leak(memory);
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

/* An instance that no device has is like one that is disabled: scheduling it does nothing. */
void oxib_napi_init(struct napi_struct *napi)
{
	memset(napi, 0, sizeof(*napi));
	napi->state = NAPIF_STATE_SCHED | NAPIF_STATE_NPSVC;
	napi->list_owner = -1;
}

/* What polls a receive queue keeps its number and its settings as long as the device lives. RTNL held. */
void oxib_napi_add(struct net_device *dev, struct napi_struct *napi,
		   int (*poll)(struct napi_struct *, int), u32 queue)
{
	if (queue >= dev->num_napi_configs || queue >= dev->num_rx_queues) {
		netif_napi_add(dev, napi, poll);
		return;
	}
	netif_napi_add_config(dev, napi, poll, queue);
	netif_queue_set_napi(dev, queue, NETDEV_QUEUE_TYPE_RX, napi);
}

void oxib_napi_add_tx(struct net_device *dev, struct napi_struct *napi,
		      int (*poll)(struct napi_struct *, int))
{
	netif_napi_add_tx(dev, napi, poll);
}

void oxib_napi_del(struct napi_struct *napi, u32 queue)
{
	if (queue < napi->dev->num_rx_queues)
		netif_queue_set_napi(napi->dev, queue, NETDEV_QUEUE_TYPE_RX, NULL);
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
	dev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
}

/*
 * Completion vectors are spread over the processors in the same way. The stack frees the maps of devices that were
 * registered alone.
 */
void oxib_netdev_spread(struct net_device *dev)
{
	u32 queue, cpu, queues = dev->real_num_tx_queues;
	cpumask_var_t mask;

	if (dev->reg_state != NETREG_REGISTERED || queues < 2 || !zalloc_cpumask_var(&mask, GFP_KERNEL))
		return;
	for (queue = 0; queue < queues; queue++) {
		cpumask_clear(mask);
		for_each_possible_cpu(cpu)
			if (cpu % queues == queue)
				cpumask_set_cpu(cpu, mask);
		netif_set_xps_queue(dev, mask, queue);
	}
	free_cpumask_var(mask);
}

/* Whether the device checks checksums; whatever it cannot do for those that are sent the driver does. */
void oxib_netdev_offer(struct net_device *dev, bool checks, u32 segments)
{
	dev->hw_features |= NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6;
	if (checks)
		dev->hw_features |= NETIF_F_RXCSUM;
	dev->features |= dev->hw_features;
	netif_set_tso_max_segs(dev, segments);
}

/* Headers between those of IPv6 and of TCP are not looked at when a segment is cut. */
netdev_features_t oxib_features_check(struct sk_buff *skb, struct net_device *dev, netdev_features_t features)
{
	if (skb_is_gso(skb) && skb_is_gso_v6(skb) && skb_network_header_len(skb) != sizeof(struct ipv6hdr))
		features &= ~NETIF_F_GSO_MASK;
	return features;
}

void oxib_netdev_set_place(struct net_device *dev, struct ib_device *rdma, u32 port)
{
	if (rdma)
		SET_NETDEV_DEV(dev, rdma->dev.parent);
	dev->dev_port = port;
	dev->dev_id = port;
}

void oxib_netdev_set_net(struct net_device *dev, struct net *net)
{
	dev_net_set(dev, net);
}

struct net *oxib_rdma_net(struct ib_device *device)
{
	return rdma_dev_net(device);
}

bool oxib_has_carrier(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
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

/*
 * The addresses of groups, which the stack made of the old broadcast address, are made again of the new one, and so are those
 * that neighbour entries have.
 */
void oxib_set_broadcast(struct net_device *dev, const u8 *address)
{
	call_netdevice_notifiers(NETDEV_PRE_TYPE_CHANGE, dev);
	memcpy(dev->broadcast, address, dev->addr_len);
	call_netdevice_notifiers(NETDEV_POST_TYPE_CHANGE, dev);
	call_netdevice_notifiers(NETDEV_CHANGEADDR, dev);
}

void oxib_store_mtu(struct net_device *dev, u32 mtu)
{
	WRITE_ONCE(dev->mtu, mtu);
}

void oxib_set_operations(struct net_device *dev, const struct net_device_ops *operations)
{
	WRITE_ONCE(dev->netdev_ops, operations);
}

/* Connections take long packets whole. */
netdev_features_t oxib_fix_connected_features(struct net_device *dev, netdev_features_t features)
{
	return features & ~(NETIF_F_TSO | NETIF_F_TSO6);
}

/* What packets may be like has changed; with the RTNL held. */
void oxib_set_connected(struct net_device *dev, bool on)
{
	/* The sender of a packet that is too large is found by the packet's route. */
	if (on)
		netif_keep_dst(dev);
	if (dev->reg_state == NETREG_REGISTERED)
		netdev_change_features(dev);
}

u16 oxib_pick_tx(struct net_device *dev, struct sk_buff *skb, struct net_device *sb_dev)
{
	return netdev_pick_tx(dev, skb, sb_dev);
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

/* The name of the device on its bus, as lspci has it; of one without a bus, its own. */
const char *oxib_bus_name(const struct ib_device *device)
{
	return dev_name(device->dev.parent ?: &device->dev);
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

bool oxib_is_omni_path(struct ib_device *device, u32 port)
{
	return rdma_cap_opa_mad(device, port) || rdma_cap_opa_ah(device, port);
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

/* Bit fields that C puts behind a gap, into the next word. bindgen (0.71) leaves no gap, and puts them elsewhere. */
void oxib_cm_req_event_set_tail(struct ib_cm_req_event_param *param, u8 rnr_retry_count, bool srq)
{
	param->rnr_retry_count = rnr_retry_count;
	param->srq = srq;
}
