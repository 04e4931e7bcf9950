// SPDX-License-Identifier: GPL-2.0-only
/*
 * Look-ups: in oxib's address cache, in a bare hash table of the kernel's with as many entries, and in the kernel's table of
 * IPv4 neighbours. `bytes` is the number of entries, a round has `burst` look-ups. Entry N has the address 10.0.0.0 + N;
 * those of the cache are loaded before, those of the others are made before the clock runs.
 */

#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <net/arp.h>
#include <net/neighbour.h>

#include "acm_export.h"
#include "bench.h"

/* Found nowhere: 11.0.0.0 and what follows. */
#define ELSEWHERE 0x01000000

static __be32 address_of(unsigned int entry)
{
	return htonl(0x0a000000 + entry);
}

/* As different from the one before as can be, so that caches of the processor are of no help; the same each time. */
static unsigned int next_entry(unsigned int *state, unsigned int entries)
{
	*state = *state * 1664525 + 1013904223;
	return (u64)*state * entries >> 32;
}

struct looker {
	/* Whether the entry is found. */
	bool (*look_up)(struct looker *looker, unsigned int entry);
	/* oxib's, found when it is needed: this module is loaded without oxib, too. */
	typeof(&oxib_acm_find) find;
	struct net *net;
	struct rhashtable table;
	struct net_device *device;
};

static int look_up(struct bench *bench, struct looker *looker, unsigned int beyond, bool expected)
{
	unsigned int state = 1, wrong = 0, i;

	while (bench_goes_on(bench)) {
		bench_begin(bench);
		for (i = 0; i < bench->burst; i++)
			wrong += looker->look_up(looker, next_entry(&state, bench->bytes) + beyond) != expected;
		bench_end(bench);
		cond_resched();
	}
	return wrong ? -ENODATA : 0;
}

/* --- nothing but the loop ----------------------------------------------------------------------------------------------- */

static noinline bool in_nothing(struct looker *, unsigned int entry)
{
	barrier();
	return true;
}

int bench_acm_loop(struct bench *bench)
{
	struct looker looker = { .look_up = in_nothing };

	return look_up(bench, &looker, 0, true);
}

/* --- oxib's cache ------------------------------------------------------------------------------------------------------- */

static noinline bool in_cache(struct looker *looker, unsigned int entry)
{
	u8 address[16] = { [10] = 0xff, [11] = 0xff };
	struct oxib_acm_known known;

	*(__be32 *)(address + 12) = address_of(entry);
	return !looker->find(looker->net, address, &known);
}

static int cache(struct bench *bench, unsigned int beyond, bool expected)
{
	struct looker looker = { .look_up = in_cache, .net = bench_net() };
	int error;

	looker.find = symbol_get(oxib_acm_find);
	if (!looker.find)
		return -ENODEV;
	error = look_up(bench, &looker, beyond, expected);
	symbol_put(oxib_acm_find);
	return error;
}

int bench_acm_cache_hit(struct bench *bench)
{
	return cache(bench, 0, true);
}

int bench_acm_cache_miss(struct bench *bench)
{
	return cache(bench, ELSEWHERE, false);
}

/* --- a hash table of the kernel's ------------------------------------------------------------------------------------------ */

/* What is found, as the cache finds it. */
struct object {
	struct rhash_head head;
	u8 address[16];
	u8 gid[16];
	u32 qpn;
};

static const struct rhashtable_params parameters = {
	.head_offset = offsetof(struct object, head),
	.key_offset = offsetof(struct object, address),
	.key_len = sizeof_field(struct object, address),
};

static void write_address(u8 *to, unsigned int entry)
{
	memset(to, 0, 10);
	memset(to + 10, 0xff, 2);
	*(__be32 *)(to + 12) = address_of(entry);
}

static noinline bool in_table(struct looker *looker, unsigned int entry)
{
	struct object *object;
	u8 address[16];
	bool found;

	write_address(address, entry);
	rcu_read_lock();
	object = rhashtable_lookup(&looker->table, address, parameters);
	found = object && READ_ONCE(object->qpn) != ~0u;
	rcu_read_unlock();
	return found;
}

static void free_object(void *object, void *)
{
	kfree(object);
}

static int fill_table(struct rhashtable *table, unsigned int entries)
{
	struct object *object;
	unsigned int entry;
	int error;

	for (entry = 0; entry < entries; entry++) {
		object = kzalloc(sizeof(*object), GFP_KERNEL);
		if (!object)
			return -ENOMEM;
		write_address(object->address, entry);
		error = rhashtable_insert_fast(table, &object->head, parameters);
		if (error) {
			kfree(object);
			return error;
		}
		cond_resched();
	}
	/* It grows behind our back. */
	flush_work(&table->run_work);
	return 0;
}

static int table(struct bench *bench, unsigned int beyond, bool expected)
{
	struct looker looker = { .look_up = in_table };
	int error;

	error = rhashtable_init(&looker.table, &parameters);
	if (error)
		return error;
	error = fill_table(&looker.table, bench->bytes);
	if (!error)
		error = look_up(bench, &looker, beyond, expected);
	rhashtable_free_and_destroy(&looker.table, free_object, NULL);
	return error;
}

int bench_acm_table_hit(struct bench *bench)
{
	return table(bench, 0, true);
}

int bench_acm_table_miss(struct bench *bench)
{
	return table(bench, ELSEWHERE, false);
}

/* --- the kernel's neighbours ------------------------------------------------------------------------------------------------ */

static noinline bool in_neighbours(struct looker *looker, unsigned int entry)
{
	__be32 address = address_of(entry);
	struct neighbour *neighbour;

	neighbour = neigh_lookup(&arp_tbl, &address, looker->device);
	if (!neighbour)
		return false;
	neigh_release(neighbour);
	return true;
}

static int fill_neighbours(struct net_device *device, unsigned int entries)
{
	u8 mac[ETH_ALEN] = BENCH_PEER_MAC;
	struct neighbour *neighbour;
	unsigned int entry;
	__be32 address;
	int error;

	for (entry = 0; entry < entries; entry++) {
		address = address_of(entry);
		neighbour = neigh_create(&arp_tbl, &address, device);
		if (IS_ERR(neighbour))
			return PTR_ERR(neighbour);
		error = neigh_update(neighbour, mac, NUD_PERMANENT, NEIGH_UPDATE_F_OVERRIDE | NEIGH_UPDATE_F_ADMIN, 0);
		neigh_release(neighbour);
		if (error)
			return error;
		cond_resched();
	}
	return 0;
}

static int neighbours(struct bench *bench, unsigned int beyond, bool expected)
{
	struct looker looker = { .look_up = in_neighbours };
	int error;

	looker.device = dev_get_by_name(bench_net(), BENCH_FLOOR);
	if (!looker.device)
		return -ENODEV;
	error = fill_neighbours(looker.device, bench->bytes);
	if (!error)
		error = look_up(bench, &looker, beyond, expected);
	dev_put(looker.device);
	return error;
}

int bench_acm_neighbours_hit(struct bench *bench)
{
	return neighbours(bench, 0, true);
}

int bench_acm_neighbours_miss(struct bench *bench)
{
	return neighbours(bench, ELSEWHERE, false);
}
