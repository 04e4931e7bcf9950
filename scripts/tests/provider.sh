#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The headers for softib's library for programs, where the mirror has moved on. Runs in the toolchain root.

set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

unpack() { # version
	scripts/provider unpack "$place" "$1" 2>"$place/errors" || {
		cat "$place/errors"
		return 1
	}
}

check "a version that the mirror does not have is replaced" unpack 0.1-1
check "a warning says so" grep -q 'warning: the mirror no longer has rdma-core 0.1-1' "$place/errors"
check "the headers are there" test -s "$place/include/infiniband/driver.h"
check "with the version of their interface" grep -q IBVERBS_PABI_VERSION "$place/include/config.h"
finish
