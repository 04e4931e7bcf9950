/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints of the connection manager: /sys/kernel/tracing/events/oxib_cm. */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM oxib_cm

#if !defined(OXIB_CM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define OXIB_CM_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>

#ifndef OXIB_CM_STATES
#define OXIB_CM_STATES									\
	STATE(IDLE) STATE(LISTEN) STATE(REQ_SENT) STATE(REQ_RCVD) STATE(MRA_REQ_SENT)	\
	STATE(MRA_REQ_RCVD) STATE(REP_SENT) STATE(REP_RCVD) STATE(MRA_REP_SENT)		\
	STATE(MRA_REP_RCVD) STATE(ESTABLISHED) STATE(DREQ_SENT) STATE(DREQ_RCVD)	\
	STATE(TIMEWAIT) STATE(SIDR_REQ_SENT) LAST_STATE(SIDR_REQ_RCVD)
#define OXIB_CM_MESSAGE_NAMES								\
	{ 0x10, "REQ" }, { 0x11, "MRA" }, { 0x12, "REJ" }, { 0x13, "REP" },		\
	{ 0x14, "RTU" }, { 0x15, "DREQ" }, { 0x16, "DREP" }, { 0x17, "SIDR_REQ" },	\
	{ 0x18, "SIDR_REP" }, { 0x19, "LAP" }, { 0x1a, "APR" }
#endif

/* What reads traces gets the states' numbers with their names. */
#undef STATE
#undef LAST_STATE
#define STATE(name) TRACE_DEFINE_ENUM(IB_CM_##name);
#define LAST_STATE(name) TRACE_DEFINE_ENUM(IB_CM_##name);
OXIB_CM_STATES
#undef STATE
#undef LAST_STATE
#define STATE(name) { IB_CM_##name, #name },
#define LAST_STATE(name) { IB_CM_##name, #name }

TRACE_EVENT(oxib_cm_state,
	TP_PROTO(u32 local_id, u32 remote_id, u32 old_state, u32 new_state),
	TP_ARGS(local_id, remote_id, old_state, new_state),
	TP_STRUCT__entry(
		__field(u32, local_id)
		__field(u32, remote_id)
		__field(u32, old_state)
		__field(u32, new_state)
	),
	TP_fast_assign(
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
		__entry->old_state = old_state;
		__entry->new_state = new_state;
	),
	TP_printk("local_id=%08x remote_id=%08x %s -> %s", __entry->local_id,
		  __entry->remote_id, __print_symbolic(__entry->old_state, OXIB_CM_STATES),
		  __print_symbolic(__entry->new_state, OXIB_CM_STATES))
);

DECLARE_EVENT_CLASS(oxib_cm_message,
	TP_PROTO(const char *device, u32 port, u16 attribute, u32 local_id, u32 remote_id),
	TP_ARGS(device, port, attribute, local_id, remote_id),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, port)
		__field(u16, attribute)
		__field(u32, local_id)
		__field(u32, remote_id)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->port = port;
		__entry->attribute = attribute;
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
	),
	TP_printk("device=%s port=%u message=%s local_id=%08x remote_id=%08x", __get_str(device),
		  __entry->port, __print_symbolic(__entry->attribute, OXIB_CM_MESSAGE_NAMES),
		  __entry->local_id, __entry->remote_id)
);

DEFINE_EVENT(oxib_cm_message, oxib_cm_send,
	TP_PROTO(const char *device, u32 port, u16 attribute, u32 local_id, u32 remote_id),
	TP_ARGS(device, port, attribute, local_id, remote_id)
);

DEFINE_EVENT(oxib_cm_message, oxib_cm_receive,
	TP_PROTO(const char *device, u32 port, u16 attribute, u32 local_id, u32 remote_id),
	TP_ARGS(device, port, attribute, local_id, remote_id)
);

TRACE_EVENT(oxib_cm_reject,
	TP_PROTO(u32 local_id, u32 remote_id, u16 reason, bool ours),
	TP_ARGS(local_id, remote_id, reason, ours),
	TP_STRUCT__entry(
		__field(u32, local_id)
		__field(u32, remote_id)
		__field(u16, reason)
		__field(bool, ours)
	),
	TP_fast_assign(
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
		__entry->reason = reason;
		__entry->ours = ours;
	),
	TP_printk("local_id=%08x remote_id=%08x by=%s reason=%u", __entry->local_id,
		  __entry->remote_id, __entry->ours ? "us" : "peer", __entry->reason)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE cm_trace
#include <trace/define_trace.h>
