#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Groups on ib0: node n1 sends, n2 and n3 are members, or are not. n2, in the middle of the cable, is a bridge.
#
# nodes: 3
# kernels: fast
# timeout: 240

. selftests/lib/node.sh

# --- speaking and hearing ---

listen() { # name, group, port, [--member]
	python3 selftests/ipoib/group.py listen "${@:4}" "$2" "$3" >"/tmp/heard.$1" 2>&1 &
	jobs_running+=($!)
	eventually grep -qx listening "/tmp/heard.$1" || bail_out "listening to $2 failed: $(cat "/tmp/heard.$1")"
}

heard() { # name, text
	eventually grep -qx "$2" "/tmp/heard.$1" || {
		cat "/tmp/heard.$1"
		return 1
	}
}

# Check that a text arrives, and tell the one that says it.
check_heard() { # name, text, description
	check "n$NODE: $3" heard "$1" "$2"
	tell "heard.$1.$2" yes
}

# Say it until these nodes have heard it. A datagram may get lost; so may the first ones after a change of membership.
say() { # name, address, port, text, node...
	local name=$1 address=$2 port=$3 text=$4 files=() node
	shift 4
	for node in "$@"; do
		files+=("$meeting_place/told.heard.$name.$text.$node")
	done
	timeout $((4 * patience)) python3 selftests/ipoib/group.py say "$address" "$port" "$text" "${files[@]}"
}

what_was_heard() { # name
	grep -vx listening "/tmp/heard.$1" | sort | uniq | tr '\n' ' '
}

# --- memberships ---

# What the stack on ib0 is a member of, and the groups that carry that on the Ethernet side.
is_member() { # group
	ip maddress show dev ib0 | grep -qwF "$1"
}

is_no_member() { # group
	! is_member "$1"
}

carriers() {
	ip maddress show dev "$ethernet" | grep -cE 'inet +239\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\.'
}

groups_are() { # number
	[ "$(counter multicast_groups)" = "$1" ] && [ "$(carriers)" = "$1" ]
}

test_group() { # name, group, port, address of n3
	local name=$1 group=$2 port=$3 third=$4 before
	before=$(settled_groups)
	if [ "$NODE" != 1 ]; then
		listen "$name" "$group" "$port" --member
		check "n$NODE: ip maddress shows $group" is_member "$group"
		check "n$NODE: ib0 joins one group more" eventually groups_are $((before + 1))
	fi
	barrier joined
	case $NODE in
	1) check "n1: says hello to $group" say "$name" "$group" "$port" hello 2 3 ;;
	*) check_heard "$name" hello "a member of $group hears the group" ;;
	esac
	barrier greeted
	if [ "$NODE" = 3 ]; then
		stop_jobs
		check "n3: ip maddress does not show $group any more" is_no_member "$group"
		check "n3: ib0 leaves the group" eventually groups_are "$before"
		listen "$name" "$group" "$port"
	fi
	barrier left
	case $NODE in
	1) check "n1: says more to $group" say "$name" "$group" "$port" more 2 ;;
	2) check_heard "$name" more "who stayed in $group hears the group" ;;
	esac
	barrier after
	case $NODE in
	1) check "n1: says goodbye to n3 alone" say "$name" "$third" "$port" end 3 ;;
	3)
		check_heard "$name" end "who left $group hears what is for it alone"
		check_equal "n3: who left $group hears nothing else" "end " "$(what_was_heard "$name")"
		;;
	esac
	barrier finished
	stop_jobs
}

test_broadcast() {
	[ "$NODE" = 1 ] || listen broadcast 10.99.0.255 5300
	barrier broadcast
	case $NODE in
	1) check "n1: says hello to everybody" say broadcast 10.99.0.255 5300 hello 2 3 ;;
	*) check_heard broadcast hello "a broadcast is heard" ;;
	esac
	barrier finished
	stop_jobs
}

all_nodes_answer() {
	ping -c 3 -i 0.5 -W "$patience" ff02::1%ib0 >/tmp/all-nodes
	matches "from $(told link_local 2)" "$(cat /tmp/all-nodes)" && matches "from $(told link_local 3)" "$(cat /tmp/all-nodes)"
}

test_all_nodes() {
	on_node 1 check "n1: all nodes of the link answer a ping to ff02::1" eventually all_nodes_answer
	barrier finished
}

# --- our own packets ---

# The stack gives a sender that is a member its own copy. The link brings it back, too, and that one has to go.
test_own() { # group, address of n1
	local own
	if [ "$NODE" = 1 ]; then
		own=$(counter rx_drop_own)
		listen own "$1" 5400 --member
		python3 selftests/ipoib/group.py say --loop "$1" 5400 looped
		python3 selftests/ipoib/group.py say "$1" 5400 "not looped"
		check "n1: hears its own datagram" heard own looped
		check "n1: packets that the link brought back are counted" eventually holds_more rx_drop_own "$own"
		python3 selftests/ipoib/group.py say "$2" 5400 end
		check "n1: hears what is for it alone" heard own end
		check_equal "n1: heard it once, and nothing that it did not want back" "looped end " \
			"$(grep -vx listening /tmp/heard.own | tr '\n' ' ')"
		stop_jobs
	fi
	barrier finished
}

holds_more() { # counter, value
	[ "$(counter "$1")" -gt "$2" ]
}

# --- memberships that outlive changes below ---

test_survival() {
	[ "$NODE" = 1 ] || listen survival 239.1.2.4 5500 --member
	if [ "$NODE" = 3 ]; then
		ip link set ib0 down
		check "n3: ib0 leaves its groups when it goes down" eventually groups_are 0
		ip link set ib0 up
		check "n3: it is up again" eventually carrier_is 1
	fi
	if [ "$NODE" = 2 ]; then
		ip link set "$ethernet" down
		check "n2: ib0 loses its carrier" eventually carrier_is 0
		ip link set "$ethernet" up
		check "n2: ib0 has its carrier again" eventually carrier_is 1
	fi
	barrier survived
	case $NODE in
	1) check "n1: says hello" say survival 239.1.2.4 5500 hello 2 3 ;;
	2) check_heard survival hello "a member hears its group after the cable was down" ;;
	3) check_heard survival hello "a member hears its group after ib0 was down" ;;
	esac
	barrier finished
	stop_jobs
}

# The number of groups, once it stays the same for a second.
settled_groups() {
	local before after
	after=$(counter multicast_groups)
	while [ "$after" != "${before:-}" ]; do
		before=$after
		sleep 1
		after=$(counter multicast_groups)
	done
	printf '%s\n' "$after"
}

test_many() { # number of groups
	local before
	before=$(settled_groups)
	python3 selftests/ipoib/group.py hold "$1" >/tmp/hold 2>&1 &
	jobs_running+=($!)
	check "n$NODE: a socket joins $1 groups" eventually grep -qx listening /tmp/hold
	check "n$NODE: so does ib0" eventually groups_are $((before + $1))
	stop_jobs
	check "n$NODE: and leaves them with the socket" eventually groups_are "$before"
}

link_local() {
	ip -j -6 address show dev ib0 scope link | jq -re '[.[].addr_info[].local | values][0]'
}

bring_up 9000
eventually link_local || bail_out "ib0 has no link-local IPv6 address"
tell link_local "$(link_local)"
barrier ready

test_group ipv4 239.1.2.3 5100 10.99.0.3
test_group ipv6 ff05::1:2:3 5200 fd00:99::3
test_broadcast
test_all_nodes
test_own 239.1.2.5 10.99.0.1
on_node 1 test_many 40
barrier many
test_survival
take_down
finish
