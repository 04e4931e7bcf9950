#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# events.sh [DRIVER [EVENT...]]: oxib (or ib_ipoib, to compare); restart handover lids silence cable late switch
# replacement quiet connected_lids; minute is not among those that run if none is named
#
# What happens to a subnet, and that IP over InfiniBand comes back by itself: the subnet manager restarts, another takes over,
# all LIDs change, in datagram and in connected mode, cables are pulled, there is no subnet manager for a while, the switch is
# rebooted, a host is replaced by another with the same IP address. How long that takes after the fabric is there again, and how
# many queries of the subnet administrator, is printed.
#
# nodes: 1
# kernels: fast
# timeout: 900

. selftests/lib/infiniband.sh

driver=${1:-oxib}
events=("${@:2}")
[ ${#events[@]} != 0 ] || events=(restart handover lids silence cable late switch replacement quiet connected_lids)

# --- measuring -------------------------------------------------------------------------------------------------------------------

# How many some hosts have sent. The kernel's driver does not count them.
queries_of() { # host...
	local host sum=0 number
	for host in "$@"; do
		for number in $(counter_at "$host" sa_path_queries) $(counter_at "$host" sa_joins); do
			sum=$((sum + number))
		done
	done
	printf '%d\n' "$sum"
}

queries() {
	queries_of "${hosts[@]}"
}

# Every host answers every other: at the same time, by IPv4, and h1 by IPv6. Callers that do not try again give a longer limit.
all_answer() { # [ping option...]
	local from to process processes=() status=0
	for from in "${hosts[@]}"; do
		for to in "${hosts[@]}"; do
			[ "$from" != "$to" ] || continue
			at "$from" ping -q -c 1 -W 1 "$@" "$(v4_of "$to")" &
			processes+=($!)
		done
		[ "$from" = h1 ] || at "$from" ping -q -c 1 -W 1 "$@" "$(v6_of h1)" &
		processes+=($!)
	done
	for process in "${processes[@]}"; do
		wait "$process" || status=1
	done
	return "$status"
}

# Pings that go on all the time: their output has the time of each answer.
travellers=(h1:h2 h1:h3 h1:h4 h3:h4)

travel() {
	local pair
	for pair in "${travellers[@]}"; do
		at "${pair%:*}" ping -D -n -i 0.1 "$(v4_of "${pair#*:}")" >"/tmp/ping.$pair" 2>&1 &
		jobs_running+=($!)
	done
}

# The first answer that each got after a time; fails unless each got one.
first_answers() { # seconds since 1970
	local pair
	for pair in "${travellers[@]}"; do
		awk -v since="$1" -F '[][ ]' '$2 > since && /bytes from/ { print $2; found = 1; exit } END { exit !found }' \
			"/tmp/ping.$pair" || return
	done
}

# To be called as soon as an event is over. The fabric is there when it is all active and has a master.
comes_back() { # event, queries before it, command that has to succeed first...
	local fabric
	check "$1: all ports are active" eventually all_active
	check "$1: ${*:3}" eventually "${@:3}"
	fabric=$EPOCHREALTIME
	check "$1: hosts reach each other" eventually first_answers "$fabric"
	first_answers "$fabric" | sort -n | tail -n 1 | awk -v event="$1" -v fabric="$fabric" -v queries=$(($(queries) - $2)) \
		'{ printf "# %s: traffic was back %d ms after the fabric, with %d queries of the SA\n", event, 1000 * ($1 - fabric), queries }'
	check "$1: all hosts do" eventually all_answer
}

# --- groups ----------------------------------------------------------------------------------------------------------------------

# h3 and h4 are members; what h1 says, they hear, whatever happened since they joined.
listening() {
	local host
	for host in h3 h4; do
		at "$host" python3 selftests/ipoib/group.py listen --member 239.9.9.9 5000 >"/tmp/heard.$host" &
		jobs_running+=($!)
		eventually grep -q listening "/tmp/heard.$host" || return
	done
}

group_is_heard() { # text
	local host
	at h1 python3 selftests/ipoib/group.py say 239.9.9.9 5000 "$1"
	for host in h3 h4; do
		grep -qx "$1" "/tmp/heard.$host" || return
	done
}

# --- events ----------------------------------------------------------------------------------------------------------------------

carrier_changes() {
	local host
	for host in "${hosts[@]}"; do
		at "$host" cat /sys/class/net/ib0/carrier_changes
	done | tr '\n' ' '
}

test_restart() {
	local before changes
	before=$(queries)
	changes=$(carrier_changes)
	check "there is no subnet manager any more" stop_sm
	check "without one, all goes on" all_answer -W "$patience"
	start_sm h1
	comes_back "restart of the subnet manager" "$before" master_is h3 h1
	check_equal "no interface lost its carrier for that" "$changes" "$(carrier_changes)"
	flush_neighbours "${hosts[@]}"
	check "who does not know each other any more finds each other" eventually all_answer
	check "a group is heard as before" eventually group_is_heard restart
}

test_handover() {
	local before
	before=$(queries)
	start_sm h2 "sm_priority 14"
	comes_back "another subnet manager takes over" "$before" master_is h3 h2
	check "a group is heard as before" eventually group_is_heard handover
	before=$(queries)
	check "it dies" kill_sm h2
	# Within a second: the first one takes over in a few, and would help those that need it.
	check "meanwhile all goes on" all_answer
	comes_back "the first one takes over" "$before" master_is h3 h1
}

lids() {
	local host
	for host in "${hosts[@]}"; do
		port_number "$host" lid
	done | tr '\n' ' '
}

lids_differ() { # from
	! equal "$1" "$(lids)"
}

# One that knows nothing begins with its own: those of two hosts at least are others then.
test_lids() {
	local before old
	# h2 begins to count from the start.
	before=$(($(queries) - $(queries_of h2)))
	old=$(lids)
	check "there is no subnet manager any more" stop_sm
	start_sm h3 "reassign_lids TRUE"
	check "LIDs are others" eventually lids_differ "$old"
	comes_back "change of LIDs" "$before" master_is h1 h3
	note "LIDs were $old, are $(lids)"
	check "a group is heard as before" eventually group_is_heard lids
}

master() {
	printf '%s\n' "${!sm_processes[@]}"
}

# An SA that does not answer at all, and then answers late what it was asked often: h4 knows nothing when it comes up.
test_silence() {
	local before
	before=$(queries)
	check "the subnet manager goes to sleep" kill -STOP "${sm_processes[$(master)]}"
	check "who knows each other goes on" host_reaches h1 "$(v4_of h2)"
	check "h4 goes down" at h4 ip link set ib0 down
	check "and up" interface_up h4
	pause 8
	check "it has no carrier" has_no_carrier h4
	check "the subnet manager wakes up" kill -CONT "${sm_processes[$(master)]}"
	comes_back "silence of the subnet manager" "$before" has_carrier h4
	check "a group is heard as before" eventually group_is_heard silence
}

test_cable() {
	local before
	before=$(queries)
	check "the cable of h4 is pulled" pull h4
	check "its interface has no carrier" eventually has_no_carrier h4
	check_refused "it is not reached" host_answers h1 "$(v4_of h4)"
	check "the others are" host_reaches h1 "$(v4_of h2)"
	check "the cable is put back" put_back h4
	comes_back "cable" "$before" has_carrier h4
	check "a group is heard as before" eventually group_is_heard cable
}

# h4 knows that its port is not active: it asks nobody, and is back as soon as there is somebody to ask.
test_late() {
	local before joins watch
	check "the cable of h4 is pulled" pull h4
	check "its interface has no carrier" eventually has_no_carrier h4
	check "there is no subnet manager any more" stop_sm
	check "the cable is put back" put_back h4
	joins=$(counter_at h4 sa_joins)
	pause 20
	check_equal "while its port is not active, h4 asks to join nothing" "$joins" "$(counter_at h4 sa_joins)"
	at h4 python3 selftests/infiniband/carrier.py h4 >/tmp/carrier &
	watch=$!
	jobs_running+=("$watch")
	before=$(queries)
	start_sm h1
	comes_back "late subnet manager" "$before" master_is h3 h1
	check "h4 has its carrier" wait "$watch"
	note "h4 had its carrier $(</tmp/carrier) ms after its port was active"
	check "a group is heard as before" eventually group_is_heard late
}

reboot_switch() {
	local switch=/sys/kernel/config/softib/switch/s1
	echo 0 >"$switch/enable" && eventually has_no_carrier h1 && echo 1 >"$switch/enable"
}

test_switch() {
	local before
	before=$(queries)
	check "the switch is rebooted" reboot_switch
	comes_back "switch" "$before" has_carrier h1
	check "a group is heard as before" eventually group_is_heard switch
}

replace() { # host, Ethernet address of the new one
	at "$1" rdma link delete "$1" &&
		ip -n "$1" link set port1 down &&
		ip -n "$1" link set port1 address "$2" up &&
		at "$1" rdma link add "$1" type softib netdev port1 &&
		interface_up "$1"
}

test_replacement() {
	local before
	# h2 begins to count from the start.
	before=$(($(queries) - $(queries_of h2)))
	check "h1 knows h2" host_reaches h1 "$(v4_of h2)"
	check "h2 is replaced by another with its IP address" replace h2 02:99:99:99:99:01
	comes_back "replacement" "$before" has_carrier h2
	check "it is another one" matches ':00:99:99:ff:fe:99:99:01$' "$(hardware_address_at h2)"
}

# --- how many ask for ways --------------------------------------------------------------------------------------------------------

# They talk all the time.
converse() { # command that a host calls another with
	local pair
	for pair in "${travellers[@]}"; do
		"$1" "${pair%:*}" "${pair#*:}" >"/tmp/talk.$pair" 2>&1 &
		jobs_running+=($!)
	done
}

# Each sends, and hears that it came.
by_tcp() { # host, other
	at "$2" iperf3 -s -1 -p "521${1#h}" &
	eventually listens_tcp "$2" "521${1#h}"
	at "$1" iperf3 -c "$(v4_of "$2")" -p "521${1#h}" -t 300 -b 200K -l 1K --bidir
}

by_ping() { # host, other
	at "$1" ping -q -i 0.2 "$(v4_of "$2")"
}

packets_of() { # host
	at "$1" cat /sys/class/net/ib0/statistics/rx_packets
}

# Which neighbours of each host nothing confirms: TCP does so as long as it hears of them.
watch_confirmations() {
	local host
	for host in "${hosts[@]}"; do
		at "$host" python3 selftests/infiniband/unconfirmed.py >"/tmp/unconfirmed.$host" &
		jobs_running+=($!)
	done
}

# The ways at which a conversation stood still: a path that nothing has confirmed may be asked for.
standstills() {
	local pair one other
	for pair in "${travellers[@]}"; do
		one=${pair%:*} other=${pair#*:}
		grep -m 1 "^$(v4_of "$other") " "/tmp/unconfirmed.$one"
		grep -m 1 "^$(v4_of "$one") " "/tmp/unconfirmed.$other"
	done
}

declare -A received

remember_packets() {
	local host
	for host in "${hosts[@]}"; do
		received[$host]=$(packets_of "$host")
	done
}

# Each host is in a conversation, and in each of them it hears more than two packets a second.
all_have_heard() { # seconds since remember_packets
	local host
	for host in "${hosts[@]}"; do
		holds "$(packets_of "$host")" -ge $((received[$host] + 2 * $1)) || return
	done
}

# Another subnet manager takes over while hosts talk; how many paths they ask for.
talk_through_handover() { # title, command of a conversation, seconds to watch
	stop_jobs
	converse "$2"
	remember_packets
	check "$1: all hosts talk" eventually all_have_heard 10
	pause 5
	check "$1: queries of paths are watched" watch_queries
	watch_confirmations
	start_sm h2 "sm_priority 15"
	check "$1: another subnet manager takes over" eventually master_is h3 h2
	remember_packets
	pause "$3"
	check "$1: all hosts have talked meanwhile" all_have_heard "$3"
	asked=$(watched_queries)
	note "$1: $asked paths were asked for in $3 s after that"
	check "$1: it leaves" kill_sm h2
	check "$1: the first one takes over" eventually master_is h3 h1
}

# No path was asked for but where a conversation stood still.
only_standstills_ask() { # number of paths that were asked for
	holds "$1" -le "$(standstills | wc -l)" && return
	grep -E " $sent_events: " "$tracing/trace"
	standstills
	return 1
}

# Ways that are seen to lead there are not asked for; others once.
test_quiet() { # [seconds]
	local asked
	if [ "$(master)" != h1 ]; then
		stop_sm
		start_sm h1
		check "h1 has the subnet manager" eventually master_is h3 h1
	fi
	talk_through_handover TCP by_tcp "${1:-15}"
	[ "$driver" != oxib ] || check "TCP: none was asked for that was seen to lead there" only_standstills_ask "$asked"
	talk_through_handover ping by_ping "${1:-15}"
	[ "$driver" != oxib ] || check "ping: each way was asked for once at most" holds "$asked" -le $((2 * ${#travellers[@]}))
}

# The same, to be compared with ib_ipoib, whose questions come with those of the stack.
test_minute() {
	test_quiet 60
}

# --- connected mode ----------------------------------------------------------------------------------------------------------------

connected_mode() { # host...
	local host
	for host in "$@"; do
		at "$host" sh -c 'echo connected >/sys/class/net/ib0/mode' || return
	done
	for host in "$@"; do
		eventually has_carrier "$host" || return
	done
}

# By connections: packets that are too large for datagrams.
all_are_connected() {
	all_answer -M "do" -s 20000
}

# Sends that ended with an error, as the peer did not acknowledge them.
lost_sends() {
	local host sum=0
	for host in "${hosts[@]}"; do
		sum=$((sum + $(counter_at "$host" tx_drop_connection)))
	done
	printf '%d\n' "$sum"
}

new_lids=$((16#200))

all_lids_are_new() {
	local host
	for host in "${hosts[@]}"; do
		lid_is "$host" $((new_lids + $(host_number "$host"))) || return
	done
}

# Connections between old LIDs are closed at once; those that are left to their retries end with an error, seconds later.
test_connected_lids() {
	local before old lost host
	stop_jobs
	check "all hosts go to connected mode" connected_mode "${hosts[@]}"
	check "all are connected" eventually all_are_connected
	travel
	pause 2
	before=$(queries)
	old=$(lids)
	check "there is no subnet manager any more" stop_sm
	for host in "${hosts[@]}"; do
		check "$host is to have another LID" give_lid h1 "$host" $((new_lids + $(host_number "$host")))
	done
	lost=$(lost_sends)
	start_sm h1 "honor_guid2lid_file TRUE"
	check "all LIDs are others" eventually all_lids_are_new
	comes_back "change of LIDs in connected mode" "$before" master_is h3 h1
	note "LIDs were $old, are $(lids)"
	check "all are connected again" eventually all_are_connected
	# A connection that is made while LIDs change may lead to an old one.
	note "$(($(lost_sends) - lost)) sends were lost with their connections"
}

bring_up_fabric star h1
load_driver "$driver" || bail_out "$driver could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
check "all hosts reach each other" eventually all_answer
check "two are members of a group" listening
check "and hear it" eventually group_is_heard first
travel
for event in "${events[@]}"; do
	"test_$event"
done
stop_jobs
check "$driver can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
