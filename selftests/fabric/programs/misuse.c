// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs as a program must not use them: each has to be refused, or to end in the completion that the
 * specification has for it (IBTA 11.6.2), and to change nothing. Prints a line for each case, `ok` or
 * `not ok`, and a description.
 *
 * misuse DEVICE
 */

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "pair.h"
#include "report.h"

#define SIZE SIDE_SIZE
#define NO_HANDLE 0x7ffffff0

/* --- cases --- */

static void send_fails(const char *description, void *address, uint32_t length, uint32_t key)
{
	join();
	must(!post_receive(&b, b.memory, SIZE, b.mr->lkey), "a receive");
	must(!post_send(&a, address, length, key, 0), description);
	report_number(IBV_WC_LOC_PROT_ERR, next_status(&a), description);
	report(is_all(b.memory, 'b'), "and nothing arrives");
}

static void local_keys(void)
{
	struct ibv_mr *freed;
	uint32_t key;

	send_fails("a send with the kernel's key", a.memory, 8, 0);
	send_fails("a send with a key of another domain", b.memory, 8, b.mr->lkey);
	send_fails("a send with a key that is nobody's", a.memory, 8, a.mr->lkey ^ 0x5a5a5a00);
	send_fails("a send with a key that is right but for its last bits", a.memory, 8, a.mr->lkey ^ 1);
	send_fails("a send beyond the end of its region", a.memory + SIZE - 4, 8, a.mr->lkey);
	send_fails("a send before the beginning of its region", a.memory - 4, 8, a.mr->lkey);
	freed = ibv_reg_mr(a.pd, a.memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
	must(freed != NULL, "a second region");
	key = freed->lkey;
	must(!ibv_dereg_mr(freed), "it goes");
	send_fails("a send with the key of a region that is gone", a.memory, 8, key);
}

static void receive_fails(const char *description, void *address, uint32_t length, uint32_t key, int status)
{
	join();
	must(!post_receive(&b, address, length, key), description);
	must(!post_send(&a, a.memory, 64, a.mr->lkey, 0), "a send");
	report_number(status, next_status(&b), description);
	report(is_all(b.memory, 'b'), "and the memory is as it was");
	next_status(&a);
}

static void receives(void)
{
	struct ibv_mr *constant = ibv_reg_mr(b.pd, b.memory, SIZE, 0);

	must(constant != NULL, "a region that is not to be written");
	receive_fails("a receive with the kernel's key", b.memory, SIZE, 0, IBV_WC_LOC_PROT_ERR);
	receive_fails("a receive with a key of another domain", b.memory, SIZE, a.mr->lkey, IBV_WC_LOC_PROT_ERR);
	receive_fails("a receive into a region that is not to be written", b.memory, SIZE, constant->lkey,
		      IBV_WC_LOC_PROT_ERR);
	receive_fails("a receive that is too short", b.memory, 8, b.mr->lkey, IBV_WC_LOC_LEN_ERR);
	must(!ibv_dereg_mr(constant), "it goes");
}

static void remote_fails(const char *description, enum ibv_wr_opcode opcode, uintptr_t address, uint32_t key, int status)
{
	join();
	must(!post_remote(opcode, 8, address, key), description);
	report_number(status, next_status(&a), description);
	report(is_all(b.memory, 'b') && is_all(a.memory, 'a'), "and both memories are as they were");
}

static void remote_keys(void)
{
	uintptr_t there = (uintptr_t)b.memory;
	struct ibv_mr *local = ibv_reg_mr(b.pd, b.memory, SIZE, IBV_ACCESS_LOCAL_WRITE);

	must(local != NULL, "a region without remote rights");
	remote_fails("a write with the kernel's key", IBV_WR_RDMA_WRITE, there, 0, IBV_WC_REM_ACCESS_ERR);
	remote_fails("a write with a key of another domain", IBV_WR_RDMA_WRITE, (uintptr_t)a.memory, a.mr->rkey,
		     IBV_WC_REM_ACCESS_ERR);
	remote_fails("a write beyond the end of the region", IBV_WR_RDMA_WRITE, there + SIZE - 4, b.mr->rkey,
		     IBV_WC_REM_ACCESS_ERR);
	remote_fails("a write to the end of all addresses", IBV_WR_RDMA_WRITE, UINTPTR_MAX - 3, b.mr->rkey,
		     IBV_WC_REM_ACCESS_ERR);
	remote_fails("a write without the right", IBV_WR_RDMA_WRITE, there, local->rkey, IBV_WC_REM_ACCESS_ERR);
	remote_fails("a read without the right", IBV_WR_RDMA_READ, there, local->rkey, IBV_WC_REM_ACCESS_ERR);
	remote_fails("an atomic operation without the right", IBV_WR_ATOMIC_FETCH_AND_ADD, there, local->rkey,
		     IBV_WC_REM_ACCESS_ERR);
	remote_fails("an atomic operation on no word", IBV_WR_ATOMIC_FETCH_AND_ADD, there + 4, b.mr->rkey,
		     IBV_WC_REM_INV_REQ_ERR);
	must(!ibv_dereg_mr(local), "it goes");
}

static void invalidation(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_INV }, *bad;

	join();
	wr.invalidate_rkey = b.mr->rkey;
	must(!post_receive(&b, b.memory, SIZE, b.mr->lkey), "a receive");
	must(!ibv_post_send(a.qp, &wr, &bad), "a send that invalidates");
	report(next_status(&a) != IBV_WC_SUCCESS, "a peer cannot invalidate a region that the program registered");
	join();
	must(!post_remote(IBV_WR_RDMA_WRITE, 8, (uintptr_t)b.memory, b.mr->rkey), "a write");
	report_number(IBV_WC_SUCCESS, next_status(&a), "which is good all the same");
}

