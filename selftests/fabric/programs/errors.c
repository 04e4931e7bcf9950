// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs with arguments that are wrong, each with the error that it gives, or 0: `case: number` on a line. The same on any device,
 * so that softib and soft-RoCE can be compared (selftests/fabric/errors.sh).
 *
 * errors DEVICE GID-INDEX
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "pair.h"
#include "report.h"

#define SIZE SIDE_SIZE
#define NO_HANDLE 0x7ffffff0
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static void say(const char *text, int number)
{
	printf("%s: %d\n", text, number);
}

/* Of a verb that makes an object: the error, or 0 and the object goes. */
#define MADE(text, call, destroy) \
	do { \
		void *made_; \
		errno = 0; \
		made_ = (call); \
		say(text, made_ ? 0 : errno); \
		if (made_) \
			must(!destroy(made_), "it goes"); \
	} while (0)

/* --- objects --- */

static void regions(void)
{
	char *constant = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(constant != MAP_FAILED, "memory that is not to be written");
	MADE("a region without memory", ibv_reg_mr(a.pd, (void *)SIZE, SIZE, ALL), ibv_dereg_mr);
	MADE("a region of the kernel's memory", ibv_reg_mr(a.pd, (void *)0xffff888000000000, SIZE, ALL), ibv_dereg_mr);
	MADE("a region of no bytes", ibv_reg_mr(a.pd, a.memory, 0, ALL), ibv_dereg_mr);
	MADE("a region that is longer than its memory", ibv_reg_mr(a.pd, a.memory, 1UL << 40, ALL), ibv_dereg_mr);
	MADE("a region of all addresses", ibv_reg_mr(a.pd, a.memory, SIZE_MAX - SIZE, ALL), ibv_dereg_mr);
	MADE("a region to be written of memory that is not", ibv_reg_mr(a.pd, constant, SIZE, ALL), ibv_dereg_mr);
	MADE("a region to be read of it", ibv_reg_mr(a.pd, constant, SIZE, 0), ibv_dereg_mr);
	MADE("a region that only peers write", ibv_reg_mr(a.pd, a.memory, SIZE, IBV_ACCESS_REMOTE_WRITE), ibv_dereg_mr);
	MADE("a region whose addresses begin at 0", ibv_reg_mr(a.pd, a.memory, SIZE, ALL | IBV_ACCESS_ZERO_BASED), ibv_dereg_mr);
	MADE("a region twice", ibv_reg_mr(a.pd, a.memory, SIZE, ALL), ibv_dereg_mr);
	MADE("a region that overlaps", ibv_reg_mr(a.pd, a.memory + 100, SIZE - 100, ALL), ibv_dereg_mr);
	munmap(constant, SIZE);
}

static void completion_queues(void)
{
	MADE("a completion queue of no entries", ibv_create_cq(context, 0, NULL, NULL, 0), ibv_destroy_cq);
	MADE("a completion queue of fewer than none", ibv_create_cq(context, -1, NULL, NULL, 0), ibv_destroy_cq);
	MADE("a completion queue that is too large", ibv_create_cq(context, 1 << 30, NULL, NULL, 0), ibv_destroy_cq);
	MADE("a completion queue on no vector", ibv_create_cq(context, 1, NULL, NULL, 1000), ibv_destroy_cq);
	say("to end a completion queue that is used", ibv_destroy_cq(a.cq));
	say("to end a domain that is used", ibv_dealloc_pd(a.pd));
}

static void shared_receive_queues(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1 << 30, .max_sge = 1 } };
	struct ibv_srq_attr attr = { .max_wr = 8, .srq_limit = 100 };
	struct ibv_srq *srq;

	MADE("a shared receive queue that is too large", ibv_create_srq(a.pd, &init), ibv_destroy_srq);
	init.attr.max_wr = 0;
	MADE("a shared receive queue of no entries", ibv_create_srq(a.pd, &init), ibv_destroy_srq);
	init.attr = (struct ibv_srq_attr){ .max_wr = 4, .max_sge = 1000 };
	MADE("a shared receive queue of too many pieces", ibv_create_srq(a.pd, &init), ibv_destroy_srq);
	init.attr.max_sge = 1;
	srq = ibv_create_srq(a.pd, &init);
	must(srq != NULL, "a shared receive queue");
	say("a limit beyond the size", ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	must(!ibv_destroy_srq(srq), "it goes");
}

