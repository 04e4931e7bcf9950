// SPDX-License-Identifier: GPL-2.0-only
/* Unreliable datagrams. What is dropped shows by what is received next. */

#include <linux/delay.h>

#include "verbs.h"

#define SIGNALED IB_SEND_SIGNALED
#define NOBODY 0xfffffd

static bool post_datagram_receive(struct pair *pair, u32 length)
{
	return post_receive(pair, &pair->b, INCOMING, GRH_BYTES + length);
}

static bool arrives(struct pair *pair, u32 length, struct ib_wc *wc)
{
	fill(&pair->a, OUTGOING, length, length);
	fill(&pair->b, INCOMING, GRH_BYTES + length, ~length);
	return post(pair, &pair->a, &(struct request){ .opcode = IB_WR_SEND, .flags = SIGNALED, .length = length }) &&
	       received(pair, &pair->b, GRH_BYTES + length, wc) && sent_well(pair, &pair->a, 1) &&
	       has(pair, &pair->b, INCOMING + GRH_BYTES, length, length);
}

/* What the completion says of the sender. */
static bool tells(struct pair *pair, const struct ib_wc *wc)
{
	bool grh = pair->setup->with_grh || !is_infiniband(&pair->a) || pair->a.router_lid;

	if (!same(pair, "the opcode", IB_WC_RECV, wc->opcode) ||
	    !same(pair, "the source queue pair", pair->a.qp->qp_num, wc->src_qp) ||
	    !same(pair, "the flag of a GRH", grh ? IB_WC_GRH : 0, wc->wc_flags & IB_WC_GRH) ||
	    !same(pair, "the P_Key index", pair->b.pkey_index, wc->pkey_index))
		return false;
	return !is_infiniband(&pair->a) ||
	       (same(pair, "the source LID", pair->b.router_lid ?: pair->a.port.lid, wc->slid) &&
		same(pair, "the path bits", 0, wc->dlid_path_bits) && same(pair, "the service level", 0, wc->sl));
}

/* As it stands in front of the payload: an IPv6 header by its form, on Ethernet an IPv4 header in the last 20 bytes. */
static bool has_grh(struct pair *pair, u32 length)
{
	const struct ib_grh *grh = (struct ib_grh *)(pair->b.memory + INCOMING);

	if (!is_infiniband(&pair->a) || !(pair->setup->with_grh || pair->a.router_lid))
		return true;
	return same(pair, "the IP version", 6, be32_to_cpu(grh->version_tclass_flow) >> 28) &&
	       same(pair, "the next header", 0x1b, grh->next_hdr) &&
	       same(pair, "the hop limit", 64 - pair->routers, grh->hop_limit) &&
	       /* BTH, DETH, payload, padding, ICRC */
	       same(pair, "the payload length", 12 + 8 + ALIGN(length, 4) + 4, be16_to_cpu(grh->paylen)) &&
	       same(pair, "the source GID", 0, memcmp(&grh->sgid, &pair->a.gid, sizeof(grh->sgid))) &&
	       same(pair, "the destination GID", 0, memcmp(&grh->dgid, &pair->b.gid, sizeof(grh->dgid)));
}

static void send(struct pair *pair)
{
	u32 mtu = mtu_bytes(pair), lengths[] = { 0, 1, 2, 3, 4, 64, mtu - 1, mtu };
	struct ib_wc wc = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		if (!post_datagram_receive(pair, mtu) || !arrives(pair, lengths[i], &wc) || !tells(pair, &wc) ||
		    !has_grh(pair, lengths[i]))
			return;
}

static void send_immediate(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND_WITH_IMM, .flags = SIGNALED, .length = 8,
				   .immediate = cpu_to_be32(0x01020304) };
	struct ib_wc wc = {};

	if (post_datagram_receive(pair, 8) && post(pair, &pair->a, &request) &&
	    received(pair, &pair->b, GRH_BYTES + 8, &wc) && sent_well(pair, &pair->a, 1) &&
	    same(pair, "the flag of immediate data", IB_WC_WITH_IMM, wc.wc_flags & IB_WC_WITH_IMM))
		same(pair, "immediate data", 0x01020304, be32_to_cpu(wc.ex.imm_data));
}