static void states(void)
{
	join();
	must(!to_reset(a.qp), "a queue pair is reset");
	report(post_receive(&a, a.memory, 8, a.mr->lkey) == EINVAL, "no receive is posted in Reset");
	report(post_send(&a, a.memory, 8, a.mr->lkey, 0) == EINVAL, "no send is posted in Reset");
	report(to_rts(a.qp, b.qp->qp_num) == EINVAL, "Reset does not lead to Ready to Receive");
	must(!to_init(a.qp), "a queue pair is initialised");
	report(post_send(&a, a.memory, 8, a.mr->lkey, 0) == EINVAL, "no send is posted in Init");
	must(!ibv_modify_qp(a.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE), "it fails");
	must(!post_send(&a, a.memory, 8, a.mr->lkey, 0), "a send is posted in Error");
	report_number(IBV_WC_WR_FLUSH_ERR, next_status(&a), "it is flushed");
	must(!post_receive(&a, a.memory, 8, a.mr->lkey), "a receive is posted in Error");
	report_number(IBV_WC_WR_FLUSH_ERR, next_status(&a), "it is flushed, too");
}

static void handles(void)
{
	uint32_t own = a.qp->handle, of_queue = a.cq->handle;
	struct ibv_wc wc;

	join();
	a.qp->handle = NO_HANDLE;
	report(post_send(&a, a.memory, 8, a.mr->lkey, 0) != 0, "no send on a handle that is nobody's");
	report(post_receive(&a, a.memory, 8, a.mr->lkey) != 0, "no receive on it");
	report(to_reset(a.qp) != 0, "no change of it");
	a.qp->handle = of_queue;
	report(post_send(&a, a.memory, 8, a.mr->lkey, 0) != 0, "no send on the handle of a completion queue");
	a.qp->handle = own;
	a.cq->handle = own;
	report(ibv_poll_cq(a.cq, 1, &wc) < 0, "no completion from the handle of a queue pair");
	report(ibv_req_notify_cq(a.cq, 0) != 0, "no event from it");
	a.cq->handle = of_queue;
	report(ibv_destroy_cq(a.cq) == EBUSY, "a completion queue with a queue pair stays");
	report(ibv_dealloc_pd(a.pd) == EBUSY, "a domain with a queue pair stays");
}

static void region_fails(const char *description, void *address, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(a.pd, address, length, access);

	report(!mr, description);
	if (mr)
		ibv_dereg_mr(mr);
}

