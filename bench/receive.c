// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving, up to a UDP socket. For the interface under test, frames for its queue pair arrive on the Ethernet device,
 * as if from a card. For the floor, a net device whose poll makes the packets out of nothing: what any driver has the
 * stack do for a packet it received, with a soft interrupt of its own or in one of the device.
 */

#include <linux/etherdevice.h>
#include <net/gro.h>
#include <net/page_pool/helpers.h>

#include "bench.h"

int bench_frames_make(struct sk_buff_head *list, struct net_device *ethernet, u32 qpn,
		      __be32 inner_destination, struct bench *bench)
{
	unsigned int i, length = bench_frame_length(bench->bytes);
	struct sk_buff *skb;

	for (i = 0; i < bench->burst; i++) {
		skb = alloc_skb(NET_SKB_PAD + NET_IP_ALIGN + length, GFP_KERNEL);
		if (!skb)
			return -ENOMEM;
		skb_reserve(skb, NET_SKB_PAD + NET_IP_ALIGN);
		bench_frame(skb_put(skb, length), ethernet->dev_addr, qpn, inner_destination, bench->bytes);
		skb->protocol = eth_type_trans(skb, ethernet);
		__skb_queue_tail(list, skb);
	}
	return 0;
}

void bench_frames_arrive(struct sk_buff_head *list)
{
	struct sk_buff *skb;

	local_bh_disable();
	while ((skb = __skb_dequeue(list)))
		netif_receive_skb(skb);
	local_bh_enable();
}

struct awaited {
	struct bench_sink *sink;
	unsigned long received;
};

static bool all_received(void *context)
{
	struct awaited *awaited = context;

	return awaited->sink->received >= awaited->received;
}

static int receive_rounds(struct bench *bench, struct net_device *ethernet, u32 qpn, struct bench_sink *sink)
{
	struct awaited awaited = { sink };
	struct sk_buff_head list;
	int error = 0;

	__skb_queue_head_init(&list);
	while (bench_goes_on(bench) && !error) {
		error = bench_frames_make(&list, ethernet, qpn, BENCH_IPOIB_IP(BENCH_US), bench);
		if (error)
			break;
		awaited.received += bench->burst;
		bench_begin(bench);
		bench_frames_arrive(&list);
		error = bench_drain(bench, all_received, &awaited);
		bench_end(bench);
	}
	__skb_queue_purge(&list);
	return error;
}

u32 bench_queue_pair(const struct net_device *ipoib)
{
	return ipoib->dev_addr[1] << 16 | ipoib->dev_addr[2] << 8 | ipoib->dev_addr[3];
}

int bench_receive_ipoib(struct bench *bench)
{
	struct net_device *ethernet = dev_get_by_name(bench_net(), BENCH_ETHERNET);
	struct net_device *ipoib = dev_get_by_name(bench_net(), BENCH_IPOIB);
	struct bench_sink sink = {};
	int error = -ENODEV;

	if (ethernet && ipoib)
		error = bench_sink_open(&sink);
	if (!error) {
		error = receive_rounds(bench, ethernet, bench_queue_pair(ipoib), &sink);
		bench_sink_close(&sink);
	}
	dev_put(ipoib);
	dev_put(ethernet);
	return error;
}

/* The floor. Packets of up to this length are copied, longer ones are pages of a pool, as in oxib. */
#define COPY_LIMIT 256
#define HEADROOM 64
#define PAGE_ORDER 1

struct floor {
	/* The driver's, and one of the device below, whose soft interrupt is there anyway. */
	struct napi_struct napi, below;
	struct net_device *poller, *device;
	struct page_pool *pool;
	struct bench *bench;
	struct bench_sink sink;
	unsigned int left, length;
	u8 packet[PAGE_SIZE << PAGE_ORDER];
};

static struct sk_buff *copied(struct floor *floor)
{
	struct sk_buff *skb = napi_alloc_skb(&floor->napi, floor->length);

	if (skb)
		skb_put_data(skb, floor->packet, floor->length);
	return skb;
}

static struct sk_buff *wrapped(struct floor *floor)
{
	struct page *page = page_pool_dev_alloc_pages(floor->pool);
	struct sk_buff *skb;

	if (!page)
		return NULL;
	skb = napi_build_skb(page_address(page), PAGE_SIZE << PAGE_ORDER);
	if (!skb) {
		page_pool_put_full_page(floor->pool, page, true);
		return NULL;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, HEADROOM);
	skb_put(skb, floor->length);
	/* The rest of the page stays as a device would have left it. */
	memcpy(skb->data, floor->packet, sizeof(struct iphdr) + sizeof(struct udphdr));
	return skb;
}

