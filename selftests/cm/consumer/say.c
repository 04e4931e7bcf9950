// SPDX-License-Identifier: GPL-2.0-only
/* Field by field, in /proc/cm_fields: `CALL: caller|server, WHAT: FIELD VALUE`. The kernel's log is too small. */

#include <linux/proc_fs.h>
#include <linux/seq_buf.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>

#include "fields.h"

#define SIZE (512 << 10)

static struct seq_buf said;

static int show(struct seq_file *file, void *data)
{
	seq_write(file, said.buffer, seq_buf_used(&said));
	return 0;
}

int say_begin(void)
{
	char *buffer = vzalloc(SIZE);

	if (!buffer)
		return -ENOMEM;
	seq_buf_init(&said, buffer, SIZE);
	if (proc_create_single("cm_fields", 0444, NULL, show))
		return 0;
	vfree(buffer);
	return -ENOMEM;
}

bool say_overflows(void)
{
	return seq_buf_has_overflowed(&said);
}

void say_end(void)
{
	remove_proc_entry("cm_fields", NULL);
	vfree(said.buffer);
}

static void say(const struct end *end, const char *what, const char *name, unsigned long long value)
{
	seq_buf_printf(&said, "%s: %s, %s: %s %#llx\n", end->call, end->name, what, name, value);
}

#define say_field(end, what, object, field) say(end, what, #field, (object)->field)

static void say_gid(const struct end *end, const char *what, const char *name, const union ib_gid *gid)
{
	seq_buf_printf(&said, "%s: %s, %s: %s %pI6\n", end->call, end->name, what, name, gid->raw);
}

static void say_path(const struct end *end, const char *what, const struct sa_path_rec *path)
{
	say_gid(end, what, "sgid", &path->sgid);
	say_gid(end, what, "dgid", &path->dgid);
	say(end, what, "slid", sa_path_get_slid((struct sa_path_rec *)path));
	say(end, what, "dlid", sa_path_get_dlid((struct sa_path_rec *)path));
	say(end, what, "service_id", be64_to_cpu(path->service_id));
	say(end, what, "flow_label", be32_to_cpu(path->flow_label));
	say_field(end, what, path, hop_limit);
	say_field(end, what, path, traffic_class);
	say_field(end, what, path, reversible);
	say_field(end, what, path, numb_path);
	say(end, what, "pkey", be16_to_cpu(path->pkey));
	say(end, what, "qos_class", be16_to_cpu(path->qos_class));
	say_field(end, what, path, sl);
	say_field(end, what, path, mtu_selector);
	say_field(end, what, path, mtu);
	say_field(end, what, path, rate_selector);
	say_field(end, what, path, rate);
	say_field(end, what, path, packet_life_time_selector);
	say_field(end, what, path, packet_life_time);
	say_field(end, what, path, preference);
	say_field(end, what, path, rec_type);
}

void say_request(const struct end *end)
{
	const struct ib_cm_req_event_param *request = &end->event.param.req_rcvd;
	const char *what = "event of the REQ";

	say(end, what, "service_id of the identifier", be64_to_cpu(end->service));
	say_field(end, what, request, bth_pkey);
	say_field(end, what, request, port);
	say(end, what, "ppath_sgid_attr", request->ppath_sgid_attr ? request->ppath_sgid_attr->index + 1 : 0);
	say(end, what, "remote_ca_guid", be64_to_cpu(request->remote_ca_guid));
	say_field(end, what, request, remote_qkey);
	say_field(end, what, request, remote_qpn);
	say_field(end, what, request, qp_type);
	say_field(end, what, request, starting_psn);
	say_field(end, what, request, responder_resources);
	say_field(end, what, request, initiator_depth);
	say_field(end, what, request, local_cm_response_timeout);
	say_field(end, what, request, flow_control);
	say_field(end, what, request, remote_cm_response_timeout);
	say_field(end, what, request, retry_count);
	say_field(end, what, request, rnr_retry_count);
	say_field(end, what, request, srq);
	say_path(end, "primary path of the REQ", &end->primary);
	if (end->has_alternate)
		say_path(end, "alternate path of the REQ", &end->alternate);
}

