// SPDX-License-Identifier: GPL-2.0-only

/* rust/lock.rs and rust/work.rs are part of this module too. */
#include "../../bindings/lock.c"
