#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the address cache's benchmark that runs inside a node with --icount: what it takes until a host's first packet to
# another is answered, in nanoseconds of a clock that counts instructions, and in management datagrams (MADs) that anybody sends for
# it. Hosts are h1 and h2 on a switch, or h1 and h3 in two subnets with a router between; subnet administrators are on other
# hosts. scripts/bench reads what it prints: "resolve STATE us=NUMBER", "mads STATE number=NUMBER",
# "connections WHOSE peers=NUMBER connections=NUMBER queries=NUMBER", "ib_acme answers=NUMBER ns=NUMBER".
#
# resolve.sh oxib|ib_ipoib subnet|router REPETITIONS
# resolve.sh oxib|ib_ipoib connections NUMBER [PEERS] path queries for so many connections of TCP to 10 peers, or so many
# resolve.sh oxib|ib_ipoib ibacm REPETITIONS          what ib_acme takes that ibacm answers from its cache
#
# Several of these, with -- between, are done one after the other.
#
# STATE is what h1 and h2 (or h3) know of each other before: neighbour, all; cached, no neighbour entry; asked, the addresses and
# GIDs alone (with ib_ipoib nothing), so that queue pairs and paths are asked for.

. selftests/lib/acm.sh
. bench/sequence.sh

driver=$1
tracing=/sys/kernel/tracing
event=events/ib_mad/ib_mad_ib_send_mad
topologies=/tmp
topology=$topologies/bench.fabric

# --- management datagrams ------------------------------------------------------------------------------------------------------

# Of any host, to a subnet administrator, from it, or between connection managers. What subnet managers sweep with is not meant.
watch_mads() { # filter
	mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
	echo "$1" >"$tracing/$event/filter" || bail_out "management datagrams cannot be counted"
}

begin_count() {
	: >"$tracing/trace"
	echo 1 >"$tracing/$event/enable"
}

# The kernel's number of the sender's device comes first: of one host, or of all.
end_count() { # [host]
	local device='[0-9]+'
	[ $# = 0 ] || device=$(at "$1" rdma -j dev show "$1" | jq '.[0].ifindex')
	echo 0 >"$tracing/$event/enable"
	grep -cE "ib_mad_ib_send_mad: $device:" "$tracing/trace"
}

# --- what is known -------------------------------------------------------------------------------------------------------------

knows() { # host, other: its entry made again, so that nothing is known but the GID
	at "$1" oxib acm del "$(v4_of "$2")" 2>/dev/null
	at "$1" oxib acm add "$(v4_of "$2")" "$(port_field "$2" gids/0)" || bail_out "$1 does not take an entry"
}

# The drivers forget paths and peers when an interface goes down; what joins groups afterwards is to be over.
forget_all() {
	at "$near" ip link set ib0 down
	at "$far" ip link set ib0 down
	if [ "$driver" = oxib ]; then
		knows "$near" "$far"
		knows "$far" "$near"
		at "$near" oxib acm paths flush
		at "$far" oxib acm paths flush
	fi
	at "$near" ip link set ib0 up
	at "$far" ip link set ib0 up
	eventually has_carrier "$near" || bail_out "ib0 of $near did not come up again"
	eventually has_carrier "$far" || bail_out "ib0 of $far did not come up again"
	pause 4
}

prepare() { # state
	case $1 in
	neighbour) ;;
	cached) flush_neighbours "$near" "$far" ;;
	asked) forget_all ;;
	esac
}

# --- the first packet ----------------------------------------------------------------------------------------------------------

# As ping has it: three places, of milliseconds.
first_reply() { # microseconds
	at "$near" ping -n -c 1 -W 10 "$(v4_of "$far")" | awk -F'time=' '/time=/ { printf "%d\n", $2 * 1000 + 0.5; found = 1 } END { exit !found }'
}

state_costs() { # state, repetitions
	local turn time
	for ((turn = 0; turn < $2; turn++)); do
		prepare "$1"
		time=$(first_reply) || bail_out "$far does not answer: $1"
		printf 'resolve %s us=%d\n' "$1" "$time"
	done
	for ((turn = 0; turn < 3; turn++)); do
		prepare "$1"
		begin_count
		first_reply >/dev/null || bail_out "$far does not answer: $1"
		printf 'mads %s number=%d\n' "$1" "$(end_count)"
		cut -d: -f3- "$tracing/trace" | sed -nE 's/.*class (0x\S+) .*method (0x\S+) .*attr_id (0x\S+) .*/# class \1 method \2 attribute \3/p'
	done
}

measure_states() { # repetitions
	local state
	watch_mads 'mgmt_class == 3 || mgmt_class == 7'
	if [ "$driver" = oxib ]; then
		knows "$near" "$far"
		knows "$far" "$near"
	fi
	eventually host_answers "$near" "$(v4_of "$far")" || bail_out "$far is not reached"
	pause 4
	host_answers "$near" "$(v4_of "$far")"
	for state in neighbour cached asked; do
		state_costs "$state" "$1"
	done
}

