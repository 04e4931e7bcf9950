// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sending through a net device: from a UDP socket through the whole stack, or, as the stack does when it has a queue of
 * packets, straight into the device's transmit function, announcing for all but the last that more follow.
 */

#include <linux/in.h>
#include <linux/net.h>
#include <net/arp.h>
#include <net/sock.h>

#include "bench.h"

/*
 * How many packets the device is to have counted as sent. ib_ipoib counts a packet at its completion, oxib counts an
 * inline one when it is posted, before the device has sent it: so this count does not end a burst.
 */
struct awaited {
	struct net_device *device;
	u64 packets;
};

static u64 packets_sent(struct net_device *device)
{
	struct rtnl_link_stats64 statistics;

	return dev_get_stats(device, &statistics)->tx_packets;
}

static bool all_sent(void *context)
{
	struct awaited *awaited = context;

	return packets_sent(awaited->device) >= awaited->packets;
}

/*
 * Whether a burst went out. The first ones may find that the address of their destination was forgotten: more packets
 * than wait for it are dropped then, and never come.
 */
static int confirm_sent(struct bench *bench, struct awaited *awaited)
{
	int error = bench_confirm(bench, all_sent, awaited);

	if (error == -ETIMEDOUT && bench->warmed_up < BENCH_WARM_UP) {
		awaited->packets = packets_sent(awaited->device);
		return 0;
	}
	return error;
}

static int connect_to(struct socket *socket, __be32 destination)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(BENCH_PORT),
		.sin_addr.s_addr = destination,
	};

	/* A burst's packets may all wait for their completion: the socket's limit is not what is measured. */
	socket->sk->sk_sndbuf = 64 << 20;
	return kernel_connect(socket, (struct sockaddr_unsized *)&address, sizeof(address), 0);
}

static int send_burst(struct bench *bench, struct socket *socket, void *payload)
{
	unsigned int i;
	int sent;

	for (i = 0; i < bench->burst; i++) {
		struct kvec piece = { payload, bench->bytes };
		struct msghdr message = {};

		sent = kernel_sendmsg(socket, &message, &piece, 1, bench->bytes);
		if (sent < 0)
			return sent;
	}
	return 0;
}

static int send_rounds(struct bench *bench, struct net_device *device, struct socket *socket)
{
	struct awaited awaited = { device, packets_sent(device) };
	void *payload = kzalloc(bench->bytes + 1, GFP_KERNEL);
	int error = payload ? 0 : -ENOMEM;

	while (bench_goes_on(bench) && !error) {
		awaited.packets += bench->burst;
		bench_begin(bench);
		error = send_burst(bench, socket, payload) ?: bench_finish(bench);
		bench_end(bench);
		error = error ?: confirm_sent(bench, &awaited);
	}
	kfree(payload);
	return error;
}

static int transmit_socket(struct bench *bench, const char *name, __be32 destination)
{
	struct net_device *device = dev_get_by_name(bench_net(), name);
	struct socket *socket;
	int error;

	if (!device)
		return -ENODEV;
	error = sock_create_kern(bench_net(), PF_INET, SOCK_DGRAM, IPPROTO_UDP, &socket);
	if (!error) {
		error = connect_to(socket, destination) ?:
			send_rounds(bench, device, socket);
		sock_release(socket);
	}
	dev_put(device);
	return error;
}

int bench_transmit_socket_ipoib(struct bench *bench)
{
	return transmit_socket(bench, BENCH_IPOIB, BENCH_IPOIB_IP(BENCH_PEER));
}

int bench_transmit_socket_floor(struct bench *bench)
{
	return transmit_socket(bench, BENCH_FLOOR, BENCH_FLOOR_IP(BENCH_PEER));
}

/* A packet with all its headers, as it comes to a device's transmit function. */
static struct sk_buff *ready_packet(struct bench *bench, struct net_device *device, __be32 destination,
				    const u8 *address)
{
	unsigned int length = sizeof(struct iphdr) + sizeof(struct udphdr) + bench->bytes;
	struct sk_buff *skb = alloc_skb(LL_RESERVED_SPACE(device) + length, GFP_KERNEL);

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_RESERVED_SPACE(device));
	skb_reset_network_header(skb);
	bench_datagram(skb_put(skb, length), destination ^ htonl(BENCH_US ^ BENCH_PEER), destination,
		       bench->bytes);
	skb->dev = device;
	skb->protocol = htons(ETH_P_IP);
	if (dev_hard_header(skb, device, ETH_P_IP, address, device->dev_addr, skb->len) >= 0)
		return skb;
	kfree_skb(skb);
	return NULL;
}

static int make_packets(struct sk_buff_head *list, struct bench *bench, struct net_device *device,
			__be32 destination, const u8 *address)
{
	struct sk_buff *skb;
	unsigned int i;

	for (i = 0; i < bench->burst; i++) {
		skb = ready_packet(bench, device, destination, address);
		if (!skb)
			return -ENOMEM;
		__skb_queue_tail(list, skb);
	}
	return 0;
}

static void transmit_burst(struct sk_buff_head *list, struct net_device *device, struct netdev_queue *queue)
{
	struct sk_buff *skb;

	local_bh_disable();
	HARD_TX_LOCK(device, queue, smp_processor_id());
	while ((skb = __skb_dequeue(list)))
		netdev_start_xmit(skb, device, queue, !skb_queue_empty(list));
	HARD_TX_UNLOCK(device, queue);
	local_bh_enable();
}

static int transmit_rounds(struct bench *bench, struct net_device *device, __be32 destination,
			   const u8 *address)
{
	struct netdev_queue *queue = netdev_get_tx_queue(device, 0);
	struct awaited awaited = { device, packets_sent(device) };
	struct sk_buff_head list;
	int error = 0;

	__skb_queue_head_init(&list);
	while (bench_goes_on(bench) && !error) {
		error = make_packets(&list, bench, device, destination, address);
		if (error)
			break;
		awaited.packets += bench->burst;
		bench_begin(bench);
		transmit_burst(&list, device, queue);
		error = bench_finish(bench);
		bench_end(bench);
		error = error ?: confirm_sent(bench, &awaited);
	}
	__skb_queue_purge(&list);
	return error;
}

static int transmit_queue(struct bench *bench, const char *name, __be32 destination)
{
	struct net_device *device = dev_get_by_name(bench_net(), name);
	struct neighbour *peer;
	int error = -EHOSTUNREACH;

	if (!device)
		return -ENODEV;
	peer = neigh_lookup(&arp_tbl, &destination, device);
	if (peer) {
		error = transmit_rounds(bench, device, destination, peer->ha);
		neigh_release(peer);
	}
	dev_put(device);
	return error;
}

int bench_transmit_queue_ipoib(struct bench *bench)
{
	return transmit_queue(bench, BENCH_IPOIB, BENCH_IPOIB_IP(BENCH_PEER));
}

int bench_transmit_queue_floor(struct bench *bench)
{
	return transmit_queue(bench, BENCH_FLOOR, BENCH_FLOOR_IP(BENCH_PEER));
}
