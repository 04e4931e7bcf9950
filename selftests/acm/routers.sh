#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two routers between two subnets: packets take the one that the sender's subnet administrator names, also if those of the other
# direction take another one. When a router dies, traffic and a TCP connection that is open go on by the other one as soon as
# the subnet administrator names that: it is asked again, without anybody's help.
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/acm.sh

port=7777

# --- which way packets go --------------------------------------------------------------------------------------------------------

# Enough to be told from what the subnet managers send at the same time.
volley=100

taken_in() { # end of a router's cable
	cat "/sys/class/net/$1/statistics/rx_packets"
}

# Packets of h1 come into routers by their first ports, those of h2 by their second ones.
goes_by() { # router from h1 to h2, router from h2 to h1
	local end more
	local -A before=()
	for end in r1-1 r2-1 r1-2 r2-2; do
		before[$end]=$(taken_in "$end")
	done
	at h1 ping -q -c "$volley" -i 0.01 -W "$patience" "$(v4_of h2)" || return
	for end in r1-1 r2-1 r1-2 r2-2; do
		more=$(($(taken_in "$end") - before[$end]))
		printf '%s took in %d packets\n' "$end" "$more"
		case $end in
		"$1-1" | "$2-2") holds "$more" -ge "$volley" || return ;;
		*) holds "$more" -lt "$volley" || return ;;
		esac
	done
}

# To all that it has found; it is not asked for any.
paths_lead_to() { # host, router
	equal "$(router_lid "$1" "$2")" "$(oxib -n "$1" -j acm paths | jq -r '.[].dlid' | sort -u)"
}

test_ways() { # description, router from h1 to h2, router from h2 to h1
	check "$1: packets go by $2, and back by $3" goes_by "$2" "$3"
	check "$1: h1's path leads to $2" paths_lead_to h1 "$2"
	check "$1: h2's path leads to $3" paths_lead_to h2 "$3"
}

# --- what the subnet administrators say ------------------------------------------------------------------------------------------

has_path() { # from, to, router
	says "$1" "saquery --sgid-to-dgid $(port_field "$1" gids/0)-$(port_field "$2" gids/0)" \
		"dlid\.+ *$(router_lid "$1" "$3")\$"
}

# h1 is in the first subnet, h2 in the second; a router's port N is in subnet N.
route_from() { # host, router or *
	local number router=$2
	number=$(host_number "$1")
	[ "$router" = '*' ] || router=$(router_guid "$2-$number")
	routes_of "$1" "$(prefix_of $((3 - number))) $router"
	reread "$1"
}

named() { # host, other host, router
	check "the subnet administrator of $1 names $3" eventually has_path "$@"
}

# --- traffic ---------------------------------------------------------------------------------------------------------------------

test_traffic() { # description
	check "$1: h1 reaches h2 by IPv4" host_reaches h1 "$(v4_of h2)"
	check "$1: h2 reaches h1 by IPv4" host_reaches h2 "$(v4_of h1)"
	check "$1: h1 reaches h2 by IPv6" host_reaches h1 "$(v6_of h2)"
	check "$1: h2 reaches h1 by IPv6" host_reaches h2 "$(v6_of h1)"
	check "$1: h1 reaches h2 with packets of the MTU" host_reaches h1 "$(v4_of h2)" -M do -s $(($(mtu_of h1) - 28))
	in_background_at h2 iperf3 -s
	eventually listens_tcp h2 5201 || bail_out "iperf3 does not listen"
	check "$1: TCP to h2" measured -c "$(v4_of h2)"
	check "$1: TCP from h2" measured -c "$(v4_of h2)" -R
	check "$1: TCP to h2 over IPv6" measured -c "$(v6_of h2)"
	stop_jobs
}

# One connection, which is to live on whatever happens to its packets.
begin_conversation() { # description
	in_background_at h2 python3 selftests/acm/conversation.py listen $port
	eventually listens_tcp h2 $port || bail_out "nobody listens"
	: >/tmp/conversation
	at h1 python3 selftests/acm/conversation.py talk "$(v4_of h2)" $port >/tmp/conversation 2>/dev/null &
	jobs_running+=($!)
	check "$1: a TCP connection is open" eventually goes_on 0
}

said() {
	wc -l </tmp/conversation
}

goes_on() { # how much was said before
	holds "$(said)" -gt "$1"
}

# --- a router dies ---------------------------------------------------------------------------------------------------------------

cables() { # router, up|down
	ip link set "$1-1" "$2" && ip link set "$1-2" "$2"
}

test_death() { # description, router that dies, router that is left, command by which that is named...
	local before time
	begin_conversation "$1"
	check "$1: $2 dies" cables "$2" down
	check "$1: h1 does not reach h2 any more" eventually is_lost h1 "$(v4_of h2)"
	"${@:4}"
	named h1 h2 "$3"
	named h2 h1 "$3"
	before=$(said)
	time=$(time_until host_answers h1 "$(v4_of h2)")
	check "$1: h1 reaches h2 again" holds "${time:-none}" != none
	note "$((time)) ms after $3 was named"
	check "$1: h2 reaches h1 again" eventually host_answers h2 "$(v4_of h1)"
	check "$1: and by IPv6" eventually host_answers h1 "$(v6_of h2)"
	check "$1: the TCP connection goes on" eventually goes_on "$before"
	stop_jobs
}

any_router() {
	route_from h1 '*'
	route_from h2 '*'
}

# The subnet managers take any router that there is, and find out for themselves that one is not there any more.
nobody_says() {
	:
}

put_back_router() { # router
	check "$1 comes back" cables "$1" up
	check "both subnets have $1 again" eventually both_see "$1"
}

both_see() { # router
	matches . "$(router_lid h1 "$1")" && matches . "$(router_lid h2 "$1")"
}

# Large packets take no other way. What the stack learned of smaller ones, while there was none, would stay with it for minutes.
uses_connections() {
	at h1 ip route flush cache && at h2 ip route flush cache &&
		host_answers h1 "$(v4_of h2)" -M do -s $(($(mtu_of h1) - 28))
}

bring_up_subnets routers h1 h2
route_from h1 r1
route_from h2 r2
named h1 h2 r1
named h2 h1 r2
check "both hosts learn of each other" eval 'know h1 h2 && know h2 h1'
# A host that asks before the other one listens asks again after some seconds.
check "h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
check "h2 reaches h1" eventually host_answers h2 "$(v4_of h1)"
test_traffic "there by r1, back by r2"
test_ways "there by r1, back by r2" r1 r2
check "both go to connected mode" set_mode connected
test_traffic "connections"
check "h1 has made a connection" eventually has_connections_to h1 "$(v4_of h2)"
check "h2 has made one" eventually has_connections_to h2 "$(v4_of h1)"
check "both go back to datagrams" set_mode datagram
check "with datagrams h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
test_death "r2 is named in its stead" r1 r2 route_from h1 r2
test_ways "r1 is dead" r2 r2
put_back_router r1
any_router
test_death "any router is taken" r2 r1 nobody_says
test_ways "r2 is dead" r1 r1
put_back_router r2
route_from h1 r1
route_from h2 r1
named h1 h2 r1
named h2 h1 r1
check "both go to connected mode again" set_mode connected
check "h1 reaches h2 by a connection" eventually uses_connections
test_death "connections" r1 r2 any_router
check "h1 reaches h2 by a connection again" eventually uses_connections
take_down_routed_fabric
finish
