// SPDX-License-Identifier: GPL-2.0-only

#include "inline.h"

struct ib_device *softib_alloc_device(size_t size, struct net *net)
{
	return _ib_alloc_device(size, net);
}
