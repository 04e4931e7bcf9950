#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One IP subnet over two InfiniBand subnets with a router between them: hosts that know each other's GIDs reach each other by
# IPv4 and IPv6, in datagram and in connected mode. What they know may change, end, or be wrong; the peer's queue pair and the
# router may go and come, and the subnet administrator may be silent.
#
# routed.sh [short]: without what takes long, for the debug kernel and machines that are emulated: iperf3, an idle address, an
# entry with a queue pair, modes of the interface, a silent subnet administrator
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/acm.sh

extent=${1:-whole}

# --- across the router -----------------------------------------------------------------------------------------------------------

# A host of the other subnet is asked for in vain without the cache: no broadcast crosses a router.
test_without_cache() {
	check "without an entry h1 does not reach h3" is_lost h1 "$(v4_of h3)"
	flush_neighbours h1
}

# As an administrator makes it: the addresses are a table, and the GIDs what each subnet's administrator says.
collect() {
	local host place=/tmp/collected
	mkdir -p "$place"
	for host in "${hosts[@]}"; do
		printf '%s %s %s\n' "$host" "$(v4_of "$host")" "$(v6_of "$host")"
	done >"$place/table"
	at h1 scripts/collect-fabric collect --table "$place/table" "$place/subnet1" &&
		at h3 scripts/collect-fabric collect --table "$place/table" "$place/subnet2" &&
		scripts/collect-fabric merge --output "$place/all" "$place/subnet1" "$place/subnet2"
}

load_collected() {
	local host
	for host in "${hosts[@]}"; do
		oxib -n "$host" acm flush && oxib -n "$host" acm load /tmp/collected/all.data || return
	done
}

# Entries that a single request may change.
learn_one_by_one() {
	local host
	for host in "${hosts[@]}"; do
		oxib -n "$host" acm flush || return
	done
	know h1 h2 h3 h4 && know h2 h1 h3 h4 && know h3 h1 h2 h4 && know h4 h1 h2 h3
}

test_pings() { # description
	check "$1: h1 reaches h3 by IPv4" host_reaches h1 "$(v4_of h3)"
	check "$1: h1 reaches h3 by IPv6" host_reaches h1 "$(v6_of h3)"
	check "$1: h4 reaches h2 by IPv4" host_reaches h4 "$(v4_of h2)"
	check "$1: h2 reaches h1, in its own subnet" host_reaches h2 "$(v4_of h1)"
	check "$1: h1 reaches h3 with packets of the MTU" host_reaches h1 "$(v4_of h3)" -M do -s $(($(mtu_of h1) - 28))
}

test_iperf() { # description
	[ "$extent" = whole ] || return 0
	in_background_at h3 iperf3 -s
	eventually listens_tcp h3 5201 || bail_out "iperf3 does not listen"
	check "$1: TCP to h3" measured -c "$(v4_of h3)"
	check "$1: TCP from h3" measured -c "$(v4_of h3)" -R
	check "$1: TCP to h3 over IPv6" measured -c "$(v6_of h3)"
	check "$1: UDP to h3" measured -c "$(v4_of h3)" -u -b 10M -l 1000
	check "$1: UDP from h3" measured -c "$(v4_of h3)" -u -b 10M -l 1000 -R
	stop_jobs
}

neighbour_of() { # host, address: its hardware address
	at "$1" ip -j neighbour show "$2" dev ib0 | jq -r '.[0].lladdr // "none"'
}

test_addresses() {
	local gid
	gid=$(port_field h3 gids/0)
	check_equal "h1's neighbour entry of h3 has the GID of the cache" "$gid" \
		"$(neighbour_of h1 "$(v4_of h3)" | sed -E 's/^(..:){4}//; s/(..):(..)/\1\2/g')"
	check_equal "and the queue pair that h3 said" "$(qpn_of h3)" \
		"0x$(neighbour_of h1 "$(v4_of h3)" | sed -E 's/^..:(..):(..):(..):.*/\1\2\3/')"
	statistics_of h1
	check "h1 answered ARP requests itself" holds "$(noted h1 arp-answered)" -gt 0
	check "and neighbour solicitations" holds "$(noted h1 nd-answered)" -gt 0
	check "h1 asked for queue pairs" holds "$(noted h1 sidr-answered)" -gt 0
	check "h3 was asked" holds "$(statistic_at h3 sidr-served)" -gt 0
	check_equal "with acm_learn=0 it has learned nothing from that" 0 "$(oxib -n h3 -j acm stats | jq .entries_learned)"
}

# --- the peer changes ------------------------------------------------------------------------------------------------------------

new_queue_pair() { # host: new rings are new queue pairs
	local before
	before=$(qpn_of "$1")
	at "$1" ethtool -G ib0 rx "$2" && [ "$(qpn_of "$1")" != "$before" ]
}

