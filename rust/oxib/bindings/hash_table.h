/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's resizable hash table, for objects that begin with a struct oxib_node: what is inline there, as functions.
 * And counters per CPU.
 */

#ifndef OXIB_HASH_TABLE_H
#define OXIB_HASH_TABLE_H

#include <linux/percpu-defs.h>
#include <linux/rhashtable-types.h>
#include <linux/types.h>

enum {
	OXIB_TABLE_KEY = 16,
};

/* How an object of a table begins. */
struct oxib_node {
	struct rhash_head head;
	u8 key[OXIB_TABLE_KEY];
};

int oxib_table_init(struct rhashtable *table);
struct oxib_node *oxib_table_lookup(struct rhashtable *table, const u8 *key);
int oxib_table_insert(struct rhashtable *table, struct oxib_node *node);
int oxib_table_replace(struct rhashtable *table, struct oxib_node *old, struct oxib_node *node);
int oxib_table_remove(struct rhashtable *table, struct oxib_node *node);
size_t oxib_table_memory(struct rhashtable *table);
u32 oxib_table_length(struct rhashtable *table);
void oxib_table_settle(struct rhashtable *table);
bool oxib_is_error(const void *pointer);
void oxib_rest(void);

/* Objects */
struct kmem_cache *oxib_slab_create(const char *name, u32 size);
void *oxib_slab_alloc(struct kmem_cache *slab);
void oxib_slab_free(void *object);
void oxib_slab_free_later(void *object);

/* Time, and counters */
u32 oxib_seconds(void);
u64 __percpu *oxib_counters_alloc(u32 number);
void oxib_counters_free(u64 __percpu *counters);
void oxib_counters_add(u64 __percpu *counters, u32 index, u64 n);
u64 oxib_counters_sum(u64 __percpu *counters, u32 index);

#endif
