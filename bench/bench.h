/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the benchmark's module share.
 *
 * A measurement sends or receives bursts of `burst` UDP packets with `bytes` bytes of payload. It reads the clock around
 * each burst: before the first packet, and when the processor has nothing left to do. A sample is the sum over as many
 * bursts as fill a ring (BENCH_RING packets): work that a driver defers, such as a completion for every few bursts, falls
 * into each sample as often as into any other. A measurement takes `rounds` samples. The node's addresses are laid down
 * here and in node.sh.
 */

#ifndef OXIB_BENCH_H
#define OXIB_BENCH_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <rdma/ib_verbs.h>

/* The Ethernet device with the rxe device on it, the interface under test, and the device that stands for no device. */
#define BENCH_ETHERNET "wire0"
#define BENCH_IPOIB "ib0"
#define BENCH_FLOOR "floor0"

/* The two HCAs of a fabric, in fabric.sh and ipoib.sh: what is under test there is in the host of the first. */
#define BENCH_NEAR "h1"
#define BENCH_FAR "h2"

#define BENCH_IP(net, host) htonl(0x0a000000 | (net) << 16 | (host))
#define BENCH_ETHERNET_IP(host) BENCH_IP(77, host)
#define BENCH_IPOIB_IP(host) BENCH_IP(99, host)
#define BENCH_FLOOR_IP(host) BENCH_IP(98, host)

/* Of the peer, which is not there: nothing that is sent to it is answered. */
#define BENCH_PEER_MAC { 0x02, 0, 0, 0, 0, 0x02 }
#define BENCH_PEER_QPN 0xabcd

enum {
	BENCH_US = 1,
	BENCH_PEER = 2,
	BENCH_PORT = 4242,
	BENCH_QKEY = 0x0b1b,
	/* Length of the encapsulation header of RFC 4391. */
	BENCH_ENCAP = 4,
	/* Completions that are taken at once, as oxib does. */
	BENCH_BATCH = 16,
	/* Bytes that oxib sends inline. */
	BENCH_INLINE = 128,
	/* Slots of oxib's rings by default. */
	BENCH_RING = 256,
	/* Inline sends after which oxib asks for a completion. */
	BENCH_UNSIGNALLED = BENCH_RING / 4,
	BENCH_MAX_BURST = 128,
	/* Bursts that are not counted: they find destinations, fill caches and pools, and teach byte queue limits. */
	BENCH_WARM_UP = 16,
	BENCH_MAX_ROUNDS = 4096,
};

/* The network namespace of the program that asked for the measurement. */
static inline struct net *bench_net(void)
{
	return current->nsproxy->net_ns;
}

/* One run. */
struct bench {
	unsigned int bytes, burst, rounds;
	/* Instructions of each sample. */
	u64 *samples;
	/* Bursts of the warm-up, samples, and bursts of the sample that is being taken. */
	unsigned int warmed_up, taken, bursts;
	/* Instructions of these bursts. */
	u64 spent;
	/* Instructions of a burst of no packets. */
	u64 empty;
	/* Times that the CPU was given to others until all was done, over all bursts. */
	unsigned long yields;
	u64 began;
};

/* meter.c */
bool bench_goes_on(const struct bench *bench);
void bench_empty(struct bench *bench, void (*begin)(void *context), void *context);
void bench_begin(struct bench *bench);
void bench_end(struct bench *bench);
int bench_drain(struct bench *bench, bool (*done)(void *context), void *context);
int bench_finish(struct bench *bench);
int bench_confirm(struct bench *bench, bool (*done)(void *context), void *context);
void bench_report(struct bench *bench, char *line, size_t size);

/* frame.c: packets as they are on the wire, and in them */
unsigned int bench_datagram(void *to, __be32 source, __be32 destination, unsigned int bytes);
unsigned int bench_frame_length(unsigned int bytes);
void bench_frame(void *to, const u8 *mac, u32 qpn, __be32 inner_destination, unsigned int bytes);

/* sink.c: a UDP socket that counts what it gets and throws it away */
struct bench_sink {
	struct socket *socket;
	unsigned long received;
};

int bench_sink_open(struct bench_sink *sink);
void bench_sink_close(struct bench_sink *sink);

/* The measurements */
int bench_transmit_socket_ipoib(struct bench *bench);
int bench_transmit_socket_floor(struct bench *bench);
int bench_transmit_queue_ipoib(struct bench *bench);
int bench_transmit_queue_floor(struct bench *bench);
int bench_receive_ipoib(struct bench *bench);
int bench_receive_floor(struct bench *bench);
int bench_receive_floor_joined(struct bench *bench);
int bench_transmit_device_single(struct bench *bench);
int bench_transmit_device_single_events(struct bench *bench);
int bench_transmit_device_chain(struct bench *bench);
int bench_transmit_device_chain_events(struct bench *bench);
int bench_receive_device(struct bench *bench);
int bench_fabric_single(struct bench *bench);
int bench_fabric_chain(struct bench *bench);
int bench_fabric_chain_events(struct bench *bench);
int bench_transmit_subnet_single(struct bench *bench);
int bench_transmit_subnet_chain(struct bench *bench);
int bench_receive_subnet_ipoib(struct bench *bench);
int bench_receive_subnet_device(struct bench *bench);
int bench_acm_loop(struct bench *bench);
int bench_acm_cache_hit(struct bench *bench);
int bench_acm_cache_miss(struct bench *bench);
int bench_acm_table_hit(struct bench *bench);
int bench_acm_table_miss(struct bench *bench);
int bench_acm_neighbours_hit(struct bench *bench);
int bench_acm_neighbours_miss(struct bench *bench);

/* receive.c, for others too: bytes 1 to 3 of an IPoIB address */
u32 bench_queue_pair(const struct net_device *ipoib);

/* receive.c, for device.c too: frames for a queue pair, made before the clock runs */
int bench_frames_make(struct sk_buff_head *list, struct net_device *ethernet, u32 qpn,
		      __be32 inner_destination, struct bench *bench);
void bench_frames_arrive(struct sk_buff_head *list);

#endif
