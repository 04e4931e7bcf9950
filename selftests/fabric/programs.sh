#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Unmodified programs with user-space verbs on softib, by Debian's libibverbs and softib's provider, on
# a switch and across one router and two; packets for a connection that its peer has not sent; the order in which
# bytes become visible; what programs must not do; programs that are killed, and HCAs that go under them.
#
# programs.sh [star|strangers|order|misuse|regions|ends|routed|chain|whole_chain...]
#
# The debug kernel runs the parts that reach memory and locks: one program of each kind, on a switch.
#
# nodes: 1
# kernels: fast debug
# timeout: 900

. selftests/lib/program_ends.sh
# shellcheck source=selftests/lib/chain.sh
. selftests/lib/chain.sh

programs=(rping ucmatose udaddy rstream riostream cmtime)
perftests=(ib_send_lat ib_send_bw ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_atomic_lat ib_atomic_bw)
sections=(star strangers order misuse regions ends routed chain)
if [ "$KERNEL" = debug ]; then
	programs=(rping udaddy riostream)
	perftests=(ib_send_lat ib_write_bw ib_read_bw ib_atomic_lat)
	sections=(star misuse regions ends)
fi
[ $# = 0 ] || sections=("$@")

iterations=$(some 100)
# Writes, sends and reads of which the order of bytes is looked at: while something else keeps processors busy, and while
# nothing does. A wrong order of writes and sends shows more often in the first, that of reads in the second.
busy_rounds=(100000 30000 1000)
quiet_rounds=(1000 1000 20000)

# --- a server and its client ------------------------------------------------------------------------

# Both have to end well. If not, what they said is shown, but for addresses: those of 16 queue pairs hide the rest.
serve_and_call() { # tcp|cm, port, server host, client host, 'server words', 'client words'
	local kind=$1 port=$2 server=$3 client=$4 process status=0
	# shellcheck disable=SC2086 # words
	at "$server" timeout $((4 * patience)) $5 >/tmp/server 2>&1 &
	process=$!
	eventually "listens_$kind" "$server" "$port" || printf 'the server does not listen\n'
	# shellcheck disable=SC2086 # words
	watched $((2 * patience)) at "$client" $6 >/tmp/client 2>&1 || {
		status=$?
		printf 'the client ended with %d, having said:\n' "$status"
		grep -v ' address: ' /tmp/client
		has_ended "$process" || explain_program "$process"
		end_processes "$process"
	}
	wait "$process" || {
		status=$?
		printf 'the server ended with %d, having said:\n' "$status"
		grep -v ' address: ' /tmp/server | tail -n 15
	}
	return "$status"
}

# The server's words of a program that finds its peer by IP address; its client's are the same but for what asks for a peer.
words_of() { # program, server's address
	local many
	many=$(some 20)
	case $1 in
	rping) printf 'rping -s -a %s -C 20 -S 4000 -V' "$2" ;;
	ucmatose) printf 'ucmatose -b %s -c %d -C 10 -S 1000' "$2" "$many" ;;
	udaddy) printf 'udaddy -b %s -c %d -C 1 -S 1000' "$2" "$many" ;;
	rstream | riostream) printf '%s -b %s -S 1000 -I 10 -C 10' "$1" "$2" ;;
	cmtime) printf 'cmtime -b %s -c %d' "$2" "$(some 100)" ;;
	esac
}

# rping and udaddy meet at the port that is the default of both, the others at another one.
port_of() { # program
	case $1 in
	rping | udaddy) echo 7174 ;;
	*) echo 7471 ;;
	esac
}

# Programs that find their peer by its IP address, and connect by the connection manager.
by_address() { # description, server host, client host
	local program words
	for program in "${programs[@]}"; do
		words=$(words_of "$program" "$(v4_of "$2")")
		check "$1: $program" serve_and_call cm "$(port_of "$program")" "$2" "$3" "$words" \
			"$(sed 's/rping -s/rping -c/; s/ -b / -s /' <<<"$words")"
	done
	check "$1: rping over IPv6" serve_and_call cm 7174 "$2" "$3" "rping -s -a $(v6_of "$2") -C 20 -V" "rping -c -a $(v6_of "$2") -C 20 -V"
}

has_joined() {
	grep -q 'joined dgid' /tmp/server
}

