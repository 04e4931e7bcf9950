#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Where interfaces are when network namespaces end and RDMA devices move, what they are called, and what addresses they have: with
# both drivers the same. A child that was renamed to ib0 comes back from its namespace when that ends, where ib0 is another
# interface; the RDMA device moves by `rdma dev set`, and comes back when the namespace ends that it is in.
#
# returning.sh [DRIVER...]
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

drivers=("$@")
[ $# -gt 0 ] || drivers=(ib_ipoib oxib)
topologies=/tmp

# --- what is where ---------------------------------------------------------------------------------------------------

# Each interface of InfiniBand in a namespace, without queue pair number and the stack's number, which vary.
interfaces_in() { # namespace; none is the first
	ip ${1:+-n "$1"} -d -j link show | jq -r '.[] | select(.link_type == "infiniband") |
		[.ifname, "…" + .address[12:], "up=\(.flags | contains(["UP"]))", "mtu=\(.mtu)", .linkinfo.info_kind,
		"pkey=\(.linkinfo.info_data.key)"] | join(" ")' | sed -E 's/^dev[0-9]+ /devN /'
}

# What there is now, for both drivers to be compared.
record() { # label
	local namespace
	for namespace in '' h1 box; do
		[ -z "$namespace" ] || [ -e "/run/netns/$namespace" ] || continue
		interfaces_in "$namespace" | sed "s/^/$1: in ${namespace:-the first}: /"
	done >>"/tmp/record.$driver"
}

recorded() { # label, place, extended regular expression: the driver's own record has such a line
	matches "^$1: in $2: $3" "$(<"/tmp/record.$driver")"
}

is_alone() { # namespace: it has no interface of InfiniBand
	[ -z "$(interfaces_in "$1")" ]
}

has_name() { # namespace, name
	ip ${1:+-n "$1"} link show "$2"
}

# --- a child -------------------------------------------------------------------------------------------------------------

make_child_called_ib0() {
	at h1 ip link add link ib0 name child type ipoib pkey 0xffff && at h1 ip link set child netns box name ib0 &&
		ip -n box address add 10.99.0.1/24 dev ib0 && ip -n box link set ib0 up
}

# The first namespace has an interface of that name.
child_is_back() {
	interfaces_in '' | grep -q '^devN '
}

returned() { # the name of the child that came back
	ip -d -j link show | jq -r '.[] | select(.link_type == "infiniband") | .ifname'
}

reaches_from_first() {
	ip address replace 10.88.1.99/16 dev "$(returned)" && ip link set "$(returned)" up && eventually answers "$(v4_of h2)"
}

test_child() {
	ip netns add box
	check "$driver: a child in another namespace is called ib0 there" make_child_called_ib0
	record "the child is away"
	ip netns delete box
	check "$driver: it comes back when that ends" eventually child_is_back
	record "the child is back"
	check_equal "$driver: what had its name in the first namespace has it still" dummy "$(ip -d -j link show ib0 | jq -r '.[].linkinfo.info_kind')"
	check "$driver: its parent has its own" has_name h1 ib0
	check "$driver: the parent reaches its peer" eventually host_reaches h1 "$(v4_of h2)"
	check "$driver: so does the child, from where it is" reaches_from_first
}

# --- the RDMA device -----------------------------------------------------------------------------------------------------

test_device() {
	ip netns add box
	check "$driver: the RDMA device of h1 moves" at h1 rdma dev set h1 netns box
	check "$driver: an interface is where it is" eventually has_name box ib0
	check "$driver: none is where it was" eventually is_alone h1
	check "$driver: the child has gone with its parent" eventually is_alone ''
	record "the device is away"
	ip netns delete box
	check "$driver: it comes back to the first namespace when that ends" eventually has_name '' ib1
	record "the device is back"
	check "$driver: it can go where it was" rdma dev set h1 netns h1
	check "$driver: with its interface" eventually interface_up h1
	check "$driver: which has carrier" eventually has_carrier h1
	record "the device is where it was"
	check "$driver: it reaches its peer" eventually host_reaches h1 "$(v4_of h2)"
}

test_driver() {
	: >"/tmp/record.$driver"
	check "$driver: it loads" load_driver "$driver"
	check "$driver: the interfaces come up" interfaces_up h1 h2
	test_child
	test_device
	check "$driver: it unloads" unload_driver
}

printf '%s\n' 'star hosts=2' >/tmp/two.fabric
bring_up_fabric two h2
ip link add ib0 type dummy
for driver in "${drivers[@]}"; do
	test_driver
done
note "with ${drivers[-1]}:"
note "$(<"/tmp/record.${drivers[-1]}")"
[ ${#drivers[@]} = 1 ] || check "both drivers have the same interfaces, names and addresses" diff "/tmp/record.ib_ipoib" "/tmp/record.oxib"
ip link delete ib0
take_down_fabric
finish
