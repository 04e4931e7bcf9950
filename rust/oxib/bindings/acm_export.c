// SPDX-License-Identifier: GPL-2.0-only
/* The address cache for other modules. */

#include <linux/export.h>

#include "acm_export.h"

EXPORT_SYMBOL_NS_GPL(oxib_acm_find, "OXIB_ACM");
