#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Unmodified programs that find their peer by IP address, with oxib at one end and the kernel's ib_ipoib and ib_cm at the other. Each
# end is the server once.
#
# drivers.sh [DRIVER of n1 [DRIVER of n2]]: oxib or ib_ipoib
#
# nodes: 2
# kernels: fast
# timeout: 400

. selftests/lib/acm.sh

drivers=("${1:-oxib}" "${2:-ib_ipoib}")
pair="${drivers[0]} and ${drivers[1]}"
# Of this node.
driver=${drivers[NODE - 1]}

ends_well() {
	wait "$server" || {
		tail -n 15 /tmp/server
		return 1
	}
}

# n1 and n2 in turn have the server, at h1.
meet() { # description, port, server's words, client's words: SERVER is the server's address there
	local node address
	for node in 1 2; do
		address=$(v4_of h1 "$node")
		[[ $1 != *IPv6* ]] || address=$(v6_of h1 "$node")
		if [ "$NODE" = "$node" ]; then
			# shellcheck disable=SC2086 # words
			at h1 timeout $((4 * patience)) ${3//SERVER/$address} >/tmp/server 2>&1 &
			server=$!
			check "$pair, $1: n$node listens" eventually listens_cm h1 "$2"
		fi
		barrier listening
		if [ "$NODE" != "$node" ]; then
			# shellcheck disable=SC2086 # words
			check "$pair, $1: the other calls" watched $((2 * patience)) at h1 ${4//SERVER/$address}
		fi
		barrier called
		[ "$NODE" != "$node" ] || check "$pair, $1: its server ends well" ends_well
	done
}

ulimit -l unlimited
# For ib_write_bw, whose server listens again for its second connection: see slow_names.
slow_names "$(v4_of h1 1)" "$(v4_of h1 2)"
bring_up_shared_fabric "$driver"
check "the connection manager that goes with $driver is loaded" load_managers_of "$driver"
barrier managed

meet "rping over IPv4" 7174 "rping -s -a SERVER -C 20 -S 4000 -V" "rping -c -a SERVER -C 20 -S 4000 -V"
meet "rping over IPv6" 7174 "rping -s -a SERVER -C 20 -S 4000 -V" "rping -c -a SERVER -C 20 -S 4000 -V"
meet "udaddy" 7174 "udaddy -b SERVER -c 5 -C 1 -S 1000" "udaddy -s SERVER -c 5 -C 1 -S 1000"
meet "ib_write_bw -R" 18515 "ib_write_bw -d h1 -F -n 100 -s 4096 -R" "ib_write_bw -d h1 -F -n 100 -s 4096 -R name-of-SERVER"

check "it can be unloaded" unload_managers_of "$driver"
take_down_shared_fabric
finish
