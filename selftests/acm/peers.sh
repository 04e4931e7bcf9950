#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The address cache within one subnet: no question for a cached neighbour leaves a host, and nothing else changes. Who does not
# answer the exchange of queue pairs is found as ever, and not asked again and again. What others say of themselves is kept, if
# that is asked for and it is where it comes from, and never in place of what an administrator says.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/acm.sh

# --- the cables ------------------------------------------------------------------------------------------------------------------

watch() { # host...
	local host
	for host in "$@"; do
		: >"/tmp/cable.$host"
		at "$host" python3 selftests/acm/cable.py port1 >>"/tmp/cable.$host" &
		jobs_running+=($!)
		eventually grep -q listening "/tmp/cable.$host" || bail_out "the cable of $host cannot be watched"
	done
}

sent() { # host, extended regular expression: how many packets of that kind since the last look
	grep -cE "^($2)$" "/tmp/cable.$1"
}

look_anew() { # host...
	local host
	for host in "$@"; do
		: >"/tmp/cable.$host"
	done
}

has_sent() { # host, kind
	holds "$(sent "$@")" -gt 0
}

# --- cached neighbours -----------------------------------------------------------------------------------------------------------

test_cached() {
	look_anew h1 h2
	flush_neighbours h1 h2
	check "h1 reaches h2 by IPv4" host_reaches h1 "$(v4_of h2)"
	check "h1 reaches h2 by IPv6" host_reaches h1 "$(v6_of h2)"
	check "h2 reaches h1 by IPv4" host_reaches h2 "$(v4_of h1)"
	check_equal "h1 sent no question to all" 0 "$(sent h1 'arp group|nd group')"
	check_equal "nor did h2" 0 "$(sent h2 'arp group|nd group')"
	check "but asked for the queue pair" eventually has_sent h1 sidr
	look_anew h1
	# What the stack verifies by asking one is answered, too.
	at h1 ip neighbour change "$(v4_of h2)" dev ib0 nud probe
	check "h1 reaches h2 while its entry is verified" host_reaches h1 "$(v4_of h2)"
	check_equal "h1 sent no question to h2" 0 "$(sent h1 'arp one|nd one|arp group')"
}

test_known_twice() {
	look_anew h1
	flush_neighbours h1
	check "h1 reaches h2 again" host_reaches h1 "$(v4_of h2)"
	check_equal "without an exchange or a query: both are known" 0 "$(sent h1 'sidr|sa|arp group')"
}

# h3 knows h1's hardware address and does not ask in its turn: what h1 keeps is the answer, not what it learns of who asks.
test_answer_kept() {
	local sent answered
	check "h3 is told where h1 is" \
		at h3 ip neighbour replace "$(v4_of h1)" lladdr "$(at h1 cat /sys/class/net/ib0/address)" dev ib0 nud permanent
	check "h1 and h3 have entries of each other" eval 'know h1 h3 && know h3 h1'
	sent=$(statistic_at h1 sidr-sent)
	check "h1 reaches h3, and has its answer" eventually has_answer_of_h3
	check "it asked for the queue pair" holds "$(statistic_at h1 sidr-sent)" -gt "$sent"
	sent=$(statistic_at h1 sidr-sent)
	answered=$(statistic_at h1 arp-answered)
	flush_neighbours h1
	check "h1 reaches h3 again" host_reaches h1 "$(v4_of h3)"
	check "by the cache" holds "$(statistic_at h1 arp-answered)" -gt "$answered"
	check_equal "without an exchange: the answer was kept" "$sent" "$(statistic_at h1 sidr-sent)"
}

# On a busy host an answer may come later than h1 waits for it: then h1 asks all, and h3 again some seconds later.
has_answer_of_h3() {
	flush_neighbours h1
	host_answers h1 "$(v4_of h3)" && says_number h1 "$(v4_of h3)" "$(qpn_of h3)"
}

# Duplicate address detection asks from no address.
test_announcements() {
	look_anew h1
	at h1 ip address add fd00:88::beef/64 dev ib0
	check "whether an address is free is asked as ever" eventually has_sent h1 'nd group'
	at h1 ip address delete fd00:88::beef/64 dev ib0
	look_anew h1
	at h1 ip link set ib0 down
	at h1 ip link set ib0 up
	eventually has_carrier h1
	check "who comes up announces its addresses as ever" eventually has_sent h1 'arp group'
	check "h1 comes up again" interface_up h1
}

test_others() {
	look_anew h1
	flush_neighbours h1
	check "h1 reaches h3, of which it has no entry" eventually host_answers h1 "$(v4_of h3)"
	check "by asking all" eventually has_sent h1 'arp group'
}

# --- peers that do not answer the exchange ---------------------------------------------------------------------------------------

