// SPDX-License-Identifier: GPL-2.0-only

#include <linux/if_infiniband.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/arp.h>
#include <net/l3mdev.h>
#include <net/ndisc.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/netevent.h>
#include <net/route.h>

#include "ipv6.h"
#include "link.h"
#include "neighbour.h"

int oxib_register_netevents(struct notifier_block *block)
{
	return register_netevent_notifier(block);
}

void oxib_unregister_netevents(struct notifier_block *block)
{
	unregister_netevent_notifier(block);
}

/*
 * Gives the stack a datagram with right checksums as if it had come to the device. Any context, also with a
 * transmit queue locked: the stack has a look at it later.
 */
bool oxib_inject(struct net_device *dev, u16 ethertype, const u8 *datagram, u32 length)
{
	struct sk_buff *skb = netdev_alloc_skb(dev, dev->hard_header_len + length);

	if (!skb)
		return false;
	skb_put_zero(skb, dev->hard_header_len);
	skb_put_data(skb, datagram, length);
	skb_reset_mac_header(skb);
	__skb_pull(skb, dev->hard_header_len);
	skb->protocol = htons(ethertype);
	skb->pkt_type = PACKET_HOST;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	return netif_rx(skb) == NET_RX_SUCCESS;
}

/* The device that has the IP addresses and routes of a device: the bond it is in, or itself. RCU is held. */
static struct net_device *oxib_ip_device(struct net_device *dev)
{
	struct net_device *master = netdev_master_upper_dev_get_rcu(dev);

	return master && !netif_is_l3_master(master) ? master : dev;
}

/*
 * The address that a device, or the bond it is in, sends from to another one; both have that length. A device without one borrows
 * that of any other in its namespace, which may be gone if the device is not registered.
 */
bool oxib_source_address(struct net_device *dev, const u8 *to, u32 length, u8 *from)
{
	struct net_device *owner;
	struct in6_addr source;
	__be32 local, far;
	bool found;

	rcu_read_lock();
	if (!oxib_netdev_net_rcu(dev)) {
		rcu_read_unlock();
		return false;
	}
	owner = oxib_ip_device(dev);
	if (length == sizeof(local)) {
		memcpy(&far, to, sizeof(far));
		local = inet_select_addr(owner, far, RT_SCOPE_LINK);
		memcpy(from, &local, sizeof(local));
		found = local;
	} else {
		found = oxib_has_ipv6() &&
			!ipv6_dev_get_saddr(dev_net(owner), owner, (const struct in6_addr *)to, 0, &source);
		if (found)
			memcpy(from, &source, sizeof(source));
	}
	rcu_read_unlock();
	return found;
}

static bool oxib_has_gateway_v4(struct net_device *dev, const u8 *to)
{
	struct flowi4 flow = { .flowi4_oif = dev->ifindex };
	struct rtable *route;
	bool found;

	memcpy(&flow.daddr, to, sizeof(flow.daddr));
	route = ip_route_output_key(dev_net(dev), &flow);
	if (IS_ERR(route))
		return false;
	found = route->rt_uses_gateway;
	ip_rt_put(route);
	return found;
}

static bool oxib_has_gateway_v6(struct net_device *dev, const u8 *to)
{
	struct flowi6 flow = { .flowi6_oif = dev->ifindex };
	struct dst_entry *route;
	bool found;

	if (!oxib_has_ipv6())
		return false;
	memcpy(&flow.daddr, to, sizeof(flow.daddr));
	route = ip6_dst_lookup_flow(dev_net(dev), NULL, &flow, NULL);
	if (IS_ERR(route))
		return false;
	found = dst_rt6_info(route)->rt6i_flags & RTF_GATEWAY;
	dst_release(route);
	return found;
}

/*
 * Whether the namespace of a device routes packets by it, or by its bond, to an address of that length, to a gateway. The
 * namespace may be gone if the device is not registered.
 */
bool oxib_has_gateway(struct net_device *dev, const u8 *to, u32 length)
{
	bool found;

	rcu_read_lock();
	if (!oxib_netdev_net_rcu(dev)) {
		rcu_read_unlock();
		return false;
	}
	dev = oxib_ip_device(dev);
	if (length == sizeof(struct in_addr))
		found = oxib_has_gateway_v4(dev, to);
	else
		found = oxib_has_gateway_v6(dev, to);
	rcu_read_unlock();
	return found;
}