/* Back to the sender, by the completion and the GRH alone. */
static void reply(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 16 };
	struct ib_wc wc = {};
	struct ib_ah *ah;

	if (!post_datagram_receive(pair, 16) || !arrives(pair, 16, &wc) ||
	    !post_receive(pair, &pair->a, INCOMING, GRH_BYTES + 16))
		return;
	ah = ib_create_ah_from_wc(pair->b.pd, &wc, (struct ib_grh *)(pair->b.memory + INCOMING), 1);
	if (IS_ERR(ah)) {
		fail(pair, "no address can be made from the completion: %ld", PTR_ERR(ah));
		return;
	}
	swap(ah, pair->b.ah);
	fill(&pair->b, OUTGOING, 16, 5);
	if (post(pair, &pair->b, &request) && sent_well(pair, &pair->b, 1) &&
	    received(pair, &pair->a, GRH_BYTES + 16, NULL))
		has(pair, &pair->a, INCOMING + GRH_BYTES, 16, 5);
	swap(ah, pair->b.ah);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

static bool lost(struct pair *pair, struct request *request)
{
	request->opcode = IB_WR_SEND;
	request->flags = SIGNALED;
	request->length = request->length ?: 32;
	return post(pair, &pair->a, request) && sent_well(pair, &pair->a, 1);
}

static void wrong_qkey(struct pair *pair)
{
	if (post_datagram_receive(pair, 64) && lost(pair, &(struct request){ .qkey = OTHER_QKEY }))
		arrives(pair, 64, NULL);
}

/* With its highest bit set it stands for the sending queue pair's own one (volume 1, 10.2.5). */
static void controlled_qkey(struct pair *pair)
{
	if (post_datagram_receive(pair, 32) &&
	    post(pair, &pair->a, &(struct request){ .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 32, .qkey = 0x80000000 | OTHER_QKEY }) &&
	    post(pair, &pair->a, &(struct request){ .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 16 }) &&
	    sent_well(pair, &pair->a, 2))
		received(pair, &pair->b, GRH_BYTES + 32, NULL);
}

static void nobody(struct pair *pair)
{
	if (post_datagram_receive(pair, 64) && lost(pair, &(struct request){ .qpn = NOBODY }))
		arrives(pair, 64, NULL);
}

static void wrong_pkey(struct pair *pair)
{
	struct request request = {};

	if (!post_datagram_receive(pair, 64) || !lost(pair, &request))
		return;
	msleep(100);
	nothing_completed(pair, pair->b.recv_cq, "the sender is of another partition");
}

/* It ends well, as what is lost does, but nothing is sent. */
static void unused_pkey(struct pair *pair)
{
	wrong_pkey(pair);
	no_bad_pkey(pair, &pair->b);
}

static void no_receive(struct pair *pair)
{
	struct request request = {};

	if (!lost(pair, &request))
		return;
	msleep(100);
	if (post_datagram_receive(pair, 64))
		arrives(pair, 64, NULL);
}

/* It ends well, but nothing is sent (volume 1, C10-93.1.1). */
static void too_long(struct pair *pair)
{
	u32 mtu = mtu_bytes(pair);

	if (post_datagram_receive(pair, mtu + 1) && lost(pair, &(struct request){ .length = mtu + 1 }))
		arrives(pair, 64, NULL);
}

/*
 * A message that was longer than its receive never ends well. Whether it uses up the receive is up to the device: a short
 * message after it shows that.
 */
static void does_not_end_well(struct pair *pair)
{
	struct ib_wc wc = {};

	if (!lost(pair, &(struct request){ .length = 8 }) || !completed(pair, pair->b.recv_cq, "the receive", &wc))
		return;
	if (wc.status != IB_WC_SUCCESS)
		same(pair, "the status", IB_WC_LOC_LEN_ERR, wc.status);
	else
		same(pair, "bytes received", GRH_BYTES + 8, wc.byte_len);
}

static void short_receive(struct pair *pair)
{
	if (post_datagram_receive(pair, 16) && post_datagram_receive(pair, 64) &&
	    lost(pair, &(struct request){ .length = 32 }))
		does_not_end_well(pair);
}

/* Its receive has no room for the GRH. */
static void empty_into_short_receive(struct pair *pair)
{
	if (post_receive(pair, &pair->b, INCOMING, GRH_BYTES - 1) && post_datagram_receive(pair, 64) &&
	    post(pair, &pair->a, &(struct request){ .opcode = IB_WR_SEND, .flags = SIGNALED }) &&
	    sent_well(pair, &pair->a, 1))
		does_not_end_well(pair);
}

static void pieces(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 100, .first_piece = 33 };

	fill(&pair->a, OUTGOING, 100, 6);
	if (post_datagram_receive(pair, 100) && post(pair, &pair->a, &request) &&
	    received(pair, &pair->b, GRH_BYTES + 100, NULL) && sent_well(pair, &pair->a, 1))
		has(pair, &pair->b, INCOMING + GRH_BYTES, 100, 6);
}

