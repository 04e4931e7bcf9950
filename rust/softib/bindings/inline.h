/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inline functions and macros of the kernel, as functions that Rust can call. One statement each where that is possible:
 * no logic lives here.
 */

#ifndef SOFTIB_INLINE_H
#define SOFTIB_INLINE_H

#include <linux/device/faux.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "crossing.h"

enum {
	/* The Ethernet type of a cable: one of those that IEEE 802 leaves for experiments. */
	SOFTIB_ETHERTYPE = ETH_P_802_EX1,
	/* A macro that bindgen cannot work out. */
	SOFTIB_PORT_IBA_IB = RDMA_CORE_PORT_IBA_IB,
	SOFTIB_PORT_INTEL_OPA = RDMA_CORE_PORT_INTEL_OPA,
};

/* Frames */
struct sk_buff *softib_frame_alloc(u32 length);
int softib_frame_writable(struct sk_buff *skb);
void softib_frame_shrink(struct sk_buff *skb, u32 length);
void softib_frame_free(struct sk_buff *skb);
int softib_frame_send(struct sk_buff *skb, struct net_device *dev);
u32 softib_crc32(u32 crc, const u8 *bytes, size_t length);
u16 softib_sum(const u8 *bytes, u32 length);
void softib_queue_init(struct sk_buff_head *queue);
u32 softib_queue_length(const struct sk_buff_head *queue);
bool softib_queue_is_empty(const struct sk_buff_head *queue);
void softib_queue_purge(struct sk_buff_head *queue);

/* Net devices */
struct net_device *softib_notified_device(void *info);
bool softib_is_registered(const struct net_device *dev);
bool softib_has_carrier(const struct net_device *dev);
void softib_dev_hold(struct net_device *dev);
void softib_dev_put(struct net_device *dev);
void softib_raise_mtu(struct net_device *dev, u32 mtu);
struct net_device *softib_find_device(const char *name);
bool softib_is_ethernet(const struct net_device *dev);
struct net *softib_dev_net(const struct net_device *dev);
void softib_hardware_address(const struct net_device *dev, u8 *address);
bool softib_in_interrupt(void);
void softib_bh_disable(void);
void softib_bh_enable(void);

/* RDMA devices */
bool softib_device_try_get(struct ib_device *device);
void softib_notify_cq(struct ib_cq *cq);
void softib_notify_cq_by_interrupt(struct ib_cq *cq);
void softib_notify_qp(struct ib_qp *qp, enum ib_event_type event);
void softib_notify_srq(struct ib_srq *srq, enum ib_event_type event);
int softib_processor(u32 number);
bool softib_may_run_here(u32 processor);
bool softib_queue_work_on(int processor, struct work_struct *work);
void softib_fill_device(struct ib_device *device, struct faux_device *parent);

/* The parent of all HCAs; NULL if it cannot be made. */
struct faux_device *softib_parent_create(void);
void softib_parent_destroy(struct faux_device *parent);
struct device *softib_dma_device(struct faux_device *parent);

/* Memory */
bool softib_is_memory(u64 address, size_t length);
u64 softib_direct_map(void);

#endif
