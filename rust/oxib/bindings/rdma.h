/* SPDX-License-Identifier: GPL-2.0-only */
/* Inline functions of the kernel for RDMA devices, as functions that Rust can call. */

#ifndef OXIB_RDMA_H
#define OXIB_RDMA_H

#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

void oxib_device_get(struct ib_device *device);
void oxib_device_name(const struct ib_device *device, char *name);
const char *oxib_bus_name(const struct ib_device *device);
struct device *oxib_device_dev(struct ib_device *device);
struct net *oxib_rdma_net(struct ib_device *device);
u32 oxib_first_port(const struct ib_device *device);
u32 oxib_last_port(const struct ib_device *device);
bool oxib_cap_ib_cm(const struct ib_device *device, u32 port);
bool oxib_is_omni_path(struct ib_device *device, u32 port);
struct ib_mad_send_buf *oxib_create_send_mad(struct ib_mad_agent *agent, u32 qpn, u16 pkey_index);
bool oxib_protocol_ib(const struct ib_device *device, u32 port);
bool oxib_protocol_roce_v2(const struct ib_device *device, u32 port);
u32 oxib_gid_table_length(struct ib_device *device, u32 port);
bool oxib_uses_virt_dma(struct ib_device *device);
u64 oxib_dma_map(struct ib_device *device, void *address, size_t length);
bool oxib_dma_mapping_error(struct ib_device *device, u64 address);
void oxib_dma_unmap(struct ib_device *device, u64 address, size_t length);
void oxib_cm_req_event_set_tail(struct ib_cm_req_event_param *param, u8 rnr_retry_count, bool srq);

#endif
