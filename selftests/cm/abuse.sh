#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What a connection manager has to bear: programs that are killed while they connect, in both roles, and with a connection in
# each state; devices and modules that go meanwhile; messages that no peer would send. After each, programs connect as before.
#
# abuse.sh [CM [ROUNDS]]: the connection manager of both nodes, oxib; and how often programs are killed, 2 times on each node,
# once on the debug kernel.
#
# nodes: 2
# kernels: fast debug
# timeout: 600

. selftests/lib/cm.sh

cm=${1:-oxib}
own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")
rounds=${2:-$(some 2)}
processes=$(some 4)

# --- programs that connect ---------------------------------------------------------------------------------------------

# In the background of this shell, so that it can be killed: with all its processes, for it leads a group of its own.
start() { # script of cm/, argument...
	# Here, not by the process: what the one before said is not taken for its word.
	: >/tmp/started.log
	setsid python3 "selftests/cm/$1" "${@:2}" >>/tmp/started.log 2>&1 &
	started=$!
}

kill_started() {
	kill -9 -- "-$started"
	! wait "$started"
} 2>/dev/null

# n1 calls as if nothing had been.
still_works() { # after what
	local server=
	if [ "$NODE" = 2 ]; then
		: >/tmp/server.log
		many serve "$own" 2 10 >/tmp/server.log 2>&1 &
		server=$!
		many_listen 2 || note "the server does not listen: $(tail -n 3 /tmp/server.log)"
	fi
	barrier serving
	on_node 1 check "programs connect after $1" many call "$own" "$there" 2 10
	barrier called
	on_node 2 check "and the servers end well after $1" ends_well "$server" /tmp/server.log
	barrier served
}

# --- killed programs ---------------------------------------------------------------------------------------------------

# REQs that this node has sent or, where the servers are, got.
requests() {
	case $NODE in
	1) cm_counter tx_msgs req ;;
	2) cm_counter rx_msgs req ;;
	esac
}

more_requests() { # before
	holds "$(requests)" -gt "$1"
}

# A round of connecting that ends, so many hundredths of a second after it has begun, with what is done to one node.
interrupted() { # node, hundredths, command...
	local victim=$1 hundredths=$(($2 * frugality)) before
	shift 2
	before=$(requests)
	if [ "$NODE" = 2 ]; then
		start many.py serve "$own" "$processes" 100
		many_listen "$processes" || note "the server does not listen: $(tail -n 3 /tmp/started.log)"
	fi
	barrier serving
	[ "$NODE" = 2 ] || start many.py call "$own" "$there" "$processes" 100
	on_node "$victim" eventually more_requests "$before" || note "nobody connects: $(tail -n 3 /tmp/started.log)"
	on_node "$victim" pause "$(printf '%d.%02d' $((hundredths / 100)) $((hundredths % 100)))"
	on_node "$victim" "$@"
	barrier interrupted
	[ "$NODE" = "$victim" ] || kill_started
	barrier over
}

test_killing() { # node
	local round
	for ((round = 1; round <= rounds; round++)); do
		interrupted "$1" $((round * 20 - 19)) kill_started
	done
	still_works "n$1's programs were killed while connecting"
}

# --- devices and modules that go ------------------------------------------------------------------------------------------

remove_device() {
	check "the RDMA device goes while programs connect" rdma link delete rxe0
	kill_started
	rdma link add rxe0 type rxe netdev eth0
	check "it comes back" eventually rxe_is_active
}

unload() {
	check_refused "ib_cm is not unloaded while it is used" rmmod ib_cm
	kill_started
	check "it is when its users have been killed" eventually unload_cm
	check "and can be loaded again" load_cm "$cm"
}

test_removal() { # node
	interrupted "$1" 30 remove_device
	still_works "n$1's device had gone"
	interrupted "$1" 30 unload
	still_works "n$1's modules had gone"
	interrupted "$1" 200 unload
	still_works "n$1's modules had gone with connections open"
}

# --- connections in each state ---------------------------------------------------------------------------------------------

# One node has connections in every state. When they go with what is done there, the other ends are told what they have to be.
in_every_state() { # node, command...
	local victim=$1
	shift
	if [ "$NODE" = "$victim" ]; then
		start states.py hold "$own" "$there"
		check "n$NODE has connections in every state" is_held
	else
		start states.py watch "$own" "$there"
	fi
	barrier held
	on_node "$victim" "$@"
	barrier happened
	[ "$NODE" = "$victim" ] || check "n$NODE is told of their end" is_told
	barrier over
}

