#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# An IP subnet for each InfiniBand subnet: IP goes through a gateway, a Linux host that is in both, and programs that connect by
# rdma_cm go through the InfiniBand router, to the same IP address. The cache tells them the peer's GID.
#
# nodes: 1
# kernels: fast debug
# timeout: 500

. selftests/lib/acm.sh
# shellcheck source=selftests/lib/as_written.sh
. selftests/lib/as_written.sh

chapter='One IP subnet for each'

# The page's nodes are the fabric's hosts: node1 is h1, node3 is h2, each the first of its subnet. Which of the gateway's
# interfaces is that of which port, the kernel decides.
of_this_fabric() {
	local first second
	first=$(interface_of g1 1) second=$(interface_of g1 2)
	sed -E -e "/# on gateway/{s/\bib0\b/FIRST/; s/\bib1\b/$second/; s/FIRST/$first/; s/gateway/g1/}" \
		-e 's/\bnode1\b/h1/g' -e 's/\bnode3\b/h2/g'
}

# --- the layout ------------------------------------------------------------------------------------------------------------------

address_in() { # 4|6, subnet, number
	if [ "$1" = 4 ]; then printf '10.77.%d.%d\n' "$2" "$3"; else printf 'fd00:77:%d::%x\n' "$2" "$3"; fi
}

has_both() { # host with an interface for each of its ports
	at "$1" ip link show ib0 && at "$1" ip link show ib1
}

# Of ports, from the first, the interfaces are ib0 and ib1: the first has dev_port 0.
interface_of() { # host, port
	at "$1" grep -lx $(($2 - 1)) -r /sys/class/net/ib0 /sys/class/net/ib1 --include=dev_port 2>/dev/null | cut -d / -f 5
}

# By IPv6, what the page has for IPv4.
gateway_up() {
	local subnet
	at g1 sysctl -qw net.ipv6.conf.all.forwarding=1 || return
	for subnet in 1 2; do
		at g1 ip address add "$(address_in 6 "$subnet" 254)/64" dev "$(interface_of g1 "$subnet")" nodad || return
		eventually at g1 grep -q 1 "/sys/class/net/$(interface_of g1 "$subnet")/carrier" || return
	done
}

host_up() { # host, its subnet, the other one
	eventually has_carrier "$1" && at "$1" ip address add "$(address_in 6 "$2" 1)/64" dev ib0 nodad &&
		at "$1" ip route add "fd00:77:$3::/64" via "$(address_in 6 "$2" 254)"
}

both_active() {
	[ "$(port_field g1 state 2)" = '4: ACTIVE' ]
}

have_prefixes() {
	gid_has_prefix h1 1 && gid_has_prefix h2 2
}

# --- what goes which way ---------------------------------------------------------------------------------------------------------

forwarded() { # packets that the gateway has passed on
	local number v4 v6
	read -ra v4 < <(at g1 grep '^Ip: [0-9]' /proc/net/snmp)
	read -r _ v6 < <(at g1 grep '^Ip6OutForwDatagrams' /proc/net/snmp6)
	number=${v4[6]}
	printf '%d\n' $((number + v6))
}

routed() {
	cat /sys/class/net/r1-1/statistics/rx_packets
}

# The data of the connection crosses the router, and none of it the gateway.
connects_by_router() { # 4|6
	local address before gateway more
	address=$(address_in "$1" 2 1)
	at h2 timeout $((4 * patience)) rping -s -a "$address" -C 100 -S 1000 -V >/tmp/server 2>&1 &
	eventually listens_cm h2 7174 || return
	before=$(routed) gateway=$(forwarded)
	at h1 timeout "$patience" rping -c -a "$address" -C 100 -S 1000 -V || return
	more=$(($(routed) - before))
	gateway=$(($(forwarded) - gateway))
	printf 'the router took in %d packets, the gateway passed on %d\n' "$more" "$gateway"
	holds "$more" -ge 200 && holds "$gateway" -le 4
}

passes_gateway() { # 4|6
	local before
	before=$(forwarded)
	at h1 ping -q -c 10 -i 0.05 -W "$patience" "$(address_in "$1" 2 1)" && holds $(($(forwarded) - before)) -ge 20
}

# Without an entry there is nothing to tell; with entries that do not agree nothing is told.
is_not_found() { # 4|6
	at h1 timeout 20 rping -d -c -a "$(address_in "$1" 2 1)" -C 1 2>&1 | grep RDMA_CM_EVENT_ADDR_ERROR
}

# Long before its time is out: a program that is not woken is told then.
is_found_soon() { # 4|6
	at h1 timeout "$patience" python3 selftests/acm/resolve_address.py "$(address_in "$1" 2 1)" | grep RDMA_CM_EVENT_ADDR_RESOLVED
}

