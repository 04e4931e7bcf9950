#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What is shared: a port's class that somebody else has, a port number on which two programs listen, each on an address
# of its own, and an address that a node has on a VLAN, too.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/lib/cm.sh

own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")
second=10.78.0.$NODE
second_there=10.78.0.$peer

# --- the class is somebody else's -----------------------------------------------------------------------------------------

complaints() {
	dmesg | grep -c "rxe0: port 1: another connection manager has it"
}

# By itself, not because its time was over.
ends_with_error() { # command...
	local status=0
	timeout "$patience" "$@" || status=$?
	holds "$status" -ne 0 && holds "$status" -ne 124
}

without_the_class() {
	modprobe -a ib_umad ib_uverbs
	python3 selftests/cm/class.py /dev/infiniband/umad0 >/tmp/class.log 2>&1 &
	local holder=$!
	check "a program has the class" eventually grep -q taken /tmp/class.log
	check "the modules load all the same" load_oxib_cm
	check "and what is above them" modprobe -a rdma_cm rdma_ucm
	check_equal "the log says so, once" 1 "$(complaints)"
	check "the port has no counters of a connection manager" [ ! -e "$port_directory/cm_tx_msgs" ]
	# Not rping: it says so, and then does not end.
	check "a program is told that it cannot connect" ends_with_error python3 selftests/cm/many.py call "$own" "$there" 1 1
	check "the port has its network interface" eventually ib_exists
	kill "$holder"
	check "all can be unloaded" unload_cm
}

# --- two listeners ----------------------------------------------------------------------------------------------------------

has_second_gid() {
	grep -q "$(printf '0a4e:00%02x$' "$NODE")" "$port_directory"/gids/*
}

serve_on() { # address
	many serve "$1" 2 10 >"/tmp/server.$1.log" 2>&1 &
	servers[$1]=$!
}

listens_on() { # address
	local listeners port
	listeners=$(rdma resource show cm_id)
	for port in "$first_port" $((first_port + 1)); do
		[[ $listeners == *"state LISTEN"*"src-addr $1:$port "* ]] || return
	done
}

# n1 calls as many as one of them serves, so each has got its own and nothing else when it ends.
called_on() { # own address, the other's, the server's
	on_node 1 check "connections to $3" many call "$1" "$2" 2 10
	barrier "called-$3"
	on_node 2 check "went to who listens on $3, who ends" ends_well "${servers[$3]:-}" "/tmp/server.$3.log"
	barrier "ended-$3"
}

# --- an address on two VLANs ------------------------------------------------------------------------------------------------

# n2 has its first address on the VLAN as well, so that its port has two GIDs of one value. n1 reaches it by the VLAN, and what n2
# answers goes there.
add_vlan() {
	modprobe 8021q && ip link add link "$ethernet" name vlan5 type vlan id 5 &&
		ip address add "10.79.0.$NODE/24" dev vlan5 && ip link set vlan5 up
}

tag_first_address() {
	case $NODE in
	1) ip route add "$there/32" dev vlan5 src 10.79.0.1 ;;
	2) ip address add "$own/32" dev vlan5 ;;
	esac
}

gids_of() { # address
	local a b c d
	IFS=. read -r a b c d <<<"$1"
	grep -c "$(printf '%02x%02x:%02x%02x$' "$a" "$b" "$c" "$d")" "$port_directory"/gids/* | awk -F: '{ sum += $2 } END { print sum + 0 }'
}

more_gids_than() { # before, address
	holds "$(gids_of "$2")" -gt "$1"
}

test_vlan() {
	local before
	before=$(gids_of "$own")
	check "n$NODE has a VLAN" add_vlan
	barrier vlan
	check "n$NODE has an address there" eventually more_gids_than 0 "10.79.0.$NODE"
	check "n$NODE's way to the other's first address leads there" tag_first_address
	[ "$NODE" = 1 ] || check "n2 has a GID twice" eventually more_gids_than "$before" "$own"
	on_node 2 serve_on "$own"
	on_node 2 check "a program listens" eventually many_listen 2
	barrier tagged
	called_on 10.79.0.1 "$there" 10.77.0.2
	ip link delete vlan5
}

declare -A servers=()
ground_up
on_node 1 without_the_class
barrier whole
check "n$NODE runs the connection manager of oxib" load_cm oxib
ip address add "$second/24" dev "$ethernet"
check "n$NODE has a second address" eventually has_second_gid
on_node 2 serve_on "$own"
on_node 2 serve_on "$second"
on_node 2 check "a program listens on the first address" eventually listens_on "$own"
on_node 2 check "another one on the second, on the same ports" eventually listens_on "$second"
barrier serving
called_on "$own" "$there" 10.77.0.2
called_on "$second" "$second_there" 10.78.0.2
test_vlan
check "n$NODE can unload it" unload_cm
ground_down
finish
