// SPDX-License-Identifier: GPL-2.0-only

#include <linux/cpumask.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <net/net_namespace.h>

#include "netdev.h"

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

/*
 * The bond that a device is in, if the bond has that address; else NULL. RTNL held. With fail_over_mac, which devices of
 * this kind need, a bond has the address of the device in use.
 */
static struct net_device *oxib_bond_with(struct net_device *dev, const u8 *address)
{
	struct net_device *bond = netdev_master_upper_dev_get(dev);

	if (!bond || !netif_is_bond_master(bond) || bond->addr_len != dev->addr_len)
		return NULL;
	return memcmp(bond->dev_addr, address, dev->addr_len) ? NULL : bond;
}

/*
 * A bond takes the address of a device when it begins to use the device, and never looks again: without the new one it
 * would go on to tell all nodes of a queue pair that is gone. RTNL held.
 */
void oxib_set_address(struct net_device *dev, const u8 *address)
{
	struct net_device *bond;

	if (!memcmp(dev->dev_addr, address, dev->addr_len))
		return;
	bond = oxib_bond_with(dev, dev->dev_addr);
	__dev_addr_set(dev, address, dev->addr_len);
	if (dev->reg_state == NETREG_REGISTERED)
		call_netdevice_notifiers(NETDEV_CHANGEADDR, dev);
	if (!bond)
		return;
	__dev_addr_set(bond, address, dev->addr_len);
	call_netdevice_notifiers(NETDEV_CHANGEADDR, bond);
}

/* The IP addresses that are announced are those of a device, and those of the bond with its address. RTNL held. */
void oxib_announce(struct net_device *dev)
{
	struct net_device *bond = oxib_bond_with(dev, dev->dev_addr);

	__netdev_notify_peers(dev);
	if (bond)
		__netdev_notify_peers(bond);
}

/*
 * The addresses of groups, which the stack made of the old broadcast address, are made again of the new one, and so are
 * those that neighbour entries have.
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
