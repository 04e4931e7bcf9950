// SPDX-License-Identifier: GPL-2.0-only
/* What a module must say in C: aliases and load order. */

#include <linux/module.h>
#include <net/rtnetlink.h>

MODULE_ALIAS("ib0");