# Of one host to another, by a group that both join.
by_group() { # receiving host, sending host
	local receiver words="-m 239.7.7.7 -C 10 -S 1000"
	# shellcheck disable=SC2086 # words
	at "$1" timeout $((4 * patience)) stdbuf -oL mckey $words -b "$(v4_of "$1")" >/tmp/server 2>&1 &
	receiver=$!
	eventually has_joined || printf 'the receiver does not join\n'
	# shellcheck disable=SC2086 # words
	at "$2" timeout $((2 * patience)) mckey $words -s -b "$(v4_of "$2")" || kill "$receiver"
	wait "$receiver" || {
		tail -n 15 /tmp/server
		return 1
	}
}

# perftest: of atomic operations the size is fixed.
perftest_words() { # program, device, iterations
	printf '%s -d %s -F -n %d' "$1" "$2" "$3"
	case $1 in
	ib_atomic_*) ;;
	*) printf ' -s 4096' ;;
	esac
}

perftest() { # description, server host, client host, tcp|cm, 'more words'
	local program words address
	address=$(v4_of "$2")
	[ "$4" != cm ] || address=name-of-$address
	for program in "${perftests[@]}"; do
		words="$(perftest_words "$program" "$2" "$iterations") $5"
		check "$1: $program $5" serve_and_call "$4" "$exchange_port" "$2" "$3" "$words" \
			"${words/-d $2/-d $3} $address"
	done
}

# --- on a switch ------------------------------------------------------------------------------------

pingpong() { # rc|uc|ud|srq, 'more words', [client host]
	local words="-g 0 -n $iterations $2" client=${3:-h2}
	serve_and_call tcp "$exchange_port" h1 "$client" "ibv_$1_pingpong -d h1 $words" \
		"ibv_$1_pingpong -d $client $words $(v4_of h1)"
}

test_devices() {
	check "ibv_devices finds the HCA of each host" says h1 ibv_devices '^ *h1 '
	check "and no other one" says h2 ibv_devices '^ *h2 '
	check_equal "in each host one" 1 "$(at h1 ibv_devices | grep -c '[0-9a-f]\{16\}$')"
	check "ibv_devinfo opens it" says h1 "ibv_devinfo -v" 'state:.*PORT_ACTIVE' 'link_layer:.*InfiniBand' \
		'max_mw:.*0' 'GID\[  0\].*fe80:'
	check_refused "a host opens no HCA of another one" at h1 ibv_devinfo -d h2
}

test_pingpongs() {
	local kind
	for kind in rc uc ud srq; do
		check "ibv_${kind}_pingpong" pingpong "$kind" ""
		check "ibv_${kind}_pingpong with events" pingpong "$kind" -e
	done
	for kind in rc uc; do
		check "ibv_${kind}_pingpong with data that is checked" pingpong "$kind" -c
	done
	for kind in rc uc srq; do
		check "ibv_${kind}_pingpong with both ends on one host" pingpong "$kind" "" h1
	done
	check "ibv_rc_pingpong with messages of 4 MiB that are checked" pingpong rc "-s 4194304 -r 4 -n 4 -c"
	check "ibv_srq_pingpong with messages of 4 MiB" pingpong srq "-s 4194304 -q 2 -r 4 -n 4"
}

# On the cable of h1, both ways.
lose() { # per cent
	tc qdisc replace dev s1-1 root netem loss "$1%" limit 10000 &&
		at h1 tc qdisc replace dev port1 root netem loss "$1%" limit 10000
}

lose_nothing() {
	tc qdisc delete dev s1-1 root && at h1 tc qdisc delete dev port1 root
}

lost_both_ways() {
	has_lost s1-1 && has_lost port1 at h1
}

# By programs whose ends leave together. An end of a pingpong leaves once it has its share, and the other one fails if it has
# not heard by then that its last message arrived.
# A queue pair repeats a message that is lost after 4.096 us * 2^18, a second, up to seven times. The 67 ms of perftest's default
# are too few where an end that shares the processor takes as long to answer.
test_losses() {
	local words
	check "the cable of h1 loses packets" lose 1
	for words in "ib_send_bw -b -s 4096" "ib_send_bw -b -s 4096 --use-srq -q 16" "ib_write_bw -q 4 -s 4096" \
		"ib_read_bw -q 4 -s 4096" "ib_atomic_bw -q 4"; do
		check "$words over that cable" serve_and_call tcp "$exchange_port" h1 h2 "$words -d h1 -F -u 18 -n $(some 500)" \
			"$words -d h2 -F -u 18 -n $(some 500) $(v4_of h1)"
	done
	check "packets were lost both ways" lost_both_ways
	check "the cable is a good one again" lose_nothing
}