/* What the stack knows of a neighbour of a device, or of the bond it is in. */
static struct neighbour *oxib_find_neighbour(struct net_device *dev, const u8 *address, u32 length)
{
	struct neigh_table *table = &arp_tbl;
	struct neighbour *neighbour;
	struct net_device *master;

	if (length != sizeof(struct in_addr)) {
		if (!oxib_has_ipv6())
			return NULL;
		table = &nd_tbl;
	}
	neighbour = neigh_lookup(table, address, dev);
	if (neighbour)
		return neighbour;
	rcu_read_lock();
	master = netdev_master_upper_dev_get_rcu(dev);
	if (master)
		neighbour = neigh_lookup(table, address, master);
	rcu_read_unlock();
	return neighbour;
}

/*
 * For how many milliseconds nothing has shown that a neighbour gets what it is sent; -1 if the stack has none of that address,
 * or has not sent it anything for so long that the entry is stale.
 */
s64 oxib_neighbour_unconfirmed(struct net_device *dev, const u8 *address, u32 length)
{
	struct neighbour *neighbour = oxib_find_neighbour(dev, address, length);
	s64 silence = -1;
	long age;

	if (!neighbour)
		return -1;
	age = jiffies - READ_ONCE(neighbour->confirmed);
	if (READ_ONCE(neighbour->nud_state) & (NUD_REACHABLE | NUD_DELAY | NUD_PROBE))
		silence = age > 0 ? jiffies_to_msecs(age) : 0;
	neigh_release(neighbour);
	return silence;
}

/* The hardware address of a neighbour, of INFINIBAND_ALEN bytes. False if the stack knows none. */
bool oxib_neighbour_address(struct net_device *dev, const u8 *address, u32 length, u8 *hardware)
{
	struct neighbour *neighbour = oxib_find_neighbour(dev, address, length);
	u8 snapshot[ALIGN(MAX_ADDR_LEN, sizeof(unsigned long))];
	bool known;

	if (!neighbour)
		return false;
	known = READ_ONCE(neighbour->nud_state) & NUD_VALID && neighbour->dev->addr_len == INFINIBAND_ALEN;
	if (known) {
		neigh_ha_snapshot(snapshot, neighbour, neighbour->dev);
		memcpy(hardware, snapshot, INFINIBAND_ALEN);
	}
	neigh_release(neighbour);
	return known;
}

/* Has the stack ask a neighbour of a device, or of the bond it is in, whether it is there. */
void oxib_verify_neighbour(struct net_device *dev, const u8 *address, u32 length)
{
	struct neighbour *neighbour = oxib_find_neighbour(dev, address, length);

	if (!neighbour)
		return;
	if (READ_ONCE(neighbour->nud_state) & NUD_VALID)
		neigh_update(neighbour, NULL, NUD_PROBE, 0, 0);
	neigh_release(neighbour);
}

/* Whether a neighbour is known to be an IPv6 router. */
bool oxib_neighbour_is_router(struct net_device *dev, const u8 *address)
{
	struct neighbour *neighbour = oxib_find_neighbour(dev, address, sizeof(struct in6_addr));
	bool router = neighbour && READ_ONCE(neighbour->flags) & NTF_ROUTER;

	if (neighbour)
		neigh_release(neighbour);
	return router;
}

/* The device of a neighbour that does not answer any more, and its address, which has at most MAX_ADDR_LEN bytes. */
struct net_device *oxib_failed_neighbour(unsigned long event, void *subject, u8 *address)
{
	struct neighbour *neighbour = subject;

	if (event != NETEVENT_NEIGH_UPDATE || !(READ_ONCE(neighbour->nud_state) & NUD_FAILED))
		return NULL;
	neigh_ha_snapshot(address, neighbour, neighbour->dev);
	return neighbour->dev;
}

struct oxib_neighbours {
	const struct net_device *dev, *upper;
	struct neighbour **list;
	u32 count, room;
};

static void oxib_note_neighbour(struct neighbour *neighbour, void *context)
{
	struct oxib_neighbours *found = context;
	u8 state = READ_ONCE(neighbour->nud_state);

	if (neighbour->dev != found->dev && neighbour->dev != found->upper)
		return;
	if (!(state & NUD_VALID) || state & (NUD_NOARP | NUD_PERMANENT) || found->count == found->room)
		return;
	neigh_hold(neighbour);
	found->list[found->count++] = neighbour;
}

