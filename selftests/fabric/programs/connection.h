/* SPDX-License-Identifier: GPL-2.0-only */
/* Reliable connections between queue pairs of one device. */

#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "device.h"
#include "report.h"

#define SIDE_SIZE 8192

static struct ibv_context *context;
static struct ibv_port_attr port;
static union ibv_gid gid;
/* That of the GID. */
static int gid_index;

/* A queue pair, in a protection domain of its own, with memory of SIDE_SIZE bytes. */
struct side {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;
};

static inline void open_device(const char *name)
{
	context = open_context(name);
	must(!ibv_query_port(context, 1, &port) && !ibv_query_gid(context, 1, gid_index, &gid), "its port");
}

static inline struct ibv_qp *make_qp(struct side *side, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64 },
		.qp_type = type,
		.sq_sig_all = 1,
	};

	return ibv_create_qp(side->pd, &init);
}

static inline void make_side(struct side *side, int access)
{
	side->memory = mmap(NULL, SIDE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(side->memory != MAP_FAILED, "memory");
	side->pd = ibv_alloc_pd(context);
	must(!!side->pd, "a protection domain");
	side->cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	must(!!side->cq, "a completion queue");
	side->mr = ibv_reg_mr(side->pd, side->memory, SIDE_SIZE, access);
	must(!!side->mr, "a memory region");
	side->qp = make_qp(side, IBV_QPT_RC);
	must(!!side->qp, "a queue pair");
}

static inline int to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static inline int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static inline int to_rtr(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .dlid = port.lid, .port_num = 1, .is_global = 1,
			     .grh = { .dgid = gid, .hop_limit = 1, .sgid_index = gid_index } },
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* A timeout of 0 is none: what is not answered is waited for. */
static inline int rtr_to_rts(struct ibv_qp *qp, uint8_t timeout)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 3, .rnr_retry = 3, .max_rd_atomic = 1
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* 2.1 s, for each of four tries: others may use the processors for a while. Still less than a test waits for a completion. */
#define PATIENT 19

static inline int to_rts(struct ibv_qp *qp, uint32_t peer)
{
	int error = to_rtr(qp, peer);

	return error ? error : rtr_to_rts(qp, PATIENT);
}

/* Of a queue pair for datagrams. */
static inline int datagrams_to_rts(struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };
	int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	error = error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return error ? error : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

#endif