# The answers to a READ have no window: whoever sends them waits while the cable is full.
test_long_reads() {
	local lost words="ib_read_bw -F -u 18 -s 16777216 -n 5"
	lost=$(cat /sys/class/net/s1-1/statistics/rx_dropped)
	check "READs of 16 MiB" serve_and_call tcp "$exchange_port" h1 h2 "$words -d h1" "$words -d h2 $(v4_of h1)"
	check_equal "no answer was lost on the cable of h1" "$lost" "$(cat /sys/class/net/s1-1/statistics/rx_dropped)"
}

# --- packets that are not from the peer --------------------------------------------------------------------

queue_pair_of_connection() { # host
	at "$1" rdma -j resource show qp | jq '[.. | objects | select(.type == "RC")][0].lqpn // empty'
}

has_counted_strangers() { # number
	equal "$1" "$(port_field h1 hw_counters/wrong_source)"
}

test_strangers() {
	local before
	bring_up_star
	before=$(port_field h1 hw_counters/wrong_source)
	check "ib_write_bw writes" start_traffic 10
	check "packets for its connection come from another port than the peer's" python3 selftests/fabric/malformed.py s1-1 \
		"$(port_number h1 lid)" "$(port_number h2 lid)" connection "$(queue_pair_of_connection h1)"
	check "the HCA counts them" eventually has_counted_strangers $((before + 3))
	check "the server's end of the connection works on" wait "$server"
	check "so does the client's" wait "$client"
	take_down_star
}

# --- the order of bytes ------------------------------------------------------------------------------------

ordered() { # description, writes, sends, reads
	at h3 timeout "$longest" "$MODULES/libsoftib/order" h3 "${@:2}" >/tmp/order 2>&1
	take_report "$1" /tmp/order
}

test_order() {
	bring_up_star
	ordered "quiet" "${quiet_rounds[@]}"
	in_background sh -c 'while :; do :; done'
	ordered "busy" "${busy_rounds[@]}"
	take_down_star
}

# --- what a program must not do --------------------------------------------------------------------------

# By programs of selftests/fabric/programs/, on an HCA that computes checksums.
misuse() { # program
	at h2 timeout "$longest" "$MODULES/libsoftib/$1" h2 >"/tmp/$1" 2>&1
	take_report "$1" "/tmp/$1"
	check "nothing is left of $1" eventually has_no_objects h2
}

# The kernel's log, which a program could fill.
says_no_overrun() {
	! dmesg | grep -q 'overran'
}

# --- memory ----------------------------------------------------------------------------------------------

# As no one that the limit does not bind.
as_nobody() { # kilobytes that may be pinned, command...
	at h1 prlimit --memlock=$(($1 * 1024)) setpriv --reuid 65534 --regid 65534 --clear-groups "${@:2}"
}

does_not_register() {
	matches "Couldn't register MR" "$(as_nobody 64 timeout "$patience" ibv_rc_pingpong -d h1 -s 1000000 2>&1)"
}

test_limit() {
	check "a program pins no more than RLIMIT_MEMLOCK" does_not_register
	check_equal "within it, it does" 124 "$(
		as_nobody 4096 timeout 3 ibv_rc_pingpong -d h1 -s 1000000 >/dev/null 2>&1
		echo $?
	)"
	check "nothing is left of it" eventually has_no_objects h1
}

regions() {
	at h3 timeout "$longest" "$MODULES/libsoftib/regions" h3 >/tmp/regions 2>&1
	take_report regions /tmp/regions
	check "nothing is left of them" eventually has_no_objects h3
}

# --- topologies --------------------------------------------------------------------------------------------

bring_up_star() {
	bring_up_fabric star h1
	load_driver oxib || bail_out "oxib could not be loaded"
	check "the connection manager is loaded" load_managers
	check "every host's interface comes up" interfaces_up "${hosts[@]}"
}

take_down_star() {
	stop_jobs
	check "the connection manager can be unloaded" unload_managers
	check "oxib can be unloaded" unload_driver
	take_down_fabric
}

