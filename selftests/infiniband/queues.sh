#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# queues.sh [DRIVER of n2]: oxib or ib_ipoib
#
# Several receive queues (ethtool -L ib0 rx N): each peer is told one queue pair of them and always the same one, by ARP and
# by neighbour discovery, whichever side asks. Requests of ARP to all give the main one, and each peer is told its own again after
# them. The interface and its address stay; connected mode works beside it. The interface with the queues is that of h1 in n1; its
# peers are all other hosts, those in n2 by oxib or by the kernel's driver.
#
# nodes: 2
# smp: 4
# kernels: fast
# timeout: 600

. selftests/lib/infiniband.sh

shared_topology=several
queues=4
drivers=(oxib "${1:-oxib}")
pair="oxib and ${drivers[1]}"
subject4=10.88.1.1
subject6=fd00:88::1:1

current() { # TX|RX: how many there are
	at h1 ethtool -l ib0 | sed -n '/Current/,$p' | awk -v name="$1:" '$1 == name { print $2 }'
}

most() { # TX|RX
	at h1 ethtool -l ib0 | sed '/Current/,$d' | awk -v name="$1:" '$1 == name { print $2 }'
}

identity() { # what stays of h1's interface
	printf '%s %s\n' "$(at h1 cat /sys/class/net/ib0/ifindex)" "$(hardware_address_at h1)"
}

peers_here=(h1 h2 h3 h4)
[ "$NODE" != 1 ] || peers_here=(h2 h3 h4)

# --- what the peers know -------------------------------------------------------------------------------------------------------

# Everything that a peer ever believes of the subject's addresses.
watch_neighbours() { # believed|announced
	local host
	for host in "${peers_here[@]}"; do
		ip -n "$host" monitor neigh dev ib0 >"/tmp/$1.$host" 2>/dev/null &
		jobs_running+=($!)
	done
	pause 1
}

believed() { # host, address of the subject: the link-layer addresses
	awk -v subject="$2" '$1 == subject { for (i = 2; i < NF; i++) if ($i == "lladdr") print $(i + 1) }' "/tmp/believed.$1" | sort -u
}

now_believed() { # host
	{
		ip -n "$1" neighbour show to "$subject4" dev ib0
		ip -n "$1" neighbour show to "$subject6" dev ib0
	} | awk '{ for (i = 1; i < NF; i++) if ($i == "lladdr") print $(i + 1) }' | sort -u
}

own_of() { # host: what it is told to be its own
	believed "$1" "$subject6"
}

believes_one() { # host
	equal 1 "$(own_of "$1" | wc -l)" || {
		grep -E "^$subject6 " "/tmp/believed.$1"
		return 1
	}
}

# By ARP also the main one, which requests to all give.
believes_no_other() { # host
	holds -n "$(believed "$1" "$subject4")" || return
	equal '' "$(believed "$1" "$subject4" | grep -vxF -e "$(own_of "$1")" -e "$main")" || {
		grep -E "^$subject4 " "/tmp/believed.$1"
		return 1
	}
}

# What an announcement to all gives; those that have that one already are told nothing new.
believes_the_main_one() { # host
	[ "$(own_of "$1")" = "$main" ] || grep "^$subject4 .*lladdr $main" "/tmp/announced.$1"
}

believes_the_same_now() { # host
	equal "$(own_of "$1")" "$(now_believed "$1")"
}

# --- which side asks -------------------------------------------------------------------------------------------------------------

peers_ask() {
	local host
	for host in "${peers_here[@]}"; do
		host_reaches "$host" "$subject4" && host_reaches "$host" "$subject6" || return
	done
}

subject_asks() {
	local node host
	for node in 1 2; do
		for host in h1 h2 h3 h4; do
			[ "$node $host" != "1 h1" ] || continue
			host_reaches h1 "$(v4_of "$host" "$node")" && host_reaches h1 "$(v6_of "$host" "$node")" || return
		done
	done
}

flush_all_peers() {
	flush_neighbours "${peers_here[@]}"
}

# The stack's own look whether a neighbour is there, which is unicast.
probe_from() { # host...
	local host address
	for host in "$@"; do
		for address in $(ip -n "$host" -j neighbour show dev ib0 | jq -r '.[] | select(.lladdr) | .dst'); do
			ip -n "$host" neighbour change "$address" dev ib0 nud probe 2>/dev/null
		done
	done
	pause 1
}

turn() { # description, what all nodes do before, the node that asks
	barrier "$1"
	$2
	barrier "$1"
	case $3 in
	peers) check "$pair: $1: the peers reach h1" peers_ask ;;
	subject) on_node 1 check "$pair: $1: h1 reaches the peers" subject_asks ;;
	esac
	barrier "$1"
}