/* As many bytes as the queue pair was made for, and no more. */
static void longest_inline(struct pair *pair)
{
	u32 length = pair->a.inline_bytes;
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED | IB_SEND_INLINE, .length = length + 1 };
	const struct ib_send_wr *bad;
	struct posting posting;

	fill(&pair->a, OUTGOING, length, 33);
	describe(pair, &pair->a, &request, &posting);
	/* Inline, addresses are the kernel's. */
	posting.pieces[0].addr = (uintptr_t)pair->a.memory;
	if (!post_datagram_receive(pair, length) ||
	    !same(pair, "a byte more", -EINVAL, ib_post_send(pair->a.qp, &posting.work.wr, &bad)))
		return;
	posting.pieces[0].length = length;
	if (same(pair, "as many", 0, ib_post_send(pair->a.qp, &posting.work.wr, &bad)) &&
	    received(pair, &pair->b, GRH_BYTES + length, NULL) && sent_well(pair, &pair->a, 1))
		has(pair, &pair->b, INCOMING + GRH_BYTES, length, 33);
}

static bool still_receives(struct pair *pair)
{
	fill(&pair->b, OUTGOING, 16, 5);
	return post_receive(pair, &pair->a, INCOMING, GRH_BYTES + 16) &&
	       post(pair, &pair->b, &(struct request){ .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 16 }) &&
	       sent_well(pair, &pair->b, 1) && received(pair, &pair->a, GRH_BYTES + 16, NULL) &&
	       has(pair, &pair->a, INCOMING + GRH_BYTES, 16, 5);
}

/*
 * The send queue stops, and it alone: what is behind the request is flushed, in its list and later, until the queue pair is
 * set to RTS again (volume 1, 10.3.1).
 */
static void failed_send(struct pair *pair)
{
	struct ib_qp_attr resume = { .qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE };
	struct request behind = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 32 };
	struct request requests[] = {
		{ .opcode = IB_WR_SEND, .length = 32, .lkey = pair->a.mr->lkey ^ 0x40 },
		behind,
	};

	if (post_datagram_receive(pair, 64) && post_all(pair, &pair->a, requests, ARRAY_SIZE(requests)) &&
	    sent(pair, &pair->a, IB_WC_LOC_PROT_ERR) && sent(pair, &pair->a, IB_WC_WR_FLUSH_ERR) &&
	    reached(pair, &pair->a, IB_QPS_SQE) && post(pair, &pair->a, &behind) &&
	    sent(pair, &pair->a, IB_WC_WR_FLUSH_ERR) && still_receives(pair) &&
	    same(pair, "to RTS", 0, ib_modify_qp(pair->a.qp, &resume, IB_QP_STATE | IB_QP_CUR_STATE)))
		/* What was flushed would be in the receive. */
		arrives(pair, 64, NULL);
}

static bool drains(struct pair *pair)
{
	struct ib_qp_attr attributes = { .qp_state = IB_QPS_SQD, .en_sqd_async_notify = 1 };

	return same(pair, "to SQD", 0, ib_modify_qp(pair->a.qp, &attributes, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY)) &&
	       happened(pair, &pair->a, IB_EVENT_SQ_DRAINED);
}

/* The data of a request are taken when it is posted, if they are inline. */
static bool post_inline(struct pair *pair, u32 length, u8 seed)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED | IB_SEND_INLINE, .length = length };
	const struct ib_send_wr *bad;
	struct posting posting;
	int error;

	fill(&pair->a, INCOMING, length, seed);
	describe(pair, &pair->a, &request, &posting);
	/* Inline, addresses are the kernel's. */
	posting.pieces[0].addr = (uintptr_t)pair->a.memory + INCOMING;
	error = ib_post_send(pair->a.qp, &posting.work.wr, &bad);
	fill(&pair->a, INCOMING, length, ~seed);
	return same(pair, "posting inline data", 0, error);
}

/*
 * What is posted while the send queue is drained waits until the queue pair is set to RTS again, and is sent in its order.
 * Receives go on (volume 1, 10.3.1).
 */
