#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Programs' contexts where not all is as it should be: libraries of another version, or none; commands that softib does not have, and
# data of a driver that it does not know; a queue pair that cannot be detached from its groups; an HCA that fails, or goes, while a
# program holds objects of it, by its deletion, with its namespace, or with the module.
#
# contexts.sh [installed|commands|udata|member|failed|deleted|namespace|unloaded...]
#
# nodes: 1
# kernels: fast debug
# timeout: 200

. selftests/lib/fabric.sh

sections=("$@")
[ $# -gt 0 ] || sections=(installed commands udata member failed deleted namespace unloaded)

contexts=$MODULES/libsoftib/contexts
library=$MODULES/libsoftib/libsoftib-rdmav34.so
drivers=/etc/libibverbs.d

# --- libraries ----------------------------------------------------------------------------------------------

# What a program of h1 is told when it looks for its HCA.
looks() {
	at h1 timeout "$patience" ibv_devinfo -d h1 2>&1
}

# It opens h1 all the same.
complains_and_opens() { # regular expression
	local output
	output=$(looks) || {
		printf 'h1 is not opened:\n%s\n' "$output"
		return 1
	}
	matches "$1" "$output" && matches '^hca_id:[[:space:]]*h1$' "$output"
}

# The page has the line of a libibverbs of another version.
published_line() {
	# shellcheck disable=SC2016 # the page's own quotes
	sed -n 's/^> `\(libibverbs: Warning: .*\)`$/\1/p' Documentation/softib.md
}

complains_as_published() {
	local expected output
	expected=$(published_line) && [ -n "$expected" ] || return
	! output=$(looks) || {
		printf 'h1 is opened:\n%s\n' "$output"
		return 1
	}
	matches "^${expected//rdmav59/rdmav34}\$" "$output" && matches 'No IB devices found|IB device .h1. wasn.t found' "$output"
}

# Beside ours.
another_driver() { # name
	printf 'driver %s\n' "$1" >"$drivers/another.driver"
}

# One for another version of libibverbs, by the file's name or by the symbols that it asks for.
make_others() {
	mkdir -p /tmp/newer /tmp/renamed
	cp "$library" /tmp/newer/libsoftib-rdmav59.so
	sed 's/IBVERBS_PRIVATE_34/IBVERBS_PRIVATE_59/' "$library" >/tmp/renamed/libsoftib-rdmav34.so
}

test_installed() {
	local own
	own=$(<"$drivers/softib.driver")
	make_others
	another_driver nowhere
	check "a .driver file without its library is complained of, and does no harm" complains_and_opens \
		"^libibverbs: Warning: couldn't load driver 'libnowhere-rdmav34.so': .*No such file or directory$"
	another_driver /tmp/newer/libsoftib
	check "a library of a newer interface is not looked at" complains_and_opens \
		"^libibverbs: Warning: couldn't load driver '/tmp/newer/libsoftib-rdmav34.so': .*No such file or directory$"
	another_driver /tmp/renamed/libsoftib
	check "one that has been renamed is not loaded" complains_and_opens \
		"^libibverbs: Warning: couldn't load driver .*version .IBVERBS_PRIVATE_59' not found"
	rm "$drivers/another.driver"
	echo 'driver softib' >"$drivers/softib.driver"
	check "without ours, a program is told what the page says, and finds no HCA" complains_as_published
	printf '%s\n' "$own" >"$drivers/softib.driver"
	check "with it, it is found" complains_and_opens '^hca_id'
}

# --- commands -----------------------------------------------------------------------------------------------

test_commands() {
	at h1 timeout "$longest" "$contexts" commands h1 >/tmp/commands 2>&1
	take_report commands /tmp/commands
	check "nothing is left of its objects" eventually has_no_objects h1
	check "the HCA can be opened" looks
}

test_udata() {
	at h1 timeout "$longest" "$MODULES/libsoftib/udata" h1 >/tmp/udata 2>&1
	take_report udata /tmp/udata
	check "nothing is left of its objects" eventually has_no_objects h1
}

# --- an HCA whose detachments fail -------------------------------------------------------------------------

options=/sys/kernel/config/softib/hca/h1

fault() { # file, value
	printf '%s\n' "$2" >"$options/$1"
}

# The kernel keeps for good what a queue pair uses that cannot be detached from its groups.
test_member() {
	local knob
	mkdir -p "$options"
	for knob in failed attaches_fail detaches_fail; do
		check "$knob: a program's queue pair is in groups" start_holding h1 member
		check "$knob: it is 1" fault "$knob" 1
		go_on "$knob"
		check "$knob: nothing is left of the program's objects" eventually has_no_objects h1
		check "$knob: it is 0" fault "$knob" 0
	done
	rmdir "$options"
}

# --- an HCA that fails ------------------------------------------------------------------------------------

test_failed() {
	mkdir -p "$options"
	check "a program holds objects of an HCA" start_holding h1 failing
	check "the HCA fails meanwhile" fault failed 1
	go_on failed
	check "nothing is left of the program's objects" eventually has_no_objects h1
	check "the HCA works again" fault failed 0
	rmdir "$options"
}

# --- an HCA goes ----------------------------------------------------------------------------------------------

holds_objects() {
	grep -qx held /tmp/holding
}

start_holding() { # host, hold|hold_outside|member|failing
	rm -f /tmp/lines
	mkfifo /tmp/lines
	at "$1" "$contexts" "$2" "$1" </tmp/lines >/tmp/holding 2>&1 &
	holder=$!
	exec {lines}>/tmp/lines
	eventually holds_objects || {
		cat /tmp/holding
		return 1
	}
}

# The HCA has gone, or fails: the program uses what it holds.
go_on() { # what
	# It may have failed before.
	(trap '' PIPE && echo >&"$lines") 2>/dev/null
	exec {lines}>&-
	check "$1: the program ends" eventually has_ended "$holder"
	kill -KILL "$holder" 2>/dev/null
	check "$1: well" wait "$holder"
	take_report "$1" /tmp/holding
}

made_anew() { # host
	eventually at "$1" rdma link add "$1" type softib netdev port1
}

has_gone() { # HCA
	! grep -qx "$1" /sys/class/infiniband/*/node_desc && ! rdma link show | grep -q "$1/"
} 2>/dev/null

test_deleted() {
	check "a program holds objects of h1" start_holding h1 hold
	check "it is deleted meanwhile" at h1 rdma link delete h1
	check "it can be made again" made_anew h1
	check "another program opens that one" looks
	go_on deleted
}

test_namespace() {
	check "a program outside holds objects of h2" start_holding h2 hold_outside
	check "its namespace ends meanwhile" ip netns delete h2
	check "its HCA goes" eventually has_gone h2
	go_on namespace
}

# With the namespace of one host the cable of the other one has gone.
build_anew() {
	scripts/fabric down && eventually fabric_up pair
}

test_unloaded() {
	check "the hosts are made anew" build_anew
	check "a program holds objects of h1 again" start_holding h1 hold
	check "softib.ko is unloaded meanwhile" rmmod softib
	go_on unloaded
	check "softib.ko can be loaded again" load_softib
}

# Nothing here wants a subnet manager.
bring_up_pair() {
	modprobe ib_uverbs || bail_out "ib_uverbs.ko could not be loaded"
	load_softib || bail_out "softib.ko could not be loaded"
	fabric_up pair || bail_out "the fabric pair could not be built"
}

bring_up_pair
for section in "${sections[@]}"; do
	"test_$section"
done
take_down_fabric
finish
