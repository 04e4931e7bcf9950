// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets, byte by byte: a UDP datagram, and the RoCE version 2 frame that carries it to an IPoIB queue pair (IBTA
 * volume 1, 9.2 and 9.6; annex A17).
 */

#include <linux/crc32.h>
#include <net/ip.h>

#include "bench.h"

struct transport {
	u8 opcode;
	u8 flags;
	__be16 pkey;
	__be32 qpn;
	__be32 sequence;
	__be32 qkey;
	__be32 source;
} __packed;

enum {
	UD_SEND_ONLY = 0x64,
	ROCE_PORT = 4791,
	ICRC = 4,
};

static void ip_header(struct iphdr *ip, __be32 source, __be32 destination, unsigned int payload)
{
	*ip = (struct iphdr) {
		.version = 4,
		.ihl = 5,
		.tot_len = htons(sizeof(*ip) + payload),
		.frag_off = htons(IP_DF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = source,
		.daddr = destination,
	};
	ip_send_check(ip);
}

static void udp_header(struct udphdr *udp, u16 port, unsigned int payload)
{
	*udp = (struct udphdr) {
		.source = htons(BENCH_PORT),
		.dest = htons(port),
		.len = htons(sizeof(*udp) + payload),
	};
}

/* A datagram for the sink, without a checksum. Returns its length. */
unsigned int bench_datagram(void *to, __be32 source, __be32 destination, unsigned int bytes)
{
	struct iphdr *ip = to;
	struct udphdr *udp = (void *)(ip + 1);

	ip_header(ip, source, destination, sizeof(*udp) + bytes);
	udp_header(udp, BENCH_PORT, bytes);
	memset(udp + 1, 0x5a, bytes);
	return sizeof(*ip) + sizeof(*udp) + bytes;
}

static unsigned int message_length(unsigned int bytes)
{
	return BENCH_ENCAP + sizeof(struct iphdr) + sizeof(struct udphdr) + bytes;
}

unsigned int bench_frame_length(unsigned int bytes)
{
	return ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr) + sizeof(struct transport) +
	       ALIGN(message_length(bytes), 4) + ICRC;
}

/* The checksum over all that no router changes; the rest counts as ones. */
static u32 icrc(const struct iphdr *ip, unsigned int length)
{
	struct {
		u8 lrh[8];
		struct iphdr ip;
		struct udphdr udp;
		struct transport transport;
	} __packed head;
	const void *rest = (const void *)ip + sizeof(head) - sizeof(head.lrh);
	u32 crc;

	memset(head.lrh, 0xff, sizeof(head.lrh));
	memcpy(&head.ip, ip, sizeof(head) - sizeof(head.lrh));
	head.ip.tos = 0xff;
	head.ip.ttl = 0xff;
	head.ip.check = (__force __sum16)0xffff;
	head.udp.check = (__force __sum16)0xffff;
	head.transport.qpn |= htonl(0xff000000);
	crc = crc32_le(~0, &head, sizeof(head));
	return ~crc32_le(crc, rest, length - (rest - (const void *)ip));
}

/* The frame that brings a datagram from the peer to queue pair `qpn`. */
void bench_frame(void *to, const u8 *mac, u32 qpn, __be32 inner_destination, unsigned int bytes)
{
	static const u8 peer[ETH_ALEN] = BENCH_PEER_MAC;
	unsigned int message = message_length(bytes), padded = ALIGN(message, 4);
	unsigned int payload = sizeof(struct transport) + padded + ICRC;
	struct ethhdr *ethernet = to;
	struct iphdr *ip = (void *)(ethernet + 1);
	struct udphdr *udp = (void *)(ip + 1);
	struct transport *transport = (void *)(udp + 1);
	__be16 *encap = (void *)(transport + 1);
	u32 crc;

	memcpy(ethernet->h_dest, mac, ETH_ALEN);
	memcpy(ethernet->h_source, peer, ETH_ALEN);
	ethernet->h_proto = htons(ETH_P_IP);
	ip_header(ip, BENCH_ETHERNET_IP(BENCH_PEER), BENCH_ETHERNET_IP(BENCH_US), sizeof(*udp) + payload);
	udp_header(udp, ROCE_PORT, payload);
	*transport = (struct transport) {
		.opcode = UD_SEND_ONLY,
		.flags = (padded - message) << 4,
		.pkey = htons(0xffff),
		.qpn = htonl(qpn),
		.qkey = htonl(BENCH_QKEY),
		.source = htonl(BENCH_PEER_QPN),
	};
	memset(encap, 0, padded);
	encap[0] = htons(ETH_P_IP);
	bench_datagram(encap + 2, inner_destination ^ htonl(BENCH_US ^ BENCH_PEER), inner_destination, bytes);
	crc = icrc(ip, sizeof(*ip) + sizeof(*udp) + sizeof(*transport) + padded);
	memcpy((u8 *)encap + padded, &(__le32) { cpu_to_le32(crc) }, ICRC);
}
