// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a program may do with its queues: post chains that are longer than a command has room for, drain a send queue and change
 * how it goes on, have long queues flushed, read much by many connections at once. Prints a line for each case, `ok` or
 * `not ok`, and a description.
 *
 * queues DEVICE
 */

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "pair.h"
#include "report.h"

/* Requests of a chain: of sends with one piece, 909 are as many as a command has room for, and of receives 2047. */
#define CHAIN 5000
/* One that is in no first command. */
#define BAD 2500

/* --- long chains --- */

static void make_long(struct side *side)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = CHAIN, .max_recv_wr = CHAIN, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	must(!ibv_destroy_qp(side->qp) && !ibv_destroy_cq(side->cq), "its queues go");
	side->cq = ibv_create_cq(context, 2 * CHAIN, NULL, NULL, 0);
	must(!!side->cq, "a long completion queue");
	init.send_cq = side->cq;
	init.recv_cq = side->cq;
	side->qp = ibv_create_qp(side->pd, &init);
	must(!!side->qp, "a queue pair of long queues");
}

/* The number of completions that come with a status, in the order of their requests. Says what the first other one is. */
static int ended(struct side *side, int wanted, enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int number;

	for (number = 0; number < wanted; number++) {
		if (!next_completion(side->cq, &wc)) {
			printf("# no completion came after %d\n", number);
			break;
		}
		if (wc.status != status || wc.wr_id != (uint64_t)number) {
			printf("# completion %d is of request %llu: %s\n", number, (unsigned long long)wc.wr_id,
			       ibv_wc_status_str(wc.status));
			break;
		}
	}
	return number;
}

static int completed(struct side *side, int wanted)
{
	return ended(side, wanted, IBV_WC_SUCCESS);
}

static struct ibv_sge piece_of(const struct side *side)
{
	return (struct ibv_sge){ .addr = (uintptr_t)side->memory, .length = 8, .lkey = side->mr->lkey };
}

static struct ibv_send_wr *chain_of_sends(struct ibv_sge *sge)
{
	struct ibv_send_wr *chain = calloc(CHAIN, sizeof(*chain));
	int i;

	must(!!chain, "memory for sends");
	for (i = 0; i < CHAIN; i++)
		chain[i] = (struct ibv_send_wr){ .wr_id = i, .next = i + 1 < CHAIN ? &chain[i + 1] : NULL, .sg_list = sge,
						 .num_sge = 1, .opcode = IBV_WR_SEND };
	return chain;
}

static int post_long_receives(void)
{
	struct ibv_recv_wr *chain = calloc(CHAIN, sizeof(*chain)), *bad;
	struct ibv_sge sge = piece_of(&b);
	int i, error;

	must(!!chain, "memory for receives");
	for (i = 0; i < CHAIN; i++)
		chain[i] = (struct ibv_recv_wr){ .wr_id = i, .next = i + 1 < CHAIN ? &chain[i + 1] : NULL, .sg_list = &sge,
						 .num_sge = 1 };
	error = ibv_post_recv(b.qp, chain, &bad);
	free(chain);
	return error;
}

static void long_chains(void)
{
	struct ibv_sge pieces[2] = { piece_of(&a), piece_of(&a) };
	struct ibv_send_wr *chain = chain_of_sends(pieces), *bad = NULL;

	join();
	report_number(0, post_long_receives(), "a long chain of receives is posted");
	report_number(0, ibv_post_send(a.qp, chain, &bad), "a long chain of sends is posted");
	report_number(CHAIN, completed(&b, CHAIN), "all receives are used, in their order");
	report_number(CHAIN, completed(&a, CHAIN), "all sends are complete, in their order");
	join();
	report_number(0, post_long_receives(), "receives are posted again");
	/* A piece more than the queue pair was made for. */
	chain[BAD].num_sge = 2;
	report_number(EINVAL, ibv_post_send(a.qp, chain, &bad), "a chain with a bad send is not posted as a whole");
	report(bad == &chain[BAD], "the bad send is named");
	report_number(BAD, completed(&a, BAD), "the sends before it are complete");
	free(chain);
}

/* --- draining --- */

static int change(struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(a.qp, &attr, mask);
}

/* To the state SQD, with an event when the queue is drained or without. */
static int drain(int notify)
{
	return change((struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify },
		      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static int resume(void)
{
	return change((struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, IBV_QP_STATE);
}

/* Whether the state is SQD, and the queue is still being drained or not. */
static int is_drained(int draining)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};

	return !ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_SQD && attr.sq_draining == draining;
}

/* Whether the event comes in so many milliseconds. */
static int is_told(int milliseconds)
{
	struct pollfd file = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int told;

	if (poll(&file, 1, milliseconds) != 1 || ibv_get_async_event(context, &event))
		return 0;
	told = event.event_type == IBV_EVENT_SQ_DRAINED && event.element.qp == a.qp;
	ibv_ack_async_event(&event);
	return told;
}

/* a is ready to send, b only initialised: it answers nothing. */
static void join_with_deaf(uint8_t timeout)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1
	};

	must(!to_reset(a.qp) && !to_reset(b.qp) && !to_init(a.qp) && !to_init(b.qp), "queue pairs are initialised");
	must(!to_rtr(a.qp, b.qp->qp_num) && !change(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
								  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "a is connected");
}