# The program waits for each state and each event as long as anything is waited for, and then says which did not come.
is_told() {
	until has_ended "$started"; do
		pause 0.2
	done
	ends_well "$started" /tmp/started.log
}

is_held() {
	until grep -qx held /tmp/started.log; do
		! has_ended "$started" || {
			tail -n 20 /tmp/started.log
			return 1
		}
		pause 0.2
	done
}

test_states() { # node
	[ -e /sys/kernel/tracing/trace ] || mount -t tracefs tracefs /sys/kernel/tracing
	in_every_state "$1" kill_started
	still_works "n$1's program was killed with connections in every state"
	in_every_state "$1" remove_device
	still_works "n$1's device had gone with connections in every state"
	in_every_state "$1" unload
	still_works "n$1's modules had gone with connections in every state"
}

# --- messages that no peer would send -------------------------------------------------------------------------------------

received() {
	awk '{ sum += $1 } END { print sum }' "$port_directory"/cm_rx_msgs/*
}

malformed() { # argument...
	malformed_from "$own" "$@"
}

malformed_from() { # address, argument...
	PYTHONPATH=selftests/ipoib python3 selftests/cm/malformed.py "$1" "$there" "${@:2}"
}

# n2 sends, n1 takes it. A program listens there, so that requests get as far as they can.
test_malformed() { # description, malformed.py argument...
	local before
	if [ "$NODE" = 1 ]; then
		start many.py serve "$own" 1 1
		many_listen 1 || note "the server does not listen: $(tail -n 3 /tmp/started.log)"
		before=$(received)
	fi
	barrier armed
	on_node 2 check "$1: sent" malformed "${@:2}"
	barrier fired
	on_node 1 check "$1: they were taken for messages" eventually received_more "${before:-0}"
	on_node 1 kill_started
	still_works "$1"
}

received_more() { # before
	holds "$(received)" -gt "$1"
}

# On RoCE there is no alternate path to load: what asks for one is dropped, and counted.
test_laps() {
	local dropped
	dropped=$(cm_counter rx_drops invalid)
	barrier laps_counted
	on_node 2 check "alternate paths: sent" malformed laps 5
	barrier laps_sent
	on_node 1 check "each of them is counted" eventually counts_invalid $((dropped + 5))
}

counts_invalid() { # number
	equal "$1" "$(cm_counter rx_drops invalid)"
}

# --- a third node's messages -----------------------------------------------------------------------------------------------

# Each node speaks for it, from a second address.
stranger_of() { # node
	printf '10.77.0.%d\n' $((100 + $1))
}

test_forged() {
	local stranger
	[ "$cm" = oxib ] || return
	stranger=$(stranger_of "$NODE")
	ip address replace "$stranger/24" dev "$ethernet"
	barrier stranger
	eventually answers "$(stranger_of "$peer")" || bail_out "the peer's second address is not reached"
	on_node 1 check "a stranger's messages stop no connection of ours, nor resolution" forged call "$own" "$there" "$stranger"
	on_node 2 check "nor end one" forged serve "$own" "$there" "$stranger"
	ip address delete "$stranger/24" dev "$ethernet"
	still_works "a stranger's messages"
}

forged() { # argument...
	PYTHONPATH=selftests/ipoib python3 selftests/cm/forged.py "$@"
}

# --- requests that nobody goes on with --------------------------------------------------------------------------------------

# Beyond half of a number of requests that wait for the program, those of the same sender are dropped, and served when he repeats
# them. One that its sender has rejected does not wait.
test_half_open() {
	local dropped=0 server=
	if [ "$NODE" = 1 ]; then
		check "the connection manager goes" unload_cm
		load_oxib half_open=32
		check "it takes a limit for requests that wait" load_cm "$cm"
		python3 selftests/cm/hold.py listen "$own" "$first_port" >/tmp/hold.log 2>&1 &
		jobs_running+=($!)
		many_listen 1
		dropped=$(cm_counter rx_drops half_open)
	fi
	barrier limited
	on_node 2 check "100 requests are sent and given up" malformed given-up "$first_port" 100
	barrier given_up
	on_node 1 check "the program gets all of them" eventually waiting_are 100
	barrier counted
	on_node 2 check "40 questions for a queue pair are sent" malformed questions "$first_port" 40
	barrier asked
	on_node 1 check "24 are dropped" eventually counts_dropped $((dropped + 24))
	barrier dropped
	# Questions that wait take no slots of requests.
	on_node 2 check "40 requests are sent" malformed requests "$first_port" 40
	on_node 1 check "24 of these are dropped, too" eventually counts_dropped $((dropped + 48))
	stop_jobs
	if [ "$NODE" = 1 ]; then
		many serve "$own" 1 40 >/tmp/server.log 2>&1 &
		server=$!
		many_listen 1
	fi
	barrier storm
	on_node 2 check "40 connections at once come up" many call "$own" "$there" 1 40
	barrier stormed
	on_node 1 check "all of them were served" ends_well "$server" /tmp/server.log
	still_works "too many requests"
}

# What a consumer never answers is held for ever: it keeps nobody from connecting to him.
test_unanswered() {
	on_node 1 check "a consumer watches" consumer watch=1
	barrier watching
	on_node 2 check "40 questions for his queue pair are sent" malformed questions "$consumer_service" 40
	on_node 1 check "he is told of 16, which are half of the slots" eventually consumer_was_told questions 16
	barrier questioned
	on_node 2 check "a request for a connection is sent" malformed requests "$consumer_service" 1
	on_node 1 check "he is told of it" eventually consumer_was_told requests 1
	barrier requested
	on_node 1 check "the consumer can go" rmmod cm_consumer
	still_works "questions that nobody answers"
}

# A sender that asks for much, and for days to answer, has half of the slots; sixteen more, as many as are left, have one each.
# A peer that means it is served all the same.
test_greedy() {
	local guest dropped=0
	if [ "$NODE" = 1 ]; then
		python3 selftests/cm/hold.py accept "$own" "$first_port" >/tmp/hold.log 2>&1 &
		jobs_running+=($!)
		many_listen 1
		dropped=$(cm_counter rx_drops half_open)
	else
		add_guests
	fi
	barrier guests
	on_node 2 check "one guest asks 40 times" greedy "$(guest 0)" 40 1000
	barrier asked
	on_node 1 check "24 are dropped" eventually counts_dropped $((dropped + 24))
	on_node 2 check "one who means it is served" hold call "$own" "$there" "$first_port"
	for ((guest = 1; guest <= 16; guest++)); do
		on_node 2 check "guest $guest asks once" greedy "$(guest "$guest")" 1 $((2000 + guest))
	done
	barrier full
	on_node 1 check "they have all slots" eventually granted_are $((16 + 1 + 16))
	barrier held
	on_node 2 check "one who means it is served still" hold call "$own" "$there" "$first_port"
	on_node 1 check "the program knows of both" eventually established_are 2
	barrier served
	stop_jobs
	[ "$NODE" = 1 ] || remove_guests
	still_works "greedy guests"
}

# --- senders whose Ethernet address is not known ---------------------------------------------------------------------------

# Requests from addresses that nobody has: they wait for an answer to ARP, and others do not wait for them. A peer whose address
# is not known yet need not repeat its request.
test_unresolved() {
	local requests=0 duplicates=0 unresolved=0
	if [ "$NODE" = 1 ]; then
		ip route replace 10.78.0.0/16 dev "$ethernet"
		python3 selftests/cm/hold.py accept "$own" "$first_port" >/tmp/hold.log 2>&1 &
		jobs_running+=($!)
		many_listen 1
		requests=$(cm_counter rx_msgs req) duplicates=$(cm_counter rx_duplicates req)
		unresolved=$(cm_counter rx_drops unresolved)
	fi
	barrier listening
	on_node 2 check "a request comes twice from an address that nobody has" malformed invented "$first_port" 1 2
	on_node 1 check "the one that waits already counts as a duplicate" eventually more_duplicates "$duplicates"
	barrier repeated
	on_node 2 check "requests come from addresses that nobody has" malformed invented "$first_port" "$(some 600)"
	on_node 2 check "one who means it is served meanwhile" hold call "$own" "$there" "$first_port"
	barrier served
	on_node 1 check "the others are dropped" eventually dropped_but_one "$requests" "$duplicates" "$unresolved"
	if [ "$NODE" = 1 ]; then
		forget_neighbours &
		jobs_running+=($!)
	fi
	barrier forgetting
	on_node 2 check "one whose Ethernet address is not known is served at the first request" \
		eventually served_at_once
	barrier unresolved
	stop_jobs
	[ "$NODE" = 2 ] || ip route delete 10.78.0.0/16 dev "$ethernet"
	still_works "senders whose Ethernet address is not known"
}

more_duplicates() { # before
	holds "$(cm_counter rx_duplicates req)" -gt "$1"
}

# All requests since then but one were dropped, as nobody has their addresses.
dropped_but_one() { # requests, duplicates, unresolved before
	local came=$(($(cm_counter rx_msgs req) - $1 - $(cm_counter rx_duplicates req) + $2))
	holds "$came" -gt 1 && equal $((came - 1)) $(($(cm_counter rx_drops unresolved) - $3))
}

forget_neighbours() {
	while :; do
		ip neigh flush dev "$ethernet"
		pause 0.2
	done
} 2>/dev/null

# Three times in a row, as one may have been a neighbour again by chance.
served_at_once() {
	local repeated
	repeated=$(cm_counter tx_retries req)
	for _ in 1 2 3; do
		hold call "$own" "$there" "$first_port" && equal "$repeated" "$(cm_counter tx_retries req)" || return
	done
}

# --- peers that do not answer -----------------------------------------------------------------------------------------------

tracing=/sys/kernel/tracing

# Processors take turns: a clock of time may be too coarse to tell the order of what they send.
watch_requests() {
	[ -e "$tracing/trace" ] || mount -t tracefs tracefs "$tracing"
	echo counter >"$tracing/trace_clock"
	: >"$tracing/trace"
	echo 1 >"$tracing/events/oxib_cm/oxib_cm_send/enable"
}

# So many different REQs were sent before one was sent again. Once the one peer has answered, the others are asked again soon.
repetitions_follow() { # number
	equal "$1" "$(awk '/ oxib_cm_send: .* message=REQ / { sub(/.* local_id=/, ""); if (seen[$1]++) exit; number++ }
		END { print number + 0 }' "$tracing/trace")"
}

# More of them than a port has requests out at a time, before anybody has answered any: one that would answer is asked all the
# same, before those are asked again.
test_silent() {
	check "n$NODE's connection manager goes" unload_cm
	check "n$NODE has one that knows nobody" load_cm "$cm"
	barrier fresh
	if [ "$NODE" = 1 ]; then
		python3 selftests/cm/hold.py accept "$own" "$first_port" >/tmp/hold.log 2>&1 &
		jobs_running+=($!)
		many_listen 1
		check "requests for another port are dropped as they arrive" drop_requests $((first_port + 1))
	fi
	[ "$cm" != oxib ] || on_node 2 watch_requests
	barrier deaf
	on_node 2 check "behind 300 silent peers, one answers" hold behind "$own" "$there" "$first_port" $((first_port + 1)) 300
	[ "$cm" != oxib ] || [ "$KERNEL" = debug ] ||
		on_node 2 check "that one is asked before any of the others is asked again" repetitions_follow 301
	barrier answered
	stop_jobs
	[ "$NODE" = 2 ] || tc filter delete dev "$ethernet" ingress
	still_works "silent peers"
}

# Messages are filtered by party.py.
drop_requests() { # port
	PYTHONPATH=selftests/cm python3 -c 'import sys, party; party.Deafness.to_requests(party.Space.TCP, int(sys.argv[1]) - party.FIRST_PORT)' "$1"
}

# Addresses of the second node's, as if others spoke.
guest() { # number
	printf '10.77.0.%d\n' $((120 + $1))
}

add_guests() {
	local number
	for ((number = 0; number <= 16; number++)); do
		ip address replace "$(guest "$number")/24" dev "$ethernet"
	done
}

remove_guests() {
	local number
	for ((number = 0; number <= 16; number++)); do
		ip address delete "$(guest "$number")/24" dev "$ethernet"
	done
}

greedy() { # guest, number, first
	malformed_from "$1" greedy "$first_port" "$2" "$3"
}

hold() { # argument...
	python3 selftests/cm/hold.py "$@"
}

established_are() { # number
	equal "$1" "$(grep -cx ESTABLISHED /tmp/hold.log)"
}

granted_are() { # number
	equal "$1" "$(grep -cx CONNECT_REQUEST /tmp/hold.log)"
}

# Connections that the program has not answered.
waiting_are() { # number
	equal "$1" "$(rdma resource show cm_id | grep -c 'state CONNECT')"
}

counts_dropped() { # number
	equal "$1" "$(cm_counter rx_drops half_open)"
}

ground_up
check "n$NODE runs the connection manager of $cm" load_cm "$cm"
barrier loaded
for node in 1 2; do
	test_killing "$node"
	test_removal "$node"
	[ "$cm" != oxib ] || test_states "$node"
done
test_malformed "strange messages" strange "$first_port"
number=$(some 2000)
test_malformed "messages at random" random "$number" 1
test_forged
if [ "$cm" = oxib ]; then
	test_laps
	test_half_open
	test_unanswered
	test_greedy
	test_unresolved
fi
test_silent
check "n$NODE can unload it" unload_cm
ground_down
finish
