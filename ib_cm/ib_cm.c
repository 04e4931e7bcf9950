// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's interface to its InfiniBand communication manager, answered by oxib's. Installed under updates/, this
 * module takes the place of the kernel's ib_cm, and rdma_cm and all above it use oxib unchanged.
 */

#include <linux/module.h>
#include <rdma/ib_cm.h>

#include "../rust/oxib/bindings/cm_export.h"

#define CREATE_TRACE_POINTS
#include "ib_cma_trace.h"

MODULE_DESCRIPTION("InfiniBand communication manager by oxib, in the place of the kernel's");
MODULE_AUTHOR("The oxib developers");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("OXIB_CM");

/* Bits of the states in which a consumer may do something. It is asked for the tracepoints alone: oxib decides. */
#define REQ_MAY_BE_ANSWERED (BIT(IB_CM_REQ_RCVD) | BIT(IB_CM_MRA_REQ_SENT))
#define REP_MAY_BE_ANSWERED (BIT(IB_CM_REP_RCVD) | BIT(IB_CM_MRA_REP_SENT))
#define MAY_BE_REJECTED (REQ_MAY_BE_ANSWERED | REP_MAY_BE_ANSWERED | BIT(IB_CM_REQ_SENT) | BIT(IB_CM_MRA_REQ_RCVD) | \
			 BIT(IB_CM_REP_SENT) | BIT(IB_CM_MRA_REP_RCVD))
#define MAY_BE_PUT_OFF (BIT(IB_CM_REQ_RCVD) | BIT(IB_CM_REP_RCVD) | BIT(IB_CM_ESTABLISHED))
#define MAY_BE_ESTABLISHED (BIT(IB_CM_REP_SENT) | BIT(IB_CM_MRA_REP_RCVD) | BIT(IB_CM_ESTABLISHED))

static bool is_in(const struct ib_cm_id *cm_id, unsigned long states)
{
	return BIT(READ_ONCE(cm_id->state)) & states;
}

struct ib_cm_id *ib_create_cm_id(struct ib_device *device, ib_cm_handler cm_handler, void *context)
{
	return oxib_cm_create_id(device, cm_handler, context);
}
EXPORT_SYMBOL(ib_create_cm_id);

void ib_destroy_cm_id(struct ib_cm_id *cm_id)
{
	oxib_cm_destroy_id(cm_id);
}
EXPORT_SYMBOL(ib_destroy_cm_id);

int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id)
{
	return oxib_cm_listen(cm_id, service_id);
}
EXPORT_SYMBOL(ib_cm_listen);

struct ib_cm_id *ib_cm_insert_listen(struct ib_device *device, ib_cm_handler cm_handler,
				     __be64 service_id)
{
	return oxib_cm_insert_listen(device, cm_handler, service_id);
}
EXPORT_SYMBOL(ib_cm_insert_listen);

int ib_send_cm_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param)
{
	if (is_in(cm_id, BIT(IB_CM_IDLE)))
		trace_icm_send_req(cm_id);
	return oxib_cm_send_req(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_req);

int ib_send_cm_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param)
{
	if (is_in(cm_id, REQ_MAY_BE_ANSWERED))
		trace_icm_send_rep(cm_id);
	else
		trace_icm_send_rep_err(cm_id->local_id, cm_id->state);
	return oxib_cm_send_rep(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_rep);

int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	if (is_in(cm_id, REP_MAY_BE_ANSWERED))
		trace_icm_send_rtu(cm_id);
	else
		trace_icm_send_cm_rtu_err(cm_id);
	return oxib_cm_send_rtu(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_rtu);

int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	if (is_in(cm_id, BIT(IB_CM_ESTABLISHED)))
		trace_icm_send_dreq(cm_id);
	else
		trace_icm_dreq_skipped(cm_id);
	return oxib_cm_send_dreq(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_dreq);

int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	if (is_in(cm_id, BIT(IB_CM_DREQ_RCVD)))
		trace_icm_send_drep(cm_id);
	else
		trace_icm_send_drep_err(cm_id);
	return oxib_cm_send_drep(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_drep);

int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event)
{
	if (event == IB_EVENT_COMM_EST && !is_in(cm_id, MAY_BE_ESTABLISHED))
		trace_icm_establish_err(cm_id);
	return oxib_cm_notify(cm_id, event);
}
EXPORT_SYMBOL(ib_cm_notify);

int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari, u8 ari_length,
		   const void *private_data, u8 private_data_len)
{
	if (is_in(cm_id, MAY_BE_REJECTED))
		trace_icm_send_rej(cm_id, reason);
	else
		trace_icm_send_unknown_rej_err(cm_id);
	return oxib_cm_send_rej(cm_id, reason, ari, ari_length, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_rej);

int ib_prepare_cm_mra(struct ib_cm_id *cm_id)
{
	if (!is_in(cm_id, MAY_BE_PUT_OFF))
		trace_icm_prepare_mra_unknown_err(cm_id);
	return oxib_cm_prepare_mra(cm_id);
}
EXPORT_SYMBOL(ib_prepare_cm_mra);

static void tell_qp_attr_error(const struct ib_cm_id *cm_id, enum ib_qp_state state)
{
	switch (state) {
	case IB_QPS_INIT:
		trace_icm_qp_init_err(cm_id);
		break;
	case IB_QPS_RTR:
		trace_icm_qp_rtr_err(cm_id);
		break;
	case IB_QPS_RTS:
		trace_icm_qp_rts_err(cm_id);
		break;
	default:
		break;
	}
}

int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr, int *qp_attr_mask)
{
	enum ib_qp_state state = qp_attr->qp_state;
	int error = oxib_cm_init_qp_attr(cm_id, qp_attr, qp_attr_mask);

	if (error)
		tell_qp_attr_error(cm_id, state);
	return error;
}
EXPORT_SYMBOL(ib_cm_init_qp_attr);

int ib_send_cm_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param)
{
	if (is_in(cm_id, BIT(IB_CM_IDLE)))
		trace_icm_send_sidr_req(cm_id);
	return oxib_cm_send_sidr_req(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_sidr_req);

int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param)
{
	if (is_in(cm_id, BIT(IB_CM_SIDR_REQ_RCVD)))
		trace_icm_send_sidr_rep(cm_id);
	return oxib_cm_send_sidr_rep(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_sidr_rep);

const char *__attribute_const__ ibcm_reject_msg(int reason)
{
	return oxib_cm_reject_msg(reason);
}
EXPORT_SYMBOL(ibcm_reject_msg);

static int __init ib_cm_init(void)
{
	return oxib_cm_start();
}
module_init(ib_cm_init);

static void __exit ib_cm_exit(void)
{
	oxib_cm_stop();
}
module_exit(ib_cm_exit);
