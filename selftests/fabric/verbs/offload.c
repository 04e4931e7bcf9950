// SPDX-License-Identifier: GPL-2.0-only
/*
 * What better HCAs do to messages of IP over InfiniBand: checksums are filled in and looked at, long TCP segments are sent as
 * several. The kernel's own functions say what is right.
 */

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/checksum.h>

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED
#define WRONG_IP 0xdead
#define WRONG_UDP 0xbeef
/* Where each segment is received, and what it is cut to. */
#define ROOM 2048
#define SEGMENT 1000
#define FIRST_NUMBER 0xfffffe00
#define FIRST_ID 0xfffe

struct encapsulation {
	__be16 type, reserved;
};

struct udp_message {
	struct encapsulation before;
	struct iphdr ip;
	struct udphdr udp;
	u8 data[];
} __packed;

struct tcp_message {
	struct encapsulation before;
	struct iphdr ip;
	struct tcphdr tcp;
	u8 data[];
} __packed;

static bool left_out(struct pair *pair, const char *why)
{
	fail(pair, "it takes %s", why);
	pair->left_out = true;
	return false;
}

static bool can_check(struct pair *pair)
{
	u64 both = pair->a.device->attrs.device_cap_flags & pair->b.device->attrs.device_cap_flags;

	return both & IB_DEVICE_UD_IP_CSUM || left_out(pair, "HCAs that compute checksums");
}

static struct iphdr ip_header(u8 protocol, u16 length)
{
	return (struct iphdr) {
		.version = 4,
		.ihl = 5,
		.tot_len = htons(length),
		.id = htons(FIRST_ID),
		.ttl = 64,
		.protocol = protocol,
		.saddr = htonl(0x0a000001),
		.daddr = htonl(0x0a000002),
		.check = htons(WRONG_IP),
	};
}

/* Of 0 if the checksum in it is right, whatever it is of. */
static u16 transport_sum(const struct iphdr *ip, const void *transport, u32 length)
{
	return (__force u16)csum_tcpudp_magic(ip->saddr, ip->daddr, length, ip->protocol, csum_partial(transport, length, 0));
}

/* With wrong checksums. The length is that of all of it. */
static struct udp_message *make_message(struct pair *pair, u32 length)
{
	struct udp_message *message = (struct udp_message *)(pair->a.memory + OUTGOING);
	u32 datagram = length - sizeof(message->before);

	fill(&pair->a, OUTGOING, length, length);
	message->before = (struct encapsulation){ .type = htons(ETH_P_IP) };
	message->ip = ip_header(IPPROTO_UDP, datagram);
	message->udp = (struct udphdr){ .source = htons(1), .dest = htons(2), .check = htons(WRONG_UDP),
					.len = htons(datagram - sizeof(message->ip)) };
	return message;
}

static void make_right(struct udp_message *message)
{
	message->ip.check = 0;
	message->ip.check = ip_fast_csum(&message->ip, message->ip.ihl);
	message->udp.check = 0;
	message->udp.check = (__force __sum16)transport_sum(&message->ip, &message->udp, ntohs(message->udp.len));
}

/* The message arrives; whether the HCA says that its checksums are right is as expected. */
static struct udp_message *crosses(struct pair *pair, u32 length, int flags, bool told)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED | flags, .length = length };
	struct ib_wc wc = {};

	if (!post_receive(pair, &pair->b, INCOMING, GRH_BYTES + length) || !post(pair, &pair->a, &request) ||
	    !received(pair, &pair->b, GRH_BYTES + length, &wc) || !sent_well(pair, &pair->a, 1) ||
	    !same(pair, "the flag of right checksums", told ? IB_WC_IP_CSUM_OK : 0, wc.wc_flags & IB_WC_IP_CSUM_OK))
		return NULL;
	return (struct udp_message *)(pair->b.memory + INCOMING + GRH_BYTES);
}

static void filled_in(struct pair *pair)
{
	static const u32 lengths[] = { sizeof(struct udp_message), sizeof(struct udp_message) + 1, 100, 101, 1500 };
	unsigned int i;

	if (!can_check(pair))
		return;
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		const struct udp_message *sent = make_message(pair, lengths[i]);
		const struct udp_message *found = crosses(pair, lengths[i], IB_SEND_IP_CSUM, true);

		if (!found || !same(pair, "the sum of the IP header", 0, ip_fast_csum(&found->ip, found->ip.ihl)) ||
		    !same(pair, "the sum of UDP", 0, transport_sum(&found->ip, &found->udp, ntohs(found->udp.len))) ||
		    !same(pair, "the data", 0, memcmp(sent->data, found->data, lengths[i] - sizeof(*sent))))
			return;
	}
}

static void looked_at(struct pair *pair)
{
	const struct udp_message *found;
	struct udp_message *message;

	if (!can_check(pair))
		return;
	message = make_message(pair, 200);
	found = crosses(pair, 200, 0, false);
	if (!found || !same(pair, "the checksum of the IP header", WRONG_IP, ntohs(found->ip.check)) ||
	    !same(pair, "the checksum of UDP", WRONG_UDP, ntohs(found->udp.check)))
		return;
	make_right(message);
	if (!crosses(pair, 200, 0, true))
		return;
	message->data[7] ^= 1;
	if (!crosses(pair, 200, 0, false))
		return;
	message->data[7] ^= 1;
	message->ip.check ^= htons(1);
	if (!crosses(pair, 200, 0, false))
		return;
	message->ip.check ^= htons(1);
	message->before.type = htons(ETH_P_ARP);
	crosses(pair, 200, 0, false);
}

static void not_looked_at(struct pair *pair)
{
	if (pair->b.device->attrs.device_cap_flags & IB_DEVICE_UD_IP_CSUM) {
		left_out(pair, "an HCA that does not compute checksums");
		return;
	}
	make_right(make_message(pair, 200));
	crosses(pair, 200, 0, false);
}

