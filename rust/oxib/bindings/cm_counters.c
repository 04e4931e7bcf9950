// SPDX-License-Identifier: GPL-2.0-only
/*
 * sysfs asks for a counter by device and port; what is shown stands in a list, which is short and read rarely. Removing
 * the files waits for their readers, so counts are not freed under one.
 */

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <rdma/ib_sysfs.h>
#include <rdma/ib_verbs.h>

#include "cm_counters.h"

/* Exported by ib_core for the communication manager, but declared in its private header alone. */
int ib_port_register_client_groups(struct ib_device *ibdev, u32 port_num,
				   const struct attribute_group **groups);
void ib_port_unregister_client_groups(struct ib_device *ibdev, u32 port_num,
				      const struct attribute_group **groups);

struct shown {
	struct list_head list;
	struct ib_device *device;
	u32 port;
	struct oxib_cm_counts __percpu *counts;
};

struct counter {
	struct ib_port_attribute attribute;
	u32 group;
	u32 message;
};

static LIST_HEAD(all_shown);
static DEFINE_MUTEX(all_shown_lock);

static struct shown *find(struct ib_device *device, u32 port)
{
	struct shown *shown;

	lockdep_assert_held(&all_shown_lock);
	list_for_each_entry(shown, &all_shown, list)
		if (shown->device == device && shown->port == port)
			return shown;
	return NULL;
}

static ssize_t show_counter(struct ib_device *device, u32 port,
			    struct ib_port_attribute *attribute, char *buffer)
{
	struct counter *counter = container_of(attribute, struct counter, attribute);
	struct shown *shown;
	u64 sum = 0;

	mutex_lock(&all_shown_lock);
	shown = find(device, port);
	if (shown)
		sum = oxib_cm_counters_sum(shown->counts, counter->group, counter->message);
	mutex_unlock(&all_shown_lock);
	return shown ? sysfs_emit(buffer, "%llu\n", sum) : -ENODEV;
}

#define COUNTER(_name, _directory, _message)						\
	{										\
		.attribute = {								\
			.attr = { .name = #_name, .mode = 0444 },			\
			.show = show_counter,						\
		},									\
		.group = _directory,						\
		.message = _message,							\
	}

#define GROUP(_name, _directory)							\
	static struct counter _name##_counters[OXIB_CM_MESSAGES] = {			\
		COUNTER(req, _directory, 0), COUNTER(mra, _directory, 1),			\
		COUNTER(rej, _directory, 2), COUNTER(rep, _directory, 3),			\
		COUNTER(rtu, _directory, 4), COUNTER(dreq, _directory, 5),			\
		COUNTER(drep, _directory, 6), COUNTER(sidr_req, _directory, 7),			\
		COUNTER(sidr_rep, _directory, 8), COUNTER(lap, _directory, 9),			\
		COUNTER(apr, _directory, 10),						\
	};										\
	static struct attribute *_name##_attributes[OXIB_CM_MESSAGES + 1] = {		\
		&_name##_counters[0].attribute.attr, &_name##_counters[1].attribute.attr, \
		&_name##_counters[2].attribute.attr, &_name##_counters[3].attribute.attr, \
		&_name##_counters[4].attribute.attr, &_name##_counters[5].attribute.attr, \
		&_name##_counters[6].attribute.attr, &_name##_counters[7].attribute.attr, \
		&_name##_counters[8].attribute.attr, &_name##_counters[9].attribute.attr, \
		&_name##_counters[10].attribute.attr,					\
	};										\
	static const struct attribute_group _name##_group = {				\
		.name = #_name,								\
		.attrs = _name##_attributes,						\
	}

GROUP(cm_tx_msgs, OXIB_CM_TX_MSGS);
GROUP(cm_tx_retries, OXIB_CM_TX_RETRIES);
GROUP(cm_rx_msgs, OXIB_CM_RX_MSGS);
GROUP(cm_rx_duplicates, OXIB_CM_RX_DUPLICATES);

