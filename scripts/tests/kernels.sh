#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Which kernels of the cache are taken as they are. Runs in the toolchain root, with a cache of its own.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/source-7.3" "$place/toolchain" "$place/kernel/uml-7.3"
echo 'made-up source' >"$place/source-7.3/.key"
echo 'gcc-14 14.2.0' >"$place/toolchain/.packages"

# Have a kernel in the cache that such a builder made.
made_by() { # builder
	printf '%s\n' uml-7.3 'made-up source' 'gcc-14 14.2.0' "$1" >"$place/kernel/uml-7.3/.key"
}

has_kernel() {
	env -u OXIB_INSIDE OXIB_CACHE="$place" scripts/kernel --has uml-7.3
}

now=$(scripts/kernel_builder/configured description uml-7.3 | cat scripts/kernel_builder/configured - | sha256sum | cut -c1-16)
made_by "$now"
check "a kernel of this builder is taken" has_kernel
made_by 0123456789abcdef
check_refused "that of another one is not" has_kernel
while read -r builder earlier; do
	[ "$builder" = "$now" ] || continue
	made_by "$earlier"
	check "that of $earlier is, which made the same" has_kernel
done <scripts/kernel_builder/equivalent
echo 'another source' >"$place/source-7.3/.key"
check_refused "that of another source is not" has_kernel
finish
