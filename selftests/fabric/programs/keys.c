// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys of memory that a program must not use, wherever a work request names one (IBTA 10.6.3.3): the kernel's key
 * of all memory, keys of another process, and keys that it could guess. Prints a line for each case, `ok` or
 * `not ok`, and a description.
 *
 * keys DEVICE
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "pair.h"
#include "report.h"

#define SIZE SIDE_SIZE
#define QKEY 0x1234
#define ALL_MEMORY 0
#define SECRETS 64

static int access_all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/* --- the key of all memory --- */

/* A list: a good piece, and one with the key. */
static void second_piece(void)
{
	struct ibv_sge good_and_bad[2] = {
		{ .addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey },
		{ .addr = (uintptr_t)a.memory, .length = 8, .lkey = ALL_MEMORY },
	};
	struct ibv_sge into[2] = {
		{ .addr = (uintptr_t)b.memory, .length = 8, .lkey = b.mr->lkey },
		{ .addr = (uintptr_t)b.memory + 8, .length = SIZE - 8, .lkey = ALL_MEMORY },
	};
	struct ibv_send_wr wr = { .sg_list = good_and_bad, .num_sge = 2, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr receive = { .sg_list = into, .num_sge = 2 }, *bad_receive;

	join();
	must(!post_receive(&b, b.memory, SIZE, b.mr->lkey), "a receive");
	must(!ibv_post_send(a.qp, &wr, &bad), "a send of two pieces");
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&a), "the kernel's key in the second piece of a send");
	report(is_all(b.memory, 'b'), "and nothing arrives");
	join();
	must(!ibv_post_recv(b.qp, &receive, &bad_receive), "a receive of two pieces");
	must(!post_send(&a, a.memory, 64, a.mr->lkey, 0), "a send");
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&b), "the kernel's key in the second piece of a receive");
	report(is_all_from(b.memory, 8, 'b'), "and its memory is as it was");
	next_status(&a);
	/* Of the first piece alone there is enough. */
	join();
	must(!ibv_post_recv(b.qp, &receive, &bad_receive), "a receive of two pieces");
	must(!post_send(&a, a.memory, 8, a.mr->lkey, 0), "a send");
	report_number(IBV_WC_SUCCESS, next_status(&b), "a piece that is not reached is not looked at");
	next_status(&a);
}

/* What is fetched goes to memory of that key. */
static void sink_fails(const char *description, enum ibv_wr_opcode opcode, void *address, uint32_t key)
{
	struct ibv_sge sge = { .addr = (uintptr_t)address, .length = 8, .lkey = key };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

	join();
	if (opcode == IBV_WR_RDMA_READ) {
		wr.wr.rdma.remote_addr = (uintptr_t)b.memory;
		wr.wr.rdma.rkey = b.mr->rkey;
	} else {
		wr.wr.atomic.remote_addr = (uintptr_t)b.memory;
		wr.wr.atomic.rkey = b.mr->rkey;
	}
	must(!ibv_post_send(a.qp, &wr, &bad), description);
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&a), description);
	report(is_all(a.memory, 'a'), "and the memory is as it was");
}

static void sinks(void)
{
	struct ibv_mr *constant = ibv_reg_mr(a.pd, a.memory, SIZE, 0);

	must(constant != NULL, "a region that is not to be written");
	sink_fails("the kernel's key for what a READ fetches", IBV_WR_RDMA_READ, a.memory, ALL_MEMORY);
	sink_fails("the kernel's key for the result of a fetch-and-add", IBV_WR_ATOMIC_FETCH_AND_ADD, a.memory, ALL_MEMORY);
	sink_fails("the kernel's key for the result of a compare-and-swap", IBV_WR_ATOMIC_CMP_AND_SWP, a.memory, ALL_MEMORY);
	sink_fails("a READ into a region that is not to be written", IBV_WR_RDMA_READ, a.memory, constant->lkey);
	sink_fails("an atomic operation into such a one", IBV_WR_ATOMIC_FETCH_AND_ADD, a.memory, constant->lkey);
	sink_fails("a READ into a region of another domain", IBV_WR_RDMA_READ, b.memory, b.mr->lkey);
	sink_fails("a READ beyond the end of its region", IBV_WR_RDMA_READ, a.memory + SIZE - 4, a.mr->lkey);
	must(!ibv_dereg_mr(constant), "it goes");
}

