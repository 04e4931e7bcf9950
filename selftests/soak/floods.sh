#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A stranger floods a host with packets of one kind after the other, while a peer connects to the host 100 times and pings it. n2
# has the peer and the stranger, with the kernel's drivers; n1 has the host. scripts/bench reads what this prints:
#
# flood ROW DRIVER RATE TAKEN CONNECTED MEDIAN GREATEST ANSWERED RTT KIB
#
# RATE: packets sent in a second. TAKEN: percentage of them that the host took in. CONNECTED: connections that came up, of 100,
# with the MEDIAN and the GREATEST of their milliseconds. ANSWERED: pings, of 100, with the mean of their milliseconds, RTT.
# KIB: what the memory of the host's kernel has grown by at the end.
#
# floods.sh [DRIVER [SECONDS [ROW[=RATE]...]]]: oxib or ib_ipoib, on n1 (oxib); how long a flood takes (60); the floods, with
# their rates, all. Without arguments there are checks of what the peer has left.
#
# nodes: 2
# kernels: fast
# timeout: 3000
# memory: 2048
# soak: yes

. selftests/lib/acm.sh

tested=${1:-oxib}
seconds=${2:-60}
rows=("${@:3}")
[ $# -gt 2 ] || rows=(none REQ REP REJ SIDR_REQ ARP-request ARP-reply ND other-classes connected-REQ)
# The highest of 1000, 2000 and 4000 a second that both drivers sustain: they take most of the packets in.
usual_rate=4000
declare -A rates=([REQ]=2000 [connected-REQ]=2000)
# With a further argument it prints the figures alone.
judged=
[ $# != 0 ] || judged=1
number=100
port=7300
export PYTHONPATH=selftests/cm:selftests/ipoib:selftests/fabric

drivers=("$tested" ib_ipoib)

# The host, on n1; on n2 the peer and the stranger.
host=h2 caller=h1 stranger=h2

end_of() { # host, node
	local host=$1
	printf '%d,%s,%s\n' "$(port_number "$host" lid)" "$(port_guid "$host")" "$(v4_of "$host")"
}

queue_pair_at() { # host
	local address
	address=$(hardware_address_at "$1")
	printf '%d\n' "0x${address:3:2}${address:6:2}${address:9:2}"
}

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode" && eventually has_carrier "$1"
}

# In KiB. Memory that is counted here is given back later by RCU, or soon by work.
kernel_memory() {
	awk '/^(Slab|VmallocUsed|PageTables|KernelStack):/ { sum += $2 } END { print sum }' /proc/meminfo
}

# Packets of that kind that have come to the host: messages, packets of its interface, or packets of its port.
received() { # row
	local directory=/sys/class/infiniband/$host/ports/1
	case $1 in
	REQ | REP | REJ | SIDR_REQ) at "$host" cat "$directory/cm_rx_msgs/${1,,}" ;;
	connected-REQ) at "$host" cat "$directory/cm_rx_msgs/req" ;;
	ARP-* | ND) at "$host" cat /sys/class/net/ib0/statistics/rx_packets ;;
	*) at "$host" cat "$directory/counters/port_rcv_packets" ;;
	esac
}

serves() {
	listens_cm "$host" "$port"
}

begin_serving() {
	ip netns exec "$host" python3 selftests/infiniband/callers.py serve "$(v4_of "$host")" "$port" >/tmp/server 2>&1 &
	jobs_running+=($!)
	eventually serves || bail_out "the server does not listen: $(cat /tmp/server)"
	before=$(kernel_memory)
}

begin_flood() { # kind, rate
	local own
	own=$(end_of "$stranger")
	ip netns exec "$stranger" python3 selftests/infiniband/flood.py "$1" "$2" "$own" "$(told end 1)" >/tmp/flood 2>&1 &
	jobs_running+=($!)
	pause 1
}

# Prints the pings that were answered and how long an answer took, of the end of ping's output.
pinged() {
	awk -F '[ /]+' '/ received/ { for (i = 1; i <= NF; i++) if ($i == "received,") got = $(i - 1) }
		/^rtt/ { rtt = $8 } END { print got + 0, rtt + 0 }' /tmp/ping
}

call() {
	local interval pinging
	interval=$(awk "BEGIN { print $seconds / $number }")
	ip netns exec "$caller" ping -q -c "$number" -i "$interval" -W 2 "$(v4_of "$host" 1)" >/tmp/ping 2>&1 &
	pinging=$!
	at "$caller" python3 selftests/infiniband/callers.py call "$(v4_of "$caller")" "$(v4_of "$host" 1)" "$port" \
		"$number" "$seconds" >/tmp/call 2>&1 || note "$(tail -n 5 /tmp/call)"
	wait "$pinging"
}

# On the stranger's side: what was sent, and what became of the peer.
report() { # row
	local sent=0 took=1 taken=100 connected median greatest answered rtt
	if [ "$1" != none ]; then
		read -r sent took </tmp/flood || note "$(cat /tmp/flood)"
		taken=$(($(told received 1) * 100 / (sent ? sent : 1)))
	fi
	read -r connected median greatest </tmp/call
	read -r answered rtt < <(pinged)
	printf 'flood %s %s %d %d %s %s %s %s %s %s\n' "$1" "$tested" "$(awk "BEGIN { print int($sent / $took) }")" "$taken" \
		"$connected" "$median" "$greatest" "$answered" "$rtt" "$(told memory 1)"
	[ -n "$judged" ] || return 0
	# On a busy machine queues overflow.
	check "$1: the host took most packets in" holds "$taken" -gt 50
	check "$1: the peer connects nearly always" holds "$connected" -ge $((number * 9 / 10))
	check "$1: most of its pings are answered" holds "$answered" -ge $((number * 8 / 10))
}

flood() { # row[=rate]
	local row=${1%=*} rate
	rate=${rates[$row]:-$usual_rate}
	[ "$row" = "$1" ] || rate=${1#*=}
	if [ "$row" = connected-REQ ]; then
		on_node 1 check "$row: the host is in connected mode" set_mode "$host" connected
	fi
	if [ "$NODE" = 1 ]; then
		begin_serving
		arrived=$(received "$row")
		tell end "$(end_of "$host"),$(v6_of "$host"),$(queue_pair_at "$host"),$port"
	fi
	barrier serving
	if [ "$NODE" = 2 ]; then
		eventually host_answers "$caller" "$(v4_of "$host" 1)" || note "$row: the host is not reached before"
		[ "$row" = none ] || begin_flood "$row" "$rate"
		call
	fi
	barrier called
	on_node 1 tell memory $(($(kernel_memory) - ${before:-0}))
	barrier measured
	on_node 2 stop_jobs
	barrier stopped
	on_node 1 tell received $(($(received "$row") - ${arrived:-0}))
	on_node 1 stop_jobs
	barrier told
	on_node 2 report "$row"
	if [ "$row" = connected-REQ ]; then
		on_node 1 set_mode "$host" datagram
	fi
	flush_neighbours "${hosts[@]}"
	barrier flooded
	# What is over is given back.
	pause 3
}

bring_up_shared_fabric "${drivers[NODE - 1]}"
check "the connection manager of $driver loads" load_managers_of "$driver"
echo $((1 << 20)) >/proc/sys/net/rdma_ucm/max_backlog
for row in "${rows[@]}"; do
	flood "$row"
done
check "the connection manager can be unloaded" unload_managers_of "$driver"
take_down_shared_fabric
finish