nothing() {
	:
}

flush_subject() {
	on_node 1 flush_neighbours h1
}

flush_both() {
	flush_subject
	flush_all_peers
}

probe_all() {
	on_node 1 probe_from h1
	probe_from "${peers_here[@]}"
}

# The carrier goes and comes: oxib says where it is.
announce_again() {
	on_node 1 at h1 ip link set ib0 down
	on_node 1 interfaces_up h1
	pause 1
}

# How many transmit queues have processors that no other has.
queues_of_their_own() {
	at h1 sh -c 'cat /sys/class/net/ib0/queues/tx-*/xps_cpus' | grep -v '^0*$' | sort | uniq -u | wc -l
}

processors_of_the_first() {
	at h1 cat /sys/class/net/ib0/queues/tx-0/xps_cpus
}

# --- the tests -----------------------------------------------------------------------------------------------------------------

test_counts() {
	local before processors
	before=$(identity)
	check_equal "there can be as many receive queues as completion vectors" "$queues" "$(most RX)"
	check_equal "there is one at first" 1 "$(current RX)"
	check "there can be $queues" at h1 ethtool -L ib0 rx "$queues"
	check_equal "there are $queues" "$queues" "$(current RX)"
	check_equal "interface and address are the same" "$before" "$(identity)"
	check "it still has carrier" has_carrier h1
	check "there are several transmit queues" holds "$(current TX)" -ge 2
	check_equal "each has processors of its own" "$(current TX)" "$(queues_of_their_own)"
	check "none is refused in words" matches 'no RX or TX' "$(at h1 ethtool -L ib0 rx 0 2>&1)"
	check "too many are refused in words" matches 'exceeds maximum' "$(at h1 ethtool -L ib0 rx $((queues + 1)) 2>&1)"
	check_equal "there are as many as before" "$queues" "$(current RX)"
	check "transmit queues can be fewer" at h1 ethtool -L ib0 tx 1
	check "and more again" at h1 ethtool -L ib0 tx "$(most TX)"
	check_equal "each has processors of its own again" "$(most TX)" "$(queues_of_their_own)"
	check_equal "interface and address are still the same" "$before" "$(identity)"
	check_equal "the receive queues are as many" "$queues" "$(current RX)"
	check "an administrator gives the first transmit queue others" at h1 sh -c 'echo 7 >/sys/class/net/ib0/queues/tx-0/xps_cpus'
	processors=$(processors_of_the_first)
	check "the rings become longer" at h1 ethtool -G ib0 rx 512
	check_equal "the queue has the administrator's processors still" "$processors" "$(processors_of_the_first)"
	check "it has carrier again" eventually has_carrier h1
}

queues_that_count() {
	local queue count=0
	for ((queue = 0; queue < queues; queue++)); do
		[ "$(counter_at h1 "rx-$queue.packets")" = 0 ] || count=$((count + 1))
	done
	printf '%d\n' "$count"
}

rain() {
	while :; do
		at "$1" ping -q -f -c 2000 -W 1 "$2"
	done
}

announce_to_all() { # times, one soon after the other
	local round
	for ((round = 0; round < $1; round++)); do
		in_background at h1 arping -q -U -c 1 -I ib0 "$subject4"
		pause 0.1
	done
}

times_asked() { # address: how often h1 asked for its holder, as it knew
	grep -c "^$1 .*PROBE" /tmp/asked
}

change_again_and_again() { # times
	local round
	for ((round = 0; round < $1; round++)); do
		at h1 ethtool -L ib0 rx $((1 + (round * 3 + 1) % queues)) 2>/tmp/change || grep -q 'no channel\|unmodified' /tmp/change || return
		pause 0.5
	done
	at h1 ethtool -L ib0 rx "$queues" 2>/dev/null
	equal "$queues" "$(current RX)"
}

all_connected() {
	local host
	for host in "${hosts[@]}"; do
		at "$host" sh -c 'echo connected >/sys/class/net/ib0/mode' || return
	done
	for host in "${hosts[@]}"; do
		eventually has_carrier "$host" || return
	done
}

peers_send_large() {
	local host
	for host in "${peers_here[@]}"; do
		eventually host_answers "$host" "$subject4" -M do -s 20000 || return
	done
}

has_large_path() { # address
	local route
	route=$(at h1 ip route get "$1") && ! grep ' mtu ' <<<"$route"
}

