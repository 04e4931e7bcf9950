#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many programs ask for paths at once: a thousand connections to ten peers, of which five are behind a router, and two thousand
# questions for one path that is not known yet. A subnet or a port changes while a program asks: no path is told any more that
# was right before. oxib goes while programs wait for their answers: the kernel asks the subnet administrator then. The kernel
# waits more than three minutes for an answer here, instead of two seconds: one that is lost fails a check.
#
# askers.sh [many|changes|leaving...]
#
# nodes: 1
# kernels: fast debug
# timeout: 900

. selftests/lib/acm.sh
# shellcheck source=selftests/lib/connections.sh
. selftests/lib/connections.sh

sections=("$@")
[ $# -gt 0 ] || sections=(many changes leaving)
[ "$KERNEL" != debug ] || [ $# -gt 0 ] || sections=(leaving)

topologies=/tmp
port=7471

# --- programs that ask -----------------------------------------------------------------------------------------------------------

# A program of h1 has the routes to a host resolved.
routes() { # host, number, [option...]
	at h1 python3 selftests/acm/resolve_route.py "${@:3}" "$2" "$(v4_of "$1")"
}

counted() { # counter
	oxib -n h1 -j acm stats | jq ".$1"
}

counts() { # counter, number at least
	holds "$(counted "$1")" -ge "$2"
}

in_file() { # file, extended regular expression
	grep -qE "$2" "$1"
}

sm_does() { # STOP|CONT, host
	kill "-$1" "${sm_processes[$2]}"
}

# --- a thousand connections, two thousand questions ------------------------------------------------------------------------------

each=$(some 100)
questions=$(some 2000)

# With queue pairs, so that nobody is asked for them.
load_all() {
	local host
	for host in "${hosts[@]}"; do
		printf '%s %s qpn %s\n' "$(v4_of "$host")" "$(port_field "$host" gids/0)" "$(qpn_of "$host")"
	done >/tmp/all.data
	for host in "${hosts[@]}"; do
		oxib -n "$host" acm load /tmp/all.data || return
	done
}

# From h1 to each of the others, at the same time.
connect_all() { # connections to each
	connects "$1" "$port" h1 "${hosts[@]:1}"
}

# While the subnet administrator sleeps, so that all of them wait for one answer.
ask_at_once() { # host
	local before status=0 process
	before=$(counted path_misses)
	sm_does STOP h1
	routes "$1" "$questions" --port 7500 >/tmp/routes 2>&1 &
	process=$!
	eventually counts path_misses $((before + questions)) || status=1
	sm_does CONT h1
	wait "$process" || status=1
	cat /tmp/routes
	return "$status"
}

bring_up_ten_peers() { # acm_programs
	printf '%s\n' 'routed hosts=6,5' 'router r1 algorithmic=1' >"$topologies/ten.fabric"
	bring_up_subnets ten "h1 h2 h3 h4 h5 h6" "h7 h8 h9 h10 h11" acm_learn=0 "acm_programs=$1"
	begin
}

begin() { # [kernel]
	load_managers "$@" || bail_out "the connection managers could not be loaded"
	check "the kernel waits long for a local service" wait_long 200000
	check "every host knows all" load_all
	watch_queries
}

end() {
	stop_watching_queries
	check "the kernel waits as ever" wait_long 2000
	check "the connection managers can be unloaded" eventually unload_managers
}

reload_shared() {
	unload_driver && load_driver oxib acm_learn=0 acm_programs=shared && interfaces_up "${hosts[@]}"
}

flood() {
	local status=0 process
	python3 selftests/acm/local_service.py flood &
	process=$!
	routes h2 200 --port 7501 && routes h8 200 --port 7501 || status=1
	wait "$process" || status=1
	return "$status"
}

test_many() {
	local before
	bring_up_ten_peers exact
	ulimit -n 65536
	check "$((10 * each)) connections to ten peers ask ten times" asks 10 10 connect_all "$each"
	check "ten more to each ask for nothing" asks 0 0 connect_all 10
	before=$(counted programs_answered)
	check "$questions questions at once are one query" asks 1 1 ask_at_once h7
	check "each of them was answered" holds "$(counted programs_answered)" -ge $((before + questions))
	check "a program floods the group: others are answered" flood
	check "who is root in a namespace of his own cannot answer" python3 selftests/acm/local_service.py as 65534 foreign
	end
	check "oxib comes with acm_programs=shared" reload_shared
	begin
	check "shared: h1 asks for all paths ahead" at h1 oxib acm paths preload dev ib0
	check "shared: $((10 * each)) connections ask for nothing" asks 0 0 connect_all "$each"
	end
	take_down_routed_fabric
}

# --- what is right changes -------------------------------------------------------------------------------------------------------

# A program of h1 asks for the way to h2 all the time, whatever becomes of it.
ask_on() {
	while :; do
		timeout "$patience" python3 selftests/acm/resolve_route.py 1 --rounds 20 --pause 0.1 "$(v4_of h2)"
	done
}

ask_in_background() {
	ip netns exec h1 bash -c "$(declare -f ask_on v4_of host_number); patience=$patience; ask_on" >/tmp/asked 2>&1 &
	jobs_running+=($!)
	eventually in_file /tmp/asked '^to '
}

# The route leads there, each time that it is asked for.
leads_to() { # host, P_Key, [option...]
	routes "$1" 1 "${@:3}" >/tmp/route &&
		equal "to $(v4_of "$1") pkey $2 dlid $(port_number "$1" lid) number 1" "$(grep '^to ' /tmp/route | sort -u)"
}

leads_right() { # description, P_Key, [least number of queries]
	check "$1: the path is the new one" eventually leads_to h2 "$2"
	check "$1: and stays so" leads_to h2 "$2" --rounds 10 --pause 0.1
	check "$1: it was asked for anew" holds "$(watched_queries)" -ge 1
	check "$1: now it is known" eventually asks 0 0 leads_to h2 "$2"
}

forget_queries() {
	: >"$tracing/trace"
}

test_handover() {
	check "hand-over: the path is known" asks 0 0 leads_to h2 0xffff
	stop_jobs
	forget_queries
	start_sm h3 "sm_priority 14"
	check "hand-over: another subnet manager takes over" eventually master_is h4 h3
	check "hand-over: no path of a program is kept" eventually no_path_of_programs
	leads_right hand-over 0xffff
	check "hand-over: it leaves" stop_sm h3
	check "hand-over: the first one has the subnet again" eventually master_is h3 h4
}

# A query alone would not show it: IP asks for its paths again, too.
no_path_of_programs() {
	equal 0 "$(oxib -n h1 -j acm paths | jq 'map(select(.service_id)) | length')"
}

has_lid() { # host, LID
	equal "$2" "$(port_number "$1" lid)"
}

test_lids() { # host whose LID changes, its new one
	check "LID of $1: programs ask" ask_in_background
	stop_sm
	check "LID of $1: it is to be $2" give_lid h4 "$1" "$2"
	forget_queries
	start_sm h4 'honor_guid2lid_file TRUE'
	check "LID of $1: it is another one" eventually has_lid "$1" "$2"
	leads_right "LID of $1" 0xffff
	stop_jobs
}

partitions() { # [line...]
	printf '%s\n' 'Default=0x7fff, ipoib: ALL=full;' "$@" >/tmp/sm.h4/partitions.conf
	reread h4
}

is_in() { # host, P_Key
	equal "$2" "$(at "$1" cat /sys/class/net/ib0/pkey)"
}

both_in() { # P_Key
	is_in h1 "$1" && is_in h2 "$1" && has_carrier h1 && has_carrier h2
}

test_pkeys() {
	check "P_Key: programs ask" ask_in_background
	forget_queries
	partitions "blue=0x0001, ipoib, indx0: $(port_guid h1)=full, $(port_guid h2)=full;"
	check "P_Key: the interfaces of h1 and h2 have another one" eventually both_in 0x8001
	leads_right P_Key 0x8001
	forget_queries
	partitions
	check "P_Key: they have the old one again" eventually both_in 0xffff
	leads_right "P_Key, again" 0xffff
	stop_jobs
}

has_gid_of() { # prefix, host...
	local host
	for host in "${@:2}"; do
		matches "^$1:" "$(port_field "$host" gids/0)" && has_carrier "$host" || return
	done
}

# The GID that the path began with is no port's any more.
test_gids() {
	local old
	check "GID: programs ask" ask_in_background
	old=$(short_gid "$(port_field h1 gids/0)")
	check "GID: a path is kept that begins with the old one" eventually has_path_from "$old"
	stop_sm
	forget_queries
	start_sm h4 'honor_guid2lid_file TRUE' 'subnet_prefix 0xfec0000000000007'
	check "GID: ports have others" eventually has_gid_of fec0:0000:0000:0007 h1 h2
	flush_neighbours h1 h2
	leads_right GID 0xffff
	check "GID: no path is kept that begins with the old one" eventually no_path_from "$old"
	stop_jobs
}

has_path_from() { # GID
	oxib -n h1 -j acm paths | grep -F "\"$1\""
}

no_path_from() { # GID
	local paths
	paths=$(oxib -n h1 -j acm paths) && ! grep -F "\"$1\"" <<<"$paths"
}

test_changes() {
	echo 'star hosts=4' >"$topologies/changes.fabric"
	bring_up_fabric changes 'h4 honor_guid2lid_file TRUE'
	load_driver oxib acm_learn=0 || bail_out "oxib could not be loaded"
	check "interfaces come up" interfaces_up "${hosts[@]}"
	load_managers || bail_out "the connection managers could not be loaded"
	check "h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
	watch_queries
	check "a program asks for the path" leads_to h2 0xffff
	test_handover
	test_lids h2 77
	test_lids h1 78
	test_pkeys
	test_gids
	stop_watching_queries
	check "the connection managers can be unloaded" eventually unload_managers
	take_down_routed_fabric
}

# --- oxib goes -------------------------------------------------------------------------------------------------------------------

waiting=$(some 500)

no_interface() {
	! at h1 test -e /sys/class/net/ib0
}

# Of a program of h1 that waits for /tmp/go.
ready_to_ask() { # file for its output, number, [option...]
	rm -f /tmp/go
	routes h2 "${@:2}" --start /tmp/go >"$1" 2>&1 &
	asker=$!
	eventually in_file "$1" ready
}

# One route after the other, all the time: what it asks while oxib goes is answered, or left to the subnet administrator.
test_asking_on() {
	check "leaving: a program is ready" ready_to_ask /tmp/asking $((10 * waiting)) --each
	touch /tmp/go
	check "leaving: it asks" eventually counts programs_answered 10
	check "leaving: oxib goes meanwhile" unload_driver
	check "leaving: it gets all of its routes" eventually in_file /tmp/asking "number $((10 * waiting))$"
	wait "$asker"
}

# Many wait for an answer that oxib waits for.
test_waiting() {
	local before leaver
	check "leaving: programs are ready" ready_to_ask /tmp/waiting "$waiting"
	before=$(counted path_misses)
	sm_does STOP h3
	touch /tmp/go
	check "leaving: they wait for their paths" eventually counts path_misses $((before + waiting))
	unload_driver >/tmp/leaver 2>&1 &
	leaver=$!
	check "leaving: oxib begins to go" eventually no_interface
	sm_does CONT h3
	check "leaving: it has gone" wait "$leaver"
	check "leaving: they get their routes" eventually in_file /tmp/waiting "number $waiting$"
	wait "$asker"
}

test_leaving() {
	echo 'star hosts=3' >"$topologies/leaving.fabric"
	bring_up_fabric leaving h3
	load_driver oxib acm_learn=0 || bail_out "oxib could not be loaded"
	check "interfaces come up" interfaces_up "${hosts[@]}"
	begin kernel
	check "h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
	test_asking_on
	check "leaving: it can be loaded again" load_driver oxib acm_learn=0
	check "leaving: interfaces come up" interfaces_up "${hosts[@]}"
	check "leaving: h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
	test_waiting
	check "leaving: it can be loaded once more" load_driver oxib
	end
	take_down_routed_fabric
}

for section in "${sections[@]}"; do
	"test_$section"
done
finish
