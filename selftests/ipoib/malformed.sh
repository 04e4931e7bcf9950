#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What no well-behaved peer sends: n2 makes datagrams by hand (roce.py) and sends them to ib0 of n1, which has to count
# and drop them, or leave them to the stack, and go on.
#
# nodes: 2
# kernels: fast
# timeout: 180

. selftests/lib/node.sh

# The IPv4 group that carries the broadcast group, and the queue pair number of all groups.
broadcast_group=239.113.202.76
group_qpn=16777215

counter_is() { # name, value
	[ "$(counter "$1")" = "$2" ] || {
		ethtool -S ib0
		return 1
	}
}

counter_reaches() { # name, value
	[ "$(counter "$1")" -ge "$2" ] || {
		ethtool -S ib0
		return 1
	}
}

# n2 sends with these arguments of roce.py; on n1 the counter rises by exactly that many.
counts() { # description, counter, number, roce.py argument...
	local before
	if [ "$NODE" = 1 ]; then
		before=$(counter "$2")
		barrier armed
		barrier fired
		check "$1: $2 rises by $3" eventually counter_is "$2" $((before + $3))
	else
		barrier armed
		check "$1: sent" python3 selftests/ipoib/roce.py "${@:4}"
		barrier fired
	fi
}

# The same where some may get lost on the way.
reaches_counter() { # description, counter, least number, roce.py argument...
	local before
	if [ "$NODE" = 1 ]; then
		before=$(counter "$2")
		barrier armed
		barrier fired
		check "$1: $2 rises by $3 at least" eventually counter_reaches "$2" $((before + $3))
	else
		barrier armed
		check "$1: sent" python3 selftests/ipoib/roce.py "${@:4}"
		barrier fired
	fi
}

# A hundred at a time, fewer than there are receive buffers: more may find none where the receiver does not run meanwhile.
at_random() { # destination, seed, roce.py argument...
	local part parts
	parts=$(($(some 1000) / 100))
	for ((part = 1; part <= parts; part++)); do
		reaches_counter "many at random$1, $part of $parts" rx_completions 50 --random 100 --seed $((100 * $2 + part)) "${@:3}"
	done
}

still_alive() { # after what
	on_node 1 check "the peer is reached after $1" reaches 10.99.0.2
	barrier alive
}

dropped_in_all() {
	local name sum=0
	for name in rx_drop_short rx_drop_grh rx_drop_header rx_drop_memory; do
		sum=$((sum + $(counter "$name")))
	done
	holds "$(statistic rx_dropped)" -ge "$sum"
}

link_local() {
	ip -j -6 address show dev eth0 scope link | jq -re '[.[].addr_info[] | select(.tentative | not) | .local | values][0]'
}

bring_up 9000
eventually link_local || bail_out "eth0 has no link-local IPv6 address"
tell link_local "$(link_local)"
tell qpn "$(queue_pair)"
ip route add 239.0.0.0/8 dev eth0
barrier ready

target=(10.77.0.2 10.77.0.1 "$(told qpn 1)")
target6=("$(told link_local 2)%eth0" "$(told link_local 1)%eth0" "$(told qpn 1)")
group=(10.77.0.2 "$broadcast_group" "$group_qpn")

still_alive "nothing"
counts "0 to 3 bytes" rx_drop_short 4 "${target[@]}" "" 08 0800 080000
counts "0 to 3 bytes to the broadcast group" rx_drop_short 4 "${group[@]}" "" 08 0800 080000
still_alive "short datagrams"
counts "unknown protocols" rx_drop_header 5 "${target[@]}" 00000000 88b50000 8100000000000000 8847ffff ffffffffff
counts "unknown protocols in long datagrams" rx_drop_header 2 --zeros 4000 "${target[@]}" 00000000 88b50000
counts "an unknown protocol to the broadcast group" rx_drop_header 1 "${group[@]}" 88b50000
counts "an unknown protocol over Ethernet's IPv6" rx_drop_header 1 "${target6[@]}" 88b50000
still_alive "unknown protocols"
counts "a route header of a wrong length" rx_drop_grh 3 --ip-options "${target[@]}" 08000000 08060000 86dd0000
still_alive "a route header that lies"
# For the stack to judge: headers alone, cut short, or with lengths that are not there.
reaches_counter "IPv4, IPv6 and ARP cut short" rx_packets 8 "${target[@]}" 08000000 0800000045 \
	0800000045000fff00000000400100000a6300020a630001 08060000 080600000020 080600000020080014040001 86dd0000 86dd000060
still_alive "packets cut short"
# soft-RoCE itself drops what no receive buffer takes; more of them than there are buffers must not use any up.
mapfile -t oversized < <(printf '0800%04x\n' {1..400})
on_node 2 check "oversized datagrams: sent" python3 selftests/ipoib/roce.py --zeros 4500 "${target[@]}" "${oversized[@]}"
barrier oversized
still_alive "oversized datagrams"
counts "a wrong key" rx_drop_short 0 --qkey 0x80010000 "${target[@]}" "" 08
at_random "" 1 "${target[@]}"
at_random " to the broadcast group" 2 "${group[@]}"
still_alive "random datagrams"
on_node 1 check "what oxib dropped is in the interface's statistics" dropped_in_all
barrier done
take_down
finish
