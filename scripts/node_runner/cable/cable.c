// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ethernet cables between nodes of user-mode Linux: eth0, eth1, ... on descriptors that the kernel's
 * process inherits, each one end of a SOCK_SEQPACKET socket pair. One packet is one message.
 *
 * The driver in the kernel for such descriptors (arch/um/drivers/vector_kern.c) closes them when an
 * interface goes down and never takes an MTU above 1500 again. Here the descriptor stays open while
 * the module is loaded, and the other node's end decides about the carrier.
 *
 * parameters: fds, the descriptors in the order eth0, eth1; node, the number in the MAC addresses.
 */

#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <irq_kern.h>
#include <irq_user.h>
#include <os.h>

#define MAX_CABLES 4
#define MAX_MTU 9000
#define MAX_FRAME (MAX_MTU + VLAN_ETH_HLEN)

static int fds[MAX_CABLES];
static int fds_count;
module_param_array(fds, int, &fds_count, 0444);
MODULE_PARM_DESC(fds, "descriptors of the cables");

static int node = 1;
module_param(node, int, 0444);
MODULE_PARM_DESC(node, "number of this node");

struct cable {
	struct net_device *dev;
	struct napi_struct napi;
	int fd;
	int read_irq;
	int write_irq;
	/* The poll's alone. */
	u8 frame[MAX_FRAME];
};

static struct cable *cables[MAX_CABLES];

/*
 * Reads the next frame, as much of it as the buffer takes. Returns the length read, 0 if the other end
 * is gone, or a negative error.
 */
static int cable_read(struct cable *cable, u8 *buffer, int size)
{
	int length;

	do
		length = os_read_file(cable->fd, buffer, size);
	while (length == -EINTR);
	return length == -ECONNRESET ? 0 : length;
}

static void cable_receive(struct cable *cable, int length)
{
	struct net_device *dev = cable->dev;
	struct sk_buff *skb = napi_alloc_skb(&cable->napi, length);

	if (!skb || length < ETH_HLEN) {
		kfree_skb(skb);
		dev_core_stats_rx_dropped_inc(dev);
		return;
	}
	skb_put_data(skb, cable->frame, length);
	skb->protocol = eth_type_trans(skb, dev);
	dev_sw_netstats_rx_add(dev, length);
	napi_gro_receive(&cable->napi, skb);
}

static int cable_poll(struct napi_struct *napi, int budget)
{
	struct cable *cable = container_of(napi, struct cable, napi);
	int done, length;

	for (done = 0; done < budget; done++) {
		length = cable_read(cable, cable->frame, sizeof(cable->frame));
		if (length > 0) {
			cable_receive(cable, length);
			continue;
		}
		if (length == 0)
			netif_carrier_off(cable->dev);
		napi_complete_done(napi, done);
		return done;
	}
	return budget;
}

/* An interface that is down loses what arrives, so that the other node never waits for it. */
static void cable_drain(struct cable *cable)
{
	u8 start[ETH_HLEN];
	int length;

	do
		length = cable_read(cable, start, sizeof(start));
	while (length > 0);
	if (length == 0)
		netif_carrier_off(cable->dev);
}

static irqreturn_t cable_readable(int irq, void *data)
{
	struct cable *cable = data;

	if (netif_running(cable->dev))
		napi_schedule(&cable->napi);
	else
		cable_drain(cable);
	return IRQ_HANDLED;
}

static irqreturn_t cable_writable(int irq, void *data)
{
	struct cable *cable = data;

	if (netif_running(cable->dev) && netif_queue_stopped(cable->dev))
		netif_wake_queue(cable->dev);
	return IRQ_HANDLED;
}

static int cable_write(struct cable *cable, const struct sk_buff *skb)
{
	int length;

	do
		length = os_write_file(cable->fd, skb->data, skb->len);
	while (length == -EINTR);
	return length;
}

