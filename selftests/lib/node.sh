# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What scripts inside a node are written with: TAP, meeting the other nodes, addresses, soft-RoCE, the module.
# Source it first. Node N has 10.77.0.N on eth0, and 10.99.0.N and fd00:99::N on ib0.
#
# No test asserts a time. Time-outs only end what would hang, so they are far above what anything takes. They are below LIMIT, the
# seconds after which the run is stopped, so that a check fails and says its name before that.

set -u

: "${NODE:?is set inside a node; run this with scripts/nodes}" "${NODES:?}" "${KERNEL:?}" "${MACHINE:?}" "${MODULES:?}" "${PATIENCE:?}" "${SM_PATIENCE:?}"

# shellcheck source=scripts/node_runner/directory.sh
. scripts/node_runner/directory.sh

# The debug kernel is slow, most of all beside others: it waits longer and, where numbers do not matter, does less.
case $KERNEL in
debug) frugality=5 echoes=1 ;;
*) frugality=1 echoes=3 ;;
esac

# How long scripts wait: see scripts/node_runner/patience.sh.
patience=$PATIENCE

at_most() { # number, number: the smaller
	printf '%d\n' $(($1 < $2 ? $1 : $2))
}

# Seconds for what ends by itself after a while: a transfer, a program that serves, the way of another node to a barrier.
longest=$(at_most $((10 * patience)) $((${LIMIT:-3600} * 3 / 4)))

# Where time is the count of instructions (bench/), it leaps while all tasks wait for the host's disks: to the next timer, and to the
# next, a minute in a second. Patience ends there by itself only if nothing happens at all; the node runner's limit is in real time.
[ "${CLOCK:-}" != instructions ] || patience=6000 longest=60000

some() { # number: as it is, or on the debug kernel a part of it
	printf '%d\n' $((($1 + frugality - 1) / frugality))
}

# The serial line is slow as well: what the kernel only tells stays off it, what it complains of does not.
echo 5 >/proc/sys/kernel/printk

# --- TAP ---------------------------------------------------------------------------------------------------------------

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

# With the first one each node says what it was doing: this one now, the others as soon as they wait at a barrier.
explain_failure() {
	: >"$meeting_place/failed"
	explain_node
}

# What all tasks and work queues are about goes into the kernel's log, as something may hang, and into the node's what ib0 has
# counted.
explain_node() {
	is_explained=yes
	echo t >/proc/sysrq-trigger
	[ ! -e /sys/class/net/ib0 ] || note "$(ethtool -S ib0 | grep -v ': 0$'; ip neighbour; rdma resource show qp)"
	! declare -F explain_fabric >/dev/null || explain_fabric
} 2>/dev/null

# Run other scripts of selftests/ in the same boot, as if they were this one. Each is for the first so many nodes.
parts() { # 'NODES SCRIPT [ARGUMENT...]'...
	local part nodes script arguments began number=0
	for part in "$@"; do
		number=$((number + 1))
		read -r nodes script arguments <<<"$part"
		[ "$NODE" -le "$nodes" ] || continue
		began=$SECONDS
		rm -f /tmp/part
		# shellcheck disable=SC2086 # arguments are words
		NODES=$nodes PART=${PART:-}$number. TAP_PART=/tmp/part bash "selftests/$script.sh" $arguments || tap_failures=$((tap_failures + 1))
		[ -e /tmp/part ] || bail_out "$script did not come to its end"
		tap_number=$((tap_number + $(</tmp/part)))
		note "$part: $((SECONDS - began)) s"
	done
}

# End a script that cannot go on.
bail_out() { # text
	printf 'Bail out! %s\n' "$1"
	dmesg | tail -n 30 | sed 's/^/# /'
	exit 1
}

# --- Waiting, and meeting the other nodes --------------------------------------------------------------------------------

# To sleep without a process: nothing is ever written to this.
exec {silence}<> <(:)

pause() { # seconds
	! read -r -t "$1" -u "$silence"
}

# The seconds in which a ping has to be answered.
answer_within=$patience

# Try a command until it succeeds. A ping that is lost is sent again soon: the whole patience is for all tries together.
eventually() { # command...
	local deadline=$((SECONDS + patience)) answer_within=3
	until "$@" >/dev/null 2>&1; do
		if ((SECONDS > deadline)); then
			"$@"
			return
		fi
		pause 0.2
	done
}

