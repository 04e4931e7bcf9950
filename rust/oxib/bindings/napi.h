/* SPDX-License-Identifier: GPL-2.0-only */
/* Inline functions of the kernel for NAPI and for transmit queues, as functions that Rust can call. */

#ifndef OXIB_NAPI_H
#define OXIB_NAPI_H

#include <linux/netdevice.h>

#define OXIB_NO_QUEUE	0xffffffff

/* NAPI */
void oxib_napi_init(struct napi_struct *napi);
void oxib_napi_start(struct net_device *dev, struct napi_struct *napi,
		     int (*poll)(struct napi_struct *, int), u32 queue);
void oxib_napi_start_tx(struct net_device *dev, struct napi_struct *napi,
			int (*poll)(struct napi_struct *, int));
void oxib_napi_end(struct napi_struct *napi, u32 queue);
void oxib_napi_pause(struct napi_struct *napi);
void oxib_napi_resume(struct napi_struct *napi);
void oxib_napi_schedule(struct napi_struct *napi);
struct gro_node *oxib_napi_gro(struct napi_struct *napi);

/* Transmit queues */
void oxib_tx_lock(struct netdev_queue *queue, bool disable_bh);
void oxib_tx_unlock(struct netdev_queue *queue, bool disable_bh);
void oxib_tx_stop_queue(struct netdev_queue *queue);
void oxib_tx_wake_if_stopped(struct netdev_queue *queue);
bool oxib_tx_sent(struct netdev_queue *queue, u32 bytes);
bool oxib_tx_replace_min_limit(struct netdev_queue *queue, u32 before, u32 bytes);
void oxib_tx_completed(struct netdev_queue *queue, u32 packets, u32 bytes);
void oxib_tx_reset(struct netdev_queue *queue);
bool oxib_xmit_more(void);

#endif