static void drained(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 32 };
	struct ib_qp_attr resume = { .qp_state = IB_QPS_RTS };

	fill(&pair->a, OUTGOING, 32, 7);
	if (!post_datagram_receive(pair, 32) || !post_receive(pair, &pair->b, INCOMING + 1024, GRH_BYTES + 16) ||
	    !drains(pair) || !post(pair, &pair->a, &request) || !post_inline(pair, 16, 9) || !still_receives(pair) ||
	    !nothing_completed(pair, pair->a.send_cq, "the send queue is drained") ||
	    !nothing_completed(pair, pair->b.recv_cq, "the send queue is drained") ||
	    !same(pair, "to RTS", 0, ib_modify_qp(pair->a.qp, &resume, IB_QP_STATE)))
		return;
	if (received(pair, &pair->b, GRH_BYTES + 32, NULL) && received(pair, &pair->b, GRH_BYTES + 16, NULL) &&
	    sent_well(pair, &pair->a, 2) && has(pair, &pair->b, INCOMING + GRH_BYTES, 32, 7) &&
	    has(pair, &pair->b, INCOMING + 1024 + GRH_BYTES, 16, 9) && post_datagram_receive(pair, 64))
		arrives(pair, 64, NULL);
}

/* Many more wait than are sent at once. */
static void many_drained(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 32 };
	struct ib_qp_attr resume = { .qp_state = IB_QPS_RTS };
	u32 first = pair->a.posted, i;
	struct ib_wc wc = {};

	if (!drains(pair))
		return;
	for (i = 0; i < RING; i++)
		if (!post(pair, &pair->a, &request))
			return;
	if (!nothing_completed(pair, pair->a.send_cq, "the send queue is drained") ||
	    !same(pair, "to RTS", 0, ib_modify_qp(pair->a.qp, &resume, IB_QP_STATE)))
		return;
	for (i = 0; i < RING; i++)
		if (!completed(pair, pair->a.send_cq, "a request that waited", &wc) ||
		    !same(pair, "the status", IB_WC_SUCCESS, wc.status) || !same(pair, "the request", first + i, wc.wr_id))
			return;
	/* They end when they are handed to the cable: a receive that is posted at once may take a late one of them. */
	msleep(100);
	if (post_datagram_receive(pair, 64))
		arrives(pair, 64, NULL);
}

static void drained_to_error(struct pair *pair)
{
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 32 };

	if (drains(pair) && post(pair, &pair->a, &request) && post(pair, &pair->a, &request) &&
	    nothing_completed(pair, pair->a.send_cq, "the send queue is drained") &&
	    same(pair, "to the error state", 0, drop_to_error(&pair->a)) && sent(pair, &pair->a, IB_WC_WR_FLUSH_ERR))
		sent(pair, &pair->a, IB_WC_WR_FLUSH_ERR);
}

/* An HCA gives its own queue pairs what they send to a group of theirs. Beyond it the group would be the SM's to make. */
static void multicast(struct pair *pair)
{
	union ib_gid group = { .raw = { 0xff, 0x12, 0xa0, 0x1b, [14] = 0x12, [15] = 0x34 } };
	struct rdma_ah_attr attributes = { .type = RDMA_AH_ATTR_TYPE_IB };
	struct request request = { .opcode = IB_WR_SEND, .flags = SIGNALED, .length = 64, .qpn = IB_MULTICAST_QPN };
	const u16 lid = 0xc123;
	struct ib_wc wc = {};

	if (!is_infiniband(&pair->a) || pair->a.device != pair->b.device) {
		fail(pair, "it takes one InfiniBand HCA");
		pair->left_out = true;
		return;
	}
	rdma_ah_set_port_num(&attributes, 1);
	rdma_ah_set_dlid(&attributes, lid);
	rdma_ah_set_grh(&attributes, &group, 0, pair->a.gid_index, 1, 0);
	rdma_destroy_ah(pair->a.ah, RDMA_DESTROY_AH_SLEEPABLE);
	pair->a.ah = rdma_create_ah(pair->a.pd, &attributes, RDMA_CREATE_AH_SLEEPABLE);
	if (!same(pair, "making the group's address", 0, PTR_ERR_OR_ZERO(pair->a.ah))) {
		pair->a.ah = NULL;
		return;
	}
	fill(&pair->a, OUTGOING, 64, 17);
	/* The first is for nobody yet, and so is the last. */
	if (post_datagram_receive(pair, 64) && post_datagram_receive(pair, 64) && lost(pair, &request) &&
	    same(pair, "attaching", 0, ib_attach_mcast(pair->b.qp, &group, lid)) &&
	    nothing_completed(pair, pair->b.recv_cq, "nobody is attached") && post(pair, &pair->a, &request) &&
	    sent_well(pair, &pair->a, 1) && received(pair, &pair->b, GRH_BYTES + 64, &wc) &&
	    same(pair, "the flag of a GRH", IB_WC_GRH, wc.wc_flags & IB_WC_GRH) &&
	    has(pair, &pair->b, INCOMING + GRH_BYTES, 64, 17) &&
	    same(pair, "detaching", 0, ib_detach_mcast(pair->b.qp, &group, lid)) && lost(pair, &request)) {
		msleep(50);
		nothing_completed(pair, pair->b.recv_cq, "nobody is attached any more");
	}
}

