#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A thousand peers across the router, looked for at once: h1 has an entry of each, without queue pairs. At most 64 are asked at a
# time and the others wait; each is reached; and the subnet administrator is asked for a path once for each port, not for each peer.
# A peer that does not answer in time makes its path doubtful, and that path is asked for again.
#
# nodes: 1
# kernels: fast
# timeout: 500

. selftests/lib/acm.sh

each=500
most_in_flight=64

# Of h3 and h4: 10.88.103.1 to 10.88.104.250, and 10.88.105.1 to 10.88.106.250.
addresses_of() { # host
	local begin=$((101 + 2 * ($(host_number "$1") - 2))) number
	for ((number = 0; number < each; number++)); do
		printf '10.88.%d.%d\n' $((begin + number / 250)) $((number % 250 + 1))
	done
}

has_addresses() { # host
	addresses_of "$1" | sed 's|.*|address add &/16 dev ib0|' >"/tmp/batch.$1" && ip -n "$1" -batch "/tmp/batch.$1" &&
		holds "$(at "$1" ip -4 -o address show dev ib0 | wc -l)" -gt "$each"
}

data_file() {
	local host
	for host in h3 h4; do
		addresses_of "$host" | sed "s|\$| $(port_field "$host" gids/0)|"
	done
}

# The stack's tables of neighbours are for all hosts together, and forget from some number on.
enlarge_neighbour_tables() {
	local number
	for number in 1 2 3; do
		sysctl -qw "net.ipv4.neigh.default.gc_thresh$number=16384" || return
	done
}

watch_exchanges() {
	while :; do
		oxib -n h1 -j acm stats
	done >/tmp/samples 2>/dev/null &
	jobs_running+=($!)
}

# The last one may be half a line.
highest() { # counter
	jq -nR "[inputs | fromjson? | .$1] | max" /tmp/samples
}

reach_all() {
	{ addresses_of h3 && addresses_of h4; } | at h1 python3 selftests/acm/reach.py $((4 * patience)) >/tmp/reached
}

# The router answers late, so that there is something to wait for.
delay() { # milliseconds
	tc qdisc add dev r1-1 root netem limit 10000 delay "$1ms"
}

counted() { # counter: since the first look
	printf '%d\n' $(($(noted h1 "$1") - before[$1]))
}

test_many() {
	local counter
	local -A before=()
	statistics_of h1
	for counter in path-queries sidr-sent sidr-answered sidr-timeouts; do
		before[$counter]=$(noted h1 "$counter")
	done
	watch_exchanges
	check "h1 reaches all of them" reach_all
	note "$(cat /tmp/reached)"
	stop_jobs
	statistics_of h1
	note "$(counted sidr-sent) exchanges, $(counted sidr-timeouts) without an answer, $(counted path-queries) paths asked for;" \
		"at most $(highest sidr_in_flight) at a time, and $(highest sidr_waiting) waited; looked at $(wc -l </tmp/samples) times"
	check "each was asked" holds "$(counted sidr-answered)" -ge $((2 * each))
	check "no more than $most_in_flight at a time" holds "$(highest sidr_in_flight)" -le $most_in_flight
	check "others waited" holds "$(highest sidr_waiting)" -gt 0
	check "one path was asked for to each port, and again at most once for each exchange without an answer" \
		asked_for_paths "$(counted path-queries)" "$(counted sidr-timeouts)"
	check "no exchange is left" eventually none_is_left
}

asked_for_paths() { # queries, exchanges without an answer
	holds "$1" -ge 2 && holds "$1" -le $((2 + $2))
}

none_is_left() {
	statistics_of h1
	equal "0 0" "$(noted h1 sidr-in-flight) $(noted h1 sidr-waiting)"
}

bring_up_routed_fabric
check "there is room for neighbours" enlarge_neighbour_tables
for host in h3 h4; do
	check "$host has $each addresses more" has_addresses "$host"
	check "$host has an entry of h1" know "$host" h1
done
data_file >/tmp/many.data
check "h1 has entries of h3 and h4 themselves" know h1 h3 h4
for host in h3 h4; do
	check "h1 reaches $host" eventually host_answers h1 "$(v4_of "$host")"
done
oxib -n h1 acm paths flush
check "h1 loads entries of all of them" oxib -n h1 acm load /tmp/many.data
check_equal "it has them" $((2 * each)) "$(oxib -n h1 -j acm stats | jq .entries_file)"
check "the router is slow" delay 100
test_many
tc qdisc delete dev r1-1 root
check "all of them are reached again" reach_all
take_down_routed_fabric
finish
