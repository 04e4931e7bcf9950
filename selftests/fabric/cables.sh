#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Each end of a cable is a net device to everybody else, whatever short cut frames take while nobody looks: at either end
# tcpdump sees what passes in both directions, netem loses and damages it, a filter drops it where it leaves and where it
# arrives, and it is counted. It gets no frame that is longer than its MTU. The ends tell each other of their links over a cable
# that loses frames, too.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/fabric.sh

# The two ends of the cable of h1: namespace (the script's own is called -) and net device.
ends=('- s1-1' 'h1 port1')

at_end() { # 'namespace device', command...
	local namespace=${1%% *}
	if [ "$namespace" = - ]; then
		"${@:2}"
	else
		at "$namespace" "${@:2}"
	fi
}

echoed() { # echoes
	at h1 ping -q -c "$1" -i 0.05 -W "$patience" "$(v4_of h2)"
}

# Of many echoes some come back and some do not.
some_are_lost() {
	local answered
	answered=$(at h1 ping -q -c 100 -i 0.02 -W 1 "$(v4_of h2)" | sed -nE 's/.* ([0-9]+) received.*/\1/p')
	holds "$answered" -gt 0 && holds "$answered" -lt 100
}

is_not_reached() {
	! at h1 ping -q -c 3 -i 0.2 -W 1 "$(v4_of h2)"
}

is_reached() {
	eventually host_answers h1 "$(v4_of h2)"
}

# --- captures ----------------------------------------------------------------------------------------------------------------

# How many packets with data from h1 and from h2 a capture has; each of its packets is checked.
holds_both() { # file
	local counts
	counts=$(python3 selftests/fabric/captured.py "$1" "$(port_number h1 lid)" "$(port_number h2 lid)") || {
		printf '%s\n' "$counts"
		return 1
	}
	holds "${counts% *}" -ge 10 && holds "${counts#* }" -ge 10
}

