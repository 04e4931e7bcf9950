#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# README.md and Documentation/admin-guide.md: what is to be typed on a node is run as it is written there, with oxib installed, on
# soft-RoCE and on a port of a software fabric.
#
# nodes: 1
# kernels: fast
# timeout: 240

. selftests/lib/infiniband.sh
# shellcheck source=selftests/lib/installed.sh
. selftests/lib/installed.sh

guide=Documentation/admin-guide.md
installed=/tmp/installed

run_block() { # page, heading, number of the block, [words before a command...]
	local command number=0
	while read -r -u 3 command; do
		number=$((number + 1))
		check "$2: $command" "${@:4}" bash -c "$command"
	done 3< <(block_of "$1" "$2" "$3")
	check "$2: there are commands" holds "$number" -gt 0
}

begins_anew() {
	modprobe -r oxib && ib_is_gone
}

test_roce() {
	ip link add eth0 mtu 9000 type veth peer name eth1 mtu 9000
	ip link set eth0 up && ip link set eth1 up
	run_block "$guide" 'On RoCE' 1
	check "ib0 comes up" eventually carrier_is 1
	check "oxib can be unloaded" begins_anew
	run_block README.md 'Install it' 2
	check "ib0 comes up" eventually carrier_is 1
	check "oxib can be unloaded" begins_anew
	run_block "$guide" Interfaces 1
	check "oxib can be unloaded" begins_anew
	rdma link delete rxe0
}

test_infiniband() {
	load_softib || bail_out "softib.ko could not be loaded"
	fabric_up star || bail_out "the fabric could not be built"
	scripts/fabric manage || bail_out "the fabric has no subnet manager"
	modprobe -a oxib ib_cm
	check "the hosts have interfaces" interfaces_up "${hosts[@]}"
	run_block "$guide" 'Children, and what can be changed' 1 ip netns exec h1
	run_block "$guide" 'Connected mode' 1 ip netns exec h1
	check "h1 is in connected mode" equal connected "$(at h1 cat /sys/class/net/ib0/mode)"
	check "so is h2, for connections between them" set_connected h2
	[ -e "$tracing/trace" ] || mount -t tracefs tracefs "$tracing"
	test_tracing
	stop_jobs
	check "all can be unloaded" modprobe -r ib_cm oxib
	check "the fabric can be taken down" fabric_down
	check "softib.ko can be unloaded" unload_softib
}

set_connected() { # host
	at "$1" sh -c 'echo connected >/sys/class/net/ib0/mode' && eventually has_carrier "$1"
}

# It looks up the address that the other one has in that mode.
connects() {
	at h1 ip neigh flush dev ib0
	host_answers h1 "$(v4_of h2)" && grep -q 'oxib_cm_' /tmp/traced
}

# The second one of two commands shows what comes until it is ended.
test_tracing() {
	local commands
	mapfile -t commands < <(block_of "$guide" 'Connection manager' 1)
	check_equal "Connection manager: there are two commands" 2 "${#commands[@]}"
	check "Connection manager: ${commands[0]}" bash -c "${commands[0]}"
	bash -c "exec ${commands[1]}" >/tmp/traced 2>&1 &
	jobs_running+=($!)
	check "Connection manager: ${commands[1]}, while h1 connects to h2" eventually connects
}

install_and_note() {
	install_built >"$installed"
}

# What `make install` said that it installed.
installed_files() {
	sed -n 's/^installed //p' "$installed"
}

none_is_left() {
	local file left=0
	while read -r file; do
		if [ -e "$file" ]; then
			printf '%s is left\n' "$file" >&2
			left=1
		fi
	done < <(installed_files)
	return "$left"
}

# As a tree that compresses modules installs them.
add_compressed() {
	local module
	for module in oxib ib_cm; do
		cp "/lib/modules/$(uname -r)/updates/$module.ko" "/lib/modules/$(uname -r)/updates/$module.ko.xz" || return
	done
}

test_going_back() {
	local files
	files=$(installed_files | wc -l)
	check "make install says what it installs" holds "$files" -gt 9
	check "modules may be compressed" add_compressed
	run_block "$guide" "Going back to the kernel's drivers" 1
	check "nothing is left of what was installed" none_is_left
	check_equal "nor of compressed modules" "" "$(find "/lib/modules/$(uname -r)/updates" -name '*.ko*')"
	check "modprobe takes the kernel's ib_cm again" matches /kernel/drivers/infiniband/core/ib_cm "$(modinfo -n ib_cm)"
	check_refused "nothing keeps ib_ipoib from being loaded" grep -rqs 'blacklist ib_ipoib' /etc/modprobe.d /usr/lib/modprobe.d
}

check "the kernel's modules have a place to be joined in" replace_modules veth rdma_rxe
check "oxib can be installed" install_and_note
check "depmod finds it" depmod
test_roce
test_infiniband
test_going_back
give_modules_back
finish
