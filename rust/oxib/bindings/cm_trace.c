// SPDX-License-Identifier: GPL-2.0-only
/* The connection manager's tracepoints, and their functions for Rust. */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "cm_trace.h"
