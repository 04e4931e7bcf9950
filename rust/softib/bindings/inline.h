/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inline functions and macros of the kernel, as functions that Rust can call. One statement each where that is possible:
 * no logic lives here.
 */

#ifndef SOFTIB_INLINE_H
#define SOFTIB_INLINE_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <rdma/ib_verbs.h>

/* RDMA devices */
struct ib_device *softib_alloc_device(size_t size, struct net *net);

#endif
