#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# softib's library for programs: the symbols that it asks libibverbs for, the table of layouts, and rdma-core's headers where
# the mirror has moved on.
# Runs in the toolchain root, when the modules for the first kernel have been built.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh
# shellcheck source=scripts/lib/cache.sh
. scripts/lib/cache.sh
# shellcheck source=scripts/lib/linux.sh
. scripts/lib/linux.sh

# The library that nodes take, beside the modules: a checkout that takes its modules from another builds no library of its own.
first_kernel() {
	case $(machine) in
	uml) echo "uml-${OXIB_KERNEL:?}" ;;
	*) echo "fast-${OXIB_KERNEL:?}" ;;
	esac
}

libibverbs=/cache/guest/usr/lib/x86_64-linux-gnu/libibverbs.so.1
library=/cache/build/$(first_kernel)/libsoftib/libsoftib-rdmav34.so
interface=IBVERBS_PRIVATE_34
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

unpack() { # version
	scripts/provider unpack "$place" "$1" 2>"$place/errors" || {
		cat "$place/errors"
		return 1
	}
}

# The symbols that a library wants of others, with their versions.
wanted() { # library
	objdump -T "$1" | awk '/\*UND\*/ && $2 != "w" && $NF != "" { print $NF, $(NF - 1) }' | tr -d '()' | sort
}

# Those of libibverbs, by its name in the symbols.
wanted_of_libibverbs() {
	wanted "$library" | grep -E '^(_?verbs_|ibv_|execute_ioctl)'
}

offered() { # symbol, version
	objdump -T "$libibverbs" | grep -qE " $2 +$1$" || {
		printf 'libibverbs has no %s of version %s\n' "$1" "$2"
		return 1
	}
}

each_is_offered() {
	local symbol version
	while read -r symbol version; do
		equal "$symbol $interface" "$symbol $version" && offered "$symbol" "$version" || return
	done < <(wanted_of_libibverbs)
}

defined() { # library
	objdump -T "$1" | awk '$4 ~ /^\./ { print $NF }'
}

measure() {
	scripts/provider measure >"$place/layouts"
}

# The first line has the version.
layouts() { # file
	tail -n +2 "$1"
}

check "the guest's libibverbs has verbs_register_driver_34" offered verbs_register_driver_34 "$interface"
check "the library wants it" matches "^verbs_register_driver_34 $interface\$" "$(wanted "$library")"
check "and whatever it wants of libibverbs by that version, which the guest has" each_is_offered
check_equal "it defines no symbol for others" "" "$(defined "$library")"
check "rdma-core's headers can be measured" measure
check "the table of layouts is what they say" diff <(layouts rust/libsoftib/layouts.txt) <(layouts "$place/layouts")

check "a version that the mirror does not have is replaced" unpack 0.1-1
check "a warning says so" grep -q 'warning: the mirror no longer has rdma-core 0.1-1' "$place/errors"
check "the headers are there" test -s "$place/include/infiniband/driver.h"
check "with the version of their interface" grep -q IBVERBS_PABI_VERSION "$place/include/config.h"
finish
