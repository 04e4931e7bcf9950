/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether there is IPv6 at all. */

#ifndef OXIB_IPV6_H
#define OXIB_IPV6_H

#include <linux/ipv6.h>

/*
 * Whether the stack has tables of IPv6: neighbours, addresses, routes. With ipv6.disable=1 on its command line a kernel with
 * CONFIG_IPV6 never makes them, and most functions that look into one do not check for that.
 */
static inline bool oxib_has_ipv6(void)
{
	return IS_ENABLED(CONFIG_IPV6) && ipv6_mod_enabled();
}

#endif