static void regions(void)
{
	char *constant = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(constant != MAP_FAILED, "memory that is not to be written");
	region_fails("no region without memory", NULL, SIZE, IBV_ACCESS_LOCAL_WRITE);
	region_fails("no region of the kernel's memory", (void *)0xffff888000000000, SIZE, 0);
	region_fails("no region of no bytes", a.memory, 0, IBV_ACCESS_LOCAL_WRITE);
	region_fails("no region of all addresses", a.memory, SIZE_MAX - 4096, IBV_ACCESS_LOCAL_WRITE);
	region_fails("no region that is longer than its memory", a.memory, 1UL << 40, IBV_ACCESS_LOCAL_WRITE);
	region_fails("no region to be written of memory that is not", constant, SIZE, IBV_ACCESS_LOCAL_WRITE);
	region_fails("no region that only peers write", a.memory, SIZE, IBV_ACCESS_REMOTE_WRITE);
	region_fails("no region on demand", a.memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	region_fails("no region for memory windows", a.memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	munmap(constant, SIZE);
}

static void changed_region(void)
{
	const int all_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC;
	uint32_t before = b.mr->rkey;

	join();
	must(!ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), "a region changes");
	report(b.mr->rkey == before, "a region that changes keeps its key");
	must(!post_remote(IBV_WR_RDMA_WRITE, 8, (uintptr_t)b.memory, b.mr->rkey), "a write");
	report_number(IBV_WC_REM_ACCESS_ERR, next_status(&a), "and loses the right that is taken away");
	must(!ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, all_rights), "it changes back");
	join();
	must(!post_remote(IBV_WR_RDMA_WRITE, 8, (uintptr_t)b.memory, before), "a write");
	report_number(IBV_WC_SUCCESS, next_status(&a), "and has it again when it is given back");
	must(!ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL, b.memory, SIZE,
			   IBV_ACCESS_LOCAL_WRITE), "memory and rights change");
	must(!post_remote(IBV_WR_RDMA_WRITE, 8, (uintptr_t)b.memory, before), "a write");
	report_number(IBV_WC_REM_ACCESS_ERR, next_status(&a), "a right goes with the memory that is exchanged");
	must(!ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL, b.memory, SIZE,
			   all_rights), "both change back");
	join();
	must(!post_remote(IBV_WR_RDMA_WRITE, 8, (uintptr_t)b.memory, before), "a write");
	report_number(IBV_WC_SUCCESS, next_status(&a), "and comes with the next");
	must(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, SIZE, 0), "memory that there is not");
	join();
	must(!post_remote(IBV_WR_RDMA_WRITE, 8, (uintptr_t)b.memory, before), "a write");
	report_number(IBV_WC_SUCCESS, next_status(&a), "a change that is refused changes nothing");
}

static void sizes(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1 << 20, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_sge sge[3] = {};
	struct ibv_recv_wr receive = { .sg_list = sge, .num_sge = 3 }, *bad_receive;

	report(!ibv_create_qp(a.pd, &init), "no queue pair with more sends than the device has");
	init.cap.max_send_wr = 1;
	init.cap.max_send_sge = 1000;
	report(!ibv_create_qp(a.pd, &init), "no queue pair with more pieces than the device has");
	report(!ibv_create_cq(context, 1 << 24, NULL, NULL, 0), "no completion queue larger than the device has");
	report(!ibv_create_cq(context, 1, NULL, NULL, 1000), "no completion queue on a vector that there is not");
	join();
	report(ibv_post_recv(a.qp, &receive, &bad_receive) != 0, "no receive of more pieces than its queue has");
	report(post_send(&a, a.memory, 65, 0, IBV_SEND_INLINE) == EINVAL, "no inline send that is too long");
	report(post_send(&a, (void *)8, 8, 0, IBV_SEND_INLINE) == EFAULT, "no inline send without memory");
	report(post_send(&a, (void *)0xffff888000000000, 8, 0, IBV_SEND_INLINE) == EFAULT,
	       "no inline send of the kernel's memory");
}

static void inline_data(void)
{
	join();
	must(!post_receive(&b, b.memory, SIZE, b.mr->lkey), "a receive");
	must(!post_send(&a, a.memory, 64, 0, IBV_SEND_INLINE), "an inline send");
	memset(a.memory, 'c', SIZE);
	report_number(IBV_WC_SUCCESS, next_status(&b), "an inline send needs no key");
	report(b.memory[0] == 'a' && b.memory[63] == 'a' && b.memory[64] == 'b', "and takes the data when it is posted");
	next_status(&a);
}

static void foreign_address(void)
{
	struct ibv_ah_attr attr = { .dlid = port.lid, .port_num = 1 };
	struct ibv_qp *qp = make_qp(&a, IBV_QPT_UD);
	struct ibv_ah *own = ibv_create_ah(a.pd, &attr), *foreign = ibv_create_ah(b.pd, &attr);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	must(qp && own && foreign, "a queue pair for datagrams and address handles");
	must(!datagrams_to_rts(qp, 1), "it is ready");
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = 1;
	wr.wr.ud.ah = foreign;
	report(ibv_post_send(qp, &wr, &bad) == EINVAL, "no datagram by an address handle of another domain");
	wr.wr.ud.ah = own;
	report(!ibv_post_send(qp, &wr, &bad) && next_status(&a) == IBV_WC_SUCCESS, "one of its own");
	must(!ibv_destroy_qp(qp) && !ibv_destroy_ah(own) && !ibv_destroy_ah(foreign), "they go");
}

