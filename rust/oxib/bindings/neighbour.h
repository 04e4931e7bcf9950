/* SPDX-License-Identifier: GPL-2.0-only */
/* Neighbours of net devices, in the stack's tables. */

#ifndef OXIB_NEIGHBOUR_H
#define OXIB_NEIGHBOUR_H

#include <linux/netdevice.h>
#include <linux/notifier.h>

int oxib_register_netevents(struct notifier_block *block);
void oxib_unregister_netevents(struct notifier_block *block);
u32 oxib_count_neighbours(struct net_device *dev);
void oxib_verify_neighbours(struct net_device *dev, u32 part, u32 parts);
typedef void oxib_confirmed_fn(void *context, const u8 *hardware, u32 milliseconds);
void oxib_for_each_confirmed(struct net_device *dev, oxib_confirmed_fn *use, void *context);
bool oxib_inject(struct net_device *dev, u16 ethertype, const u8 *datagram, u32 length);
bool oxib_source_address(struct net_device *dev, const u8 *to, u32 length, u8 *from);
bool oxib_has_gateway(struct net_device *dev, const u8 *to, u32 length);
s64 oxib_neighbour_unconfirmed(struct net_device *dev, const u8 *address, u32 length);
bool oxib_neighbour_address(struct net_device *dev, const u8 *address, u32 length, u8 *hardware);
void oxib_verify_neighbour(struct net_device *dev, const u8 *address, u32 length);
bool oxib_neighbour_is_router(struct net_device *dev, const u8 *address);
struct net_device *oxib_failed_neighbour(unsigned long event, void *subject, u8 *address);

void oxib_wake_resolvers(struct net_device *dev);

#endif
