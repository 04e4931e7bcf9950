#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What interfaces stand on goes away under traffic, with children present, in both modes: a cable is pulled, an HCA deleted, the
# module unloaded, a network namespace ends with its HCA, and all that while there is no subnet manager that answers who leaves.
# What is put back works as before.
#
# nodes: 1
# kernels: fast
# timeout: 900

. selftests/lib/children.sh

test_cable() {
	check "$mode: the cable of h2 is pulled" pull h2
	check "$mode: h2 has no carrier" eventually has_no_carrier h2
	check "$mode: it is put back" put_back h2
	check "$mode: all works again" works
}

remove_hca() { # host
	at "$1" rdma link delete "$1" && refused has_interface "$1" && refused at "$1" test -e /sys/class/net/blue
}

# With its cable, which tells the subnet manager.
put_back_hca() { # host
	pull "$1" && put_back "$1" && at "$1" rdma link add "$1" type softib netdev port1 && eventually is_active "$1" && host_up "$1"
}

# In one packet, which is too large for a datagram: routes may know a smaller MTU from before the connection.
is_connected() { # host, address
	at "$1" ip route flush cache && host_answers "$1" "$2" -M do -s 20000
}

# Messages of that kind that a host was sent.
was_sent_more() { # host, kind, before
	holds "$(port_field "$1" "cm_rx_msgs/$2")" -gt "$3"
}

test_hca() {
	local dreqs=0
	if [ "$mode" = connected ]; then
		check "$mode: h2 is connected to h3" eventually is_connected h2 "$(v4_of h3)"
		dreqs=$(port_field h3 cm_rx_msgs/dreq)
	fi
	check "$mode: the HCA of h2 is deleted, and its interfaces are gone" remove_hca h2
	[ "$mode" = datagram ] || check "$mode: h3 is told that its connections are over" eventually was_sent_more h3 dreq "$dreqs"
	check "$mode: another one comes up" put_back_hca h2
	check "$mode: all works again" works
}

reload() {
	local host
	unload_driver && refused has_interface h2 && load_driver oxib || return
	for host in h1 h2 h3; do
		host_up "$host" || return
	done
}

test_module() {
	check "$mode: the module is unloaded, and loaded again" reload
	check "$mode: all works again" works
}

# No subnet administrator answers a host that leaves a group.
test_silence() {
	check "$mode: the subnet manager dies" kill_sm h1
	check "$mode: the HCA of h3 is deleted" remove_hca h3
	check "$mode: the cable of h2 is pulled" pull h2
	check "$mode: and put back" put_back h2
	check "$mode: the module is unloaded" unload_driver
	check_refused "$mode: no interface is left" has_interface h2
	start_sm h1
	check "$mode: it can be loaded again" load_driver oxib
	check "$mode: the HCA of h3 comes back" at h3 rdma link add h3 type softib netdev port1
	check "$mode: with a subnet manager all ports become active" eventually all_active
	for host in h1 h2 h3; do
		check "$mode: the interfaces of $host come up" host_up "$host"
	done
	check "$mode: all works again" works
}

interface_is_gone() { # RDMA device
	! rdma link show "$1/1" 2>/dev/null
}

end_namespace() { # host
	ip netns pids "$1" | xargs -r kill -KILL
	ip netns delete "$1"
}

bring_up_fabric star h1
write_blue h1 h2 h3 h4
load_driver oxib || bail_out "oxib could not be loaded"
for mode in datagram connected; do
	for host in h1 h2 h3; do
		check "$mode: the interfaces of $host come up" host_up "$host"
	done
	check "$mode: all works" works
	storm h2 h3
	test_cable
	test_hca
	test_module
	[ "$mode" = datagram ] || test_silence
	stop_jobs
done
check "the interfaces of h4 come up" host_up h4
check "h4 reaches h3" eventually host_reaches h4 "$(v4_of h3)"
storm h4 h3
eventually has_programs h4 2
check "the namespace of h4 ends" end_namespace h4
check "its HCA goes" eventually interface_is_gone h4
check "others reach each other" works
storm h2 h3
check "the module is unloaded for good, under traffic" unload_driver
stop_jobs
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