/* A queue pair that stays in a group can never go. */
static void groups(void)
{
	struct ibv_qp *qp = make_qp(&a, IBV_QPT_UD);
	union ibv_gid group = { .raw = { 0xff, 0x12, [15] = 7 } }, none = { .raw = { 0xfe, 0x80 } };

	must(qp && !datagrams_to_rts(qp, 1), "a queue pair for datagrams");
	report(ibv_attach_mcast(qp, &none, 0xc001) == EINVAL, "no group of a GID that is no group's");
	report(ibv_attach_mcast(qp, &group, 1) == EINVAL, "no group of a LID that is no group's");
	must(!ibv_attach_mcast(qp, &group, 0xc001), "it joins a group");
	report(ibv_attach_mcast(qp, &group, 0xc002) == EINVAL, "it cannot be in a group twice, by another LID");
	report(ibv_detach_mcast(qp, &group, 0xc002) == EINVAL, "nor leave it by that");
	report(ibv_destroy_qp(qp) == EBUSY, "it cannot go meanwhile");
	report(!ibv_detach_mcast(qp, &group, 0xc001), "it leaves");
	report(ibv_detach_mcast(qp, &group, 0xc001) == EINVAL, "but once");
	report(!ibv_destroy_qp(qp), "and goes");
}

/* The kernel charges them to no program. */
static void many_domains(const struct ibv_device_attr *promised)
{
	int made = 0, most = promised->max_pd;
	struct ibv_pd **domains = calloc(most, sizeof(*domains)), *another;

	must(domains != NULL, "room for many domains");
	while (made < most && (domains[made] = ibv_alloc_pd(context)))
		made++;
	/* Both sides have one. */
	report_number(most - 2, made, "as many domains as the device promises");
	must(made > 0 && !ibv_dealloc_pd(domains[--made]), "one goes");
	another = ibv_alloc_pd(context);
	report(another && !ibv_dealloc_pd(another), "and makes room for another");
	while (made)
		must(!ibv_dealloc_pd(domains[--made]), "they go");
	free(domains);
}

static void many_handles(const struct ibv_device_attr *promised)
{
	struct ibv_ah_attr attr = { .dlid = port.lid, .port_num = 1 };
	int made = 0, most = promised->max_ah;
	struct ibv_ah **handles = calloc(most + 1, sizeof(*handles)), *another;

	must(handles != NULL, "room for many address handles");
	while (made <= most && (handles[made] = ibv_create_ah(a.pd, &attr)))
		made++;
	report_number(most, made, "as many address handles as the device promises");
	must(made > 0 && !ibv_destroy_ah(handles[--made]), "one goes");
	another = ibv_create_ah(a.pd, &attr);
	report(another && !ibv_destroy_ah(another), "and makes room for another");
	while (made)
		must(!ibv_destroy_ah(handles[--made]), "they go");
	free(handles);
}

static void many(void)
{
	struct ibv_device_attr promised;

	must(!ibv_query_device(context, &promised), "the limits of the device");
	must(promised.max_pd <= 1 << 16 && promised.max_ah <= 1 << 16, "limits that can be reached");
	many_domains(&promised);
	many_handles(&promised);
}

static void overrun(void)
{
	struct ibv_cq *small = ibv_create_cq(context, 1, NULL, NULL, 0), *own = a.cq;
	struct pollfd event_file = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event = {};
	struct ibv_wc wc;
	struct side c = a;

	must(small != NULL, "a completion queue of one entry");
	a.cq = small;
	c.qp = make_qp(&a, IBV_QPT_RC);
	a.cq = own;
	must(c.qp && !to_init(c.qp), "a queue pair with it");
	must(!ibv_modify_qp(c.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE), "it fails");
	must(!post_receive(&c, a.memory, 8, a.mr->lkey), "a receive");
	must(!post_receive(&c, a.memory, 8, a.mr->lkey), "another one");
	/* Other cases have left events of their queue pairs. */
	while (poll(&event_file, 1, 10000) == 1 && !ibv_get_async_event(context, &event)) {
		ibv_ack_async_event(&event);
		if (event.event_type == IBV_EVENT_CQ_ERR)
			break;
	}
	report(event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == small,
	       "a program is told that its completion queue overran");
	report(ibv_poll_cq(small, 1, &wc) == 1 && wc.qp_num == c.qp->qp_num, "and has the completion that there was room for");
	report(ibv_poll_cq(small, 1, &wc) == 0, "but not the other one");
	must(!ibv_destroy_qp(c.qp) && !ibv_destroy_cq(small), "they go");
}

int main(int argc, char **argv)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	open_device(argc > 1 ? argv[1] : "");
	make_side(&a, access);
	make_side(&b, access);
	local_keys();
	receives();
	remote_keys();
	invalidation();
	states();
	handles();
	regions();
	changed_region();
	sizes();
	inline_data();
	foreign_address();
	groups();
	many();
	overrun();
	/* The objects are the kernel's to free. */
	puts("end");
	return 0;
}