static bool can_cut(struct pair *pair)
{
	return pair->a.device->attrs.kernel_cap_flags & IBK_UD_TSO || left_out(pair, "an HCA that sends long TCP segments");
}

static struct tcp_message tcp_header(void)
{
	struct tcp_message message = {
		.before.type = htons(ETH_P_IP),
		.ip = ip_header(IPPROTO_TCP, 0),
		.tcp = { .source = htons(1), .dest = htons(2), .seq = htonl(FIRST_NUMBER), .doff = 5, .ack = 1, .psh = 1, .fin = 1,
			 .cwr = 1, .window = htons(100), .check = htons(WRONG_UDP) },
	};

	return message;
}

static int post_long(struct pair *pair, struct tcp_message *header, u32 header_length, u32 size, u32 length)
{
	struct request request = { .opcode = IB_WR_LSO, .flags = SIGNALED, .length = length, .first_piece = length / 3 };
	const struct ib_send_wr *bad;
	struct posting posting;

	describe(pair, &pair->a, &request, &posting);
	posting.work.ud.header = header;
	posting.work.ud.hlen = header_length;
	posting.work.ud.mss = size;
	return ib_post_send(pair->a.qp, &posting.work.wr, &bad);
}

static bool is_segment(struct pair *pair, u32 number, u32 count, u32 length)
{
	const struct tcp_message *found = (struct tcp_message *)(pair->b.memory + INCOMING + number * ROOM + GRH_BYTES);
	bool last = number + 1 == count;

	return same(pair, "the length", sizeof(*found) - sizeof(found->before) + length, ntohs(found->ip.tot_len)) &&
	       same(pair, "the identification", (u16)(FIRST_ID + number), ntohs(found->ip.id)) &&
	       same(pair, "the sequence number", (u32)(FIRST_NUMBER + number * SEGMENT), ntohl(found->tcp.seq)) &&
	       same(pair, "FIN", last, found->tcp.fin) && same(pair, "PSH", last, found->tcp.psh) &&
	       same(pair, "ACK", 1, found->tcp.ack) && same(pair, "CWR", number == 0, found->tcp.cwr) &&
	       same(pair, "the sum of the IP header", 0, ip_fast_csum(&found->ip, found->ip.ihl)) &&
	       same(pair, "the sum of TCP", 0, transport_sum(&found->ip, &found->tcp, sizeof(found->tcp) + length)) &&
	       same(pair, "the data", 0, memcmp(pair->a.memory + OUTGOING + number * SEGMENT, found->data, length));
}

static void cut_to(struct pair *pair, u32 length)
{
	u32 count = DIV_ROUND_UP(length, SEGMENT), i;
	struct tcp_message header = tcp_header();
	struct ib_wc wc = {};

	fill(&pair->a, OUTGOING, length, length);
	for (i = 0; i < count; i++)
		if (!post_receive(pair, &pair->b, INCOMING + i * ROOM, ROOM))
			return;
	if (!same(pair, "posting the segment", 0, post_long(pair, &header, sizeof(header), SEGMENT, length)) ||
	    !completed(pair, pair->a.send_cq, "the segment", &wc) ||
	    !same(pair, "the status", IB_WC_SUCCESS, wc.status) || !same(pair, "the operation", IB_WC_LSO, wc.opcode))
		return;
	for (i = 0; i < count; i++) {
		u32 part = min(length - i * SEGMENT, SEGMENT);

		if (!received(pair, &pair->b, GRH_BYTES + sizeof(header) + part, &wc) || !is_segment(pair, i, count, part))
			return;
	}
	nothing_completed(pair, pair->a.send_cq, "a segment is one request");
}

static void cut(struct pair *pair)
{
	static const u32 lengths[] = { 1, SEGMENT, SEGMENT + 1, 5 * SEGMENT - 1, 20 * SEGMENT };
	unsigned int i;

	if (!can_cut(pair))
		return;
	for (i = 0; i < ARRAY_SIZE(lengths) && !failed(pair); i++)
		cut_to(pair, lengths[i]);
}

static void not_cut(struct pair *pair)
{
	struct tcp_message header = tcp_header();

	if (!can_cut(pair))
		return;
	if (!same(pair, "a header that is too short", -EINVAL, post_long(pair, &header, sizeof(header) - 1, SEGMENT, 5000)) ||
	    !same(pair, "segments without data", -EINVAL, post_long(pair, &header, sizeof(header), 0, 5000)))
		return;
	header.ip.protocol = IPPROTO_UDP;
	same(pair, "a header of UDP", -EINVAL, post_long(pair, &header, sizeof(header), SEGMENT, 5000));
}

static void cannot_cut(struct pair *pair)
{
	struct tcp_message header = tcp_header();

	if (pair->a.device->attrs.kernel_cap_flags & IBK_UD_TSO)
		left_out(pair, "an HCA that does not send long TCP segments");
	else
		same(pair, "posting the segment", -EINVAL, post_long(pair, &header, sizeof(header), SEGMENT, 5000));
}

static const struct test tests[] = {
	{ "checksums are filled in", { .type = IB_QPT_UD }, filled_in },
	{ "checksums are looked at", { .type = IB_QPT_UD }, looked_at },
	{ "without the capability none is said to be right", { .type = IB_QPT_UD }, not_looked_at },
	{ "a long segment is sent as several", { .type = IB_QPT_UD, .segments = true }, cut },
	{ "what is no segment is refused", { .type = IB_QPT_UD, .segments = true }, not_cut },
	{ "without the capability a long segment is refused", { .type = IB_QPT_UD }, cannot_cut },
};

GROUP(offload, tests);
