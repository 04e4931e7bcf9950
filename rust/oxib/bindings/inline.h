/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inline functions and macros of the kernel, as functions that Rust can call. One statement each where that is possible:
 * no logic lives here.
 */

#ifndef OXIB_INLINE_H
#define OXIB_INLINE_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/page_pool/types.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

struct in_device;

enum {
	/* Bytes at the end of a receive buffer that build_skb() takes. */
	OXIB_SKB_SHARED_INFO = SKB_DATA_ALIGN(sizeof(struct skb_shared_info)),
	/* Where fields are that bindgen hides in anonymous unions, numbered by configuration. */
	OXIB_SKB_DEV = offsetof(struct sk_buff, dev),
	OXIB_SKB_PROTOCOL = offsetof(struct sk_buff, protocol),
	OXIB_SKB_QUEUE_MAPPING = offsetof(struct sk_buff, queue_mapping),
	OXIB_SKB_MAC_HEADER = offsetof(struct sk_buff, mac_header),
	OXIB_NETDEV_MTU = offsetof(struct net_device, mtu),
	OXIB_NETDEV_PRIV = offsetof(struct net_device, priv),
	/* Most pieces of memory of a packet. */
	OXIB_SKB_PIECES = MAX_SKB_FRAGS + 1,
	OXIB_PACKET_BROADCAST = PACKET_BROADCAST,
	OXIB_PACKET_MULTICAST = PACKET_MULTICAST,
	OXIB_PP_DMA = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
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

/* Packets */
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

/* Pages */
u32 oxib_page_pool_pages(struct page_pool *pool);
void oxib_page_pool_get(struct page_pool *pool);
void oxib_not_leak(const void *memory);
void *oxib_page_address(struct page *page);
u64 oxib_page_pool_dma_addr(struct page *page);
void oxib_page_pool_sync_for_cpu(struct page_pool *pool, struct page *page, u32 offset, u32 length);
void oxib_page_pool_sync_for_device(struct page_pool *pool, struct page *page, u32 offset,
				    u32 length);
void oxib_page_pool_put(struct page_pool *pool, struct page *page);

/* NAPI */
#define OXIB_NO_QUEUE	0xffffffff
void oxib_napi_init(struct napi_struct *napi);
void oxib_napi_add(struct net_device *dev, struct napi_struct *napi,
		   int (*poll)(struct napi_struct *, int), u32 queue);
void oxib_napi_add_tx(struct net_device *dev, struct napi_struct *napi,
		      int (*poll)(struct napi_struct *, int));
void oxib_napi_del(struct napi_struct *napi, u32 queue);
void oxib_napi_schedule(struct napi_struct *napi);
struct gro_node *oxib_napi_gro(struct napi_struct *napi);

/* Transmit queues */
void oxib_tx_lock(struct netdev_queue *queue, bool disable_bh);
void oxib_tx_unlock(struct netdev_queue *queue, bool disable_bh);
void oxib_tx_stop_queue(struct netdev_queue *queue);
void oxib_tx_wake_if_stopped(struct netdev_queue *queue);
bool oxib_tx_sent(struct netdev_queue *queue, u32 bytes);
void oxib_tx_set_min_limit(struct netdev_queue *queue, u32 bytes);
void oxib_tx_completed(struct netdev_queue *queue, u32 packets, u32 bytes);
void oxib_tx_reset(struct netdev_queue *queue);
bool oxib_xmit_more(void);

/* Net devices */
void oxib_netdev_setup(struct net_device *dev);
void oxib_netdev_spread(struct net_device *dev);
void oxib_netdev_offer(struct net_device *dev, bool checks, u32 segments);
netdev_features_t oxib_features_check(struct sk_buff *skb, struct net_device *dev, netdev_features_t features);
void oxib_netdev_set_place(struct net_device *dev, struct ib_device *rdma, u32 port);
void oxib_netdev_set_net(struct net_device *dev, struct net *net);
struct net *oxib_rdma_net(struct ib_device *device);
bool oxib_has_carrier(const struct net_device *dev);
void oxib_start_queues(struct net_device *dev);
void oxib_stop_queues(struct net_device *dev);
void oxib_set_address(struct net_device *dev, const u8 *address);
void oxib_set_broadcast(struct net_device *dev, const u8 *address);
void oxib_store_mtu(struct net_device *dev, u32 mtu);
void oxib_set_operations(struct net_device *dev, const struct net_device_ops *operations);
netdev_features_t oxib_fix_connected_features(struct net_device *dev, netdev_features_t features);
void oxib_set_connected(struct net_device *dev, bool on);
u16 oxib_pick_tx(struct net_device *dev, struct sk_buff *skb, struct net_device *sb_dev);
int oxib_mc_count(struct net_device *dev);
void oxib_for_each_mc(struct net_device *dev, void (*use)(void *context, const u8 *address),
		      void *context);
void oxib_count_tx(struct net_device *dev, u32 packets, u32 bytes);
void oxib_count_rx(struct net_device *dev, u32 packets, u32 bytes);
void oxib_count_multicast(struct net_device *dev);
void oxib_count_tx_dropped(struct net_device *dev);
void oxib_count_rx_dropped(struct net_device *dev);
void oxib_dev_put(struct net_device *dev);
bool oxib_gid_has_vlan(const struct ib_gid_attr *attr);
int oxib_roce_mtu(const struct net_device *dev);
struct in_device *oxib_in_dev_get(const struct net_device *dev);
void oxib_ip_mc_dec_group(struct in_device *in_dev, u32 group);

/* Memory */
unsigned int oxib_memalloc_noio_save(void);
void oxib_memalloc_noio_restore(unsigned int flags);

/* RDMA */
void oxib_device_get(struct ib_device *device);
const char *oxib_device_name(const struct ib_device *device);
const char *oxib_bus_name(const struct ib_device *device);
struct device *oxib_device_dev(struct ib_device *device);
u32 oxib_first_port(const struct ib_device *device);
u32 oxib_last_port(const struct ib_device *device);
bool oxib_cap_ib_cm(const struct ib_device *device, u32 port);
bool oxib_is_omni_path(struct ib_device *device, u32 port);
struct ib_mad_send_buf *oxib_create_send_mad(struct ib_mad_agent *agent, u32 qpn, u16 pkey_index);
bool oxib_protocol_ib(const struct ib_device *device, u32 port);
bool oxib_protocol_roce_v2(const struct ib_device *device, u32 port);
u32 oxib_gid_table_length(struct ib_device *device, u32 port);
bool oxib_uses_virt_dma(struct ib_device *device);
u64 oxib_dma_map(struct ib_device *device, void *address, size_t length);
bool oxib_dma_mapping_error(struct ib_device *device, u64 address);
void oxib_dma_unmap(struct ib_device *device, u64 address, size_t length);
void oxib_cm_req_event_set_tail(struct ib_cm_req_event_param *param, u8 rnr_retry_count, bool srq);

#endif