static netdev_tx_t cable_transmit(struct sk_buff *skb, struct net_device *dev)
{
	struct cable *cable = netdev_priv(dev);
	int length = cable_write(cable, skb);

	if (length == -EAGAIN) {
		netif_stop_queue(dev);
		/* The other node may have made room before the queue was stopped. */
		smp_mb();
		length = cable_write(cable, skb);
		if (length == -EAGAIN)
			return NETDEV_TX_BUSY;
		netif_start_queue(dev);
	}
	if (length == skb->len) {
		dev_sw_netstats_tx_add(dev, 1, skb->len);
		consume_skb(skb);
	} else {
		if (length == -EPIPE || length == -ECONNRESET)
			netif_carrier_off(dev);
		dev_core_stats_tx_dropped_inc(dev);
		kfree_skb(skb);
	}
	return NETDEV_TX_OK;
}

static int cable_open(struct net_device *dev)
{
	struct cable *cable = netdev_priv(dev);

	napi_enable(&cable->napi);
	netif_start_queue(dev);
	/* What arrived while the interface came up has had its interrupt. */
	napi_schedule(&cable->napi);
	return 0;
}

static int cable_stop(struct net_device *dev)
{
	struct cable *cable = netdev_priv(dev);

	netif_stop_queue(dev);
	napi_disable(&cable->napi);
	return 0;
}

/* RDMA devices above take their rate from here. */
static int cable_link_settings(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	settings->base.speed = SPEED_1000;
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static const struct ethtool_ops cable_ethtool = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = cable_link_settings,
};

static const struct net_device_ops cable_operations = {
	.ndo_open = cable_open,
	.ndo_stop = cable_stop,
	.ndo_start_xmit = cable_transmit,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static void cable_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &cable_operations;
	dev->ethtool_ops = &cable_ethtool;
	dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	dev->mtu = MAX_MTU;
	dev->max_mtu = MAX_MTU;
}

static void cable_remove(struct cable *cable)
{
	if (cable->read_irq >= 0)
		um_free_irq(cable->read_irq, cable);
	if (cable->write_irq >= 0)
		um_free_irq(cable->write_irq, cable);
	unregister_netdev(cable->dev);
	netif_napi_del(&cable->napi);
	free_netdev(cable->dev);
}

static int cable_add(int number)
{
	u8 address[ETH_ALEN] = { 0x52, 0x54, 0, 0, node, number };
	struct net_device *dev;
	struct cable *cable;
	int err;

	dev = alloc_netdev(sizeof(*cable), "eth%d", NET_NAME_ENUM, cable_setup);
	if (!dev)
		return -ENOMEM;
	cable = netdev_priv(dev);
	cable->dev = dev;
	cable->fd = fds[number];
	cable->read_irq = -1;
	cable->write_irq = -1;
	eth_hw_addr_set(dev, address);
	netif_napi_add(dev, &cable->napi, cable_poll);
	err = os_set_fd_block(cable->fd, 0);
	if (!err)
		err = register_netdev(dev);
	if (err) {
		netif_napi_del(&cable->napi);
		free_netdev(dev);
		return err;
	}
	cables[number] = cable;
	cable->read_irq = um_request_irq(UM_IRQ_ALLOC, cable->fd, IRQ_READ, cable_readable, 0,
					 "cable-read", cable);
	if (cable->read_irq < 0)
		return cable->read_irq;
	cable->write_irq = um_request_irq(UM_IRQ_ALLOC, cable->fd, IRQ_WRITE, cable_writable, 0,
					  "cable-write", cable);
	return cable->write_irq < 0 ? cable->write_irq : 0;
}

static void cable_exit(void)
{
	int number;

	for (number = 0; number < MAX_CABLES; number++)
		if (cables[number])
			cable_remove(cables[number]);
}

static int __init cable_init(void)
{
	int number, err;

	for (number = 0; number < fds_count; number++) {
		err = cable_add(number);
		if (err) {
			pr_err("node_cable: no eth%d on descriptor %d: %pe\n", number, fds[number],
			       ERR_PTR(err));
			cable_exit();
			return err;
		}
	}
	return 0;
}

module_init(cable_init);
module_exit(cable_exit);
MODULE_DESCRIPTION("Ethernet cables between nodes of user-mode Linux");
MODULE_LICENSE("GPL");