# The administrator is on h3.
subnet() { # repetitions
	near=h1 far=h2
	echo 'star hosts=3' >"$topology"
	bring_up_fabric bench 'h3 sweep_interval 0'
	load_driver "$driver" || bail_out "$driver could not be loaded"
	interfaces_up h1 h2 || bail_out "IP over InfiniBand did not come up"
	measure_states "$1"
	check "$driver can be unloaded" unload_driver
	take_down_fabric
}

# Those are on h2 and h4.
router() { # repetitions
	near=h1 far=h3
	printf '%s\n' 'routed hosts=2,2' 'router r1 algorithmic=1' >"$topology"
	bring_up_subnets_with "$driver" bench "h2 h1" "h4 h3"
	measure_states "$1"
	take_down_routed_fabric
}

# --- many connections ----------------------------------------------------------------------------------------------------------

# Method Get of the attribute PathRecord, as they are in the datagram's header.
queries='mgmt_class == 3 && method == 1 && attr_id == 0x3500'

know_all() {
	local host
	for host in "${hosts[@]}"; do
		printf '%s %s\n' "$(v4_of "$host")" "$(port_field "$host" gids/0)"
	done >/tmp/all.data
	for host in "${hosts[@]}"; do
		at "$host" oxib acm load /tmp/all.data >/dev/null || bail_out "$host does not take the entries"
	done
}

serve_all() { # command...
	local host
	for host in "${hosts[@]:1}"; do
		in_background_at "$host" "${@//ADDRESS/$(v4_of "$host")}"
	done
}

listen_all() {
	local host
	for host in "${hosts[@]:1}"; do
		[ -n "$(at "$host" ss -Hltn 'sport = :7300')" ] || return
	done
}

connections() { # number, [peers]
	local peers=${2:-10} each
	each=$(($1 / peers))
	echo "star hosts=$((peers + 1))" >"$topology"
	bring_up_fabric bench "h$((peers + 1)) sweep_interval 0"
	load_driver "$driver" || bail_out "$driver could not be loaded"
	interfaces_up "${hosts[@]}" || bail_out "IP over InfiniBand did not come up"
	[ "$driver" = ib_ipoib ] || know_all
	pause 4
	watch_mads "$queries"
	ulimit -n 65536
	serve_all python3 bench/connections.py serve ADDRESS 7300 "$each"
	eventually listen_all || bail_out "not all hosts listen"
	begin_count
	# shellcheck disable=SC2046 # words
	at h1 python3 bench/connections.py open 7300 "$each" $(for host in "${hosts[@]:1}"; do v4_of "$host"; done) ||
		bail_out "not all connections came up"
	printf 'connections tcp peers=%d connections=%d queries=%d\n' "$peers" "$1" "$(end_count h1)"
	stop_jobs
	check "$driver can be unloaded" unload_driver
	take_down_fabric
}

# --- ibacm ---------------------------------------------------------------------------------------------------------------------

# It knows h2's address and GID from its file, as the cache does, and asks the SA for the path at first.
start_ibacm() {
	printf '%s\n' 'log_level 0' "log_file /out/ibacm.log" 'addr_preload acm_hosts' 'addr_data_file /tmp/hosts.data' \
		'route_prot sa' >/tmp/ibacm.cfg
	printf '%s %s\n' "$(v4_of h2)" "$(port_field h2 gids/0)" >/tmp/hosts.data
	echo 'h1 h1 1 default' >/tmp/addresses.cfg
	in_background_at h1 env LD_PRELOAD="$MODULES/bench/idle_verbs.so" ibacm --systemd -O /tmp/ibacm.cfg -A /tmp/addresses.cfg
}

# What it was answered last is in its output alone; how long the answers took, on standard error.
resolve_by_ibacm() { # times
	at h1 env LD_PRELOAD="$MODULES/bench/answers.so" ib_acme -f i -d "$(v4_of h2)" -c -C "$1" >/tmp/ib_acme
}

ibacm_has_the_path() {
	resolve_by_ibacm 1 && grep -q "dlid: $(port_number h2 lid)$" /tmp/ib_acme
}

ibacm() { # repetitions
	local turn
	echo 'star hosts=3' >"$topology"
	bring_up_fabric bench 'h3 sweep_interval 0'
	load_driver "$driver" || bail_out "$driver could not be loaded"
	interfaces_up h1 h2 || bail_out "IP over InfiniBand did not come up"
	start_ibacm
	eventually ibacm_has_the_path || bail_out "ibacm does not answer: $(cat /tmp/ib_acme /out/ibacm.log)"
	pause 4
	for ((turn = 0; turn < $1; turn++)); do
		resolve_by_ibacm 1001 2>&1
		grep -q 'return status 0x0$' /tmp/ib_acme || bail_out "ibacm did not answer each time"
	done
	stop_jobs
	check "$driver can be unloaded" unload_driver
	take_down_fabric
}

sequence "${@:2}"
ok "the measurements were taken"
finish
