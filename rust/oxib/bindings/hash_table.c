// SPDX-License-Identifier: GPL-2.0-only

#include <linux/err.h>
#include <linux/irq_work.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "hash_table.h"

/* Known here, so that the look-up is compiled for it. */
static const struct rhashtable_params parameters = {
	.head_offset = offsetof(struct oxib_node, head),
	.key_offset = offsetof(struct oxib_node, key),
	.key_len = OXIB_TABLE_KEY,
	.automatic_shrinking = true,
};

int oxib_table_init(struct rhashtable *table)
{
	return rhashtable_init(table, &parameters);
}

struct oxib_node *oxib_table_lookup(struct rhashtable *table, const u8 *key)
{
	return rhashtable_lookup(table, key, parameters);
}

int oxib_table_insert(struct rhashtable *table, struct oxib_node *node)
{
	return rhashtable_lookup_insert_fast(table, &node->head, parameters);
}

int oxib_table_replace(struct rhashtable *table, struct oxib_node *old, struct oxib_node *node)
{
	return rhashtable_replace_fast(table, &old->head, &node->head, parameters);
}

int oxib_table_remove(struct rhashtable *table, struct oxib_node *node)
{
	return rhashtable_remove_fast(table, &node->head, parameters);
}

/* Bytes of the buckets. */
size_t oxib_table_memory(struct rhashtable *table)
{
	struct bucket_table *buckets;
	size_t bytes = 0;

	rcu_read_lock();
	for (buckets = rcu_dereference(table->tbl); buckets; buckets = rcu_dereference(buckets->future_tbl))
		bytes += struct_size(buckets, buckets, buckets->size);
	rcu_read_unlock();
	return bytes;
}

u32 oxib_table_length(struct rhashtable *table)
{
	return atomic_read(&table->nelems);
}

bool oxib_is_error(const void *pointer)
{
	return IS_ERR(pointer);
}

/*
 * Waits until the table has the size for what it holds, unless it changes meanwhile. Sleeps. The work queues itself again for
 * each step of several, and as long as it gets no memory: this waits for 64 runs of it at most.
 */
void oxib_table_settle(struct rhashtable *table)
{
	int patience = 64;

	do {
		irq_work_sync(&table->run_irq_work);
	} while (flush_work(&table->run_work) && --patience);
}

/* Lets others run. */
void oxib_rest(void)
{
	cond_resched();
}

/* Objects */

struct kmem_cache *oxib_slab_create(const char *name, u32 size)
{
	return kmem_cache_create(name, size, 0, 0, NULL);
}

/* Charges the memory to the calling task's cgroup: a namespace's administrator is not the machine's. */
void *oxib_slab_alloc(struct kmem_cache *slab)
{
	return kmem_cache_alloc(slab, GFP_KERNEL_ACCOUNT);
}

void oxib_slab_free(void *object)
{
	kfree(object);
}

/* When no reader can see it any more. May sleep. */
void oxib_slab_free_later(void *object)
{
	kfree_rcu_mightsleep(object);
}

/* Time, and counters */

u32 oxib_seconds(void)
{
	return ktime_get_seconds();
}

u64 __percpu *oxib_counters_alloc(u32 number)
{
	return __alloc_percpu(array_size(number, sizeof(u64)), sizeof(u64));
}

void oxib_counters_free(u64 __percpu *counters)
{
	free_percpu(counters);
}

void oxib_counters_add(u64 __percpu *counters, u32 index, u64 n)
{
	this_cpu_add(counters[index], n);
}

u64 oxib_counters_sum(u64 __percpu *counters, u32 index)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counters, cpu)[index]);
	return sum;
}