# Each is answered once, or a second time if it came too early; not once for each answer to another one.
many_are_found() { # 4|6, number
	local before more
	before=$(programs_at h1 answered)
	at h1 timeout "$patience" python3 selftests/acm/resolve_address.py "$(address_in "$1" 2 1)" "$2" >/tmp/found || return
	cat /tmp/found
	more=$(($(programs_at h1 answered) - before))
	printf '%d answers\n' "$more"
	equal "$2 RDMA_CM_EVENT_ADDR_RESOLVED" "$(</tmp/found)" && holds "$more" -le $((3 * $2))
}

knows_far() { # host with the cache, the other host, 4|6...
	local family
	for family in "${@:3}"; do
		printf 'replace %s %s\n' "$(address_in "$family" 2 1)" "$(port_field "$2" gids/0)"
	done | cache_at "$1" -
}

forgets_far() { # host
	local family
	for family in 4 6; do
		printf 'del %s\n' "$(address_in "$family" 2 1)"
	done | cache_at "$1" -
}

# The command looks in its own namespace, whose cache has an entry: the line of the cache says what a program gets. The peer, whose
# cache never had an entry, does not tell its queue pair, which programs do not need.
resolution_says() { # extended regular expression for the line of the cache
	matches "^cache +ok +[0-9]+ us  $1\$" "$(oxib -n h1 acm resolve "$(address_in 4 2 1)" dev ib0 2>/dev/null)"
}

# A gateway behind g1's ib0 that is not there: with it programs of g1 have the same question as those of h1.
gateway_at_g1() { # add|del, 4|6
	local subnet=1
	[ "$(interface_of g1 1)" = ib0 ] || subnet=2
	at g1 ip "-$2" route "$1" "$(address_in "$2" 2 1)" via "$(address_in "$2" "$subnet" 99)" dev ib0
}

acm_at_h1() { # off|prefer
	at h1 oxib acm interface set dev ib0 acm "$1"
}

load_softib || bail_out "softib.ko could not be loaded"
fabric_up gateway || bail_out "the fabric could not be built"
start_subnet 1 2 h1
start_subnet 2 1 h2
eventually all_active || bail_out "not all ports became active"
eventually both_active || bail_out "the gateway's second port did not become active"
eventually have_prefixes || bail_out "not all ports have their subnet's prefix"
# So that its ib0 gets the number of g1's.
at h1 ip link add filler type dummy
load_driver oxib acm_learn=0 || bail_out "oxib could not be loaded"
load_managers || bail_out "the connection managers could not be loaded"
check "there is a place for the page's files" make_place
check "the gateway has two interfaces" eventually has_both g1
run_on_hosts "$chapter" 1 11
check "the gateway is up" gateway_up
check "h1 is up, in its IP subnet" host_up h1 1 2
check "h2 is up, in another one" host_up h2 2 1
for family in 4 6; do
	check "IPv$family: a ping goes through the gateway" eventually passes_gateway "$family"
done
check "a program finds nobody whose entry is not there" is_not_found 4
block "$chapter" 2 | of_this_fabric >"$place/addresses.txt"
run_on_hosts "$chapter" 3 11
check "h1 learns where h2 is, by IPv6 too" knows_far h1 h2 6
for family in 4 6; do
	check "IPv$family: a program is told without waiting for its time-out" is_found_soon "$family"
	check "IPv$family: a program's connection goes through the router" connects_by_router "$family"
	check "IPv$family: and another one" connects_by_router "$family"
	check "IPv$family: 300 at once are told, each once or twice" many_are_found "$family" 300
done
check "oxib acm resolve finds the address" eventually resolution_says found
check "another namespace knows somebody else by that address" knows_far g1 h1 4 6
check_equal "whose interface has the same number" "$(at h1 cat /sys/class/net/ib0/ifindex)" "$(at g1 cat /sys/class/net/ib0/ifindex)"
check "then nothing is told" is_not_found 4
check "oxib acm resolve finds it, and says that programs do not" resolution_says 'found; behind a gateway rdma_cm fails: another namespace .*'
check "it forgets that" forgets_far g1
check "programs connect again" connects_by_router 4
check "oxib acm resolve says nothing of programs" resolution_says found
for family in 4 6; do
	check "IPv$family: another namespace knows nobody, and has a gateway to that address" gateway_at_g1 add "$family"
	check "IPv$family: then nothing is told" is_not_found "$family"
	[ "$family" = 6 ] || check "oxib acm resolve says that" resolution_says 'found; behind a gateway rdma_cm fails: another namespace .*'
	check "IPv$family: it has no gateway any more" gateway_at_g1 del "$family"
	check "IPv$family: a program is told again" is_found_soon "$family"
done
check "h1's interface uses no cache any more" acm_at_h1 off
check "then nothing is told" is_not_found 4
check "oxib acm resolve says that" resolution_says 'found; behind a gateway rdma_cm fails: .*acm=off.*'
check "it uses it again" acm_at_h1 prefer
check "a program is told again" is_found_soon 4
check "the connection managers can be unloaded" eventually unload_managers
take_down_routed_fabric
finish
