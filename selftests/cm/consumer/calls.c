// SPDX-License-Identifier: GPL-2.0-only
/* A call: both ends of a connection, which have no queue pairs. */

#include <rdma/ib_sa.h>

#include "fields.h"

#define LIFE_TIME 14
#define RESPONSE 20
#define PATIENCE (120 * HZ)

/* LIDs that no port has: queue pairs are to use them, and messages are not. */
#define OUTBOUND_LID 0x2abc
#define INBOUND_LID 0x2bcd

/* Keeps what an event points to, as that ends with the handler. */
static void keep(struct end *end, const struct ib_cm_event *event)
{
	const struct ib_cm_req_event_param *request = &event->param.req_rcvd;
	const struct ib_cm_rej_event_param *rejection = &event->param.rej_rcvd;

	end->event = *event;
	end->service = end->id->service_id;
	if (event->event == IB_CM_REJ_RECEIVED && rejection->ari_length >= sizeof(end->valid))
		memcpy(&end->valid, rejection->ari, sizeof(end->valid));
	if (event->event != IB_CM_REQ_RECEIVED)
		return;
	end->primary = *request->primary_path;
	end->has_alternate = request->alternate_path;
	if (end->has_alternate)
		end->alternate = *request->alternate_path;
}

/* The context of a new identifier is that of its listener: the server's end. */
static int handle(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct end *end = id->context;

	if (event->event == IB_CM_MRA_RECEIVED || event->event == IB_CM_TIMEWAIT_EXIT)
		return 0;
	if (event->event == IB_CM_REQ_RECEIVED)
		end->id = id;
	keep(end, event);
	complete(&end->told);
	return 0;
}

static int expect(struct end *end, enum ib_cm_event_type wanted)
{
	if (!wait_for_completion_timeout(&end->told, PATIENCE))
		return -ETIMEDOUT;
	if (end->event.event == wanted)
		return 0;
	pr_err("cm_fields: %s: the %s has event %d, not %d\n", end->call, end->name, end->event.event, wanted);
	return -ECONNRESET;
}

/* Each field has a value of its own. */
static void fill(struct sa_path_rec *path, const struct call *call, const struct host *from, const struct host *to, u16 dlid)
{
	path->rec_type = SA_PATH_REC_TYPE_IB;
	path->sgid = from->gid->gid;
	path->dgid = to->gid->gid;
	path->flow_label = cpu_to_be32(0xa5b6c);
	path->hop_limit = call->hop_limit;
	path->traffic_class = 0x5d;
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = cpu_to_be16(IB_DEFAULT_PKEY_FULL);
	path->sl = 3;
	path->mtu_selector = IB_SA_EQ;
	path->mtu = IB_MTU_2048;
	path->rate_selector = IB_SA_EQ;
	path->rate = IB_RATE_10_GBPS;
	path->packet_life_time_selector = IB_SA_EQ;
	path->packet_life_time = LIFE_TIME;
	sa_path_set_slid(path, from->lid);
	sa_path_set_dlid(path, dlid);
}

static int ask(struct end *caller, const struct call *call, unsigned int number, const struct host *hosts, u16 router)
{
	const struct host *from = &hosts[HOST_A], *to = &hosts[call->server];
	struct sa_path_rec primary = {}, alternate, inbound, outbound;
	struct ib_cm_req_param request = {
		.primary_path = &primary,
		.ppath_sgid_attr = from->gid,
		.service_id = cpu_to_be64(FIRST_SERVICE + number),
		.qp_num = 0x1110 + number,
		.qp_type = call->type,
		.starting_psn = 0x31415,
		.responder_resources = 9,
		.initiator_depth = 10,
		.remote_cm_response_timeout = RESPONSE,
		.flow_control = 1,
		.local_cm_response_timeout = RESPONSE + 1,
		.retry_count = 5,
		.rnr_retry_count = 6,
		.max_cm_retries = 11,
		.srq = 1,
	};

	fill(&primary, call, from, to, call->server == HOST_C ? router : to->lid);
	if (call->astray)
		primary.dgid.raw[15] ^= 0x55;
	alternate = inbound = outbound = primary;
	if (call->alternate) {
		alternate.flow_label = cpu_to_be32(0x1d2e3);
		alternate.traffic_class = 0x2f;
		alternate.sl = 4;
		alternate.rate = IB_RATE_5_GBPS;
		alternate.packet_life_time = LIFE_TIME - 1;
		request.alternate_path = &alternate;
	}
	if (call->directions) {
		sa_path_set_dlid(&inbound, INBOUND_LID);
		sa_path_set_dlid(&outbound, OUTBOUND_LID);
		request.primary_path_inbound = &inbound;
		request.primary_path_outbound = &outbound;
	}
	return ib_send_cm_req(caller->id, &request);
}

