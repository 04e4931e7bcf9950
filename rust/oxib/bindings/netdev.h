/* SPDX-License-Identifier: GPL-2.0-only */
/* Inline functions and macros of the kernel for net devices, as functions that Rust can call. */

#ifndef OXIB_NETDEV_H
#define OXIB_NETDEV_H

#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>

enum {
	/* Where fields are that bindgen hides in anonymous unions, numbered by configuration. */
	OXIB_NETDEV_MTU = offsetof(struct net_device, mtu),
	OXIB_NETDEV_PRIV = offsetof(struct net_device, priv),
};

void oxib_netdev_setup(struct net_device *dev);
void oxib_netdev_spread(struct net_device *dev);
void oxib_netdev_offer(struct net_device *dev, bool checks, u32 segments);
netdev_features_t oxib_features_check(struct sk_buff *skb, struct net_device *dev, netdev_features_t features);
void oxib_netdev_set_place(struct net_device *dev, struct ib_device *rdma, u32 port);
void oxib_netdev_set_net(struct net_device *dev, struct net *net);
bool oxib_has_carrier(const struct net_device *dev);
void oxib_start_queues(struct net_device *dev);
void oxib_stop_queues(struct net_device *dev);
void oxib_set_address(struct net_device *dev, const u8 *address);
void oxib_announce(struct net_device *dev);
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

#endif
