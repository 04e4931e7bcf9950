/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connection manager for ib_cm.ko, which has the kernel's names for it: each function is the one of
 * include/rdma/ib_cm.h that is named like it. They are written in Rust (rust/oxib/cm_export.rs); compilers compare both
 * with these declarations.
 */

#ifndef OXIB_CM_EXPORT_H
#define OXIB_CM_EXPORT_H

#include <rdma/ib_cm.h>

/* Take the connection management of all ports that nobody has; give it back. */
int oxib_cm_start(void);
void oxib_cm_stop(void);

struct ib_cm_id *oxib_cm_create_id(struct ib_device *device, ib_cm_handler handler, void *context);
void oxib_cm_destroy_id(struct ib_cm_id *cm_id);
int oxib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id);
struct ib_cm_id *oxib_cm_insert_listen(struct ib_device *device, ib_cm_handler handler,
				       __be64 service_id);
int oxib_cm_send_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param);
int oxib_cm_send_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param);
int oxib_cm_send_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len);
int oxib_cm_send_dreq(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len);
int oxib_cm_send_drep(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len);
int oxib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event);
int oxib_cm_send_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari, u8 ari_length,
		     const void *private_data, u8 private_data_len);
int oxib_cm_prepare_mra(struct ib_cm_id *cm_id);
int oxib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *attributes, int *mask);
int oxib_cm_send_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param);
int oxib_cm_send_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param);
const char *oxib_cm_reject_msg(int reason);

#endif
