// SPDX-License-Identifier: GPL-2.0-only

#include "rdma.h"

void oxib_device_get(struct ib_device *device)
{
	WARN_ON(!ib_device_try_get(device));
}

/*
 * Copies the name, of IB_DEVICE_NAME_MAX bytes at most, from where it stays: what dev_name() returns is freed when the
 * device gets another name.
 */
void oxib_device_name(const struct ib_device *device, char *name)
{
	strscpy(name, device->name, IB_DEVICE_NAME_MAX);
}

/* The name of the device on its bus, as lspci has it, which does not change; NULL without a bus. */
const char *oxib_bus_name(const struct ib_device *device)
{
	return device->dev.parent ? dev_name(device->dev.parent) : NULL;
}

struct device *oxib_device_dev(struct ib_device *device)
{
	return &device->dev;
}

struct net *oxib_rdma_net(struct ib_device *device)
{
	return rdma_dev_net(device);
}

u32 oxib_first_port(const struct ib_device *device)
{
	return rdma_start_port(device);
}

u32 oxib_last_port(const struct ib_device *device)
{
	return rdma_end_port(device);
}

bool oxib_cap_ib_cm(const struct ib_device *device, u32 port)
{
	return rdma_cap_ib_cm(device, port);
}

bool oxib_is_omni_path(struct ib_device *device, u32 port)
{
	return rdma_cap_opa_mad(device, port) || rdma_cap_opa_ah(device, port);
}

struct ib_mad_send_buf *oxib_create_send_mad(struct ib_mad_agent *agent, u32 qpn, u16 pkey_index)
{
	return ib_create_send_mad(agent, qpn, pkey_index, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
				  GFP_ATOMIC, IB_MGMT_BASE_VERSION);
}

bool oxib_protocol_ib(const struct ib_device *device, u32 port)
{
	return rdma_protocol_ib(device, port);
}

bool oxib_protocol_roce_v2(const struct ib_device *device, u32 port)
{
	return rdma_protocol_roce_udp_encap(device, port);
}

u32 oxib_gid_table_length(struct ib_device *device, u32 port)
{
	return device->port_data[port].immutable.gid_tbl_len;
}

bool oxib_uses_virt_dma(struct ib_device *device)
{
	return ib_uses_virt_dma(device);
}

u64 oxib_dma_map(struct ib_device *device, void *address, size_t length)
{
	return ib_dma_map_single(device, address, length, DMA_TO_DEVICE);
}

bool oxib_dma_mapping_error(struct ib_device *device, u64 address)
{
	return ib_dma_mapping_error(device, address);
}

void oxib_dma_unmap(struct ib_device *device, u64 address, size_t length)
{
	ib_dma_unmap_single(device, address, length, DMA_TO_DEVICE);
}

/* Bit fields that C puts behind a gap, into the next word. bindgen (0.71) leaves no gap, and puts them elsewhere. */
void oxib_cm_req_event_set_tail(struct ib_cm_req_event_param *param, u8 rnr_retry_count, bool srq)
{
	param->rnr_retry_count = rnr_retry_count;
	param->srq = srq;
}
