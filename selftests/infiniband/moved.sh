#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Peers that lose their connections without a word and ask again as the same queue pairs: after a
# restart, with another LID, by their other port, in every order of the three. Both nodes do, as
# the caller and as the server of what they lost. Each connection comes up in no more tries than
# with the kernel's connection manager on n1. n2 has the kernel's both times. To oxib a peer with
# another address is a newcomer, which comes up at the first try.
#
# A consumer lets go of the old connections only when a peer has been rejected TRIES times: that
# counts as one try more.
#
# moved.sh [CM [TRIES]]: the connection manager of n1, oxib; 3.
#
# nodes: 2
# kernels: fast
# timeout: 600

. selftests/lib/cm.sh
. selftests/lib/fabric.sh

cm=${1:-oxib}
longest_try=${2:-3}
# Every order of the three is three consecutive events of these.
events=(restart port lids restart port restart lids port restart)
# oxib makes no interfaces.
oxib_parameters=(ipoib=0)

# rdma_cm serves requests that name no IP address in the first network namespace alone: the HCA of
# h1 is moved there.
move_out() {
	ip netns attach first $$ && at h1 rdma dev set h1 netns first
}

move_back() {
	rdma dev set h1 netns h1 && ip netns delete first
}

field() { # lid|gids/0|state, port
	cat "/sys/class/infiniband/h1/ports/$2/$1"
}

gid_of() { # port
	field gids/0 "$1"
}

guid_of() { # port
	gid_of "$1" | awk -F: '{ print "0x" $5 $6 $7 $8 }'
}

# --- the subnet ------------------------------------------------------------------------------------------------------

lid_turn=0

lid_of() { # node, port: in this turn
	printf '%d\n' $((0x1000 + 0x100 * lid_turn + 0x10 * $1 + $2))
}

# Four ports have LIDs of ours.
write_lids() {
	local node port
	for node in 1 2; do
		for port in 1 2; do
			printf '%s 0x%04x 0x%04x\n\n' "$(told "guid.$port" "$node")" "$(lid_of "$node" "$port")" "$(lid_of "$node" "$port")"
		done
	done >/tmp/sm.h2/guid2lid
}

has_lids() {
	equal "$(lid_of "$NODE" 1) $(lid_of "$NODE" 2)" "$(printf '%d %d' "$(field lid 1)" "$(field lid 2)")"
}

both_active() {
	equal "4: ACTIVE 4: ACTIVE" "$(field state 1) $(field state 2)"
}

change_lids() {
	lid_turn=$((lid_turn + 1))
	if [ "$NODE" = 1 ]; then
		stop_sm h2
		write_lids
		start_sm h2 'honor_guid2lid_file TRUE'
	fi
	check "n$NODE has other LIDs" eventually has_lids
	check "n$NODE: its ports are active" eventually both_active
}

drop_disconnect_requests() {
	tc filter add dev eth0 ingress protocol 0x88b5 prio 1 u32 match u8 0x00 0xf0 at 0 \
		match u32 1 0xffffff at 12 match u16 0x0015 0xffff at 44 action drop
}

hear_again() {
	tc filter delete dev eth0 ingress
}

has_dropped_both() {
	local dropped
	dropped=$(tc -s filter show dev eth0 ingress | sed -nE 's/.*dropped ([0-9]+).*/\1/p')
	holds "${dropped:-0}" -ge 2
}

# --- the program -----------------------------------------------------------------------------------------------------

start_mover() {
	coproc mover { env PYTHONPATH=selftests/cm python3 selftests/infiniband/movers.py "$(gid_of 1)" "$(gid_of 2)" 2>&1; }
	answers_with ready
}

answers_with() { # word: the first of the line, the others are the answer
	local word
	read -r -t "$longest" word answer <&"${mover[0]}"
	equal "$1" "$word" || {
		printf '%s\n' "$answer"
		timeout 5 cat <&"${mover[0]}"
		return 1
	}
}

tell_mover() { # command, argument...
	printf '%s\n' "$*" >&"${mover[1]}" && answers_with "done"
}

