#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The unit tests in the kernel, those of oxib.ko and of softib.ko. They run as a module is loaded; each of them becomes a
# line of TAP here.
#
# nodes: 1
# kernels: fast debug
# timeout: 300
# append: kunit.enable=1 kunit.autorun=1

. selftests/lib/node.sh

# Print "ok|not_ok|skip SUITE.TEST" for each test in the results that KUnit keeps of a suite.
tests_of() { # suite
	sed -nE -e "s/^    not ok [0-9]+ ([^ ]+).*/not_ok $1.\1/p" -e "s/^    ok [0-9]+ ([^ ]+) # SKIP.*/skip $1.\1/p" \
		-e "s/^    ok [0-9]+ ([^ ]+).*/ok $1.\1/p" "/sys/kernel/debug/kunit/$1/results"
}

suites() {
	ls /sys/kernel/debug/kunit
}

# A suite that was not run has no tests.
all_have_run() { # suite
	tests_of "$1" | grep -q . && grep -qE "^ok [0-9]+ $1" "/sys/kernel/debug/kunit/$1/results"
}

# KUnit has no results of a suite whose name is taken, and debugfs complains.
no_suite_twice() {
	! dmesg | grep -E "already exists in 'kunit'"
}

# What a module has, and what came of it.
test_module() { # module
	local module=$1 suite verdict name
	local -a suites
	check "$module.ko loads" insmod "$MODULES/$module.ko"
	mapfile -t suites < <(suites | grep -vxFf /tmp/before)
	holds "${#suites[@]}" -gt 0 || bail_out "$module.ko has no unit tests: was it built for a kernel with KUnit?"
	for suite in "${suites[@]}"; do
		while read -r verdict name; do
			case $verdict in
			ok) ok "$name" ;;
			not_ok)
				not_ok "$name"
				note "$(sed -n "/# Subtest/d; /# ${name#*.}: /p" "/sys/kernel/debug/kunit/$suite/results")"
				;;
			skip) skip "$name" "it says so" ;;
			esac
		done < <(tests_of "$suite")
		check "all of $suite" all_have_run "$suite"
	done
}

modprobe -a ib_core rdma_rxe
# For a device of a test's, which must not borrow it.
check "the node has an address" ip address replace 10.88.0.1/32 scope global dev lo
suites >/tmp/before
# One beside the other: no suite of theirs has the name of another.
test_module oxib
suites >/tmp/before
test_module softib
check "every suite has a name of its own" no_suite_twice
check "softib.ko unloads" rmmod softib
check "oxib.ko unloads" rmmod oxib
finish