test_new_queue_pair() { # ring
	check "h3 gets another queue pair" new_queue_pair h3 "$1"
	check "h3 has its carrier" eventually has_carrier h3
	check "h1 reaches h3 again" returns h1 "$(v4_of h3)"
	check "and by IPv6" returns h1 "$(v6_of h3)"
}

# --- the entry changes -----------------------------------------------------------------------------------------------------------

# Under traffic.
test_entries() {
	local gid
	gid=$(port_field h3 gids/0)
	in_background_at h1 ping -q -i 0.2 "$(v4_of h3)"
	check "the entry of h3 names h4's port" cache_at h1 replace "$(v4_of h3)" "$(port_field h4 gids/0)"
	check "h1 does not reach h3 any more: h4 has another address" eventually is_lost h1 "$(v4_of h3)"
	check "the entry is put right" cache_at h1 replace "$(v4_of h3)" "$gid"
	check "h1 reaches h3 again" eventually host_answers h1 "$(v4_of h3)"
	check "the entry is deleted" cache_at h1 del "$(v4_of h3)"
	# Or it asks h3 itself whether it is there still, and h3 answers.
	flush_neighbours h1
	check "h1 does not reach h3 any more" eventually is_lost h1 "$(v4_of h3)"
	check "the entry comes back, not for ever" cache_at h1 add "$(v4_of h3)" "$gid" lifetime 3600
	check "h1 reaches h3 again" eventually host_answers h1 "$(v4_of h3)"
	check "it is to end soon" cache_at h1 replace "$(v4_of h3)" "$gid" lifetime 1
	check "it ends" eventually has_no_entry h1 "$(v4_of h3)"
	flush_neighbours h1
	check "h1 does not reach h3 any more" eventually is_lost h1 "$(v4_of h3)"
	know h1 h3
	check "h1 reaches h3 again" eventually host_answers h1 "$(v4_of h3)"
	stop_jobs
}

has_no_entry() { # host, address
	local entries
	entries=$(cache_at "$1" show) && ! grep "^$2 " <<<"$entries"
}

test_given_queue_pair() {
	[ "$extent" = whole ] || return 0
	local asked
	check "the entry of h3 gets its queue pair" \
		cache_at h1 replace "$(v4_of h3)" "$(port_field h3 gids/0)" qpn "$(qpn_of h3)"
	# Neighbours by IPv6 would be asked for theirs.
	cache_at h1 replace "$(v6_of h3)" "$(port_field h3 gids/0)" qpn "$(qpn_of h3)"
	flush_neighbours h1
	asked=$(statistic_at h1 sidr-sent)
	check "h1 reaches h3" eventually host_answers h1 "$(v4_of h3)"
	check_equal "without asking it" "$asked" "$(statistic_at h1 sidr-sent)"
	know h1 h3
}

neighbour_is() { # host, address, state
	equal "$3" "$(at "$1" ip -j neighbour show "$2" dev ib0 | jq -r '.[0].state[0]')"
}

# Nothing shows that packets to an address arrive, if there are none; others go to the same port.
test_idle_address() {
	[ "$extent" = whole ] || return 0
	local asked gid
	gid=$(port_field h3 gids/0)
	check "h1 knows h3's queue pair for IPv4" cache_at h1 replace "$(v4_of h3)" "$gid" qpn "$(qpn_of h3)"
	check "but not for IPv6" cache_at h1 replace "$(v6_of h3)" "$gid"
	# 6 to 18 seconds: more than those for which the stack's own probes count as use.
	at h1 sysctl -qw net.ipv6.neigh.ib0.base_reachable_time_ms=12000
	flush_neighbours h1
	check "h1 reaches h3 by IPv6" eventually host_answers h1 "$(v6_of h3)"
	in_background_at h1 ping -q -i 0.2 "$(v4_of h3)"
	check "by IPv6 it has nothing more to say" eventually neighbour_is h1 "$(v6_of h3)" STALE
	asked=$(statistic_at h1 sidr-sent)
	pause 8
	check_equal "and does not ask again and again" "$asked" "$(statistic_at h1 sidr-sent)"
	stop_jobs
	at h1 sysctl -qw net.ipv6.neigh.ib0.base_reachable_time_ms=30000
	know h1 h3
}

test_modes() {
	[ "$extent" = whole ] || return 0
	at h1 sh -c 'echo off >/sys/class/net/ib0/acm'
	flush_neighbours h1
	check "with acm=off h1 does not reach h3" is_lost h1 "$(v4_of h3)"
	at h1 sh -c 'echo only >/sys/class/net/ib0/acm'
	flush_neighbours h1
	check "with acm=only it does" eventually host_answers h1 "$(v4_of h3)"
	cache_at h1 del "$(v4_of h2)"
	flush_neighbours h1
	check "and does not reach h2, of which it has no entry" is_lost h1 "$(v4_of h2)"
	at h1 sh -c 'echo prefer >/sys/class/net/ib0/acm'
	flush_neighbours h1
	check "with acm=prefer it reaches both: h2" eventually host_answers h1 "$(v4_of h2)"
	check "and h3" eventually host_answers h1 "$(v4_of h3)"
	check_refused "there is no other mode" at h1 sh -c 'echo maybe >/sys/class/net/ib0/acm'
	know h1 h2
}

