/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracepoints of the kernel's communication manager (/sys/kernel/tracing/events/ib_cma) that tell what a consumer asks for:
 * with the same names, fields and words, so that what reads those reads these. What comes in and what is answered by itself is
 * told by oxib's own (events/oxib_cm).
 */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_cma

#if !defined(OXIB_IB_CMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define OXIB_IB_CMA_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>

#ifndef OXIB_CMA_STATES
#define OXIB_CMA_STATES									\
	EACH(IDLE) EACH(LISTEN) EACH(REQ_SENT) EACH(REQ_RCVD) EACH(MRA_REQ_SENT)	\
	EACH(MRA_REQ_RCVD) EACH(REP_SENT) EACH(REP_RCVD) EACH(MRA_REP_SENT)		\
	EACH(MRA_REP_RCVD) EACH(ESTABLISHED) EACH(DREQ_SENT) EACH(DREQ_RCVD)		\
	EACH(TIMEWAIT) EACH(SIDR_REQ_SENT) LAST(SIDR_REQ_RCVD)
#define OXIB_CMA_LAP_STATES								\
	EACH(LAP_UNINIT) EACH(LAP_IDLE) EACH(LAP_SENT) EACH(LAP_RCVD)			\
	EACH(MRA_LAP_SENT) LAST(MRA_LAP_RCVD)
#define OXIB_CMA_REASONS								\
	EACH(REJ_NO_QP) EACH(REJ_NO_EEC) EACH(REJ_NO_RESOURCES) EACH(REJ_TIMEOUT)	\
	EACH(REJ_UNSUPPORTED) EACH(REJ_INVALID_COMM_ID)					\
	EACH(REJ_INVALID_COMM_INSTANCE) EACH(REJ_INVALID_SERVICE_ID)			\
	EACH(REJ_INVALID_TRANSPORT_TYPE) EACH(REJ_STALE_CONN)				\
	EACH(REJ_RDC_NOT_EXIST) EACH(REJ_INVALID_GID) EACH(REJ_INVALID_LID)		\
	EACH(REJ_INVALID_SL) EACH(REJ_INVALID_TRAFFIC_CLASS)				\
	EACH(REJ_INVALID_HOP_LIMIT) EACH(REJ_INVALID_PACKET_RATE)			\
	EACH(REJ_INVALID_ALT_GID) EACH(REJ_INVALID_ALT_LID) EACH(REJ_INVALID_ALT_SL)	\
	EACH(REJ_INVALID_ALT_TRAFFIC_CLASS) EACH(REJ_INVALID_ALT_HOP_LIMIT)		\
	EACH(REJ_INVALID_ALT_PACKET_RATE) EACH(REJ_PORT_CM_REDIRECT)			\
	EACH(REJ_PORT_REDIRECT) EACH(REJ_INVALID_MTU)					\
	EACH(REJ_INSUFFICIENT_RESP_RESOURCES) EACH(REJ_CONSUMER_DEFINED)		\
	EACH(REJ_INVALID_RNR_RETRY) EACH(REJ_DUPLICATE_LOCAL_COMM_ID)			\
	EACH(REJ_INVALID_CLASS_VERSION) EACH(REJ_INVALID_FLOW_LABEL)			\
	EACH(REJ_INVALID_ALT_FLOW_LABEL) LAST(REJ_VENDOR_OPTION_NOT_SUPPORTED)
#endif

/* What reads traces gets the numbers with their names. */
#undef EACH
#undef LAST
#define EACH(name) TRACE_DEFINE_ENUM(IB_CM_##name);
#define LAST(name) TRACE_DEFINE_ENUM(IB_CM_##name);
OXIB_CMA_STATES
OXIB_CMA_LAP_STATES
OXIB_CMA_REASONS
#undef EACH
#undef LAST
#define EACH(name) { IB_CM_##name, #name },
#define LAST(name) { IB_CM_##name, #name }

DECLARE_EVENT_CLASS(icm_id_class,
	TP_PROTO(const struct ib_cm_id *cm_id),
	TP_ARGS(cm_id),
	TP_STRUCT__entry(
		__field(const void *, cm_id)
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
		__field(unsigned long, state)
		__field(unsigned long, lap_state)
	),
	TP_fast_assign(
		__entry->cm_id = cm_id;
		__entry->local_id = be32_to_cpu(READ_ONCE(cm_id->local_id));
		__entry->remote_id = be32_to_cpu(READ_ONCE(cm_id->remote_id));
		__entry->state = READ_ONCE(cm_id->state);
		__entry->lap_state = READ_ONCE(cm_id->lap_state);
	),
	TP_printk("local_id=%u remote_id=%u state=%s lap_state=%s", __entry->local_id,
		  __entry->remote_id, __print_symbolic(__entry->state, OXIB_CMA_STATES),
		  __print_symbolic(__entry->lap_state, OXIB_CMA_LAP_STATES))
);

#define OXIB_CMA_EVENT(name)								\
	DEFINE_EVENT(icm_id_class, icm_##name,						\
		TP_PROTO(const struct ib_cm_id *cm_id), TP_ARGS(cm_id))

/* A consumer sends. */
OXIB_CMA_EVENT(send_req);
OXIB_CMA_EVENT(send_rep);
OXIB_CMA_EVENT(send_rtu);
OXIB_CMA_EVENT(send_dreq);
OXIB_CMA_EVENT(send_drep);
OXIB_CMA_EVENT(send_sidr_req);
OXIB_CMA_EVENT(send_sidr_rep);

/* It may not, in the state that the connection has. */
OXIB_CMA_EVENT(send_cm_rtu_err);
OXIB_CMA_EVENT(dreq_skipped);
OXIB_CMA_EVENT(send_drep_err);
OXIB_CMA_EVENT(send_unknown_rej_err);
OXIB_CMA_EVENT(prepare_mra_unknown_err);
OXIB_CMA_EVENT(establish_err);
OXIB_CMA_EVENT(qp_init_err);
OXIB_CMA_EVENT(qp_rtr_err);
OXIB_CMA_EVENT(qp_rts_err);

TRACE_EVENT(icm_send_rej,
	TP_PROTO(const struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason),
	TP_ARGS(cm_id, reason),
	TP_STRUCT__entry(
		__field(const void *, cm_id)
		__field(u32, local_id)
		__field(u32, remote_id)
		__field(unsigned long, state)
		__field(unsigned long, reason)
	),
	TP_fast_assign(
		__entry->cm_id = cm_id;
		__entry->local_id = be32_to_cpu(READ_ONCE(cm_id->local_id));
		__entry->remote_id = be32_to_cpu(READ_ONCE(cm_id->remote_id));
		__entry->state = READ_ONCE(cm_id->state);
		__entry->reason = reason;
	),
	TP_printk("local_id=%u remote_id=%u state=%s reason=%s", __entry->local_id,
		  __entry->remote_id, __print_symbolic(__entry->state, OXIB_CMA_STATES),
		  __print_symbolic(__entry->reason, OXIB_CMA_REASONS))
);

TRACE_EVENT(icm_send_rep_err,
	TP_PROTO(__be32 local_id, enum ib_cm_state state),
	TP_ARGS(local_id, state),
	TP_STRUCT__entry(
		__field(unsigned int, local_id)
		__field(unsigned long, state)
	),
	TP_fast_assign(
		__entry->local_id = be32_to_cpu(local_id);
		__entry->state = state;
	),
	TP_printk("local_id=%u state=%s", __entry->local_id,
		  __print_symbolic(__entry->state, OXIB_CMA_STATES))
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE ib_cma_trace
#include <trace/define_trace.h>