# A host without entries answers nobody, so h4 gets one first: that it is off has to be what it refuses for.
test_unwilling() {
	local before refused
	know h1 h4
	know h4 h1
	check "h4 answers the exchange, as it has an entry" eventually h4_serves_h1
	at h4 sh -c 'echo off >/sys/class/net/ib0/acm'
	refused=$(statistic_at h1 sidr-refused)
	look_anew h1
	flush_neighbours h1
	check "h1 reaches h4, which takes no part" eventually host_answers h1 "$(v4_of h4)"
	check "it asked all, after the exchange" eventually has_sent h1 'arp group'
	check "h4 refused the exchange" holds "$(statistic_at h1 sidr-refused)" -gt "$refused"
	before=$(statistic_at h1 sidr-sent)
	# In one shell: each time takes much less than the time for which h4 is left alone.
	at h1 sh -c "for _ in 1 2 3 4 5 6 7 8; do ip neighbour flush dev ib0; ping -q -c 1 -W 1 $(v4_of h4); done" >/dev/null
	check "h4 is not asked each time" holds "$(($(statistic_at h1 sidr-sent) - before))" -lt 8
	at h4 sh -c 'echo prefer >/sys/class/net/ib0/acm'
	cache_at h4 flush
}

# By IPv6: h1 leaves a peer that has answered alone for a shorter time.
h4_serves_h1() {
	flush_neighbours h1
	host_answers h1 "$(v6_of h4)" && holds "$(statistic_at h4 sidr-served)" -gt 0
}

test_absent() {
	know h1 h4
	at h4 ip link set ib0 down
	flush_neighbours h1
	check_refused "h4 is down: h1 does not reach it" host_answers h1 "$(v4_of h4)"
	check "h4 comes back" interface_up h4
	check "h1 reaches h4 again" eventually host_answers h1 "$(v4_of h4)"
}

# Within the subnet a new queue pair is announced to all; a host that has it from an exchange hears of it.
test_new_queue_pair() {
	local before
	know h1 h2
	check "h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
	before=$(qpn_of h2)
	at h2 ethtool -G ib0 rx 512
	check "h2 has another queue pair" refused equal "$before" "$(qpn_of h2)"
	eventually has_carrier h2
	check "h1 reaches h2 again" eventually host_answers h1 "$(v4_of h2)"
	flush_neighbours h1
	check "also if the stack asks anew" eventually host_answers h1 "$(v4_of h2)"
}

# --- what others say -------------------------------------------------------------------------------------------------------------

entry_at() { # host, address: GID, queue pair, source
	cache_at "$1" show "$2" 2>/dev/null | awk '{ print $2, $3, $4 }'
}

says_learned() { # host, address
	matches 'learned$' "$(entry_at "$@")"
}

# What h1 is told that it may believe without being told to: the queue pair of a host with an entry.
test_modesty() {
	local gid served
	gid=$(port_field h2 gids/0)
	cache_at h1 flush
	served=$(statistic_at h1 sidr-served)
	forge h2 h1 10.88.7.6 "$gid" 0x123456
	check "h1 answers a peer that it has no entry of" eventually has_served h1 "$served"
	cache_at h1 add 10.88.7.5 "$gid"
	forge h2 h1 10.88.7.5 "$gid" 0x123456
	check "it takes the queue pair of one with an entry from it" eventually says_number h1 10.88.7.5 0x123456
	check_equal "it enters nobody" "" "$(entry_at h1 10.88.7.6)"
}

has_served() { # host, more than
	holds "$(statistic_at "$1" sidr-served)" -gt "$2"
}

says_number() { # host, address, queue pair
	equal "$3" "$(entry_at "$1" "$2" | awk '{ print $2 }')"
}

loaded_anew() { # parameter...
	unload_driver && load_driver oxib "$@" && interfaces_up "${hosts[@]}" && know h1 h2 && know h2 h1
}

test_learning() {
	cache_at h2 flush
	flush_neighbours h1 h2
	know h1 h2
	at h1 ethtool -G ib0 rx 512
	eventually has_carrier h1
	# What h1 was told before is forgotten with the entry.
	cache_at h1 del "$(v4_of h2)"
	cache_at h1 add "$(v4_of h2)" "$(port_field h2 gids/0)"
	at h2 ethtool -G ib0 rx 256
	eventually has_carrier h2
	flush_neighbours h1 h2
	check "h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
	check "h2 has learned of h1" eventually says_learned h2 "$(v4_of h1)"
	check_equal "what it learned is right" "$(qpn_of h1)" "$(entry_at h2 "$(v4_of h1)" | awk '{ print $2 }')"
}

forge() { # from host, to host, address, GID, queue pair, [how]
	at "$1" python3 selftests/acm/forged.py port1 "$(port_number "$2" lid)" "$(port_number "$1" lid)" "$(v4_of "$2")" "${@:3}"
}