# Where the nodes leave word for each other: a place of its own for each script, and for each time that it is a part.
meeting_place=/shared/${PART:-}$(basename "$0" .sh)
mkdir -p "$meeting_place"

# Every node comes here before any goes on. A name may be used again: it is a new barrier each time.
declare -A barrier_turns=()

barrier() { # name
	local turn=$((${barrier_turns[$1]:-0} + 1)) node
	barrier_turns[$1]=$turn
	: >"$meeting_place/barrier.$1.$turn.$NODE"
	for ((node = 1; node <= NODES; node++)); do
		local deadline=$((SECONDS + longest))
		until [ -e "$meeting_place/barrier.$1.$turn.$node" ]; do
			((SECONDS <= deadline)) || bail_out "node n$node did not come to barrier $1"
			explain_if_failed
			pause 0.2
		done
	done
	explain_if_failed
}

# When a check has failed at another node. Soon, as that node may change the state that this one is in.
explain_if_failed() {
	[ ! -e "$meeting_place/failed" ] || [ -n "${is_explained:-}" ] || explain_node
}

# Something that another node wants to know.
tell() { # name, text
	printf '%s\n' "$2" >"$meeting_place/told.$1.$NODE.tmp"
	mv "$meeting_place/told.$1.$NODE.tmp" "$meeting_place/told.$1.$NODE"
}

told() { # name, node
	eventually [ -e "$meeting_place/told.$1.$2" ] || bail_out "node n$2 did not tell $1"
	cat "$meeting_place/told.$1.$2"
}

on_node() { # node, command...: only there
	[ "$NODE" = "$1" ] || return 0
	shift
	"$@"
}

# The other one of two.
export peer=$((3 - NODE))

# shellcheck source=selftests/lib/jobs.sh
. selftests/lib/jobs.sh
# shellcheck source=selftests/lib/watched.sh
. selftests/lib/watched.sh

# --- Ethernet and soft-RoCE ------------------------------------------------------------------------------------------------

# Ethernet by which a node is on the common cable: its own card, or for a node between two neighbours a bridge of its two.
# On an MTU of 9000 ib0 has 4092, on one of 1500 it has 1020.
ethernet=eth0

ethernet_up() { # [MTU]
	local mtu=${1:-9000}
	if [ "$NODE" -gt 1 ] && [ "$NODE" -lt "$NODES" ]; then
		bridge_up "$mtu"
	elif [ -e /sys/class/net/br0 ]; then
		# An earlier part had more nodes.
		ip link delete br0
	fi
	ip link set "$ethernet" mtu "$mtu" up || bail_out "the Ethernet device does not come up"
	ip address replace "10.77.0.$NODE/24" brd + dev "$ethernet" || bail_out "the Ethernet device takes no address"
}

bridge_up() { # MTU
	local port
	ethernet=br0
	modprobe bridge
	ip link show br0 >/dev/null 2>&1 || ip link add br0 type bridge mcast_snooping 0 || bail_out "there is no bridge"
	for port in eth0 eth1; do
		ip link set "$port" mtu "$1" master br0 up
	done
}

make_rxe() { # [MTU]
	ethernet_up "$@"
	modprobe rdma_rxe || bail_out "rdma_rxe could not be loaded"
	rdma link add rxe0 type rxe netdev "$ethernet" || bail_out "the rxe device could not be made"
	eventually rxe_is_active || bail_out "the rxe device did not become active"
}

rxe_is_active() {
	rdma link show rxe0/1 | grep -q 'state ACTIVE'
}

# --- The module and its interface --------------------------------------------------------------------------------------------

load_oxib() { # [parameter...]
	modprobe ib_core && insmod "$MODULES/oxib.ko" "$@"
}

unload_oxib() {
	rmmod oxib
}

ib_exists() {
	[ -e /sys/class/net/ib0 ]
}

ib_is_gone() {
	! ib_exists
}

carrier_is() { # 0|1, [interface]
	local carrier=
	read -r carrier <"/sys/class/net/${2:-ib0}/carrier"
	[ "$carrier" = "$1" ]
} 2>/dev/null # an interface that is down has none

