#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What no good subnet administrator (SA) says: answers to questions about paths and groups that are about something else, in
# the wrong partition, too short, too late, twice, or that never come. And neighbours whose hardware addresses are none. No
# packet goes by what is wrong, it is counted and said, and as soon as an answer is right all goes on. An SA that refuses again
# and again what it gave before is believed. OpenSM brings the fabric up and dies; then a program in its place (sa.py) answers.
#
# nodes: 1
# kernels: fast
# timeout: 900

. selftests/lib/infiniband.sh

# What sa.py reads: what is so, and how it is to answer.
facts=/tmp/sa.facts
asked=/tmp/sa.asked

# The group that carries the broadcast group, by its MGID.
broadcast=ff12:401b:ffff::ffff:ffff

gid_of() { # host
	port_field "$1" gids/0
}

# --- the SA ----------------------------------------------------------------------------------------------------------------------

# The LIDs that OpenSM gave the groups there are: the switch knows those that more than one port is in.
groups_there() {
	at h1 saquery -g | awk -F '\\.\\.+' '/MGID/ { mgid = $NF } /Mlid/ { print "group", mgid, $NF }'
}

what_is_so() {
	local host
	for host in "${hosts[@]}"; do
		printf 'port %s %d\n' "$(gid_of "$host")" "$(port_number "$host" lid)"
	done
	for ((number = 1; number <= ${#ways[@]}; number++)); do
		printf 'port %s %d\n' "$(gid_of_way "$number")" "$(port_number h2 lid)"
	done
	# The SA gives no path from h1 to itself.
	printf 'limited %s\n' "$(gid_of h1)"
	groups_there
	printf 'mlid %s\nown %d\n' "$(groups_there | awk -v group="$broadcast" '$2 == group { print $3 }')" "$(port_number h4 lid)"
}

# From now on, of what is asked about these this is the answer; all else is answered well.
answer_so() { # 'GID HOW [NUMBER]'...
	cp "$facts.good" "$facts.new"
	[ $# = 0 ] || printf 'ask %s\n' "$@" >>"$facts.new"
	mv "$facts.new" "$facts"
}

play_sa() {
	at h4 python3 selftests/infiniband/sa.py "$(umad_of h4)" port1 "$facts" >"$asked" 2>&1 &
	jobs_running+=($!)
	eventually grep -q ready "$asked"
}

was_asked() { # extended regular expression
	grep -qE -e "$1" "$asked" || {
		tail -n 20 "$asked"
		return 1
	}
}

wrong_answers() {
	counter_at h1 sa_answers_wrong
}

wrong_answers_are() { # at least
	holds "$(wrong_answers)" -ge "$1"
}

# --- paths -----------------------------------------------------------------------------------------------------------------------

# h1 knows h2 by many names: each has a GID of its own, whose path leads to h2. Were an answer used that should not be, h2 would
# hear the packets. What is answered about each, whether that is counted as wrong, and whether it leads there all the same.
ways=(
	'status 0x0300:no' 'status 0x8000:no' 'attribute:wrong' 'first_gid:wrong' 'second_gid:wrong' 'pkey 0x8123:wrong'
	'pkey 0:wrong' 'lid 0:wrong' 'lid 0xc000:wrong' 'lid 0xffff:wrong' 'zeros 0:wrong' 'zeros 3:wrong' 'short 80:wrong'
	'cable 24:wrong' 'cable 100:wrong' 'cable 200:yes' 'method 1:no' 'tid 1:no' 'never:no' 'late:no'
	'twice:yes' 'mask 0:yes' 'mtu 1:yes' 'mtu 5:yes' 'pkey 0x7fff:yes'
)

gid_of_way() { # number
	printf 'fe80::bad:0:0:%x\n' "$1"
}

address_of_way() { # number
	printf '10.77.0.%d\n' "$1"
}

# The queue pair of a host, as the first bytes of a hardware address have it.
queue_pair_of() { # host
	hardware_address_at "$1" | cut -c 1-11
}

know_ways() {
	local number
	at h1 ip address add 10.77.0.100/24 dev ib0
	for ((number = 1; number <= ${#ways[@]}; number++)); do
		at h2 ip address add "$(address_of_way "$number")/24" dev ib0 &&
			at h1 ip neighbour replace "$(address_of_way "$number")" dev ib0 nud permanent \
				lladdr "$(queue_pair_of h2):$(printf 'fe:80:00:00:00:00:00:00:0b:ad:00:00:00:00:00:%02x' "$number")" || return
	done
}

ways_that() { # extended regular expression
	local number
	for ((number = 1; number <= ${#ways[@]}; number++)); do
		[[ ! ${ways[number - 1]} =~ :($1)$ ]] || printf '%d ' "$number"
	done
}

# Which of these ways lead to h2, tried at once.
that_lead_there() { # number...
	local number processes=() answered=''
	for number in "$@"; do
		at h1 ping -q -c 1 -W 3 "$(address_of_way "$number")" >/dev/null &
		processes+=($!)
	done
	for number in "$@"; do
		! wait "${processes[0]}" || answered+="$number "
		processes=("${processes[@]:1}")
	done
	printf '%s\n' "$answered"
}

all_lead_there() { # number...
	equal "$* " "$(that_lead_there "$@")"
}

test_paths() {
	local number before asks=() queries good bad
	read -r -a good < <(ways_that yes)
	read -r -a bad < <(ways_that 'no|wrong')
	for ((number = 1; number <= ${#ways[@]}; number++)); do
		asks+=("$(gid_of_way "$number") ${ways[number - 1]%:*}")
	done
	before=$(wrong_answers)
	queries=$(counter_at h1 sa_path_queries)
	check "h1 has ${#ways[@]} ways to h2" know_ways
	answer_so "${asks[@]}"
	check_equal "of wrong answers about paths none is used" "" "$(that_lead_there "${bad[@]}")"
	check "strange ones are" eventually all_lead_there "${good[@]}"
	check "those that are about something else are counted" eventually wrong_answers_are $((before + $(ways_that wrong | wc -w)))
	check "and the log says so" kernel_log_has 'ib0: the subnet administrator.s answer about fe80:.* is not used: '
	check "others are found meanwhile" eventually host_answers h3 "$(v4_of h1)"
	check_equal "still no wrong one is used" "" "$(that_lead_there "${bad[@]}")"
	note "$(($(counter_at h1 sa_path_queries) - queries)) questions about ${#ways[@]} paths"
	# Until the last question is given up.
	pause 5
	answer_so
	check "with right answers all ways lead there" eventually all_lead_there "${bad[@]}"
	check "what was given up was answered then, in vain" was_asked '^late fe80::bad'
}

# --- a path that is refused ------------------------------------------------------------------------------------------------------

# The GID of the first of the ways, with all its groups.
first_way=fe80:0:0:0:bad:0:0:1

# A path in use is refused again and again.
test_refusals() {
	check "h1 sends to h2 by a way" eventually host_answers h1 "$(address_of_way 1)"
	check_equal "it knows the path" yes "$(knows_path h1 "$first_way")"
	answer_so "$(gid_of_way 1) status 0x0300"
	cp "$asked" "$asked.before"
	check "h1 is to register again" register_again h1
	check "the path is given up" eventually has_lost_path h1 "$first_way" "$(address_of_way 1)"
	check "after it was refused" was_asked_again "^path $(gid_of_way 1) status"
	check "another way leads there" eventually host_answers h1 "$(address_of_way 2)"
	answer_so
	check "with a right answer the first one does, too" eventually host_answers h1 "$(address_of_way 1)"
}

# --- groups ----------------------------------------------------------------------------------------------------------------------

# Of groups, what is answered about each, and whether h1 is a member then. An answer that has another value than was asked for
# ib_sa takes for a refusal.
memberships=(
	'status 0x0200:no' 'first_gid:wrong' 'scope:wrong' 'lid 5:wrong' 'lid 0:wrong' 'lid 0xffff:wrong'
	'second_gid:no' 'pkey 0x8123:no' 'mtu 1:no' 'mtu 5:no' 'mtu 6:no' 'qkey 0x1234:no' 'method 1:no' 'never:no'
	'late:no' 'twice:yes' 'mask 0:yes'
)

groups_are() { # number
	equal "$1" "$(counter_at h1 multicast_groups)"
}

joined_all() { # number
	local number
	for ((number = 1; number <= $1; number++)); do
		at h1 ip address add "239.9.0.$number/32" dev ib0 autojoin || return
	done
}

left_all() { # number
	local number
	for ((number = 1; number <= $1; number++)); do
		at h1 ip address delete "239.9.0.$number/32" dev ib0 || return
	done
}

test_groups() {
	local number before groups asks=() wrong=0 members=0
	for ((number = 1; number <= ${#memberships[@]}; number++)); do
		asks+=("$(printf 'ff12:401b:ffff::f09:%x' "$number") ${memberships[number - 1]%:*}")
		case ${memberships[number - 1]} in
		*:wrong) wrong=$((wrong + 1)) ;;
		*:yes) members=$((members + 1)) ;;
		esac
	done
	before=$(wrong_answers)
	groups=$(counter_at h1 multicast_groups)
	answer_so "${asks[@]}"
	check "h1 wants ${#memberships[@]} groups" joined_all ${#memberships[@]}
	check "wrong answers are counted" eventually wrong_answers_are $((before + wrong))
	check "it was asked for the last one" eventually was_asked "^join ff12:401b:ffff::f09:$(printf '%x' ${#memberships[@]}) "
	check "h1 is a member of those of which the answers were only strange" eventually groups_are $((groups + members))
	answer_so
	check "with right answers it is of all" eventually groups_are $((groups + ${#memberships[@]}))
	check "and leaves them" left_all ${#memberships[@]}
	check "it is a member of none of them any more" eventually groups_are "$groups"
}

# --- the broadcast group ------------------------------------------------------------------------------------------------------------

come_up_with() { # how, with its number
	at h1 ip link set ib0 down
	answer_so "$broadcast $1"
	cp "$asked" "$asked.before"
	at h1 ip link set ib0 up && eventually was_asked_again "^join $broadcast ${1%% *}"
}

was_asked_again() { # extended regular expression
	tail -n "+$(($(wc -l <"$asked.before") + 1))" "$asked" | grep -qE -e "$1"
}

mtu_is() { # number
	equal "$1" "$(mtu_of h1)"
}

test_broadcast() {
	local how most
	most=$(mtu_of h1)
	for how in 'status 0x0200' first_gid scope second_gid 'pkey 0x8123' 'lid 5' 'mtu 0' 'mtu 6' 'mtu 63' never; do
		check "h1 comes up, and the broadcast group is answered with: $how" come_up_with "$how"
		pause 0.5
		check "it has no carrier" has_no_carrier h1
	done
	answer_so
	check "with a right answer it has" eventually has_carrier h1
	check "and is reached" eventually host_reaches h2 "$(v4_of h1)"
	check "h1 comes up with a broadcast group of the smallest MTU" come_up_with "mtu 1"
	check "it has carrier" eventually has_carrier h1
	check "and that MTU" eventually mtu_is 252
	check "what fits is sent" eventually host_reaches h1 "$(v4_of h2)" -s 200
	check "h1 comes up with one of the largest" come_up_with "mtu 5"
	check "it has carrier" eventually has_carrier h1
	check "and an MTU that its port carries" eventually mtu_is 4092
	check "h1 comes up with two answers" come_up_with twice
	check "and the MTU of before" eventually mtu_is "$most"
	check "large packets are sent" eventually host_reaches h1 "$(v4_of h2)" -s $((most - 28)) -M do
}

# --- a broadcast group that is not renewed ------------------------------------------------------------------------------------------

# 239.9.8.7, as debugfs writes it.
elsewhere=ff12:401b:ffff:0:0:0:f09:807

# The packets of h1 to that group, which wait for it to be found.
waiting_packets() {
	awk -v group="$elsewhere" '$1 == "GID:" { is_it = $2 == group } is_it && $1 == "queuelen:" { print $2 }' \
		/sys/kernel/debug/ipoib/ib0@h1_mcg
}

wait_has_ended() { # with more than so many destinations that were not found
	equal 0 "$(waiting_packets)" && holds "$(counter_at h1 address_failed)" -gt "$1"
}

# The memberships end, and that of the broadcast group is not granted again. It is heard as before; other groups are not found.
test_renewal() {
	local failed
	answer_so "$broadcast never"
	cp "$asked" "$asked.before"
	check "h1 is to register again" register_again h1
	check "it asks for the broadcast group, and is not answered" eventually was_asked_again "^join $broadcast never"
	failed=$(counter_at h1 address_failed)
	check "h1 sends to another group" at h1 python3 selftests/ipoib/group.py say 239.9.8.7 5000 waits
	check "it keeps its carrier" has_carrier h1
	check "the packet does not wait for ever" eventually wait_has_ended "$failed"
	check "nor until the broadcast group is given up" has_carrier h1
	# Before, as h1 may ask at any time.
	cp "$asked" "$asked.before"
	answer_so
	at h1 python3 selftests/ipoib/group.py say 239.9.8.7 5000 goes
	check "with a right answer the broadcast group is renewed" eventually was_asked_again "^join $broadcast good"
	check "h1 is reached" eventually host_reaches h2 "$(v4_of h1)"
}

# What the log of h1 has of a broadcast group that it may not join.
refusals_logged() {
	dmesg | grep -c 'infiniband h1: ib0: port 1 cannot join the broadcast group'
}

more_are_logged() { # than so many
	holds "$(refusals_logged)" -gt "$1"
}

# It is asked for again and again, and refused each time: after a minute it is given up. h1 asks for no path meanwhile, and finds out
# that there is an SA, also as a limited member, which has no path to itself.
test_refused_renewal() {
	local lines
	lines=$(refusals_logged)
	answer_so "$broadcast status 0x0200"
	cp "$asked" "$asked.before"
	check "h1 is to register again" register_again h1
	check "it asks for the broadcast group, and is refused" eventually was_asked_again "^join $broadcast status"
	check "it keeps its carrier" has_carrier h1
	pause 45
	check "after a minute of refusals it has none" eventually has_no_carrier h1
	check "the log says so" eventually more_are_logged "$lines"
	answer_so
	check "with a right answer it has carrier" eventually has_carrier h1
	check "h1 is reached" eventually host_reaches h2 "$(v4_of h1)"
}

# --- neighbours ---------------------------------------------------------------------------------------------------------------------

# h3 is said to be where it is not, from the far end of h1's cable: the switch would not let other partitions pass.
say() { # kind
	python3 selftests/infiniband/neighbour.py s1-1 "$(port_number h1 lid)" "$(port_number h4 lid)" \
		"$((16#$(queue_pair_of h1 | cut -c 4- | tr -d :)))" "$1" "$(v4_of h3)" "$(v6_of h3)" "$(v4_of h1)" "$(v6_of h1)" \
		"$(hardware_address_at h3)"
}

address_of_neighbour() { # IP address
	at h1 ip -j neighbour show "$1" dev ib0 | jq -r '.[0].lladdr'
}

is_where_it_is() {
	local address
	for address in "$(v4_of h3)" "$(v6_of h3)"; do
		equal "$(hardware_address_at h3)" "$(address_of_neighbour "$address")" || return
	done
}

# The stack takes the last of several at once, not one every second.
take_all() {
	at h1 sh -c 'echo 0 >/proc/sys/net/ipv4/neigh/ib0/locktime'
}

port_counter() { # host, counter
	port_field "$1" "hw_counters/$2"
}

wrong_pkeys_are() { # at least
	holds "$(port_counter h1 wrong_pkey)" -ge "$1"
}

finds_h3_again() {
	flush_neighbours h1
	host_answers h1 "$(v4_of h3)" && host_answers h1 "$(v6_of h3)"
}

test_neighbours() {
	local before number
	take_all
	check "h1 knows h3" eventually host_answers h1 "$(v4_of h3)"
	check "by IPv6, too" eventually host_answers h1 "$(v6_of h3)"
	before=$(counter_at h1 rx_packets)
	check "answers with addresses of wrong lengths" say lengths
	check "come, for the stack to judge" eventually came $((before + 20))
	check "they change nothing" is_where_it_is
	before=$(port_counter h1 wrong_pkey)
	number=$(say key)
	check "answers in another partition do not come" eventually wrong_pkeys_are $((before + number))
	for kind in zero group; do
		before=$(counter_at h1 rx_packets)
		number=$(say "$kind")
		check "answers with an address of $kind come" eventually came $((before + number))
		host_answers h1 "$(v4_of h3)"
		host_answers h1 "$(v6_of h3)"
		check "h1 finds h3 again" eventually finds_h3_again
		check "others are reached" eventually host_answers h1 "$(v4_of h2)"
	done
}

# --- strangers ---------------------------------------------------------------------------------------------------------------------

# Of each neighbour that h1 knows a stranger says that it is elsewhere, again and again. What h1 asks the SA for that is bounded,
# and the neighbours stay reached.
test_strangers() {
	local asked host round
	for host in h2 h3 h4; do
		check "h1 knows $host" eventually host_answers h1 "$(v4_of "$host")"
	done
	# What was asked a moment ago is not asked again, whatever neighbours say.
	pause 3
	asked=$(counter_at h1 sa_path_queries)
	for round in 1 2 3 4; do
		for host in h2 h3 h4; do
			say_elsewhere "$host" $((round + 100))
		done
		pause 2.5
	done
	asked=$(($(counter_at h1 sa_path_queries) - asked))
	note "h1 asked the SA $asked times for 12 lies"
	check "a stranger's word has h1 ask the SA" holds "$asked" -ge 1
	check "not for each of his lies" holds "$asked" -le 9
	for host in h2 h3 h4; do
		check "$host is reached" eventually host_answers h1 "$(v4_of "$host")"
	done
}

say_elsewhere() { # host, LID
	python3 selftests/infiniband/neighbour.py s1-1 "$(port_number h1 lid)" "$2" \
		"$((16#$(queue_pair_of h1 | cut -c 4- | tr -d :)))" elsewhere "$(v4_of "$1")" "$(v6_of "$1")" "$(v4_of h1)" "$(v6_of h1)" \
		"$(hardware_address_at "$1")" >/dev/null
}

came() { # packets at least
	holds "$(counter_at h1 rx_packets)" -ge "$1"
}

# ------------------------------------------------------------------------------------------------------------------------------------

bring_up_fabric star h4
load_driver oxib || bail_out "oxib could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
check "h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)"
check "h1 asks for h3 by IPv6" eventually host_reaches h1 "$(v6_of h3)"
mount_debugfs
what_is_so >"$facts.good"
answer_so
check "the subnet manager dies" kill_sm h4
check "another one answers in its place" play_sa
test_paths
test_refusals
test_groups
test_renewal
test_refused_renewal
test_broadcast
check "h1 has its addresses, of which a small MTU took one" interface_up h1
test_strangers
test_neighbours
check "h1 takes large packets as ever" eventually host_answers h2 "$(v4_of h1)" -s 20000
check "oxib can be unloaded" unload_driver
stop_jobs
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