/* To a router, with a header that forbids it to forward. What is sent as ever after that is the first to arrive. */
static void stays(struct pair *pair, const union ib_gid *to, u8 hop_limit)
{
	struct rdma_ah_attr attributes = { .type = RDMA_AH_ATTR_TYPE_IB };
	struct request request = {};
	struct ib_ah *ah;
	bool posted;

	if (!pair->a.router_lid) {
		fail(pair, "it takes a router");
		pair->left_out = true;
		return;
	}
	rdma_ah_set_port_num(&attributes, 1);
	rdma_ah_set_dlid(&attributes, pair->a.router_lid);
	rdma_ah_set_grh(&attributes, (union ib_gid *)to, 0, pair->a.gid_index, hop_limit, 0);
	ah = rdma_create_ah(pair->a.pd, &attributes, RDMA_CREATE_AH_SLEEPABLE);
	if (!same(pair, "making the address", 0, PTR_ERR_OR_ZERO(ah)))
		return;
	swap(ah, pair->a.ah);
	posted = post_datagram_receive(pair, 64) && lost(pair, &request);
	swap(ah, pair->a.ah);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	if (posted)
		arrives(pair, 64, NULL);
}

static void link_local(struct pair *pair)
{
	union ib_gid to = pair->b.gid;

	to.global.subnet_prefix = cpu_to_be64(0xfe80000000000000);
	stays(pair, &to, 64);
}

static void no_hops(struct pair *pair)
{
	stays(pair, &pair->b.gid, 1);
}

static const struct test tests[] = {
	{ "SEND", { .type = IB_QPT_UD }, send },
	{ "SEND with a GRH", { .type = IB_QPT_UD, .with_grh = true }, send },
	{ "SEND with immediate data", { .type = IB_QPT_UD }, send_immediate },
	{ "SEND of two pieces", { .type = IB_QPT_UD }, pieces },
	{ "SEND of as much inline data as the queue pair takes", { .type = IB_QPT_UD }, longest_inline },
	{ "SEND into a shared receive queue", { .type = IB_QPT_UD, .shared_receive = true }, send },
	{ "a reply to the sender that the completion tells", { .type = IB_QPT_UD }, reply },
	{ "a reply to the sender that completion and GRH tell", { .type = IB_QPT_UD, .with_grh = true }, reply },
	{ "SEND to a multicast group", { .type = IB_QPT_UD }, multicast },
	{ "what is for a link-local GID stays in its subnet", { .type = IB_QPT_UD }, link_local },
	{ "what has no hops left stays in its subnet", { .type = IB_QPT_UD }, no_hops },
	{ "a wrong Q_Key is dropped", { .type = IB_QPT_UD }, wrong_qkey },
	{ "a Q_Key with its highest bit set is the sender's own", { .type = IB_QPT_UD }, controlled_qkey },
	{ "a wrong P_Key is dropped", { .type = IB_QPT_UD, .strange_pkey = true }, wrong_pkey },
	{ "without a P_Key nothing is sent", { .type = IB_QPT_UD, .unused_pkey = true }, unused_pkey },
	{ "what is for nobody is dropped", { .type = IB_QPT_UD }, nobody },
	{ "a message without a receive is dropped", { .type = IB_QPT_UD }, no_receive },
	{ "a message longer than the MTU is not sent, and ends well", { .type = IB_QPT_UD }, too_long },
	{ "a message longer than its receive does not end well", { .type = IB_QPT_UD }, short_receive },
	{ "a SEND that fails stops the send queue", { .type = IB_QPT_UD }, failed_send },
	{ "a SEND waits while the send queue is drained", { .type = IB_QPT_UD }, drained },
	{ "many SENDs wait while the send queue is drained", { .type = IB_QPT_UD }, many_drained },
	{ "a SEND that waits in a drained send queue is flushed", { .type = IB_QPT_UD }, drained_to_error },
	{ "an empty message does not end well in a receive without room for a GRH", { .type = IB_QPT_UD }, empty_into_short_receive },
};

GROUP(datagram, tests);
