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

/*
 * Who ends threaded polling waits, with the device's lock, until each instance in its list is enabled. So these have that lock for
 * as long as one is in the list and disabled. RTNL held.
 */

/* What polls a receive queue keeps its number and its settings as long as the device lives. */
void oxib_napi_start(struct net_device *dev, struct napi_struct *napi,
		     int (*poll)(struct napi_struct *, int), u32 queue)
{
	netdev_lock(dev);
	if (queue >= dev->num_napi_configs || queue >= dev->num_rx_queues) {
		netif_napi_add_locked(dev, napi, poll);
	} else {
		netif_napi_add_config_locked(dev, napi, poll, queue);
		netif_queue_set_napi(dev, queue, NETDEV_QUEUE_TYPE_RX, napi);
	}
	napi_enable_locked(napi);
	netdev_unlock(dev);
}

/* What polls for sent packets alone is not for programs that poll for received ones. */
void oxib_napi_start_tx(struct net_device *dev, struct napi_struct *napi,
			int (*poll)(struct napi_struct *, int))
{
	netdev_lock(dev);
	set_bit(NAPI_STATE_NO_BUSY_POLL, &napi->state);
	netif_napi_add_locked(dev, napi, poll);
	napi_enable_locked(napi);
	netdev_unlock(dev);
}

void oxib_napi_end(struct napi_struct *napi, u32 queue)
{
	struct net_device *dev = napi->dev;

	netdev_lock(dev);
	napi_disable_locked(napi);
	if (queue < dev->num_rx_queues)
		netif_queue_set_napi(dev, queue, NETDEV_QUEUE_TYPE_RX, NULL);
	netif_napi_del_locked(napi);
	netdev_unlock(dev);
}

/* Until oxib_napi_resume no poll runs. */
void oxib_napi_pause(struct napi_struct *napi)
{
	netdev_lock(napi->dev);
	napi_disable_locked(napi);
	/* It has said that it is done, and may not have returned. */
	synchronize_net();
}

void oxib_napi_resume(struct napi_struct *napi)
{
	napi_enable_locked(napi);
	netdev_unlock(napi->dev);
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