test_star() {
	bring_up_star
	test_devices
	test_pingpongs
	test_losses
	test_long_reads
	by_address "switch" h1 h2
	check "switch: mckey" by_group h1 h2
	perftest "switch" h1 h2 tcp ""
	perftest "switch" h1 h2 cm "-R"
	check "nothing is left of all that" eventually has_no_objects h1
	take_down_star
}

test_misuse() {
	local program
	modprobe ib_uverbs
	bring_up_fabric offload h1
	for program in misuse keys completions queues; do
		misuse "$program"
	done
	check "the kernel's log has nothing of their completion queues" says_no_overrun
	take_down_fabric
}

test_regions() {
	bring_up_star
	regions
	take_down_star
}

test_ends() {
	bring_up_star
	test_limit
	test_steps
	test_killed
	check "the HCA works" pingpong rc ""
	test_removed
	take_down_star
	test_unloaded
}

one_has_ended() {
	has_ended "$server" || has_ended "$client"
}

# Eight times an acknowledgement is waited for, of which the path's packet life time says how long: 17 s in all with OpenSM's, and
# up to four times as long by the specification (IBTA 9.7.6.1.3).
one_ends_in_time() {
	local patience=$((3 * patience))
	eventually one_has_ended
}

one_has_failed() {
	if has_ended "$client"; then ! wait "$client"; else ! wait "$server"; fi
}

# A program that reads and writes until something fails, across a router that goes away. The end whose request is not acknowledged
# notices; the other one may wait for it, and could not be told.
test_router_goes() {
	local server client address
	address=$(v4_of h1)
	# By what is killed and waited for itself: a function would be a shell between.
	ip netns exec h1 rping -s -a "$address" >/tmp/server 2>&1 &
	server=$!
	eventually listens_cm h1 7174 || printf 'the server does not listen\n'
	ip netns exec h3 rping -c -a "$address" >/tmp/client 2>&1 &
	client=$!
	check "rping runs across the router" eventually has_objects h3 qp mr
	pause 1
	check "the router's cable is pulled" ip link set r1-1 down
	check "an end of rping ends" one_ends_in_time
	check "with an error" one_has_failed
	kill "$server" "$client" 2>/dev/null
	wait "$server" "$client" 2>/dev/null
	check "the cable is put back" ip link set r1-1 up
	check "h3 reaches h1 by IP again" eventually host_answers h3 "$address"
	check "and rping" serve_and_call cm 7174 h1 h3 "rping -s -a $address -C 20 -V" "rping -c -a $address -C 20 -V"
}

# --- what goes over the cables of a host -----------------------------------------------------------------

# Behind LRH and GRH: datagrams of the general services, and what asks all hosts of a subnet for an address, by ARP (encapsulated as
# 0x0806) or as a neighbour solicitation. The name server of slow_names, that nobody is, is asked for in any case.
general_services='ether[66:4] & 0xffffff = 1'
arp="ether[82:2] = 0x0806 and ether[138:4] != $(v4_of h99 | awk -F. '{ printf "0x%02x%02x%02x%02x", $1, $2, $3, $4 }')"
solicitation='ether[82:2] = 0x86dd and ether[92] = 58 and ether[126] = 135'
broadcasts="ether[16:2] >= 0xc000 and (($arp) or ($solicitation))"

declare -A captures=()

# Of the longest packets that are looked at, so that many wait until tcpdump gets a processor.
capture_at() { # host...
	local host
	for host in "$@"; do
		ip netns exec "$host" tcpdump --immediate-mode -U -s 512 -B 8192 -i port1 -w "/out/$host.pcap" \
			"ether proto 0x88b5 and ether[15] & 3 = 3 and ($general_services or ($broadcasts))" 2>"/tmp/tcpdump.$host" &
		captures[$host]=$!
		eventually grep -q 'listening on' "/tmp/tcpdump.$host" || return
	done
}

end_captures() {
	kill "${captures[@]}" && wait "${captures[@]}"
	captures=()
}

captured_broadcasts() { # host
	tcpdump -r "/out/$1.pcap" --count "$broadcasts" 2>/dev/null | awk '{ print $1 }'
}

asks_all() { # host
	holds "$(captured_broadcasts "$1")" -gt 0
}

