// SPDX-License-Identifier: GPL-2.0-only

#include "napi.h"

/* NAPI */

/* An instance that no device has is like one that is disabled: scheduling it does nothing. */
void oxib_napi_init(struct napi_struct *napi)
{
	memset(napi, 0, sizeof(*napi));
	napi->state = NAPIF_STATE_SCHED | NAPIF_STATE_NPSVC;
	napi->list_owner = -1;
}

/* What polls a receive queue keeps its number and its settings as long as the device lives. RTNL held. */
void oxib_napi_add(struct net_device *dev, struct napi_struct *napi,
		   int (*poll)(struct napi_struct *, int), u32 queue)
{
	if (queue >= dev->num_napi_configs || queue >= dev->num_rx_queues) {
		netif_napi_add(dev, napi, poll);
		return;
	}
	netif_napi_add_config(dev, napi, poll, queue);
	netif_queue_set_napi(dev, queue, NETDEV_QUEUE_TYPE_RX, napi);
}

void oxib_napi_add_tx(struct net_device *dev, struct napi_struct *napi,
		      int (*poll)(struct napi_struct *, int))
{
	netif_napi_add_tx(dev, napi, poll);
}

void oxib_napi_del(struct napi_struct *napi, u32 queue)
{
	if (queue < napi->dev->num_rx_queues)
		netif_queue_set_napi(napi->dev, queue, NETDEV_QUEUE_TYPE_RX, NULL);
	netif_napi_del(napi);
}

void oxib_napi_schedule(struct napi_struct *napi)
{
	napi_schedule(napi);
}

struct gro_node *oxib_napi_gro(struct napi_struct *napi)
{
	return &napi->gro;
}

/* Transmit queues */

void oxib_tx_lock(struct netdev_queue *queue, bool disable_bh)
{
	if (disable_bh)
		__netif_tx_lock_bh(queue);
	else
		__netif_tx_lock(queue, smp_processor_id());
}

void oxib_tx_unlock(struct netdev_queue *queue, bool disable_bh)
{
	if (disable_bh)
		__netif_tx_unlock_bh(queue);
	else
		__netif_tx_unlock(queue);
}

void oxib_tx_stop_queue(struct netdev_queue *queue)
{
	netif_tx_stop_queue(queue);
}

void oxib_tx_wake_if_stopped(struct netdev_queue *queue)
{
	if (netif_tx_queue_stopped(queue))
		netif_tx_wake_queue(queue);
}

bool oxib_tx_sent(struct netdev_queue *queue, u32 bytes)
{
	return __netdev_tx_sent_queue(queue, bytes, netdev_xmit_more());
}

/* An administrator may set it in sysfs (`byte_queue_limits/limit_min`), without a lock: any other value than `before` stays. */
bool oxib_tx_replace_min_limit(struct netdev_queue *queue, u32 before, u32 bytes)
{
#ifdef CONFIG_BQL
	if (READ_ONCE(queue->dql.min_limit) != before)
		return false;
#endif
	netdev_queue_set_dql_min_limit(queue, bytes);
	return true;
}

void oxib_tx_completed(struct netdev_queue *queue, u32 packets, u32 bytes)
{
	netdev_tx_completed_queue(queue, packets, bytes);
}

void oxib_tx_reset(struct netdev_queue *queue)
{
	netdev_tx_reset_queue(queue);
}

bool oxib_xmit_more(void)
{
	return netdev_xmit_more();
}
