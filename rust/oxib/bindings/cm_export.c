// SPDX-License-Identifier: GPL-2.0-only
/* What ib_cm.ko may use of oxib.ko, and nobody else. */

#include <linux/export.h>

#include "cm_export.h"

#define EXPORT(name) EXPORT_SYMBOL_NS_GPL(name, "OXIB_CM")

EXPORT(oxib_cm_start);
EXPORT(oxib_cm_stop);
EXPORT(oxib_cm_create_id);
EXPORT(oxib_cm_destroy_id);
EXPORT(oxib_cm_listen);
EXPORT(oxib_cm_insert_listen);
EXPORT(oxib_cm_send_req);
EXPORT(oxib_cm_send_rep);
EXPORT(oxib_cm_send_rtu);
EXPORT(oxib_cm_send_dreq);
EXPORT(oxib_cm_send_drep);
EXPORT(oxib_cm_notify);
EXPORT(oxib_cm_send_rej);
EXPORT(oxib_cm_prepare_mra);
EXPORT(oxib_cm_init_qp_attr);
EXPORT(oxib_cm_send_sidr_req);
EXPORT(oxib_cm_send_sidr_rep);
EXPORT(oxib_cm_reject_msg);
