#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A bond of the interfaces of a host's two ports, active-backup: it talks, and goes on talking when the active interface gets another
# address, when the active port's cable is pulled and when it is put back. On Debian's kernel, which has bonding. Before that, which
# of the interfaces has the number of the second port.
#
# nodes: 1
# kernels: stock
# instead: uml
# timeout: 400

. selftests/lib/infiniband.sh

bond_up() { # host
	local slave
	at "$1" modprobe bonding max_bonds=0
	at "$1" ip link add bond0 type bond mode active-backup miimon 100 || return
	for slave in ib0 ib1; do
		at "$1" ip link set "$slave" down && at "$1" ip link set "$slave" master bond0 || return
	done
	at "$1" ip address add "$(v4_of "$1")/16" brd + dev bond0 && at "$1" ip address add "$(v6_of "$1")/64" dev bond0 nodad &&
		at "$1" ip link set bond0 up
}

active() { # host: the slave that is in use
	at "$1" cat /sys/class/net/bond0/bonding/active_slave
}

active_is() { # host, slave
	equal "$2" "$(active "$1")"
}

bond_carrier() { # host
	at "$1" grep -q 1 /sys/class/net/bond0/carrier
} 2>/dev/null

address_of() { # host, interface
	at "$1" cat "/sys/class/net/$2/address"
}

# That of the interface in use.
bond_has_address() { # host
	equal "$(address_of "$1" "$(active "$1")")" "$(address_of "$1" bond0)"
}

gets_other_rings() { # host, interface
	local before
	before=$(address_of "$1" "$2")
	at "$1" ethtool -G "$2" rx 512 && [ "$(address_of "$1" "$2")" != "$before" ]
}

# The mode is in the first byte of the address.
goes_to_mode() { # host, interface, datagram|connected
	local first=00
	[ "$3" = datagram ] || first=80
	at "$1" sh -c "echo $3 >/sys/class/net/$2/mode" && [[ "$(address_of "$1" "$2")" == "$first":* ]]
}

two_interfaces() { # host
	at "$1" test -e /sys/class/net/ib1
}

# Its port, counted from 0, as programs ask for it now and did before.
numbers_of() { # host, interface
	printf '%s %s\n' "$(at "$1" cat "/sys/class/net/$2/dev_port")" "$(at "$1" cat "/sys/class/net/$2/dev_id")"
}

# Only a port's own interface has the port's number, as with the kernel's driver.
test_numbers() { # host
	check_equal "$1: ib1 has the number of the second port" '1 0x1' "$(numbers_of "$1" ib1)"
	check "$1: a child is made by netlink" at "$1" ip link add link ib1 name child type ipoib pkey 0x8001
	check_equal "$1: it has none" '0 0x0' "$(numbers_of "$1" child)"
	check "$1: it goes" at "$1" ip link delete child
	check "$1: a child is made by sysfs" at "$1" sh -c 'echo 0x8001 >/sys/class/net/ib1/create_child'
	check_equal "$1: it has none" '0 0x0' "$(numbers_of "$1" ib1.8001)"
	check "$1: it goes" at "$1" sh -c 'echo 0x8001 >/sys/class/net/ib1/delete_child'
}

# The port of an interface has the same number plus one.
port_of() { # interface
	printf 'port%d\n' $((${1#ib} + 1))
}

# The subnet manager is on a host whose cables stay.
bring_up_fabric two_ports h2
load_driver oxib || bail_out "oxib could not be loaded"
for host in h1 h2; do
	check "$host has an interface for each port" eventually two_interfaces "$host"
	[ "$host" = h2 ] || test_numbers "$host"
	check "$host: the bond is made" bond_up "$host"
	check "$host: it has carrier" eventually bond_carrier "$host"
	check_equal "$host: its address is that of the active interface" \
		"$(at "$host" cat "/sys/class/net/$(active "$host")/address")" "$(at "$host" cat /sys/class/net/bond0/address)"
done
check "the bonds reach each other over IPv4" eventually host_reaches h1 "$(v4_of h2)"
check "and over IPv6" eventually host_reaches h1 "$(v6_of h2)"
check "and with large packets" host_reaches h2 "$(v4_of h1)" -s 20000
first=$(active h1)
check "h1's active interface gets other rings, and so another queue pair" gets_other_rings h1 "$first"
check "the bond has its address again" eventually bond_has_address h1
check "h2 reaches h1 there" eventually host_reaches h2 "$(v4_of h1)"
check "and over IPv6" eventually host_reaches h2 "$(v6_of h1)"
first=$(active h1)
for mode in connected datagram; do
	check "h1's active interface goes to $mode mode" goes_to_mode h1 "$first" "$mode"
	check "the bond has its address again" eventually bond_has_address h1
done
check "h2 reaches h1 there" eventually host_reaches h2 "$(v4_of h1)"
first=$(active h1)
other=ib$((1 - ${first#ib}))
check "the cable of h1's active port is pulled" ip -n h1 link set "$(port_of "$first")" down
check "the other interface is in use" eventually active_is h1 "$other"
check "h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
check "h2 reaches h1, by the new address" eventually host_reaches h2 "$(v4_of h1)"
check_equal "the bond's address is the other's" "$(at h1 cat "/sys/class/net/$other/address")" \
	"$(at h1 cat /sys/class/net/bond0/address)"
check "the cable is put back" ip -n h1 link set "$(port_of "$first")" up
check "h1's other cable is pulled" ip -n h1 link set "$(port_of "$other")" down
check "the first is in use again" eventually active_is h1 "$first"
check "h2 reaches h1" eventually host_reaches h2 "$(v4_of h1)"
check "the cable is put back" ip -n h1 link set "$(port_of "$other")" up
check "an interface leaves the bond" at h1 ip link set "$other" nomaster
check "the module can be unloaded under a bond" unload_driver
check_refused "its interfaces are gone" at h1 test -e "/sys/class/net/$first"
for host in h1 h2; do
	at "$host" ip link delete bond0
done
take_down_fabric
finish
