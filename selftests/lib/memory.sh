# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Memory that cannot be had, on the debug kernel: the kernel's fault injection. For scripts that have node.sh.

# For those of fail_nth.py's users that are in other folders.
export PYTHONPATH=selftests/lib

faults=(failslab fail_page_alloc)
# More allocations than a script lets fail: the kernel counts down from it.
most_failures=1000000000

knob() { # name, value
	local fault
	for fault in "${faults[@]}"; do
		echo "$2" >"/sys/kernel/debug/$fault/$1" || return
	done
}

# Any allocation may fail: those that may sleep, too, and those of single pages.
arm() {
	knob probability 0 && knob times "$most_failures" && knob interval 1 && knob space 0 && knob verbose 0 && knob ignore-gfp-wait N &&
		echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
}

# How many allocations have failed since `arm`.
failed_allocations() {
	local fault left sum=0
	for fault in "${faults[@]}"; do
		left=$(<"/sys/kernel/debug/$fault/times") || return
		sum=$((sum + most_failures - left))
	done
	printf '%d\n' "$sum"
}

# Some allocation has failed since then.
more_failed() { # failed allocations before
	holds "$(failed_allocations)" -gt "$1"
}

# Runs a command that has to succeed, while allocations fail.
fails_some() { # command...
	local before
	before=$(failed_allocations)
	"$@" && more_failed "$before"
}

# Only what a module asks for itself, or what is asked for on its behalf, is to fail.
only() { # module
	local first last
	read -r first last < <(awk -v module="[$1]" '$4 == module && tolower($2) == "t" { print $1 }' /proc/kallsyms | sort |
		sed -n '1p; $p' | tr '\n' ' ')
	[ -n "$first" ] && knob require-start "0x$first" && knob require-end "$(printf '0x%x' $((0x$last + 4096)))" && knob stacktrace-depth 32 &&
		spare rdma_restrack_add
}

# Nothing that is asked for by this function fails. Where an entry of a tree of the kernel's (lib/xarray.c) cannot be made, empty
# nodes on the way to it may stay until the next one is: ib_core, which keeps a device's resources in one, then warns of
# resources that are left when the device goes, and there are none.
spare() { # function
	local first last
	read -r first last < <(sort /proc/kallsyms | awk -v name="$1" '
		first && $1 != first { print first, $1; exit }
		$3 == name { first = $1 }')
	[ -n "$last" ] && knob reject-start "0x$first" && knob reject-end "0x$last"
}

everything() {
	knob require-start 0 && knob require-end 0xffffffffffffffff && knob reject-start 0 && knob reject-end 0
}