void say_reply(const struct end *end)
{
	const struct ib_cm_rep_event_param *reply = &end->event.param.rep_rcvd;
	const char *what = "event of the REP";

	say(end, what, "remote_ca_guid", be64_to_cpu(reply->remote_ca_guid));
	say_field(end, what, reply, remote_qkey);
	say_field(end, what, reply, remote_qpn);
	say_field(end, what, reply, starting_psn);
	say_field(end, what, reply, responder_resources);
	say_field(end, what, reply, initiator_depth);
	say_field(end, what, reply, target_ack_delay);
	say_field(end, what, reply, failover_accepted);
	say_field(end, what, reply, flow_control);
	say_field(end, what, reply, rnr_retry_count);
	say_field(end, what, reply, srq);
}

void say_rejection(const struct end *end)
{
	const struct ib_cm_rej_event_param *rejection = &end->event.param.rej_rcvd;
	const char *what = "event of the REJ";

	say_field(end, what, rejection, reason);
	say_field(end, what, rejection, ari_length);
	say_gid(end, what, "ari", &end->valid);
}

static void say_way(const struct end *end, const char *what, const struct rdma_ah_attr *way)
{
	say_field(end, what, way, type);
	say_field(end, what, way, sl);
	say_field(end, what, way, static_rate);
	say_field(end, what, way, port_num);
	say_field(end, what, way, ah_flags);
	say_field(end, what, way, ib.dlid);
	say_field(end, what, way, ib.src_path_bits);
	say_gid(end, what, "grh.dgid", &way->grh.dgid);
	say_field(end, what, way, grh.flow_label);
	say_field(end, what, way, grh.sgid_index);
	say_field(end, what, way, grh.hop_limit);
	say_field(end, what, way, grh.traffic_class);
	say(end, what, "grh.sgid_attr", way->grh.sgid_attr ? way->grh.sgid_attr->index + 1 : 0);
}

int say_attributes(const struct end *end, enum ib_qp_state state)
{
	const char *what = state == IB_QPS_INIT ? "attributes at INIT" :
			   state == IB_QPS_RTR ? "attributes at RTR" : "attributes at RTS";
	struct ib_qp_attr attributes = {
		.qp_state = state,
	};
	int mask = 0, error = ib_cm_init_qp_attr(end->id, &attributes, &mask);

	if (error)
		return error;
	say(end, what, "mask", mask);
	say_field(end, what, &attributes, port_num);
	say_field(end, what, &attributes, pkey_index);
	say_field(end, what, &attributes, qp_access_flags);
	say_field(end, what, &attributes, path_mtu);
	say_field(end, what, &attributes, path_mig_state);
	say_field(end, what, &attributes, dest_qp_num);
	say_field(end, what, &attributes, rq_psn);
	say_field(end, what, &attributes, sq_psn);
	say_field(end, what, &attributes, max_rd_atomic);
	say_field(end, what, &attributes, max_dest_rd_atomic);
	say_field(end, what, &attributes, min_rnr_timer);
	say_field(end, what, &attributes, timeout);
	say_field(end, what, &attributes, retry_cnt);
	say_field(end, what, &attributes, rnr_retry);
	say_field(end, what, &attributes, alt_port_num);
	say_field(end, what, &attributes, alt_pkey_index);
	say_field(end, what, &attributes, alt_timeout);
	say_way(end, state == IB_QPS_INIT ? "way at INIT" : state == IB_QPS_RTR ? "way at RTR" : "way at RTS",
		&attributes.ah_attr);
	if (mask & IB_QP_ALT_PATH)
		say_way(end, "alternate way", &attributes.alt_ah_attr);
	return 0;
}
