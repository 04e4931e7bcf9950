// SPDX-License-Identifier: GPL-2.0-only
/*
 * The library by which programs use HCAs of softib.ko: a provider for rdma-core's libibverbs.
 *
 * Everything goes through commands of the kernel. That is slow, as each post and each poll is a
 * system call, but there is no memory that the kernel shares with a program and has to mistrust.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/driver.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "abi.h"

/* Device, protection domain, port */

static int query_device(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attributes, size_t size)
{
	struct ib_uverbs_ex_query_device_resp response;
	size_t response_size = sizeof(response);
	unsigned int major, minor, patch;
	uint64_t version;
	int error;

	error = ibv_cmd_query_device_any(context, input, attributes, size, &response, &response_size);
	if (error)
		return error;
	version = response.base.fw_ver;
	major = version >> 32 & 0xffff;
	minor = version >> 16 & 0xffff;
	patch = version & 0xffff;
	snprintf(attributes->orig_attr.fw_ver, sizeof(attributes->orig_attr.fw_ver), "%u.%u.%u", major, minor, patch);
	return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes)
{
	struct ibv_query_port command;

	return ibv_cmd_query_port(context, port, attributes, &command, sizeof(command));
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd_resp response;
	struct ibv_alloc_pd command;
	struct ibv_pd *pd;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	if (ibv_cmd_alloc_pd(context, pd, &command, sizeof(command), &response, sizeof(response))) {
		free(pd);
		return NULL;
	}
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	int error = ibv_cmd_dealloc_pd(pd);

	if (!error)
		free(pd);
	return error;
}

/* Memory regions */

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *address, size_t length, uint64_t hca_address, int access)
{
	struct ib_uverbs_reg_mr_resp response;
	struct ibv_reg_mr command;
	struct verbs_mr *mr;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	if (ibv_cmd_reg_mr(pd, address, length, hca_address, access, mr, &command, sizeof(command), &response,
			   sizeof(response))) {
		free(mr);
		return NULL;
	}
	return &mr->ibv_mr;
}

static int rereg_mr(struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *address, size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp response;
	struct ibv_rereg_mr command;

	return ibv_cmd_rereg_mr(mr, flags, address, length, (uintptr_t)address, access, pd, &command,
				sizeof(command), &response, sizeof(response));
}

static int dereg_mr(struct verbs_mr *mr)
{
	int error = ibv_cmd_dereg_mr(mr);

	if (!error)
		free(mr);
	return error;
}

/* Completion queues */

static struct ibv_cq *create_cq(struct ibv_context *context, int entries, struct ibv_comp_channel *channel, int vector)
{
	struct ib_uverbs_create_cq_resp response;
	struct ibv_create_cq command;
	struct ibv_cq *cq;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	if (ibv_cmd_create_cq(context, entries, channel, vector, cq, &command, sizeof(command), &response,
			      sizeof(response))) {
		free(cq);
		return NULL;
	}
	return cq;
}

static int destroy_cq(struct ibv_cq *cq)
{
	int error = ibv_cmd_destroy_cq(cq);

	if (!error)
		free(cq);
	return error;
}

/* The kernel's numbers of these flags are not those of programs. */
static unsigned int flags_of(uint32_t flags)
{
	unsigned int known = 0;

	if (flags & SOFTIB_WC_GRH)
		known |= IBV_WC_GRH;
	if (flags & SOFTIB_WC_WITH_IMM)
		known |= IBV_WC_WITH_IMM;
	if (flags & SOFTIB_WC_WITH_INVALIDATE)
		known |= IBV_WC_WITH_INV;
	if (flags & SOFTIB_WC_IP_CSUM_OK)
		known |= IBV_WC_IP_CSUM_OK;
	return known;
}

static void convert(struct ibv_wc *out, const struct ib_uverbs_wc *in)
{
	*out = (struct ibv_wc){
		.wr_id = in->wr_id,
		.status = in->status,
		.opcode = in->opcode,
		.vendor_err = in->vendor_err,
		.byte_len = in->byte_len,
		.imm_data = in->ex.imm_data,
		.qp_num = in->qp_num,
		.src_qp = in->src_qp,
		.wc_flags = flags_of(in->wc_flags),
		.pkey_index = in->pkey_index,
		.slid = in->slid,
		.sl = in->sl,
		.dlid_path_bits = in->dlid_path_bits,
	};
}

/* Returns how many completions the kernel gave, or a negative error. */
static int poll_some(struct ibv_cq *cq, int room, struct ibv_wc *out)
{
	DECLARE_COMMAND_BUFFER(command, UVERBS_OBJECT_CQ, SOFTIB_METHOD_CQ_POLL, 3);
	struct ib_uverbs_wc taken[SOFTIB_POLLED];
	uint32_t count = 0, i;
	int error;

	if (room > SOFTIB_POLLED)
		room = SOFTIB_POLLED;
	fill_attr_in_obj(command, SOFTIB_ATTR_CQ_POLL_HANDLE, cq->handle);
	fill_attr_out(command, SOFTIB_ATTR_CQ_POLL_COMPLETIONS, taken, room * sizeof(taken[0]));
	fill_attr_out_ptr(command, SOFTIB_ATTR_CQ_POLL_COUNT, &count);
	error = execute_ioctl(cq->context, command);
	if (error)
		return -error;
	for (i = 0; i < count; i++)
		convert(&out[i], &taken[i]);
	return count;
}

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *out)
{
	int count, done = 0;

	while (done < room) {
		count = poll_some(cq, room - done, out + done);
		if (count < 0)
			return done ? done : count;
		done += count;
		if (count < SOFTIB_POLLED)
			break;
	}
	return done;
}