static void draining(void)
{
	struct ibv_wc wc;

	/* 268 ms for each of eight tries. */
	join_with_deaf(16);
	must(!post_receive(&b, b.memory, SIDE_SIZE, b.mr->lkey), "a receive");
	must(!post_send(&a, a.memory, 8, a.mr->lkey, 0), "a send");
	must(!drain(1), "it is drained");
	report(is_drained(1), "a queue with a send under way is still being drained");
	report(!is_told(0), "and no event says that it is done");
	must(!to_rts(b.qp, a.qp->qp_num), "the peer comes");
	report(is_told(TRIES), "when the send is complete, an event says so");
	report(is_drained(0), "and the queue is drained");
	report(next_completion(a.cq, &wc) && wc.status == IBV_WC_SUCCESS, "the send went well");
	must(!resume() && !drain(0), "it is drained once more");
	report(is_drained(0), "an empty queue is drained at once");
	report(!is_told(100), "and no event comes that nobody asked for");
}

/* Without a timeout a send to a peer that does not answer waits for ever. */
static void attributes(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .timeout = 10, .retry_cnt = 1 };

	join_with_deaf(0);
	must(!drain(0), "it is drained");
	report_number(0, change(attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT), "a drained queue takes another timeout");
	must(!resume(), "it goes on");
	must(!post_send(&a, a.memory, 8, a.mr->lkey, 0), "a send");
	report_number(IBV_WC_RETRY_EXC_ERR, next_status(&a), "and the sends after that have it");
}

/* --- flushing --- */

/* Many more than are flushed at once. What is posted meanwhile is behind them. */
static void flushing(void)
{
	struct ibv_qp_attr failed = { .qp_state = IBV_QPS_ERR };
	struct ibv_sge sge = piece_of(&a), there = piece_of(&b);
	struct ibv_recv_wr receive = { .wr_id = CHAIN, .sg_list = &there, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr *chain = chain_of_sends(&sge), *bad;

	join_with_deaf(0);
	must(!post_long_receives() && !ibv_post_send(a.qp, chain, &bad), "long chains are posted");
	must(!ibv_modify_qp(a.qp, &failed, IBV_QP_STATE) && !ibv_modify_qp(b.qp, &failed, IBV_QP_STATE),
	     "queue pairs are in the error state");
	chain[0] = (struct ibv_send_wr){ .wr_id = CHAIN, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	report_number(0, ibv_post_send(a.qp, chain, &bad), "a send is posted while others are flushed");
	report_number(0, ibv_post_recv(b.qp, &receive, &bad_receive), "and so is a receive");
	report_number(CHAIN + 1, ended(&a, CHAIN + 1, IBV_WC_WR_FLUSH_ERR), "all sends are flushed, in their order");
	report_number(CHAIN + 1, ended(&b, CHAIN + 1, IBV_WC_WR_FLUSH_ERR), "all receives are flushed, in their order");
	free(chain);
}

/* --- many READs at once --- */

/* Their answers are more packets than may wait in a device. */
#define READERS 8
#define READ_SIZE (256 * 1024)

/* A send that loses anything fails. */
static int to_rts_without_retries(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 20, .max_rd_atomic = 1 };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						IBV_QP_MAX_QP_RD_ATOMIC);
}

static void reads(void)
{
	char *memory = mmap(NULL, 2 * READ_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_qp *readers[READERS], *answerers[READERS];
	struct ibv_sge sge = { .length = READ_SIZE };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ }, *bad;
	struct ibv_mr *mr;
	int i, good = 0;

	must(memory != MAP_FAILED, "memory to read");
	memset(memory, 'r', READ_SIZE);
	mr = ibv_reg_mr(a.pd, memory, 2 * READ_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	must(!!mr, "a region to read");
	/* Many short packets. */
	port.active_mtu = IBV_MTU_256;
	for (i = 0; i < READERS; i++) {
		readers[i] = make_qp(&a, IBV_QPT_RC);
		answerers[i] = make_qp(&a, IBV_QPT_RC);
		must(readers[i] && answerers[i], "queue pairs");
		must(!to_init(readers[i]) && !to_init(answerers[i]), "they are initialised");
		must(!to_rtr(readers[i], answerers[i]->qp_num) && !to_rtr(answerers[i], readers[i]->qp_num), "they are connected");
		must(!to_rts_without_retries(readers[i]) && !to_rts_without_retries(answerers[i]), "they may send");
	}
	sge.addr = (uintptr_t)memory + READ_SIZE;
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)memory;
	wr.wr.rdma.rkey = mr->rkey;
	for (i = 0; i < READERS; i++)
		must(!ibv_post_send(readers[i], &wr, &bad), "a READ is posted");
	while (good < READERS && next_status(&a) == IBV_WC_SUCCESS)
		good++;
	report_number(READERS, good, "long READs at once lose no packet");
	report(!memcmp(memory, memory + READ_SIZE, READ_SIZE), "and have all the data");
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device(argc > 1 ? argv[1] : "");
	make_side(&a, IBV_ACCESS_LOCAL_WRITE);
	make_side(&b, IBV_ACCESS_LOCAL_WRITE);
	draining();
	attributes();
	make_long(&a);
	make_long(&b);
	long_chains();
	flushing();
	reads();
	/* The objects are the kernel's to free. */
	puts("end");
	return 0;
}