/* Uses the neighbours of a device, or of the bond it is in, with no lock held. */
static void oxib_use_table(struct neigh_table *table, struct oxib_neighbours *found,
			   void (*use)(struct neighbour *neighbour, void *context), void *context)
{
	/* Neighbours that are added in between were told just now. */
	found->room = atomic_read(&table->entries) + 16;
	found->count = 0;
	found->list = kvmalloc_array(found->room, sizeof(*found->list), GFP_KERNEL);
	if (!found->list)
		return;
	neigh_for_each(table, oxib_note_neighbour, found);
	while (found->count--) {
		use(found->list[found->count], context);
		neigh_release(found->list[found->count]);
	}
	kvfree(found->list);
}

/* Uses the neighbours of a device, or of the bond it is in. The RTNL is held. */
static void oxib_use_neighbours(struct net_device *dev, void (*use)(struct neighbour *neighbour, void *context), void *context)
{
	struct oxib_neighbours found = { .dev = dev, .upper = netdev_master_upper_dev_get(dev) };

	if (!found.upper)
		found.upper = dev;
	oxib_use_table(&arp_tbl, &found, use, context);
	if (oxib_has_ipv6())
		oxib_use_table(&nd_tbl, &found, use, context);
}

static void oxib_count(struct neighbour *neighbour, void *context)
{
	u32 *number = context;

	++*number;
}

/* The number of neighbours of a device, or of the bond it is in. */
u32 oxib_count_neighbours(struct net_device *dev)
{
	u32 number = 0;

	oxib_use_neighbours(dev, oxib_count, &number);
	return number;
}

struct oxib_part {
	u32 number, parts;
};

static void oxib_verify(struct neighbour *neighbour, void *context)
{
	const struct oxib_part *part = context;

	/* By its address: a neighbour is in the same part each time, whatever others come and go. */
	if (jhash(neighbour->primary_key, neighbour->tbl->key_len, 0) % part->parts == part->number)
		neigh_update(neighbour, NULL, NUD_PROBE, 0, 0);
}

/*
 * Has the stack ask neighbours of a device, or of the bond it is in, whether they are there: each is sent our address. All of them
 * are in one of so many parts; those of this part are asked.
 */
void oxib_verify_neighbours(struct net_device *dev, u32 part, u32 parts)
{
	struct oxib_part of = { .number = part, .parts = parts };

	oxib_use_neighbours(dev, oxib_verify, &of);
}

struct oxib_confirmed {
	oxib_confirmed_fn *use;
	void *context;
};

static void oxib_tell_confirmed(struct neighbour *neighbour, void *context)
{
	u8 snapshot[ALIGN(MAX_ADDR_LEN, sizeof(unsigned long))];
	const struct oxib_confirmed *confirmed = context;
	long age = jiffies - READ_ONCE(neighbour->confirmed);

	if (neighbour->dev->addr_len != INFINIBAND_ALEN)
		return;
	neigh_ha_snapshot(snapshot, neighbour, neighbour->dev);
	confirmed->use(confirmed->context, snapshot, age > 0 ? jiffies_to_msecs(age) : 0);
}

/*
 * Calls `use` with the hardware address of each neighbour of a device, or of the bond it is in, and the milliseconds since something
 * has shown that it gets what it is sent. Sleeps.
 */
void oxib_for_each_confirmed(struct net_device *dev, oxib_confirmed_fn *use, void *context)
{
	struct oxib_confirmed confirmed = { .use = use, .context = context };
	struct oxib_neighbours found = { .dev = dev };

	/* It is only compared. */
	rcu_read_lock();
	found.upper = netdev_master_upper_dev_get_rcu(dev);
	rcu_read_unlock();
	if (!found.upper)
		found.upper = dev;
	oxib_use_table(&arp_tbl, &found, oxib_tell_confirmed, &confirmed);
	if (oxib_has_ipv6())
		oxib_use_table(&nd_tbl, &found, oxib_tell_confirmed, &confirmed);
}

/*
 * Makes rdma_cm look again at the addresses that it waits for, of all devices: it does when it is told of a neighbour. That is
 * the one that stands for the group of all hosts, which a device with IPv4 has, or may have, and which never changes. Any context.
 */
void oxib_wake_resolvers(struct net_device *dev)
{
	__be32 all_hosts = htonl(INADDR_ALLHOSTS_GROUP);
	struct neighbour *neighbour = neigh_lookup(&arp_tbl, &all_hosts, dev);

	if (!neighbour)
		neighbour = neigh_create(&arp_tbl, &all_hosts, dev);
	if (IS_ERR(neighbour))
		return;
	call_netevent_notifiers(NETEVENT_NEIGH_UPDATE, neighbour);
	neigh_release(neighbour);
}