/* Shared receive queues */

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes)
{
	struct ib_uverbs_create_srq_resp response;
	struct ibv_create_srq command;
	struct ibv_srq *srq;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	if (ibv_cmd_create_srq(pd, srq, attributes, &command, sizeof(command), &response, sizeof(response))) {
		free(srq);
		return NULL;
	}
	return srq;
}

static int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attributes, int mask)
{
	struct ibv_modify_srq command;

	return ibv_cmd_modify_srq(srq, attributes, mask, &command, sizeof(command));
}

static int query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attributes)
{
	struct ibv_query_srq command;

	return ibv_cmd_query_srq(srq, attributes, &command, sizeof(command));
}

static int destroy_srq(struct ibv_srq *srq)
{
	int error = ibv_cmd_destroy_srq(srq);

	if (!error)
		free(srq);
	return error;
}

/* Queue pairs */

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attributes)
{
	struct ib_uverbs_create_qp_resp response;
	struct ibv_create_qp command;
	struct verbs_qp *qp;

	/* libibverbs looks behind the queue pair for what it may have besides. */
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	if (ibv_cmd_create_qp(pd, &qp->qp, attributes, &command, sizeof(command), &response, sizeof(response))) {
		free(qp);
		return NULL;
	}
	return &qp->qp;
}

static int query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask, struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp command;

	return ibv_cmd_query_qp(qp, attributes, mask, init, &command, sizeof(command));
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask)
{
	struct ibv_modify_qp command = {};

	return ibv_cmd_modify_qp(qp, attributes, mask, &command, sizeof(command));
}

static int destroy_qp(struct ibv_qp *qp)
{
	int error = ibv_cmd_destroy_qp(qp);

	if (!error)
		free(container_of(qp, struct verbs_qp, qp));
	return error;
}

/* Address handles */

static struct ibv_ah *create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attributes)
{
	struct ib_uverbs_create_ah_resp response;
	struct ibv_ah *ah;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	if (ibv_cmd_create_ah(pd, ah, attributes, &response, sizeof(response))) {
		free(ah);
		return NULL;
	}
	return ah;
}

static int destroy_ah(struct ibv_ah *ah)
{
	int error = ibv_cmd_destroy_ah(ah);

	if (!error)
		free(ah);
	return error;
}

/* Contexts */

static void free_context(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);

	verbs_uninit_context(verbs);
	free(verbs);
}

static const struct verbs_context_ops operations = {
	.alloc_pd = alloc_pd,
	.attach_mcast = ibv_cmd_attach_mcast,
	.create_ah = create_ah,
	.create_cq = create_cq,
	.create_qp = create_qp,
	.create_srq = create_srq,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = dereg_mr,
	.destroy_ah = destroy_ah,
	.destroy_cq = destroy_cq,
	.destroy_qp = destroy_qp,
	.destroy_srq = destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = free_context,
	.modify_qp = modify_qp,
	.modify_srq = modify_srq,
	.poll_cq = poll_cq,
	.post_recv = ibv_cmd_post_recv,
	.post_send = ibv_cmd_post_send,
	.post_srq_recv = ibv_cmd_post_srq_recv,
	.query_device_ex = query_device,
	.query_port = query_port,
	.query_qp = query_qp,
	.query_srq = query_srq,
	.reg_mr = reg_mr,
	.req_notify_cq = ibv_cmd_req_notify_cq,
	.rereg_mr = rereg_mr,
};

struct context {
	struct verbs_context verbs;
};

static struct verbs_context *alloc_context(struct ibv_device *device, int file, void *private_data)
{
	struct ib_uverbs_get_context_resp response;
	struct ibv_get_context command;
	struct context *context;

	context = verbs_init_and_alloc_context(device, file, context, verbs, RDMA_DRIVER_UNKNOWN);
	if (!context)
		return NULL;
	if (ibv_cmd_get_context(&context->verbs, &command, sizeof(command), &response, sizeof(response))) {
		verbs_uninit_context(&context->verbs);
		free(context);
		return NULL;
	}
	verbs_set_ops(&context->verbs, &operations);
	return &context->verbs;
}

/* Devices */

/* The kernel has no number for this driver, but all its devices are children of the same one. */
static bool match_device(struct verbs_sysfs_dev *device)
{
	char path[IBV_SYSFS_PATH_MAX + sizeof("/device")], target[IBV_SYSFS_PATH_MAX];
	const char *parent;
	ssize_t length;

	snprintf(path, sizeof(path), "%s/device", device->ibdev_path);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = 0;
	parent = strrchr(target, '/');
	return parent && !strcmp(parent, "/softib");
}

static struct verbs_device *alloc_device(struct verbs_sysfs_dev *device)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void uninit_device(struct verbs_device *device)
{
	free(device);
}

/* libibverbs looks into the table of each library for the numbers of other drivers. */
static const struct verbs_match_ent nothing[] = { {} };

static const struct verbs_device_ops device_operations = {
	.name = "softib",
	.match_min_abi_version = SOFTIB_ABI_VERSION,
	.match_max_abi_version = SOFTIB_ABI_VERSION,
	.match_table = nothing,
	.match_device = match_device,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
	.alloc_context = alloc_context,
};

/* The symbol has the version of libibverbs' private interface in its name. */
static __attribute__((constructor)) void begin(void)
{
	verbs_register_driver(&device_operations);
}
