#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# kernel.sh [DRIVER]: oxib or ib_ipoib, of which not all pass
#
# The kernel's own selftests of net devices (tools/testing/selftests/drivers/net) on ib0 of h1, with h2 as the remote end: those
# that fit any net device. scripts/module_builder/kernel-selftests gathers them from the kernel's source. The others are for Ethernet frames
# (gro, xdp, macsec, netpoll_basic), or for what an HCA has not (hds, psp, shaper; napi_threaded wants combined channels).
#
# nodes: 1
# kernels: stock
# instead: uml
# memory: 1536
# timeout: 1200

. selftests/lib/infiniband.sh

tests=$MODULES/linux/tools/testing/selftests/drivers/net
output=/tmp/kernel.test
programs=/tmp/kernel.programs

# ping and iperf3 as the tests start them. Half a second for an answer, which is what they give, is too short for machines that are
# emulated; and iperf3 that is told to end while its threads write may wait for itself for ever (esnet/iperf, issues 1735 and 1986).
make_programs_patient() {
	mkdir -p "$programs"
	printf '#!/bin/sh\nexec %s "$@" -W %d\n' "$(command -v ping)" "$patience" >"$programs/ping"
	printf '#!/bin/sh\nexec timeout --kill-after=5 0 %s "$@"\n' "$(command -v iperf3)" >"$programs/iperf3"
	chmod +x "$programs"/*
}

# A check of a test, with what the test printed before it if it failed.
report() { # description, line of TAP, text...
	local description reason=${2#* \# }
	description=${2%% \# *}
	description="$1: ${description#*ok [0-9]* }"
	case $2 in
	*" # SKIP"* | *" # XFAIL"*) skip "$description" "${reason#* }" ;;
	"ok "*) ok "$description" ;;
	*)
		not_ok "$description"
		note "$(printf '%s\n' "${@:3}")"
		;;
	esac
}

# All checks of a test; that there are as many as it planned is one more.
report_all() { # description, test
	local line text=() planned=none made=0
	while IFS= read -r line; do
		case $line in
		"1.."*) planned=${line#1..} ;;
		"ok "* | "not ok "*)
			made=$((made + 1))
			report "$1" "$line" "${text[@]}"
			text=()
			;;
		*) text+=("$line") ;;
		esac
	done <"$output"
	check_equal "$1: $2.py came to its end" "$planned" "$made"
	[ "$planned" = "$made" ] || note "$(printf '%s\n' "${text[@]}")"
}

both_are_known() {
	host_answers h1 "$(v4_of h2)" && host_answers h1 "$(v6_of h2)" && host_answers h2 "$(v4_of h1)" && host_answers h2 "$(v6_of h1)"
}

# The kernel takes the IPv6 addresses of an interface that goes down, and some tests leave the MTU as they want it. Some wait two
# seconds for what they send, which on a busy machine is too short to join a group and to find a neighbour first.
run() { # description, test, [option...]
	interfaces_up h1 h2
	eventually both_are_known
	at h1 env PATH="$programs:$PATH" NETIF=ib0 LOCAL_V4="$(v4_of h1)" LOCAL_V6="$(v6_of h1)" REMOTE_V4="$(v4_of h2)" \
		REMOTE_V6="$(v6_of h2)" REMOTE_TYPE=netns REMOTE_ARGS=h2 \
		timeout "$longest" python3 "$tests/$2.py" "${@:3}" >"$output" 2>&1
	report_all "$1" "$2"
}

mode_is() { # connected|datagram, MTU
	local host
	for host in h1 h2; do
		at "$host" sh -c "echo $1 >/sys/class/net/ib0/mode && ip link set ib0 mtu $2" || return
	done
}

# --- what netlink shows of queues (Documentation/netlink/specs/netdev.yaml) ----------------------------------------------------

netdev() { # request: its answer for h1's interface
	local linux=$MODULES/linux index
	index=$(at h1 cat /sys/class/net/ib0/ifindex)
	at h1 python3 "$linux/tools/net/ynl/pyynl/cli.py" --spec "$linux/Documentation/netlink/specs/netdev.yaml" --no-schema \
		--output-json --dump "$1" --json "{\"ifindex\": $index${2:+, $2}}"
}

polls_of_queues() {
	netdev queue-get | jq -r '.[] | select(.type == "rx") | ."napi-id"'
}

each_queue_has_a_poll() { # how many
	local queue_polls polls
	queue_polls=$(polls_of_queues | sort)
	polls=$(netdev napi-get | jq -r '.[].id' | sort)
	equal "$1" "$(grep -c '^[0-9]' <<<"$queue_polls")" && equal "$queue_polls" "$(comm -12 <(echo "$queue_polls") <(echo "$polls"))"
}

restarted() {
	at h1 ip link set ib0 down && interfaces_up h1 h2
}

test_polls() { # how many queues
	local before
	check "$1 receive queues: each has a poll that netlink shows" each_queue_has_a_poll "$1"
	before=$(polls_of_queues)
	check "$1 receive queues: the interface goes down and up" restarted
	check_equal "$1 receive queues: their polls have the same numbers" "$before" "$(polls_of_queues)"
}

# --- the tests -----------------------------------------------------------------------------------------------------------------

test_datagrams() {
	local test large=(test_xdp_generic_mb test_xdp_native_mb)
	check "$driver: datagrams" mode_is datagram 2044
	run "$driver, datagrams" ping "${large[@]/#/-T}"
	for test in "${large[@]}"; do
		skip "$driver, datagrams: ping.$test" "packets of 9000 bytes take connections"
	done
	for test in stats queues napi_id ring_reconfig hw/csum; do
		run "$driver, datagrams" "$test"
	done
	# Not what is in a tunnel.
	run "$driver, datagrams" hw/tso -tipv4 -tipv6
}

# The kernel's driver has but one.
test_two_queues() {
	check "$driver: two receive queues" at h1 ethtool -L ib0 rx 2
	run "$driver, two receive queues" queues
	run "$driver, two receive queues" stats -tpkt_byte_sum -tqstat_by_ifindex -tcheck_down
	interfaces_up h1 h2
	test_polls 2
	check "$driver: one receive queue again" at h1 ethtool -L ib0 rx 1
	test_polls 1
}

test_connections() {
	local test
	check "$driver: connections" mode_is connected 65520
	# Rings and polls are those of datagrams.
	for test in ping stats queues; do
		run "$driver, connections" "$test"
	done
}

make_programs_patient
bring_up_fabric offload h1
load_driver "${1:-oxib}" || bail_out "${1:-oxib} could not be loaded"
check "$driver makes an interface in each host, with carrier" interfaces_up h1 h2
test_datagrams
[ "$driver" != oxib ] || test_two_queues
test_connections
check "$driver can be unloaded" unload_driver
take_down_fabric
finish
