#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Programs that connect by rdma_cm get their paths from the cache: the subnet administrators are asked once for a peer and a
# service, however many connections there are, across a router too; never, where the administrator says that they make no
# difference; and for each connection, where he wants that. What was said is forgotten when it is doubtful. Nobody else can
# answer the kernel's questions, or ask them.
#
# programs.sh [exact|shared|off|kernel|beside|leaving...]: with acm_programs= so; exact with the kernel's ib_cm, beside other
# services (one that knows nothing, and ibacm), and unloaded while programs ask
#
# nodes: 1
# kernels: fast debug
# timeout: 900

. selftests/lib/acm.sh
# shellcheck source=selftests/lib/connections.sh
. selftests/lib/connections.sh

sections=("$@")
[ $# -gt 0 ] || sections=(exact shared off kernel beside leaving)
[ "$KERNEL" != debug ] || [ $# -gt 0 ] || sections=(exact leaving)

many=$(some 50)

# --- programs --------------------------------------------------------------------------------------------------------------------

answered() {
	programs_at h1 answered
}

# --- what is tested --------------------------------------------------------------------------------------------------------------

# With queue pairs: across a router the kernel's connection manager says none.
know_whole() { # host
	local host
	for host in h1 h2 h3; do
		printf 'replace %s %s qpn %s\n' "$(v4_of "$host")" "$(port_field "$host" gids/0)" "$(qpn_of "$host")"
	done | cache_at "$1" -
}

begin() { # acm_programs, [kernel]
	local host
	bring_up_routed_fabric acm_learn=0 "acm_programs=$1"
	load_managers "${2:-}" || bail_out "the connection managers could not be loaded"
	check "$1: the kernel waits long for a local service" wait_long 200000
	for host in h1 h2 h3; do
		know_whole "$host"
	done
	check "$1: h1 reaches h2" eventually host_answers h1 "$(v4_of h2)"
	check "$1: h1 reaches h3, behind the router" eventually host_answers h1 "$(v4_of h3)"
	watch_queries
}

end() {
	stop_watching_queries
	check "the kernel waits as ever" wait_long 2000
	check "the connection managers can be unloaded" eventually unload_managers
	take_down_routed_fabric
}

test_once() { # description
	local before peer
	before=$(answered)
	for peer in h2 h3; do
		check "$1: $many connections to $peer ask once" asks 1 1 connects "$many" 7471 h1 "$peer"
		check "$1: as many more ask for nothing" asks 0 0 connects "$many" 7471 h1 "$peer"
	done
	check "$1: all of them were answered" holds $(($(answered) - before)) -ge $((4 * many))
}

test_services() {
	check "exact: another service asks once for itself" asks 1 1 connects 5 7472 h1 h2
	check "exact: it asks no more" asks 0 0 connects 5 7472 h1 h2
	check "exact: the path is shown with its service" says h1 'oxib acm paths' 'service 0x0000000001061d30'
}

# What an administrator or the subnet manager does that makes paths doubtful.
test_doubt() {
	check "exact: paths can be forgotten" at h1 oxib acm paths flush
	# IP asks for its own path, if it has something to send.
	check "exact: then it is asked anew" asks 1 2 connects 5 7471 h1 h2
	check "exact: the port of h2 goes down and comes up" bounce h2
	check "exact: h2 reaches h1 again" eventually host_answers h2 "$(v4_of h1)"
	check "exact: h2 asks anew" asks 1 10 connects 5 7471 h2 h1
	check "exact: h2 asks no more" asks 0 0 connects 5 7471 h2 h1
}

# Of a host without a subnet manager: one that becomes master again has all ports forget their paths, and may do so twice.
bounce() { # host
	at "$1" ip link set port1 down && eventually is_not_active "$1" && at "$1" ip link set port1 up && eventually is_active "$1" &&
		eventually has_carrier "$1"
}

is_not_active() { # host
	! is_active "$1"
}

# Messages of a connection from h1, sent and received, are traced with that name of its adapter, and with no other.
traced_as() { # name, former name
	local event status=0
	: >"$tracing/trace"
	echo 1 >"$tracing/events/oxib_cm/enable"
	connects 1 7473 h1 h2 || status=1
	echo 0 >"$tracing/events/oxib_cm/enable"
	for event in send receive; do
		matches " oxib_cm_$event: device=$1 " "$(<"$tracing/trace")" || status=1
	done
	! grep " device=$2 " "$tracing/trace" || status=1
	return "$status"
}

# As udev does with an adapter a moment after it appeared.
test_renamed() {
	check "exact: an adapter gets another name" at h1 rdma dev set h1 name renamed
	check "exact: a new service asks once" asks 1 1 connects 5 7473 h1 h2
	check "exact: the new service asks no more" asks 0 0 connects 5 7473 h1 h2
	check "exact: the path is shown with that name" says h1 'oxib acm paths' renamed
	check "exact: messages are traced with that name" traced_as renamed h1
	check "exact: it gets its name back" at h1 rdma dev set renamed name h1
}

# A peer that is not there: the subnet administrator says so, and not the cache.
test_nobody() {
	local declined
	declined=$(programs_at h1 declined)
	at h1 ip neighbour replace 10.88.0.99 lladdr "00:00:00:99:$(absent)" dev ib0 nud permanent
	check_refused "exact: nobody is connected to who is not there" at h1 timeout "$patience" ucmatose -s 10.88.0.99 -p 7471 -c 1
	check "exact: that question was left to the subnet administrator" holds "$(programs_at h1 declined)" -gt "$declined"
}

absent() {
	port_field h2 gids/0 | sed 's/....$/dead/; s/://g; s/../&:/g; s/:$//'
}

test_strangers() {
	local before
	before=$(oxib -n h1 -j acm stats)
	check "exact: who is not root cannot ask, nor answer" python3 selftests/acm/local_service.py as 65534 refused
	check "exact: root asks in vain" \
		python3 selftests/acm/local_service.py heard "$(port_field h1 gids/0)" "$(port_field h2 gids/0)"
	check "exact: nobody can send to the listener alone" python3 selftests/acm/local_service.py unicast
	check "exact: what is malformed goes nowhere" python3 selftests/acm/local_service.py malformed
	check_equal "exact: none of it was counted" "$(jq -S 'with_entries(select(.key | test("program")))' <<<"$before")" \
		"$(oxib -n h1 -j acm stats | jq -S 'with_entries(select(.key | test("program")))')"
	check "exact: programs connect as before" asks 0 0 connects 5 7471 h1 h2
}

test_exact() {
	begin exact
	test_once exact
	test_services
	test_renamed
	test_doubt
	test_nobody
	test_strangers
	end
}

test_shared() {
	local peer
	begin shared
	for peer in h2 h3; do
		check "shared: the path that IP has serves programs for $peer" asks 0 0 connects "$many" 7471 h1 "$peer"
	done
	check "shared: another service too" asks 0 0 connects 5 7472 h1 h2
	check "shared: paths can be forgotten" at h1 oxib acm paths flush
	check "shared: and asked for ahead" at h1 oxib acm paths preload dev ib0
	check "shared: then programs ask for nothing" asks 0 0 connects "$many" 7471 h1 h3
	end
}

sent_again() {
	holds "$(watched_tries)" -gt "$(watched_queries)"
}

# The subnet administrator of h1 sleeps until it has been asked again. A query is sent again after a tenth of its time.
routes_late() {
	local process status=0
	kill -STOP "${sm_processes[h1]}"
	at h1 python3 selftests/acm/resolve_route.py --time 20000 5 "$(v4_of h2)" &
	process=$!
	eventually sent_again || status=1
	kill -CONT "${sm_processes[h1]}"
	wait "$process" || status=1
	return "$status"
}

test_off() {
	begin off
	check "off: each connection asks" asks "$many" $((2 * many)) connects "$many" 7471 h1 h2
	check "off: queries that are sent again count once" asks 5 6 routes_late
	check_equal "off: nothing is answered" 0 "$(answered)"
	check "off: nobody hears the group" listeners_are 0
	end
}

test_kernel() {
	begin exact kernel
	test_once "the kernel's connection manager"
	end
}

# The daemon, for a host. Its netlink socket is in the first network namespace, where the kernel asks. It asks for each path once,
# too. It serves the kernel alone: librdmacm finds it by a file, which all hosts of a node share, and would ask h1's of h2.
start_ibacm() { # host
	mkdir -p /tmp/ibacm
	printf '%s\n' 'log_level 2' 'log_file /tmp/ibacm/log' 'lock_file /tmp/ibacm/pid' 'route_prot sa' \
		'acme_plus_kernel_only yes' >/tmp/ibacm/options
	echo "$1 $1 1 default" >/tmp/ibacm/addresses
	python3 selftests/acm/local_service.py start ip netns exec "$1" \
		ibacm --systemd -O /tmp/ibacm/options -A /tmp/ibacm/addresses &
	jobs_running+=($!)
}

ibacm_answers() {
	grep acm_nl_send /tmp/ibacm/log
}

test_ibacm() {
	local before peer
	start_ibacm h1
	check "ibacm: it listens, too" eventually listeners_are 2
	check "ibacm: it has its port" eventually grep -q 'join successful' /tmp/ibacm/log
	before=$(answered)
	for peer in h2 h3; do
		check "ibacm: $many connections to $peer come up" asks 1 4 connects "$many" 7473 h1 "$peer"
	done
	check "ibacm: oxib answers" holds "$(answered)" -gt "$before"
	check "ibacm: it answers, too" ibacm_answers
	stop_jobs
	check "ibacm: it ends" eventually listeners_are 1
	for peer in h2 h3; do
		check "ibacm: without it, $many connections to $peer ask for nothing" asks 0 0 connects "$many" 7473 h1 "$peer"
	done
}

# Both answer the kernel, and the first one counts: what that one declines, the subnet administrator is asked.
test_beside() {
	begin exact
	python3 selftests/acm/local_service.py decline >/tmp/declined &
	jobs_running+=($!)
	check "beside: another service listens, too" eventually grep -q listening /tmp/declined
	check "beside: $many connections come up" asks 0 "$((2 * many))" connects "$many" 7471 h1 h2
	check "beside: across the router, too" asks 0 "$((2 * many))" connects "$many" 7471 h1 h3
	check "beside: the other one was asked for each" holds "$(grep -c asked /tmp/declined)" -ge $((2 * many))
	stop_jobs
	test_ibacm
	end
}

# With the kernel's ib_cm programs stay when oxib goes.
asks_on() {
	local turn
	for ((turn = 0; turn < 200; turn++)); do
		at h1 timeout 5 ucmatose -s "$(v4_of h3)" -p 7471 -c 20 -C 1
	done
} >/dev/null 2>&1

test_leaving() {
	begin exact kernel
	# What nobody answers any more would be waited for.
	check "leaving: the kernel waits as ever" wait_long 2000
	in_background_at h3 ucmatose -b "$(v4_of h3)" -p 7471 -c 100000 -C 1
	check "leaving: h3 listens" eventually listens_cm h3 7471
	asks_on &
	jobs_running+=($!)
	check "leaving: programs ask" eventually holds_answered 1
	check "leaving: oxib can be unloaded meanwhile" unload_driver
	stop_jobs
	check "leaving: nobody hears the group any more" listeners_are 0
	check "leaving: the programs end" eventually no_program
	check "leaving: it can be loaded without interfaces" load_driver oxib ipoib=0
	check "leaving: nor then, as nothing would be known" listeners_are 0
	check "leaving: and with them again" reload
	check "leaving: it hears the group" listeners_are 1
	check "leaving: interfaces come up" interfaces_up "${hosts[@]}"
	end
}

reload() {
	unload_driver && load_driver oxib
}

# Sockets in the group of local services.
listeners_are() { # number
	equal "$1" "$(awk '$2 == 20 && $4 == "00000004"' /proc/net/netlink | wc -l)"
}

no_program() {
	! pgrep ucmatose
}

holds_answered() {
	holds "$(answered)" -ge "$1"
}

for section in "${sections[@]}"; do
	"test_$section"
done
finish