static int poll(struct napi_struct *napi, int budget)
{
	struct floor *floor = container_of(napi, struct floor, napi);
	struct sk_buff *skb;
	int done;

	for (done = 0; done < budget && floor->left; done++, floor->left--) {
		skb = floor->length <= COPY_LIMIT ? copied(floor) : wrapped(floor);
		if (!skb)
			continue;
		skb->dev = floor->device;
		skb->protocol = htons(ETH_P_IP);
		skb_reset_mac_header(skb);
		napi_gro_receive(napi, skb);
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

/* A device below delivers the burst: the driver's poll joins the soft interrupt in which it does. */
static int poll_below(struct napi_struct *napi, int budget)
{
	struct floor *floor = container_of(napi, struct floor, below);

	if (floor->left)
		napi_schedule(&floor->napi);
	napi_complete_done(napi, 0);
	return 0;
}

/* As from a device's interrupt, which does not wake ksoftirqd. */
static void interrupt(struct napi_struct *napi)
{
	local_bh_disable();
	napi_schedule(napi);
	local_bh_enable();
}

static void interrupt_below(void *context)
{
	struct floor *floor = context;

	interrupt(&floor->below);
}

static int floor_rounds(struct floor *floor, struct napi_struct *first)
{
	struct awaited awaited = { &floor->sink };
	struct bench *bench = floor->bench;
	int error = 0;

	while (bench_goes_on(bench) && !error) {
		floor->left = bench->burst;
		awaited.received += bench->burst;
		bench_begin(bench);
		interrupt(first);
		error = bench_drain(bench, all_received, &awaited);
		bench_end(bench);
	}
	return error;
}

static int floor_open(struct floor *floor)
{
	struct page_pool_params params = {
		.order = PAGE_ORDER,
		.pool_size = BENCH_RING,
		.nid = NUMA_NO_NODE,
		.napi = &floor->napi,
		.netdev = floor->device,
	};

	floor->poller = alloc_netdev_dummy(0);
	if (!floor->poller)
		return -ENOMEM;
	netif_napi_add(floor->poller, &floor->napi, poll);
	netif_napi_add(floor->poller, &floor->below, poll_below);
	napi_enable(&floor->napi);
	napi_enable(&floor->below);
	floor->pool = page_pool_create(&params);
	if (IS_ERR(floor->pool))
		return PTR_ERR(floor->pool);
	return bench_sink_open(&floor->sink);
}

static void floor_close(struct floor *floor)
{
	if (floor->sink.socket)
		bench_sink_close(&floor->sink);
	if (!floor->poller)
		return;
	napi_disable(&floor->below);
	napi_disable(&floor->napi);
	if (!IS_ERR_OR_NULL(floor->pool))
		page_pool_destroy(floor->pool);
	netif_napi_del(&floor->below);
	netif_napi_del(&floor->napi);
	free_netdev(floor->poller);
}

static int receive_floor(struct bench *bench, bool joined)
{
	struct floor *floor = kzalloc(sizeof(*floor), GFP_KERNEL);
	int error = -ENODEV;

	if (!floor)
		return -ENOMEM;
	floor->bench = bench;
	floor->device = dev_get_by_name(bench_net(), BENCH_FLOOR);
	floor->length = sizeof(struct iphdr) + sizeof(struct udphdr) + bench->bytes;
	if (floor->length + HEADROOM > PAGE_SIZE + PAGE_SIZE / 2)
		error = -EMSGSIZE;
	else if (floor->device)
		error = floor_open(floor);
	if (!error) {
		bench_datagram(floor->packet, BENCH_FLOOR_IP(BENCH_PEER), BENCH_FLOOR_IP(BENCH_US),
			       bench->bytes);
		if (joined)
			bench_empty(bench, interrupt_below, floor);
		error = floor_rounds(floor, joined ? &floor->below : &floor->napi);
	}
	floor_close(floor);
	dev_put(floor->device);
	kfree(floor);
	return error;
}

/* The device's event is the cause of a soft interrupt. */
int bench_receive_floor(struct bench *bench)
{
	return receive_floor(bench, false);
}

/* The device's event comes in a soft interrupt, which the packet therefore does not pay. */
int bench_receive_floor_joined(struct bench *bench)
{
	return receive_floor(bench, true);
}