static void empty_pieces(void)
{
	struct ibv_sge sge[2] = {
		{ .addr = 8, .length = 0, .lkey = ALL_MEMORY },
		{ .addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey },
	};
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND }, *bad;

	join();
	must(!post_receive(&b, b.memory, SIZE, b.mr->lkey), "a receive");
	must(!ibv_post_send(a.qp, &wr, &bad), "a send with a piece of no bytes");
	report_number(IBV_WC_SUCCESS, next_status(&b), "a piece of no bytes needs no key");
	next_status(&a);
}

/* By a shared receive queue, of two queue pairs of one domain. */
static void shared_receives(void)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(b.pd, &shared);
	struct ibv_qp_init_attr init = {
		.send_cq = b.cq, .recv_cq = b.cq, .srq = srq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_send_sge = 2 },
	};
	struct ibv_sge sge = { .addr = (uintptr_t)b.memory, .length = SIZE, .lkey = ALL_MEMORY };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp *own = b.qp;

	must(srq != NULL, "a shared receive queue");
	b.qp = ibv_create_qp(b.pd, &init);
	must(b.qp != NULL, "a queue pair with it");
	join();
	must(!ibv_post_srq_recv(srq, &wr, &bad), "a shared receive");
	must(!post_send(&a, a.memory, 64, a.mr->lkey, 0), "a send");
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&b), "the kernel's key in a shared receive");
	report(is_all(b.memory, 'b'), "and its memory is as it was");
	next_status(&a);
	sge.lkey = a.mr->lkey;
	sge.addr = (uintptr_t)a.memory;
	join();
	must(!ibv_post_srq_recv(srq, &wr, &bad), "a shared receive");
	must(!post_send(&a, a.memory, 64, a.mr->lkey, 0), "a send");
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&b), "the key of another domain in a shared receive");
	next_status(&a);
	must(!ibv_destroy_qp(b.qp) && !ibv_destroy_srq(srq), "they go");
	b.qp = own;
}

/* --- datagrams --- */

static void datagram_to(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t to, void *address, uint32_t key)
{
	struct ibv_sge sge = { .addr = (uintptr_t)address, .length = 64, .lkey = key };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = to;
	wr.wr.ud.remote_qkey = QKEY;
	must(!ibv_post_send(qp, &wr, &bad), "a datagram");
}

static void datagrams(void)
{
	struct ibv_ah_attr attr = { .dlid = port.lid, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(a.pd, &attr);
	struct ibv_qp *sender = make_qp(&a, IBV_QPT_UD), *receiver = make_qp(&b, IBV_QPT_UD), *own = b.qp;

	must(ah && sender && receiver, "queue pairs for datagrams and an address handle");
	must(!datagrams_to_rts(sender, QKEY) && !datagrams_to_rts(receiver, QKEY), "they are ready");
	datagram_to(sender, ah, receiver->qp_num, a.memory, ALL_MEMORY);
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&a), "the kernel's key in a datagram");
	must(!ibv_destroy_qp(sender), "its queue pair goes");
	sender = make_qp(&a, IBV_QPT_UD);
	must(sender && !datagrams_to_rts(sender, QKEY), "another one is ready");
	b.qp = receiver;
	memset(b.memory, 'b', SIZE);
	must(!post_receive(&b, b.memory, SIZE, ALL_MEMORY), "a receive");
	datagram_to(sender, ah, receiver->qp_num, a.memory, a.mr->lkey);
	report_number(IBV_WC_SUCCESS, next_status(&a), "a datagram leaves");
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&b), "the kernel's key in a receive of datagrams");
	report(is_all(b.memory, 'b'), "and its memory is as it was");
	b.qp = own;
	must(!ibv_destroy_qp(sender) && !ibv_destroy_qp(receiver) && !ibv_destroy_ah(ah), "they go");
}

/* --- keys of others --- */

struct secret {
	uint32_t key;
	uint64_t address;
};

