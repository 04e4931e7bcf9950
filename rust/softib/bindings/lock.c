// SPDX-License-Identifier: GPL-2.0-only

/* rust/oxib/lock.rs and rust/oxib/work.rs are part of this module too. */
#include "../../oxib/bindings/lock.c"
