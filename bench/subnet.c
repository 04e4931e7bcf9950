// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving IP packets on a subnet: the far HCA's queue pair sends them, in one call for a burst, to the interface under
 * test, or to a queue pair of the near HCA, which is what the device alone costs.
 */

#include "verbs.h"

struct subnet {
	struct verbs far, near;
	struct bench_sink sink;
	/* Where the datagrams go. */
	u32 qpn;
	unsigned long received;
};

static unsigned int message(void *to, unsigned int bytes)
{
	__be16 *encap = to;

	encap[0] = htons(ETH_P_IP);
	encap[1] = 0;
	return BENCH_ENCAP + bench_datagram(encap + 2, BENCH_IPOIB_IP(BENCH_PEER), BENCH_IPOIB_IP(BENCH_US), bytes);
}

static void prepare_sends(struct subnet *subnet)
{
	struct verbs *far = &subnet->far;
	unsigned int i;

	for (i = 0; i < BENCH_RING; i++) {
		struct request *request = &far->requests[i];

		request->piece.length = message(far->memory[i], far->bench->bytes);
		request->send = (struct ib_ud_wr) {
			.wr = {
				.opcode = IB_WR_SEND,
				.num_sge = 1,
				.sg_list = &request->piece,
			},
			.ah = far->ah,
			.remote_qpn = subnet->qpn,
			.remote_qkey = BENCH_QKEY,
		};
	}
}

/* A burst in one call, the last request signalled. */
static int send_burst(struct verbs *far)
{
	struct ib_send_wr *first = NULL, *last = NULL;
	unsigned int i;

	for (i = 0; i < far->bench->burst; i++) {
		struct ib_send_wr *wr = &verbs_next_request(far)->send.wr;

		wr->send_flags = 0;
		wr->next = NULL;
		if (last)
			last->next = wr;
		else
			first = wr;
		last = wr;
	}
	last->send_flags = IB_SEND_SIGNALED;
	far->awaited++;
	return ib_post_send(far->qp, first, NULL);
}

static int post_receives(struct verbs *near, unsigned int number)
{
	struct ib_recv_wr *first = NULL, *last = NULL;

	while (number--) {
		struct request *request = verbs_next_request(near);
		struct ib_recv_wr *wr = &request->receive;

		request->piece.length = PAGE_SIZE + PAGE_SIZE / 2;
		*wr = (struct ib_recv_wr) { .num_sge = 1, .sg_list = &request->piece };
		if (last)
			last->next = wr;
		else
			first = wr;
		last = wr;
	}
	return first ? ib_post_recv(near->qp, first, NULL) : 0;
}

static void take_sends(struct verbs *far)
{
	/* One that failed is missed at the end of the round, which then does not come. */
	while (ib_poll_cq(far->cq, 1, far->completions) == 1)
		far->awaited -= far->completions[0].status == IB_WC_SUCCESS;
}

static bool received_by_socket(void *context)
{
	struct subnet *subnet = context;

	take_sends(&subnet->far);
	return !subnet->far.awaited && subnet->sink.received >= subnet->received;
}

/* As a driver does that posts in chains. */
static bool received_by_queue_pair(void *context)
{
	struct subnet *subnet = context;
	struct verbs *near = &subnet->near;
	int taken, i;

	take_sends(&subnet->far);
	do {
		taken = ib_poll_cq(near->cq, BENCH_BATCH, near->completions);
		for (i = 0; i < taken; i++)
			subnet->sink.received += near->completions[i].status == IB_WC_SUCCESS;
		if (post_receives(near, taken))
			subnet->received++;
	} while (taken == BENCH_BATCH);
	return !subnet->far.awaited && subnet->sink.received >= subnet->received;
}

static int rounds(struct subnet *subnet, bool (*done)(void *context))
{
	struct bench *bench = subnet->far.bench;
	int error = 0;

	prepare_sends(subnet);
	while (bench_goes_on(bench) && !error) {
		subnet->received += bench->burst;
		bench_begin(bench);
		error = send_burst(&subnet->far) ?: bench_drain(bench, done, subnet);
		bench_end(bench);
	}
	return error;
}

static struct subnet *subnet_new(struct bench *bench)
{
	struct subnet *subnet = kvzalloc(sizeof(*subnet), GFP_KERNEL);

	if (subnet) {
		subnet->far.bench = bench;
		subnet->near.bench = bench;
		subnet->far.name = BENCH_FAR;
		subnet->near.name = BENCH_NEAR;
	}
	return subnet;
}

static int open_far(struct subnet *subnet)
{
	return verbs_lid(BENCH_NEAR, &subnet->far.peer_lid) ?: verbs_open(&subnet->far);
}

static int receive_ipoib(struct subnet *subnet, struct net_device *ipoib)
{
	int error = bench_sink_open(&subnet->sink);

	if (error)
		return error;
	subnet->qpn = bench_queue_pair(ipoib);
	error = open_far(subnet) ?: rounds(subnet, received_by_socket);
	bench_sink_close(&subnet->sink);
	return error;
}

int bench_receive_subnet_ipoib(struct bench *bench)
{
	struct net_device *ipoib = dev_get_by_name(bench_net(), BENCH_IPOIB);
	struct subnet *subnet = subnet_new(bench);
	int error = -ENODEV;

	if (!subnet)
		error = -ENOMEM;
	else if (ipoib)
		error = receive_ipoib(subnet, ipoib);
	if (subnet)
		verbs_close(&subnet->far);
	kvfree(subnet);
	dev_put(ipoib);
	return error;
}

static int receive_device(struct subnet *subnet)
{
	int error = verbs_lid(BENCH_FAR, &subnet->near.peer_lid) ?: verbs_open(&subnet->near);

	if (error)
		return error;
	subnet->qpn = subnet->near.qp->qp_num;
	return open_far(subnet) ?: post_receives(&subnet->near, BENCH_RING - 1) ?:
	       rounds(subnet, received_by_queue_pair);
}

int bench_receive_subnet_device(struct bench *bench)
{
	struct subnet *subnet = subnet_new(bench);
	int error;

	if (!subnet)
		return -ENOMEM;
	error = receive_device(subnet);
	verbs_close(&subnet->far);
	verbs_close(&subnet->near);
	kvfree(subnet);
	return error;
}