ib_address() {
	ip address replace "10.99.0.$NODE/24" brd + dev ib0 && ip address replace "fd00:99::$NODE/64" dev ib0 nodad
}

ib_up() {
	ib_address && ip link set ib0 up && eventually carrier_is 1
}

# Everything from nothing to an interface that is up, on every node.
bring_up() { # [Ethernet MTU], [module parameter...]
	make_rxe "${1:-9000}"
	load_oxib "${@:2}" || bail_out "oxib.ko could not be loaded"
	eventually ib_exists || bail_out "ib0 did not appear"
	ib_up || bail_out "ib0 did not come up"
	barrier up
}

# The end of every script that loaded the module: what it forgot shows in kmemleak's report once it has gone.
take_down() {
	stop_jobs
	check "oxib.ko can be unloaded" unload_oxib
	check "ib0 has gone with it" ib_is_gone
	rdma link delete rxe0
}

link_field() { # jq path, [interface]
	ip -d -j link show "${2:-ib0}" | jq -r ".[0]$1"
}

hardware_address() { # [interface]
	printf '%s\n' "$(<"/sys/class/net/${1:-ib0}/address")"
}

# The queue pair's number, out of bytes 1 to 3 of the hardware address.
queue_pair() {
	local address
	address=$(hardware_address)
	printf '%d\n' "0x${address:3:2}${address:6:2}${address:9:2}"
}

# The GID of the rxe port that belongs to an IPv4 address, as bytes 4 to 19 of a hardware address show it.
gid_of_ipv4() { # address
	local a b c d
	IFS=. read -r a b c d <<<"$1"
	printf '00:00:00:00:00:00:00:00:00:00:ff:ff:%02x:%02x:%02x:%02x\n' "$a" "$b" "$c" "$d"
}

counter() { # name: of ethtool -S
	ethtool -S ib0 | awk -v name="$1:" '$1 == name { print $2; found = 1 } END { exit !found }'
}

statistic() { # name: rx_packets, tx_bytes, ...
	printf '%s\n' "$(<"/sys/class/net/ib0/statistics/$1")"
}

has_moved_on() { # statistic, value: some packets more than that
	holds "$(statistic "$1")" -ge $(($2 + 5))
}

# Packets pass ib0 both ways, now: what shows that there is traffic, where a check is about that.
packets_pass() {
	local rx_then tx_then
	rx_then=$(statistic rx_packets) tx_then=$(statistic tx_packets)
	eventually has_moved_on rx_packets "$rx_then" && eventually has_moved_on tx_packets "$tx_then"
}

reaches() { # address, [ping option...]: every request is answered
	ping -q -c "$echoes" -i 0.2 -W "$answer_within" "${@:2}" "$1"
}

answers() { # address, [ping option...]: one
	ping -q -c 1 -W 2 "${@:2}" "$1"
}

# A packet that is too large is refused here: it is not lost on its way.
cannot_leave_whole() { # bytes of a ping, answers|host_answers, [host,] address
	local said
	! said=$("${@:2}" -M "do" -s "$1" 2>&1) && matches ' 0 received, \+1 errors' "$said"
}

# A client of iperf3's has its results in /tmp/iperf.json. A server may not listen yet; it has one client at a time, and may not
# have noticed that the one before has gone; for each client it listens again, and resets a connection that waits meanwhile.
iperf() { # command...
	local deadline=$((SECONDS + patience)) error
	until timeout "$longest" "$@" --json >/tmp/iperf.json; do
		error=$(jq -r .error /tmp/iperf.json)
		if [[ $error != *"server is busy"* && $error != *"Connection refused"* && $error != *"Connection reset"* ]] ||
			((SECONDS > deadline)); then
			printf '%s\n' "$error"
			return 1
		fi
		pause 0.2
	done
}

iperf_received() { # bytes that its receiver got at least
	holds "$(jq '[.end.sum_received, .end.sum] | map(.bytes // 0) | max' /tmp/iperf.json)" -gt "$1"
}

kernel_log_has() { # extended regular expression
	dmesg | grep -qE -e "$1" || {
		printf 'the kernel log has no line that matches %s; its end is:\n' "$1"
		dmesg | tail -n 15
		return 1
	}
}