# Packets that were on their way by a queue that is another destination's now find no connection there: that is no reason to tell
# their senders of a smaller MTU, to which they keep for ten minutes.
change_transmit_queues() { # times
	local round host
	for host in h1 h2 h3 h4; do
		in_background_at h1 ping -q -i 0.02 -M "do" -s 20000 "$(v4_of "$host" 2)"
	done
	for ((round = 0; round < $1; round++)); do
		at h1 ethtool -L ib0 tx $((round % 2 ? $(most TX) : 1)) || return
		eventually has_carrier h1 || return
		pause 1
	done
	stop_jobs
}

bring_up_shared_fabric "${drivers[NODE - 1]}"
on_node 1 test_counts
barrier counted
on_node 1 tell main "$(hardware_address_at h1)"
main=$(told main 1)
flush_both
watch_neighbours believed
turn "the peers ask first" nothing peers
turn "the peers ask again" flush_all_peers peers
turn "h1 asks, and nobody knows anybody" flush_both subject
turn "h1 asks those that know it" flush_subject subject
turn "h1 knows the peers, and they ask" flush_all_peers subject
turn "each verifies the others" probe_all peers
turn "h1 was down and announces itself" announce_again peers
turn "h1 asks again" flush_subject subject
turn "each verifies the others again" probe_all subject
for host in "${peers_here[@]}"; do
	check "${drivers[NODE - 1]}: n$NODE $host was told one address by neighbour discovery" believes_one "$host"
	check "${drivers[NODE - 1]}: n$NODE $host was told that one and the main one by ARP" believes_no_other "$host"
	check "${drivers[NODE - 1]}: n$NODE $host knows its own by both" eventually believes_the_same_now "$host"
done
stop_jobs
tell believed "$(for host in "${peers_here[@]}"; do own_of "$host"; done)"
if [ "$NODE" = 1 ]; then
	told=$({
		told believed 1
		told believed 2
	} | sort | uniq -c)
	note "peers told of each address:" "$told"
	number=$(wc -l <<<"$told")
	check "several queue pairs were told" holds "$number" -ge 2
	check "as many receive queues have received" holds "$(queues_that_count)" -ge "$number"
fi
barrier told

# A host that takes an address over says so to all: the neighbours are told theirs again at once.
watch_neighbours announced
barrier watched
on_node 1 at h1 arping -q -U -c 2 -I ib0 "$subject4" || true
barrier announcing
for host in "${peers_here[@]}"; do
	check "${drivers[NODE - 1]}: n$NODE $host hears an announcement to all" eventually believes_the_main_one "$host"
done
for host in "${peers_here[@]}"; do
	check "${drivers[NODE - 1]}: n$NODE $host knows its own again after an announcement to all" eventually believes_the_same_now "$host"
done
stop_jobs
barrier announced

if [ "$NODE" = 1 ]; then
	check "h1 knows a peer" host_reaches h1 "$(v4_of h2)"
	ip -n h1 monitor neigh dev ib0 >/tmp/asked 2>/dev/null &
	jobs_running+=($!)
	pause 1
	began=$SECONDS
	announce_to_all 20
	check "announcements have it ask the peer" eventually times_asked "$(v4_of h2)"
	# One at once, one more every second, and the stack asks by itself.
	rounds=$((3 + SECONDS - began))
	number=$(times_asked "$(v4_of h2)")
	note "asked after 20 announcements:" "$number"
	check "not for each of them" holds "$number" -le "$rounds"
	stop_jobs
	before=$(identity)
	for host in h2 h3; do
		in_background rain "$host" "$subject4"
		in_background rain "$host" "$subject6"
	done
	check "the number of queues changes again and again, packets coming" change_again_and_again "$(some 5)"
	stop_jobs
	check_equal "interface and address are the same" "$before" "$(identity)"
fi
barrier changed
check "$pair: the peers reach h1 after that" peers_ask
barrier reached

check "${drivers[NODE - 1]}: all can be in connected mode" all_connected
barrier connected
check "$pair: packets of 20000 bytes go whole by connections" peers_send_large
barrier large
if [ "$NODE" = 1 ]; then
	check "the number of queues changes in connected mode" at h1 ethtool -L ib0 rx 2
	check "it has carrier again" eventually has_carrier h1
fi
barrier fewer
check "$pair: large packets arrive after that" peers_send_large
barrier arrived
if [ "$NODE" = 1 ]; then
	check "the number of transmit queues changes, large packets going" change_transmit_queues "$(some 6)"
	for host in h1 h2 h3 h4; do
		check "nobody was told of a smaller path MTU to n2 $host" has_large_path "$(v4_of "$host" 2)"
		check "large packets go to n2 $host" eventually host_answers h1 "$(v4_of "$host" 2)" -M "do" -s 20000
	done
fi
take_down_shared_fabric
finish