/* Another process with a region of its own: says where it is, waits, and tells by its status whether it is as it was. */
static void other_process(const char *name, int to, int from)
{
	struct secret secret;
	struct side c;
	char byte;

	context = NULL;
	open_device(name);
	make_side(&c, access_all);
	memset(c.memory, 'c', SIZE);
	secret = (struct secret){ c.mr->rkey, (uintptr_t)c.memory };
	if (write(to, &secret, sizeof(secret)) != sizeof(secret) || read(from, &byte, 1) < 0)
		_exit(2);
	_exit(is_all(c.memory, 'c') ? 0 : 1);
}

static void keys_of_a_process(const struct secret *secret)
{
	struct ibv_sge sge = { .addr = secret->address, .length = 64, .lkey = secret->key };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	join();
	must(!post_receive(&b, b.memory, SIZE, b.mr->lkey), "a receive");
	must(!ibv_post_send(a.qp, &wr, &bad), "a send");
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&a), "a send with the key of another process");
	report(is_all(b.memory, 'b'), "and nothing arrives");
	join();
	must(!post_receive(&b, (void *)secret->address, 64, secret->key), "a receive");
	must(!post_send(&a, a.memory, 64, a.mr->lkey, 0), "a send");
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&b), "a receive with the key of another process");
	next_status(&a);
	join();
	must(!post_remote(IBV_WR_RDMA_WRITE, 64, secret->address, secret->key), "a write");
	report_number(IBV_WC_REM_ACCESS_ERR, next_status(&a), "a write with the key of another process");
	join();
	must(!post_remote(IBV_WR_RDMA_READ, 64, secret->address, secret->key), "a read");
	report_number(IBV_WC_REM_ACCESS_ERR, next_status(&a), "a read with the key of another process");
	report(is_all(a.memory, 'a'), "and nothing is read");
}

static int end_of(pid_t process)
{
	int status;

	return waitpid(process, &status, 0) == process && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- keys that could be guessed --- */

/* Of random keys one in 4,096 is as near as this to the one before: three of 63 are no accident. */
#define NEAR (1 << 19)

static int compare(const void *left, const void *right)
{
	uint32_t l = *(const uint32_t *)left, r = *(const uint32_t *)right;

	return (l > r) - (l < r);
}

static void guesses(void)
{
	struct ibv_mr *regions[SECRETS];
	uint32_t keys[SECRETS];
	int i, near = 0, tags = 0, tag_set[256] = {};

	for (i = 0; i < SECRETS; i++) {
		regions[i] = ibv_reg_mr(a.pd, a.memory, SIZE, access_all);
		must(regions[i] != NULL, "a region");
		keys[i] = regions[i]->rkey;
		tags += !tag_set[keys[i] & 0xff]++;
		if (i) {
			int64_t distance = (int64_t)keys[i] - keys[i - 1];

			near += distance < NEAR && distance > -NEAR;
		}
	}
	report(near < 3, "the key of a region does not lead to the next one");
	report(tags > SECRETS / 4, "their last bits differ, too");
	qsort(keys, SECRETS, sizeof(keys[0]), compare);
	for (i = 1; i < SECRETS; i++)
		must(keys[i] != keys[i - 1], "different keys");
	report(keys[SECRETS - 1] - keys[0] > 1U << 30, "they are spread over all keys");
	for (i = 0; i < SECRETS; i++)
		must(!ibv_dereg_mr(regions[i]), "a region goes");
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	int there[2], back[2];
	struct secret secret;
	pid_t process;

	must(!pipe(there) && !pipe(back), "pipes");
	process = fork();
	must(process >= 0, "another process");
	if (!process)
		other_process(name, back[1], there[0]);
	must(read(back[0], &secret, sizeof(secret)) == sizeof(secret), "its region");
	open_device(name);
	make_side(&a, access_all);
	make_side(&b, access_all);
	second_piece();
	sinks();
	empty_pieces();
	shared_receives();
	datagrams();
	keys_of_a_process(&secret);
	must(write(there[1], "x", 1) == 1, "the other process ends");
	report_number(0, end_of(process), "the memory of the other process is as it was");
	guesses();
	/* The objects are the kernel's to free. */
	puts("end");
	return 0;
}