# --- the router goes -------------------------------------------------------------------------------------------------------------

test_router() {
	check "the router's cable is pulled" ip link set r1-1 down
	check "h1 does not reach h3 any more" eventually is_lost h1 "$(v4_of h3)"
	check "h1 reaches h2 all the same" eventually host_answers h1 "$(v4_of h2)"
	check "it is put back" ip link set r1-1 up
	check "h1 reaches h3 again" eventually host_answers h1 "$(v4_of h3)"
}

# --- the subnet administrator is silent ------------------------------------------------------------------------------------------

# How h1 resolves an address.
resolution() { # address
	oxib -n h1 acm resolve "$1" dev ib0 2>&1
}

says_queue_pair() { # host
	matches ' qpn .* \(sidr\)' "$(resolution "$(v4_of "$1")")"
}

# Its exchange may wait behind those of others.
has_ended() { # host
	resolution "$(v4_of "$1")" >"/tmp/resolution.$1"
	refused grep -q 'no answer yet' "/tmp/resolution.$1"
}

check_kept() { # title, host, why that is not asked
	local said
	check "$1: whether $2 is asked comes to an end" eventually has_ended "$2"
	said=$(cat "/tmp/resolution.$2")
	check "$1: $2 is not asked, and h1 says why" matches "^sidr +failed .*$3" "$said"
	check "$1: h1 knows the queue pair all the same" matches ' qpn .* \(sidr\)' "$said"
}

is_forgotten() { # host
	local said
	said=$(resolution "$(v4_of "$1")")
	matches '^sidr +failed' "$said" && refused matches ' qpn ' "$said"
}

set_acm() { # mode
	at h1 sh -c "echo $1 >/sys/class/net/ib0/acm"
}

# Exchanges that wait for one path: each asks the subnet administrator when the one before has asked in vain.
slow_addresses=(10.88.9.{1..8})

give_slow_addresses() {
	local address gid
	gid=$(port_field h4 gids/0)
	for address in "${slow_addresses[@]}"; do
		printf 'replace %s %s\n' "$address" "$gid"
	done | cache_at h1 -
}

resolve_slow_addresses() {
	local address
	for address in "${slow_addresses[@]}"; do
		resolution "$address" >"/tmp/slow.$address" &
		slow_resolutions+=($!)
	done
}

# So many that the last of them take longer than a resolution waits.
many_under_way() {
	holds "$(statistic_at h1 sidr-in-flight)" -ge 4
}

# Nothing of this shows anything of the peers: a subnet administrator that is silent, and one that has ended, as the kernel of its node
# refuses. With acm=only neither ARP nor neighbour discovery finds a neighbour.
test_silent_administrator() {
	[ "$extent" = whole ] || return 0
	local slow_resolutions=()
	check "h1 knows the queue pair that h3 said" says_queue_pair h3
	check "h1 is to ask the cache alone" set_acm only
	check "h1 knows the queue pair that h2 said" says_queue_pair h2
	check "h1 has entries of more addresses of h4" give_slow_addresses
	check "the subnet manager of h1 goes to sleep" kill -STOP "${sm_processes[h1]}"
	check "h1 forgets its paths" oxib -n h1 acm paths flush
	resolve_slow_addresses
	check "h1 is to ask h4 for each of them" eventually many_under_way
	# Takes so long that those above give up meanwhile.
	check_kept "silence" h3 "the subnet administrator does not answer"
	check "the subnet manager dies" kill_sm h1
	wait "${slow_resolutions[@]}"
	check "those that gave up say that there is no answer yet" \
		matches '^sidr +no answer .*no answer yet' "$(cat /tmp/slow.*)"
	check_kept "its end" h3 "no path to the peer is given"
	check_kept "its end" h2 "no path to the peer is given"
	check "h1 is to ask h2 by ARP, too" set_acm prefer
	check "then the queue pair that h2 said is forgotten" eventually is_forgotten h2
}

# What a peer says of itself would stand in for an entry that is taken away.
bring_up_routed_fabric acm_learn=0
test_without_cache
check "GIDs and addresses of both subnets are collected" collect
check "every host loads the file" load_collected
test_pings datagrams
test_addresses
test_iperf datagrams
test_new_queue_pair 512
check "every host gets entries one by one" learn_one_by_one
test_entries
test_given_queue_pair
test_idle_address
test_modes
test_router
check "every host loads the file again" load_collected
check "all hosts go to connected mode" set_mode connected
test_pings connections
check "h1 has made connections" eventually has_connections_to h1 "$(v4_of h3)"
test_iperf connections
test_new_queue_pair 256
test_silent_administrator
take_down_routed_fabric
finish
