/* SPDX-License-Identifier: GPL-2.0-only */
/* Inline functions and macros of the kernel, as functions that Rust can call. */

#ifndef OXIB_INLINE_H
#define OXIB_INLINE_H

#include <linux/netdevice.h>

bool oxib_netif_carrier_ok(const struct net_device *dev);

#endif