static struct counter cm_rx_drops_counters[OXIB_CM_DROPS] = {
	COUNTER(malformed, OXIB_CM_RX_DROPS, OXIB_CM_DROP_MALFORMED),
	COUNTER(no_memory, OXIB_CM_RX_DROPS, OXIB_CM_DROP_NO_MEMORY),
	COUNTER(unknown_id, OXIB_CM_RX_DROPS, OXIB_CM_DROP_UNKNOWN_ID),
	COUNTER(unexpected, OXIB_CM_RX_DROPS, OXIB_CM_DROP_UNEXPECTED),
	COUNTER(wrong_peer, OXIB_CM_RX_DROPS, OXIB_CM_DROP_WRONG_PEER),
	COUNTER(wrong_qpn, OXIB_CM_RX_DROPS, OXIB_CM_DROP_WRONG_QPN),
	COUNTER(no_listener, OXIB_CM_RX_DROPS, OXIB_CM_DROP_NO_LISTENER),
	COUNTER(half_open, OXIB_CM_RX_DROPS, OXIB_CM_DROP_HALF_OPEN),
	COUNTER(stale, OXIB_CM_RX_DROPS, OXIB_CM_DROP_STALE),
	COUNTER(invalid, OXIB_CM_RX_DROPS, OXIB_CM_DROP_INVALID),
	COUNTER(busy, OXIB_CM_RX_DROPS, OXIB_CM_DROP_BUSY),
	COUNTER(unresolved, OXIB_CM_RX_DROPS, OXIB_CM_DROP_UNRESOLVED),
};

static struct attribute *cm_rx_drops_attributes[OXIB_CM_DROPS + 1] = {
	&cm_rx_drops_counters[OXIB_CM_DROP_MALFORMED].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_NO_MEMORY].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_UNKNOWN_ID].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_UNEXPECTED].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_WRONG_PEER].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_WRONG_QPN].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_NO_LISTENER].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_HALF_OPEN].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_STALE].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_INVALID].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_BUSY].attribute.attr,
	&cm_rx_drops_counters[OXIB_CM_DROP_UNRESOLVED].attribute.attr,
};

static const struct attribute_group cm_rx_drops_group = {
	.name = "cm_rx_drops",
	.attrs = cm_rx_drops_attributes,
};

static const struct attribute_group *groups[] = {
	&cm_tx_msgs_group,
	&cm_tx_retries_group,
	&cm_rx_msgs_group,
	&cm_rx_duplicates_group,
	&cm_rx_drops_group,
	NULL,
};

struct oxib_cm_counts __percpu *oxib_cm_counters_alloc(void)
{
	return alloc_percpu(struct oxib_cm_counts);
}

void oxib_cm_counters_free(struct oxib_cm_counts __percpu *counts)
{
	free_percpu(counts);
}

static void forget(struct ib_device *device, u32 port)
{
	struct shown *shown;

	mutex_lock(&all_shown_lock);
	shown = find(device, port);
	if (shown)
		list_del(&shown->list);
	mutex_unlock(&all_shown_lock);
	kfree(shown);
}

int oxib_cm_counters_show(struct ib_device *device, u32 port, struct oxib_cm_counts __percpu *counts)
{
	struct shown *shown = kzalloc(sizeof(*shown), GFP_KERNEL);
	int error;

	if (!shown)
		return -ENOMEM;
	shown->device = device;
	shown->port = port;
	shown->counts = counts;
	mutex_lock(&all_shown_lock);
	list_add(&shown->list, &all_shown);
	mutex_unlock(&all_shown_lock);
	error = ib_port_register_client_groups(device, port, groups);
	if (error)
		forget(device, port);
	return error;
}

void oxib_cm_counters_hide(struct ib_device *device, u32 port)
{
	ib_port_unregister_client_groups(device, port, groups);
	forget(device, port);
}

void oxib_cm_counters_add(struct oxib_cm_counts __percpu *counts, u32 group, u32 file, u32 n)
{
	this_cpu_add(counts->of[group][file], n);
}

u64 oxib_cm_counters_sum(struct oxib_cm_counts __percpu *counts, u32 group, u32 file)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counts, cpu)->of[group][file]);
	return sum;
}