static int answer(struct end *server, unsigned int number)
{
	struct ib_cm_rep_param reply = {
		.qp_num = 0x2220 + number,
		.starting_psn = 0x27182,
		.responder_resources = 7,
		.initiator_depth = 8,
		.failover_accepted = 1,
		.rnr_retry_count = 2,
		.srq = 1,
	};

	return ib_send_cm_rep(server->id, &reply);
}

static int say_all(const struct end *end)
{
	return say_attributes(end, IB_QPS_INIT) ?: say_attributes(end, IB_QPS_RTR) ?: say_attributes(end, IB_QPS_RTS);
}

static int serve(struct end *server, unsigned int number)
{
	int error = expect(server, IB_CM_REQ_RECEIVED);

	if (error)
		return error;
	say_request(server);
	return answer(server, number) ?: say_all(server);
}

static int finish(struct end *caller, struct end *server)
{
	int error = expect(caller, IB_CM_REP_RECEIVED);

	if (error)
		return error;
	say_reply(caller);
	error = say_all(caller) ?: ib_send_cm_rtu(caller->id, NULL, 0) ?: expect(server, IB_CM_RTU_RECEIVED);
	return error ?: ib_send_cm_dreq(caller->id, NULL, 0) ?: expect(server, IB_CM_DREQ_RECEIVED) ?:
	       ib_send_cm_drep(server->id, NULL, 0) ?: expect(caller, IB_CM_DREP_RECEIVED);
}

static int converse(const struct call *call, struct end *caller, struct end *server, unsigned int number)
{
	int error;

	if (!call->astray)
		return serve(server, number) ?: finish(caller, server);
	error = expect(caller, IB_CM_REJ_RECEIVED);
	if (!error)
		say_rejection(caller);
	return error;
}

static struct ib_cm_id *listen(const struct host *host, struct end *server, unsigned int number)
{
	struct ib_cm_id *listener = ib_create_cm_id(host->device, handle, server);
	int error;

	if (IS_ERR(listener))
		return listener;
	error = ib_cm_listen(listener, cpu_to_be64(FIRST_SERVICE + number));
	if (!error)
		return listener;
	ib_destroy_cm_id(listener);
	return ERR_PTR(error);
}

int make_call(const struct call *call, unsigned int number, const struct host *hosts, u16 router)
{
	struct end caller = { .call = call->name, .name = "caller" }, server = { .call = call->name, .name = "server" };
	struct ib_cm_id *listener;
	int error;

	init_completion(&caller.told);
	init_completion(&server.told);
	listener = listen(&hosts[call->server], &server, number);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	caller.id = ib_create_cm_id(hosts[HOST_A].device, handle, &caller);
	if (IS_ERR(caller.id)) {
		ib_destroy_cm_id(listener);
		return PTR_ERR(caller.id);
	}
	error = ask(&caller, call, number, hosts, router) ?: converse(call, &caller, &server, number);
	ib_destroy_cm_id(caller.id);
	/* No request comes any more. */
	ib_destroy_cm_id(listener);
	if (server.id)
		ib_destroy_cm_id(server.id);
	return error;
}
