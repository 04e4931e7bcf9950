/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The address cache for other modules: the benchmark. Written in Rust (rust/oxib/acm_export.rs); compilers compare both with
 * these declarations.
 */

#ifndef OXIB_ACM_EXPORT_H
#define OXIB_ACM_EXPORT_H

#include <linux/types.h>

struct net;

/* What is known of an address; the queue pair is 0 if that is not known. */
struct oxib_acm_known {
	u8 gid[16];
	u32 qpn;
};

/*
 * Look an IPv6 address up, or an IPv4 one as ::ffff:a.b.c.d. Any context; waits for nobody. Returns 0, -ENOENT if there is no
 * entry, -ENODEV if the namespace has no cache.
 */
int oxib_acm_find(struct net *net, const u8 *address, struct oxib_acm_known *known);

#endif