stop_mover() {
	# shellcheck disable=SC2154 # coproc sets it
	local process=$mover_PID
	eval "exec ${mover[1]}>&-"
	wait "$process"
}

# --- events ----------------------------------------------------------------------------------------------------------

port=1

peer_gid() {
	told "gid.$port" "$peer"
}

declare -A tries=()

# Those queue pairs that are not granted a connection go on the list `left`.
come_back() { # connection manager of n1, event, queue pair...
	local number=0 count counts
	tell_mover return "$(gid_of "$port")" "$(peer_gid)" "$longest_try" "${@:3}" || return
	read -ra counts <<<"$answer"
	left=()
	for count in "${counts[@]}"; do
		number=$((number + 1))
		[ "$count" -le "$longest_try" ] || left+=("${*:2+number:1}")
	done
}

event() { # connection manager of n1, number, event
	local what="$1, $2, $3" answer left=() name
	check "$what: n$NODE connects" tell_mover connect "$(gid_of "$port")" "$(peer_gid)"
	barrier connected
	drop_disconnect_requests
	barrier deaf
	check "$what: n$NODE loses its connections" tell_mover lose
	check "$what: n$NODE is not told that its peer did" eventually has_dropped_both
	barrier lost
	hear_again
	barrier hearing
	case $3 in
	port) port=$((3 - port)) ;;
	lids) change_lids ;;
	esac
	barrier moved
	check "$what: n$NODE asks" come_back "$1" "$3" caller server
	read -r "tries[$1.$2.caller]" "tries[$1.$2.server]" <<<"$answer"
	tell left "${left[*]}"
	barrier asked
	for name in $(told left "$peer"); do
		check "$what: the consumer of n$NODE lets go" tell_mover let_go "$name"
	done
	barrier let_go
	if [ ${#left[@]} != 0 ]; then
		check "$what: n$NODE asks again" come_back "$1" "$3" "${left[@]}"
		check_equal "$what: and is connected" "" "${left[*]}"
	fi
	barrier over
}

pass() { # connection manager of n1
	local mine=$1 number
	[ "$NODE" = 1 ] || mine=kernel
	port=1
	check "$1: n$NODE runs the connection manager of $mine" load_cm "$mine"
	check "$1: n$NODE listens" start_mover
	barrier ready
	for number in "${!events[@]}"; do
		event "$1" "$number" "${events[number]}"
	done
	check "$1: the program of n$NODE ends well" stop_mover
	barrier ended
	check "$1: n$NODE can unload it" unload_cm
	barrier unloaded
}

compare_tries() { # number of the event, queue pair
	local with=${tries[$cm.$1.$2]} with_kernel=${tries[kernel.$1.$2]}
	note "$1, ${events[$1]}, $2 of n$NODE: try $with_kernel with the kernel's on n1, try $with with $cm's"
	check "$1, ${events[$1]}, $2 of n$NODE: no more tries than with the kernel's" holds "$with" -le "$with_kernel"
	if [ "$NODE" = 2 ] && [ "$cm" = oxib ] && [ "${events[$1]}" != restart ]; then
		check_equal "$1, ${events[$1]}, $2 of n$NODE: with another address it is a newcomer to oxib" 1 "$with"
	fi
}

ulimit -l unlimited
ip link set eth0 mtu 9000 up
can_filter || bail_out "there can be no filters on the Ethernet device"
barrier cable
managers=()
[ "$NODE" != 1 ] || managers=(h2)
bring_up_fabric moving "${managers[@]}"
move_out || bail_out "the HCA does not leave its host"
for number in 1 2; do
	tell "guid.$number" "$(guid_of "$number")"
	tell "gid.$number" "$(gid_of "$number")"
done
barrier up
pass kernel
pass "$cm"
for number in "${!events[@]}"; do
	compare_tries "$number" caller
	compare_tries "$number" server
done
barrier compared
check "n$NODE: the HCA goes back" move_back
take_down_fabric
finish