# Each request may have the subnet administrator asked for its port, 32 at once and 4 in a second of one source.
test_dead() {
	local asked began most
	asked=$(counter_at h1 sa_path_queries)
	began=${EPOCHREALTIME/./}
	forge h2 h1 10.88.8.1 fe80::bad:1 0x123456 many
	check "h1 answers after 200 requests from GIDs that no port has" eventually host_reaches h2 "$(v4_of h1)"
	asked=$(($(counter_at h1 sa_path_queries) - asked))
	most=$((32 + 4 * ((${EPOCHREALTIME/./} - began) / 1000000 + 1) + 2))
	note "h1 asked the subnet administrator $asked times, of at most $most"
	check "it asked for some of them" holds "$asked" -gt 2
	check "and for few" holds "$asked" -le "$most"
}

# With a global route header, whose GIDs are up to the sender.
forge_header() { # from host, to host, address, GID, GID of the header
	forge "${@:1:4}" 0x123456 "header=$5,$(port_field "$2" gids/0)"
}

test_forged() {
	local before refused how
	cache_at h1 flush
	know h1 h3
	flush_neighbours h1
	check "h1 reaches h3" eventually host_answers h1 "$(v4_of h3)"
	before=$(entry_at h1 "$(v4_of h3)")
	refused=$(statistic_at h1 refused)
	forge h2 h1 "$(v4_of h3)" "$(port_field h3 gids/0)" 0x123456
	forge h2 h1 "$(v4_of h3)" "$(port_field h2 gids/0)" 0x123456
	forge h2 h1 10.88.7.7 "$(port_field h3 gids/0)" 0x123456
	forge_header h2 h1 "$(v4_of h3)" "$(port_field h3 gids/0)" "$(port_field h3 gids/0)"
	forge_header h2 h1 10.88.7.7 "$(port_field h3 gids/0)" "$(port_field h3 gids/0)"
	forge_header h2 h1 10.88.7.8 "$(port_field h2 gids/0)" fe80::bad:1
	check "h1 refuses these six" eventually has_refused h1 $((refused + 5))
	for how in version family short qpn gid; do
		forge h2 h1 10.88.7.9 "$(port_field h2 gids/0)" 0x123456 "$how"
	done
	forge h2 h1 10.88.7.10 "$(port_field h2 gids/0)" 0x123456
	check "h1 learns what h2 says of its own port" eventually says_learned h1 10.88.7.10
	forge_header h2 h1 10.88.7.12 "$(port_field h2 gids/0)" "$(port_field h2 gids/0)"
	check "with a global route header, too" eventually says_learned h1 10.88.7.12
	check_equal "the entry of h3 is as it was" "$before" "$(entry_at h1 "$(v4_of h3)")"
	check_equal "nothing was learned of who is elsewhere" "" "$(entry_at h1 10.88.7.7)"
	check_equal "nor from another GID's packet" "" "$(entry_at h1 10.88.7.8)"
	check_equal "nor from what is malformed" "" "$(entry_at h1 10.88.7.9)"
	test_others_addresses
	check "h1 reaches h3 all the same" host_reaches h1 "$(v4_of h3)"
}

# An address that the stack knows to be h3's, by ARP alone, and one that another peer has said to have.
test_others_addresses() {
	local before entry
	cache_at h1 flush
	flush_neighbours h1
	check "h1 knows h3 by ARP" eventually host_answers h1 "$(v4_of h3)"
	cache_at h1 flush
	before=$(statistic_at h1 refused)
	forge h2 h1 "$(v4_of h3)" "$(port_field h2 gids/0)" 0x123456
	check "h2 cannot claim its address" eventually has_refused h1 "$before"
	check_equal "nothing was learned of it" "" "$(entry_at h1 "$(v4_of h3)")"
	forge h3 h1 10.88.7.11 "$(port_field h3 gids/0)" 0x123456
	check "h1 learns an address of h3's" eventually says_learned h1 10.88.7.11
	entry=$(entry_at h1 10.88.7.11)
	before=$(statistic_at h1 refused)
	forge h2 h1 10.88.7.11 "$(port_field h2 gids/0)" 0x123456
	check "h2 cannot take it" eventually has_refused h1 "$before"
	check_equal "it is as it was" "$entry" "$(entry_at h1 10.88.7.11)"
	know h1 h3
}

has_refused() { # host, more than
	holds "$(statistic_at "$1" refused)" -gt "$2"
}

bring_up_fabric star h1
load_driver oxib || bail_out "oxib could not be loaded"
check "every host's interface comes up" interfaces_up "${hosts[@]}"
watch h1 h2
check "h1 and h2 have entries of each other" eval 'know h1 h2 && know h2 h1'
test_cached
test_known_twice
test_announcements
test_others
test_unwilling
test_absent
test_new_queue_pair
test_modesty
test_answer_kept
check "oxib is loaded anew, to learn addresses" loaded_anew acm_learn=1
test_learning
test_forged
test_dead
stop_jobs
check "oxib can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
