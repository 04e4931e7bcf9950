#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# sequences.sh [SECONDS [SEED]]    for so long in each mode (default 20), by this seed (default: another one each time)
#
# Two hosts in conversation, and a third that hears all of it and takes part: messages of communication management, answers of
# the subnet administrator, ARP and neighbour discovery come again, late, in another order, from others and changed
# (sequences.py). A node that hears the numbers of all messages can end connections and lead packets astray; but nothing that a
# kernel with all checks complains of may come of it, and when it is over all goes on by itself.
#
# nodes: 1
# kernels: debug
# timeout: 200

. selftests/lib/infiniband.sh

seconds=${1:-20}
seed=${2:-$RANDOM}

set_mode() { # datagram|connected
	local host
	for host in h1 h2; do
		at "$host" sh -c "echo $1 >/sys/class/net/ib0/mode" && eventually has_carrier "$host" || return
	done
}

# The two talk as long as this is there: what they have begun they end.
talking=/tmp/talking

# Both look for each other again and again, by each protocol.
ask_on() {
	while [ -e "$talking" ]; do
		flush_neighbours h1 h2
		at h1 oxib acm paths flush
		at h2 oxib acm paths flush
		at h1 ping -q -c 3 -i 0.2 -W 1 "$(v4_of h2)"
		at h2 ping -q -c 3 -i 0.2 -W 1 "$(v6_of h1)"
	done
} >/dev/null 2>&1

# Joins and leaves groups, and in connected mode makes and ends connections.
come_and_go() {
	while [ -e "$talking" ]; do
		at h2 ip link set ib0 down
		at h2 ip link set ib0 up
		at h2 ip address replace "$(v6_of h2)/64" dev ib0 nodad
		pause 3
	done
} >/dev/null 2>&1

forge() {
	python3 selftests/infiniband/sequences.py "$seed" "$seconds" "$(port_number h4 lid)" h3 h1 h2 >/tmp/forged
}

# Each kind, so that none is left out unnoticed.
forged_all() { # kind...
	local kind
	for kind in "$@"; do
		matches "$kind=[1-9]" "$(cat /tmp/forged)" || return
	done
}

carriers_come() {
	eventually has_carrier h1 && eventually has_carrier h2
}

reach_each_other() { # [option of ping...]
	host_answers h1 "$(v4_of h2)" "$@" && host_answers h1 "$(v6_of h2)" "$@" &&
		host_answers h2 "$(v4_of h1)" "$@" && host_answers h2 "$(v6_of h1)" "$@"
}

converse() { # mode, size, kind of message...
	local talkers=()
	check "$1: both are in this mode" set_mode "$1"
	check "$1: they reach each other" eventually reach_each_other -s "$2"
	: >"$talking"
	ask_on &
	talkers+=($!)
	come_and_go &
	talkers+=($!)
	check "$1: a third takes part" forge
	note "seed $seed: $(cat /tmp/forged)"
	check "$1: with all kinds of messages" forged_all "${@:3}"
	rm "$talking"
	wait "${talkers[@]}"
	check "$1: when he is silent, the interfaces come up" carriers_come
	check "$1: they reach each other" eventually reach_each_other -s "$2"
}

echo 'star hosts=4' >/tmp/sequences.fabric
# shellcheck disable=SC2034 # fabric.sh's
topologies=/tmp
bring_up_fabric sequences h4
check "oxib can be loaded" load_driver oxib
check "IP over InfiniBand comes up" interfaces_up "${hosts[@]}"
converse datagram 1000 SA ND
converse connected 20000 CM SA ND
check "oxib can be unloaded" unload_driver
take_down_fabric
finish