static void queue_pairs(void)
{
	const struct ibv_qp_init_attr good = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_init_attr init = good;
	uint32_t own = a.cq->handle;

	init.cap.max_send_wr = 1 << 24;
	MADE("a queue pair of too many sends", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init = good;
	init.cap.max_recv_wr = 1 << 24;
	MADE("a queue pair of too many receives", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init = good;
	init.cap.max_send_sge = 1000;
	MADE("a queue pair of too many pieces to send", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init = good;
	init.cap.max_recv_sge = 1000;
	MADE("a queue pair of too many pieces to receive", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init = good;
	init.cap.max_inline_data = 1 << 20;
	MADE("a queue pair of too much inline data", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init = good;
	init.qp_type = IBV_QPT_RAW_PACKET;
	MADE("a queue pair for raw packets", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init.qp_type = IBV_QPT_XRC_SEND;
	MADE("a queue pair of XRC", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init.qp_type = 99;
	MADE("a queue pair of no kind", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	init = good;
	a.cq->handle = NO_HANDLE;
	MADE("a queue pair with a completion queue that is nobody's", ibv_create_qp(a.pd, &init), ibv_destroy_qp);
	say("to end a completion queue that is nobody's", ibv_destroy_cq(a.cq));
	a.cq->handle = own;
}

static void address_handles(void)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 9 };

	MADE("an address handle of a port that there is not", ibv_create_ah(a.pd, &attr), ibv_destroy_ah);
}

/* --- states --- */

static const char *const states[] = { "Reset", "Init", "RTR", "RTS", "SQD", "SQE", "Error" };

static int to_error(struct ibv_qp *qp)
{
	return ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE);
}

static int is_draining(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "the query");
	return attr.qp_state == IBV_QPS_SQD && attr.sq_draining;
}

/* Waits for the end of the drain of a send queue: until then soft-RoCE refuses any state but Error. */
static void drain(struct ibv_qp *qp)
{
	const char *patience = getenv("PATIENCE");
	time_t end = time(NULL) + (patience ? atoi(patience) : 60);

	while (is_draining(qp) && time(NULL) < end)
		usleep(1000);
	must(!is_draining(qp), "the send queue is drained");
}

/* A reliable connection to itself, in this state. */
static void bring_to(struct ibv_qp *qp, int wanted)
{
	drain(qp);
	must(!to_reset(qp), "Reset");
	if (wanted == IBV_QPS_INIT)
		must(!to_init(qp), "Init");
	else if (wanted == IBV_QPS_RTR)
		must(!to_init(qp) && !to_rtr(qp, qp->qp_num), "RTR");
	else if (wanted == IBV_QPS_RTS)
		must(!to_init(qp) && !to_rts(qp, qp->qp_num), "RTS");
	else if (wanted == IBV_QPS_ERR)
		must(!to_init(qp) && !to_error(qp), "Error");
}

static int mask_to(int wanted)
{
	switch (wanted) {
	case IBV_QPS_INIT:
		return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	case IBV_QPS_RTR:
		return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	case IBV_QPS_RTS:
		return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	default:
		return IBV_QP_STATE;
	}
}

static struct ibv_qp_attr good_attributes(int wanted)
{
	return (struct ibv_qp_attr){
		.qp_state = wanted, .port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = a.qp->qp_num,
		.max_dest_rd_atomic = 1, .max_rd_atomic = 1, .min_rnr_timer = 1, .timeout = 14, .retry_cnt = 3, .rnr_retry = 3,
		.ah_attr = { .dlid = port.lid, .port_num = 1, .is_global = 1,
			     .grh = { .dgid = gid, .hop_limit = 1, .sgid_index = gid_index } },
	};
}

static const int reachable[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR };

static void changes(void)
{
	struct ibv_qp_attr attr;
	char text[100];
	size_t i;
	int to;

	for (i = 0; i < sizeof(reachable) / sizeof(reachable[0]); i++)
		for (to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			bring_to(a.qp, reachable[i]);
			attr = good_attributes(to);
			snprintf(text, sizeof(text), "from %s to %s", states[reachable[i]], states[to]);
			say(text, ibv_modify_qp(a.qp, &attr, mask_to(to)));
		}
}

/* A change of state that is right but for one attribute. */
#define WRONG(text, from, to, change) \
	do { \
		struct ibv_qp_attr attr = good_attributes(to); \
		attr.change; \
		bring_to(a.qp, from); \
		say(text, ibv_modify_qp(a.qp, &attr, mask_to(to))); \
	} while (0)

static int timeout(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(!ibv_query_qp(a.qp, &attr, IBV_QP_TIMEOUT, &init), "the query");
	return attr.timeout;
}

static void attributes(void)
{
	struct ibv_qp_attr attr = good_attributes(IBV_QPS_RTR);
	int before;

	WRONG("port 0", IBV_QPS_RESET, IBV_QPS_INIT, port_num = 0);
	WRONG("port 9", IBV_QPS_RESET, IBV_QPS_INIT, port_num = 9);
	WRONG("P_Key index 5000", IBV_QPS_RESET, IBV_QPS_INIT, pkey_index = 5000);
	WRONG("no state", IBV_QPS_RESET, IBV_QPS_INIT, qp_state = 50);
	WRONG("path MTU 0", IBV_QPS_INIT, IBV_QPS_RTR, path_mtu = 0);
	WRONG("path MTU 6", IBV_QPS_INIT, IBV_QPS_RTR, path_mtu = 6);
	WRONG("a destination of 32 bits", IBV_QPS_INIT, IBV_QPS_RTR, dest_qp_num = 0xffffffff);
	WRONG("200 reads of the peer", IBV_QPS_INIT, IBV_QPS_RTR, max_dest_rd_atomic = 200);
	WRONG("GID index 200", IBV_QPS_INIT, IBV_QPS_RTR, ah_attr.grh.sgid_index = 200);
	WRONG("an address of port 9", IBV_QPS_INIT, IBV_QPS_RTR, ah_attr.port_num = 9);
	WRONG("an RNR timer of 32", IBV_QPS_INIT, IBV_QPS_RTR, min_rnr_timer = 32);
	WRONG("a time-out of 32", IBV_QPS_RTR, IBV_QPS_RTS, timeout = 32);
	WRONG("8 retries", IBV_QPS_RTR, IBV_QPS_RTS, retry_cnt = 8);
	WRONG("8 RNR retries", IBV_QPS_RTR, IBV_QPS_RTS, rnr_retry = 8);
	WRONG("200 reads", IBV_QPS_RTR, IBV_QPS_RTS, max_rd_atomic = 200);
	bring_to(a.qp, IBV_QPS_INIT);
	say("a change without an attribute that it needs", ibv_modify_qp(a.qp, &attr, mask_to(IBV_QPS_RTR) & ~IBV_QP_AV));
	say("a change with one that it must not have", ibv_modify_qp(a.qp, &attr, mask_to(IBV_QPS_RTR) | IBV_QP_QKEY));
	attr = good_attributes(IBV_QPS_RTS);
	attr.cur_qp_state = IBV_QPS_RTR;
	before = timeout();
	attr.timeout = before + 1;
	say("a change from a state that it is not in", ibv_modify_qp(a.qp, &attr, mask_to(IBV_QPS_RTS) | IBV_QP_CUR_STATE));
	say("an attribute of that change is as before", timeout() == before ? 0 : EINVAL);
	bring_to(a.qp, IBV_QPS_RTR);
	attr.cur_qp_state = IBV_QPS_RTS;
	say("a change from the state that it is to have", ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
}

/* --- requests --- */

static void posts(void)
{
	struct ibv_sge sge[40] = {};
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 40, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr receive = { .sg_list = sge, .num_sge = 40 }, *bad_receive;
	char text[100];
	size_t i;
	int error = 0, count;

	for (i = 0; i < sizeof(reachable) / sizeof(reachable[0]); i++) {
		bring_to(a.qp, reachable[i]);
		snprintf(text, sizeof(text), "a receive in %s", states[reachable[i]]);
		say(text, post_receive(&a, a.memory, 8, a.mr->lkey));
		bring_to(a.qp, reachable[i]);
		snprintf(text, sizeof(text), "a send in %s", states[reachable[i]]);
		say(text, post_send(&a, a.memory, 8, a.mr->lkey, 0));
	}
	bring_to(a.qp, IBV_QPS_INIT);
	say("a receive of too many pieces", ibv_post_recv(a.qp, &receive, &bad_receive));
	for (count = 0; !error && count < 100; count++)
		error = post_receive(&a, a.memory, 8, a.mr->lkey);
	say("one receive too many", error);
	bring_to(a.qp, IBV_QPS_RTS);
	say("a send of too many pieces", ibv_post_send(a.qp, &wr, &bad));
	wr.num_sge = 0;
	wr.opcode = 77;
	say("a request of no operation", ibv_post_send(a.qp, &wr, &bad));
	say("inline data that is too long", post_send(&a, a.memory, SIZE, 0, IBV_SEND_INLINE));
	must(!to_reset(a.qp), "Reset");
}

/* Also without what earlier cases left: not each device forgets the completions of a queue pair that is reset. */
static void join_anew(void)
{
	struct ibv_wc wc;

	join();
	while (ibv_poll_cq(a.cq, 1, &wc) > 0 || ibv_poll_cq(b.cq, 1, &wc) > 0)
		;
}

/* A request to the other side: the status of its completion, or less than 0, the error that it is refused by. */
static void remote(const char *text, enum ibv_wr_opcode opcode, uintptr_t address, uint32_t key)
{
	int error;

	join_anew();
	error = post_remote(opcode, 8, address, key);
	printf("status of %s: %d\n", text, error ? -error : next_status(&a));
}

static void local(const char *text, void *address, uint32_t length, uint32_t key)
{
	join_anew();
	must(!post_receive(&b, b.memory, SIZE, b.mr->lkey), "a receive");
	must(!post_send(&a, address, length, key, 0), text);
	printf("status of %s: %d\n", text, next_status(&a));
}

static void received(const char *text, void *address, uint32_t length, uint32_t key)
{
	join_anew();
	must(!post_receive(&b, address, length, key), text);
	must(!post_send(&a, a.memory, 64, a.mr->lkey, 0), "a send");
	printf("status of %s: %d\n", text, next_status(&b));
	printf("status of %s, at its sender: %d\n", text, next_status(&a));
}

static void statuses(void)
{
	uintptr_t there = (uintptr_t)b.memory;

	local("a send", a.memory, 8, a.mr->lkey);
	local("a send by a key of another domain", b.memory, 8, b.mr->lkey);
	local("a send by a key that is nobody's", a.memory, 8, a.mr->lkey ^ 0x5a5a5a00);
	local("a send beyond its region", a.memory + SIZE - 4, 8, a.mr->lkey);
	received("a receive", b.memory, SIZE, b.mr->lkey);
	received("a receive by a key of another domain", b.memory, SIZE, a.mr->lkey);
	received("a receive that is too short", b.memory, 8, b.mr->lkey);
	remote("a write", IBV_WR_RDMA_WRITE, there, b.mr->rkey);
	remote("a write by a key of another domain", IBV_WR_RDMA_WRITE, (uintptr_t)a.memory, a.mr->rkey);
	remote("a write beyond its region", IBV_WR_RDMA_WRITE, there + SIZE - 4, b.mr->rkey);
	remote("a read beyond its region", IBV_WR_RDMA_READ, there + SIZE - 4, b.mr->rkey);
	remote("an atomic operation on no word", IBV_WR_ATOMIC_FETCH_AND_ADD, there + 4, b.mr->rkey);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	gid_index = argc > 2 ? atoi(argv[2]) : 0;
	open_device(argc > 1 ? argv[1] : "");
	make_side(&a, ALL);
	make_side(&b, ALL);
	regions();
	completion_queues();
	shared_receive_queues();
	queue_pairs();
	address_handles();
	changes();
	attributes();
	posts();
	statuses();
	puts("end");
	return 0;
}
