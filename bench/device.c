// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device alone: the work requests that oxib posts, posted in a tight loop, and their completions polled. In the
 * variants with events the device notifies of completions, and a NAPI poll takes them, as in a driver, which cannot wait
 * in a loop.
 */

#include "verbs.h"

struct loop {
	struct verbs verbs;
	struct net_device *poller;
	struct napi_struct napi;
	/* Takes completions off the count, and makes good for them. */
	int (*replace)(struct verbs *verbs, unsigned int number);
};

/* Sending */

static void prepare_sends(struct verbs *verbs)
{
	unsigned int i, length = BENCH_ENCAP + sizeof(struct iphdr) + sizeof(struct udphdr) + verbs->bench->bytes;

	for (i = 0; i < BENCH_RING; i++) {
		struct request *request = &verbs->requests[i];

		request->piece.length = length;
		request->send = (struct ib_ud_wr) {
			.wr = {
				.opcode = IB_WR_SEND,
				.num_sge = 1,
				.sg_list = &request->piece,
			},
			.ah = verbs->ah,
			.remote_qpn = BENCH_PEER_QPN,
			.remote_qkey = BENCH_QKEY,
		};
	}
}

/*
 * One call. The last request is signalled, but for inline ones: as in oxib, their slots alone are waited for, so that one
 * completion for many of them is enough.
 */
static int post_sends(struct verbs *verbs, unsigned int number)
{
	int inlined = verbs->requests[0].piece.length <= BENCH_INLINE ? IB_SEND_INLINE : 0;
	struct ib_send_wr *first = NULL, *last = NULL;

	verbs->unsignalled += number;
	while (number--) {
		struct ib_send_wr *wr = &verbs_next_request(verbs)->send.wr;

		wr->send_flags = inlined;
		wr->next = NULL;
		if (last)
			last->next = wr;
		else
			first = wr;
		last = wr;
	}
	if (!inlined || verbs->unsignalled >= BENCH_UNSIGNALLED) {
		last->send_flags |= IB_SEND_SIGNALED;
		verbs->unsignalled = 0;
		verbs->awaited++;
	}
	return ib_post_send(verbs->qp, first, NULL);
}

static int send_burst(struct verbs *verbs, unsigned int chain)
{
	unsigned int left = verbs->bench->burst;
	int error = 0;

	while (left && !error) {
		error = post_sends(verbs, min(left, chain));
		left -= min(left, chain);
	}
	return error;
}

static int replace_nothing(struct verbs *, unsigned int)
{
	return 0;
}

/* Receiving */

static int post_receives(struct verbs *verbs, unsigned int number)
{
	struct ib_recv_wr *first = NULL, *last = NULL;

	while (number--) {
		struct ib_recv_wr *wr = &verbs_next_request(verbs)->receive;

		wr->next = NULL;
		if (last)
			last->next = wr;
		else
			first = wr;
		last = wr;
	}
	return first ? ib_post_recv(verbs->qp, first, NULL) : 0;
}

static int prepare_receives(struct verbs *verbs)
{
	unsigned int i;

	for (i = 0; i < BENCH_RING; i++) {
		struct request *request = &verbs->requests[i];

		request->piece.length = PAGE_SIZE + PAGE_SIZE / 2;
		request->receive = (struct ib_recv_wr) {
			.num_sge = 1,
			.sg_list = &request->piece,
		};
	}
	return post_receives(verbs, BENCH_RING - 1);
}

/* Completions */

static int take_batch(struct loop *loop, int limit)
{
	struct verbs *verbs = &loop->verbs;
	int taken = ib_poll_cq(verbs->cq, limit, verbs->completions);

	verbs->awaited -= taken;
	/* What cannot be posted is missed by the end of the round, which then does not come. */
	if (loop->replace(verbs, taken))
		verbs->awaited++;
	return taken;
}

static bool polled(void *context)
{
	struct loop *loop = context;

	/* Without a signalled request there is nothing to poll for. */
	while (loop->verbs.awaited && take_batch(loop, BENCH_BATCH) == BENCH_BATCH)
		;
	return !loop->verbs.awaited;
}

static bool awaited(void *context)
{
	struct loop *loop = context;

	return !loop->verbs.awaited;
}