captured() { # host, kind of message, [field=value...]
	python3 selftests/cm/capture.py "/out/$1.pcap" "${@:2}"
}

# Queries of paths by one of the hosts: the kernel numbers the devices.
queries_of() { # host
	grep -cE "$sent_events: $(at "$1" rdma -j dev show "$1" | jq '.[0].ifindex'):" "$tracing/trace"
}

# Each connection begins with one of these.
captured_requests() { # host
	echo $(($(captured "$1" REQ) + $(captured "$1" SIDR_REQ)))
}

# By the addresses of the cache: nobody is asked for them, the subnet administrators at most once for each connection, and by its
# caller. The caller knows the LIDs of neither end.
test_requests() { # server host, client host
	local host requests connections
	# Of ucmatose and cmtime alone.
	connections=$(($(some 20) + $(some 100)))
	requests=$(captured_requests "$2")
	for host in "$@"; do
		check_equal "$host asks for no address by broadcast" 0 "$(captured_broadcasts "$host")"
	done
	check_equal "$1, which is called, asks for no path" 0 "$(queries_of "$1")"
	note "$2 asks for $(queries_of "$2") paths, for $requests connections"
	check "$2 asks at most once for each connection" holds "$(queries_of "$2")" -le "$requests"
	check "all connections are captured" holds "$(captured "$2" REQ)" -ge "$connections"
	check_equal "each REQ has permissive LIDs, and says that the ends are in two subnets" "$(captured "$2" REQ)" \
		"$(captured "$2" REQ primary_local_lid=0xffff primary_remote_lid=0xffff primary_subnet_local=0)"
	check "an address that nobody knows is looked for" is_lost "$2" "$(v4_of h98)"
	check "$2 asks for it by broadcast" eventually asks_all "$2"
}

# The LIDs that programs exchange are of the other subnet; perftest can be told the router's.
test_routed() {
	bring_up_routed_fabric
	check "the connection manager is loaded" load_managers
	know h1 h2 h3 h4 && know h3 h1 h2 h4
	check "h3 reaches h1 by IP" eventually host_answers h3 "$(v4_of h1)"
	check "what the ends say and ask is captured" capture_at h1 h3
	watch_queries
	by_address "router" h1 h3
	perftest "router" h1 h3 cm "-R"
	stop_watching_queries
	test_requests h1 h3
	end_captures
	check "router: ib_send_lat with the router's LID" serve_and_call tcp "$exchange_port" h1 h3 \
		"ib_send_lat -d h1 -F -n $iterations -x 0 --dlid $(router_lid h1 r1)" \
		"ib_send_lat -d h3 -F -n $iterations -x 0 --dlid $(router_lid h3 r1) $(v4_of h1)"
	test_router_goes
	check "nothing is left of all that" eventually has_no_objects h3
	check "the connection manager can be unloaded" unload_managers
	take_down_routed_fabric
}

# Of h2, between the routers, too.
bring_up_chain() {
	load_softib || bail_out "softib.ko could not be loaded"
	fabric_up chain || bail_out "the fabric chain could not be built"
	check "three subnets have their ports active" start_chain
	check "the routers are told where everything is" inform_chain
	load_driver oxib || bail_out "oxib could not be loaded"
	check "every host's interface comes up" interfaces_up "${hosts[@]}"
	check "the connection manager is loaded" load_managers
	know h1 h2 h3 && know h2 h1 h3 && know h3 h1 h2
	check "h3 reaches h1 by IP" eventually host_answers h3 "$(v4_of h1)"
}

test_chain() {
	bring_up_chain
	check "two routers: rping" serve_and_call cm 7174 h1 h3 "rping -s -a $(v4_of h1) -C 20 -V" \
		"rping -c -a $(v4_of h1) -C 20 -V"
	check "from between the routers, rping" serve_and_call cm 7174 h1 h2 "rping -s -a $(v4_of h1) -C 20 -V" \
		"rping -c -a $(v4_of h1) -C 20 -V"
	take_down_star
}

# For soak/programs.
test_whole_chain() {
	bring_up_chain
	by_address "two routers" h1 h3
	perftest "two routers" h1 h3 cm "-R"
	take_down_star
}

ulimit -l unlimited
slow_names "$(v4_of h1)"
for section in "${sections[@]}"; do
	"test_$section"
done
finish