# With a capture at that end alone.
captured_at() { # 'namespace device'
	local device=${1#* } capture
	capture=(tcpdump --immediate-mode -U -i "$device" -w "/tmp/$device.pcap")
	if [ "${1%% *}" = - ]; then
		in_background "${capture[@]}"
	else
		in_background_at "${1%% *}" "${capture[@]}"
	fi
	eventually test -s "/tmp/$device.pcap" && echoed 10 && eventually holds_both "/tmp/$device.pcap" || return
	stop_jobs
}

# --- queueing disciplines ----------------------------------------------------------------------------------------------------

netem() { # 'namespace device', option...
	at_end "$1" tc qdisc replace dev "${1#* }" root netem "${@:2}"
}

without_netem() { # 'namespace device'
	at_end "$1" tc qdisc delete dev "${1#* }" root
}

damaged() { # host: by its HCA's counters
	port_field "$1" hw_counters/bad_icrc
}

# What leaves at one end is damaged, and the other end's HCA does not take it. The way back is a good one.
damage_is_noticed() {
	local before
	before=$(damaged h1)
	netem '- s1-1' corrupt 100% || return
	at h2 ping -q -c 40 -i 0.02 -W 1 "$(v4_of h1)"
	without_netem '- s1-1'
	holds "$(damaged h1)" -gt "$before"
}

# --- filters -----------------------------------------------------------------------------------------------------------------

filter() { # 'namespace device', ingress|egress
	at_end "$1" tc qdisc add dev "${1#* }" clsact &&
		at_end "$1" tc filter add dev "${1#* }" "$2" protocol 0x88b5 u32 match u32 0 0 action drop
}

without_filter() { # 'namespace device'
	at_end "$1" tc qdisc delete dev "${1#* }" clsact
}

# --- counters ----------------------------------------------------------------------------------------------------------------

counted_at() { # 'namespace device', rx|tx
	at_end "$1" cat "/sys/class/net/${1#* }/statistics/$2_packets"
}

both_ends_count() {
	local end direction before=() after=()
	for end in "${ends[@]}"; do
		before+=("$(counted_at "$end" rx)" "$(counted_at "$end" tx)")
	done
	echoed 10 || return
	for end in "${ends[@]}"; do
		after+=("$(counted_at "$end" rx)" "$(counted_at "$end" tx)")
	done
	for direction in 0 1 2 3; do
		holds "${after[direction]}" -ge $((before[direction] + 10)) || return
	done
}

# --- lengths -----------------------------------------------------------------------------------------------------------------

lost_before_leaving() { # net device
	cat "/sys/class/net/$1/statistics/tx_dropped"
}

# With a cable that carries short ones.
long_packets_are_lost() {
	local before
	before=$(lost_before_leaving s1-1)
	eventually host_answers h2 "$(v4_of h1)" || return
	at h2 ping -q -c 3 -i 0.2 -W 1 -s 3000 "$(v4_of h1)"
	holds "$(lost_before_leaving s1-1)" -gt "$before"
}

# A driver may do anything with what is longer than its device carries. The checks that follow need the cable as it was.
long_packets_stay() {
	local status=0
	ip link set s1-1 mtu 2000 || return
	long_packets_are_lost || status=1
	ip link set s1-1 mtu 9000 && return "$status"
}

# --- signals between the ends -------------------------------------------------------------------------------------------------

# Of both ends' ports, where it is not the end that was commanded.
link_of_h1() {
	port_field h1 phys_state
}

link_of_switch() {
	at h2 ibportstate -D 0,1 1 query | awk -F: '/^PhysLinkState/ { gsub(/\./, "", $2); print ": " $2 }'
}

link_is() { # link_of_h1|link_of_switch, LinkUp|Polling
	matches ": $2$" "$("$1")"
}

command_switch() { # disable|enable
	at h2 ibportstate -D 0,1 1 "$1"
}

# By a packet that h1 answers by the same link.
command_h1_from_h2() { # disable
	at h2 python3 selftests/fabric/port.py "$(umad_of h2)" 1 "$1" "$(port_number h1 lid)"
}

command_h1() { # disable|enable
	at h1 python3 selftests/fabric/port.py "$(umad_of h1)" 1 "$1"
}

# One end tells the other that its link goes down, and that it comes. Of these frames half are lost. If each was sent once,
# three rounds would succeed once in 64 runs.
links_come_up() { # commanded end, its command, how the other end's link is seen
	local round
	netem "$1" loss 50% || return
	for round in 1 2 3; do
		note "round $round"
		"$2" disable && eventually link_is "$3" Polling || return
		"$2" enable && eventually link_is "$3" LinkUp || return
	done
	without_netem "$1"
}

answers_and_goes_down() {
	command_h1_from_h2 disable && eventually link_is link_of_switch Polling && command_h1 enable && eventually link_is link_of_switch LinkUp
}

# What a program sends to another port, which is no answer to a command. The cable carries frames all the time.
disabled_h1_sends_nothing() {
	local before
	command_h1 disable && eventually link_is link_of_switch Polling || return
	before=$(port_field h1 hw_counters/send_dropped)
	at h1 python3 selftests/fabric/port.py "$(umad_of h1)" 1 enable "$(port_number h2 lid)" && return 1
	holds "$(port_field h1 hw_counters/send_dropped)" -gt "$before" && command_h1 enable && eventually link_is link_of_switch LinkUp
}

# That the cable carries frames is told several times in the first five seconds. What comes after the command undoes nothing.
stays_down_after_plugging() {
	pull h1 && eventually link_is link_of_switch Polling && put_back h1 && eventually link_is link_of_switch LinkUp || return
	command_h1 disable && eventually link_is link_of_switch Polling || return
	pause 6
	link_is link_of_switch Polling && command_h1 enable && eventually link_is link_of_switch LinkUp
}

bring_up_fabric star h1
check "IP over InfiniBand comes up" ipoib_up h1 h2
check "h1 reaches h2" is_reached
# It would take hosts for gone whose cables lose everything.
stop_sm
check "net devices count what passes" both_ends_count
for end in "${ends[@]}"; do
	check "tcpdump at ${end#* } sees both directions, with right CRCs" captured_at "$end"
done
for end in "${ends[@]}"; do
	check "netem at ${end#* } is to lose all" netem "$end" loss 100%
	check "it does" is_not_reached
	check "it is to lose some" netem "$end" loss 30%
	check "it does that" some_are_lost
	check "netem can be taken away" without_netem "$end"
	check "h1 reaches h2 again" is_reached
done
check "what is damaged on the way is not taken" damage_is_noticed
for end in "${ends[@]}"; do
	for direction in egress ingress; do
		check "a filter is to drop all, $direction at ${end#* }" filter "$end" "$direction"
		check "it does" is_not_reached
		check "the filter can be taken away" without_filter "$end"
		check "h1 reaches h2 again" is_reached
	done
done
check "a packet that is longer than its cable carries does not leave" long_packets_stay
check "h1 answers a command that disables its link, and the link goes down" answers_and_goes_down
check "a program's packets do not leave h1 by a link that is disabled" disabled_h1_sends_nothing
check "h1 hears of the switch's link over a cable that loses half of all frames" links_come_up "${ends[0]}" command_switch link_of_h1
check "the switch hears of h1's link over such a cable" links_come_up "${ends[1]}" command_h1 link_of_switch
check "it is told of a command right after the cable was plugged, and of nothing else" stays_down_after_plugging
take_down_fabric
finish