static int poll(struct napi_struct *napi, int budget)
{
	struct loop *loop = container_of(napi, struct loop, napi);
	int done = 0, limit, taken;

	do {
		limit = min(BENCH_BATCH, budget - done);
		taken = take_batch(loop, limit);
		done += taken;
	} while (taken == limit && done < budget);
	if (done < budget && napi_complete_done(napi, done) &&
	    ib_req_notify_cq(loop->verbs.cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		napi_schedule(napi);
	return done;
}

static void completed(struct ib_cq *, void *verbs)
{
	napi_schedule(&container_of(verbs, struct loop, verbs)->napi);
}

static int loop_open(struct loop *loop, bool events)
{
	int error;

	loop->poller = alloc_netdev_dummy(0);
	if (!loop->poller)
		return -ENOMEM;
	netif_napi_add(loop->poller, &loop->napi, poll);
	napi_enable(&loop->napi);
	if (events)
		loop->verbs.completed = completed;
	error = verbs_open(&loop->verbs);
	if (!error && events)
		error = ib_req_notify_cq(loop->verbs.cq, IB_CQ_NEXT_COMP);
	return error;
}

static void loop_close(struct loop *loop)
{
	verbs_close(&loop->verbs);
	if (loop->poller) {
		napi_disable(&loop->napi);
		netif_napi_del(&loop->napi);
		free_netdev(loop->poller);
	}
	kvfree(loop);
}

static struct loop *loop_new(struct bench *bench, int (*replace)(struct verbs *verbs, unsigned int number))
{
	struct loop *loop = kvzalloc(sizeof(*loop), GFP_KERNEL);

	if (loop) {
		loop->verbs.bench = bench;
		loop->replace = replace;
	}
	return loop;
}

/* The measurements */

static int send_rounds(struct loop *loop, unsigned int chain, bool events)
{
	struct bench *bench = loop->verbs.bench;
	int error = 0;

	prepare_sends(&loop->verbs);
	while (bench_goes_on(bench) && !error) {
		bench_begin(bench);
		error = send_burst(&loop->verbs, chain) ?: bench_drain(bench, events ? awaited : polled, loop);
		bench_end(bench);
	}
	return error;
}

static int transmit(struct bench *bench, unsigned int chain, bool events)
{
	struct loop *loop = loop_new(bench, replace_nothing);
	int error;

	if (!loop)
		return -ENOMEM;
	error = loop_open(loop, events) ?: send_rounds(loop, chain, events);
	loop_close(loop);
	return error;
}

/* From the near HCA to a queue pair that the far one does not have. */
static int transmit_on_subnet(struct bench *bench, unsigned int chain)
{
	struct loop *loop = loop_new(bench, replace_nothing);
	int error;

	if (!loop)
		return -ENOMEM;
	loop->verbs.name = BENCH_NEAR;
	error = verbs_lid(BENCH_FAR, &loop->verbs.peer_lid) ?: loop_open(loop, false) ?: send_rounds(loop, chain, false);
	loop_close(loop);
	return error;
}

int bench_transmit_subnet_single(struct bench *bench)
{
	return transmit_on_subnet(bench, 1);
}

int bench_transmit_subnet_chain(struct bench *bench)
{
	return transmit_on_subnet(bench, bench->burst);
}

int bench_transmit_device_single(struct bench *bench)
{
	return transmit(bench, 1, false);
}

int bench_transmit_device_single_events(struct bench *bench)
{
	return transmit(bench, 1, true);
}

int bench_transmit_device_chain(struct bench *bench)
{
	return transmit(bench, bench->burst, false);
}

int bench_transmit_device_chain_events(struct bench *bench)
{
	return transmit(bench, bench->burst, true);
}

static int receive_rounds(struct loop *loop)
{
	struct verbs *verbs = &loop->verbs;
	struct bench *bench = verbs->bench;
	struct sk_buff_head list;
	int error = 0;

	__skb_queue_head_init(&list);
	while (bench_goes_on(bench) && !error) {
		error = bench_frames_make(&list, verbs->ethernet, verbs->qp->qp_num, BENCH_IPOIB_IP(BENCH_US), bench);
		if (error)
			break;
		verbs->awaited = bench->burst;
		bench_begin(bench);
		bench_frames_arrive(&list);
		error = bench_drain(bench, polled, loop);
		bench_end(bench);
	}
	__skb_queue_purge(&list);
	return error;
}

int bench_receive_device(struct bench *bench)
{
	struct loop *loop = loop_new(bench, post_receives);
	int error;

	if (!loop)
		return -ENOMEM;
	error = loop_open(loop, false) ?: prepare_receives(&loop->verbs) ?: receive_rounds(loop);
	loop_close(loop);
	return error;
}
