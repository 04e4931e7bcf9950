// SPDX-License-Identifier: GPL-2.0-only

#include "inline.h"

bool oxib_netif_carrier_ok(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}
