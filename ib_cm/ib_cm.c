// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's interface to its InfiniBand communication manager, answered by oxib's. Installed under updates/, this
 * module takes the place of the kernel's ib_cm, and rdma_cm and all above it use oxib unchanged.
 */

#include <linux/module.h>
#include <rdma/ib_cm.h>

#include "../rust/bindings/cm_export.h"

MODULE_DESCRIPTION("InfiniBand communication manager by oxib, in the place of the kernel's");
MODULE_AUTHOR("The oxib developers");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("OXIB_CM");

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
	return oxib_cm_send_req(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_req);

int ib_send_cm_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param)
{
	return oxib_cm_send_rep(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_rep);

int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return oxib_cm_send_rtu(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_rtu);

int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return oxib_cm_send_dreq(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_dreq);

int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return oxib_cm_send_drep(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_drep);

int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event)
{
	return oxib_cm_notify(cm_id, event);
}
EXPORT_SYMBOL(ib_cm_notify);

int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari, u8 ari_length,
		   const void *private_data, u8 private_data_len)
{
	return oxib_cm_send_rej(cm_id, reason, ari, ari_length, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_rej);

int ib_prepare_cm_mra(struct ib_cm_id *cm_id)
{
	return oxib_cm_prepare_mra(cm_id);
}
EXPORT_SYMBOL(ib_prepare_cm_mra);

int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr, int *qp_attr_mask)
{
	return oxib_cm_init_qp_attr(cm_id, qp_attr, qp_attr_mask);
}
EXPORT_SYMBOL(ib_cm_init_qp_attr);

int ib_send_cm_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param)
{
	return oxib_cm_send_sidr_req(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_sidr_req);

int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param)
{
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
