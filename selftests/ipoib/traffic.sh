#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The main job: two nodes exchange IPv4 and IPv6 over ib0, in packets of all sizes, over TCP and UDP, and what is on
# the link and in the neighbour tables looks as IP over InfiniBand does.
#
# traffic.sh [short]: smaller amounts and fewer sizes, for machines that are emulated
#
# nodes: 2
# kernels: fast
# timeout: 240

. selftests/lib/node.sh

v4=10.99.0.$peer
v6=fd00:99::$peer
ib_mtu=4092
sizes=(0 1 8 44 64 512 1000) fragmented=(9000 20000 60000)
[ "${1:-}" != short ] || sizes=(0 64) fragmented=(20000) frugality=5

# --- neighbours ---

neighbour() { # address
	ip -j neighbour show to "$1" dev ib0 | jq -r '.[0].lladdr'
}

test_neighbours() {
	local other
	other=$(told address "$peer")
	check "the first IPv4 packet finds its way" reaches "$v4"
	check "the first IPv6 packet finds its way" reaches "$v6"
	check_equal "the ARP table has the peer's 20 bytes" "$other" "$(neighbour "$v4")"
	check_equal "the ND table has the peer's 20 bytes" "$other" "$(neighbour "$v6")"
	check "neighbours can be flushed" ip neighbour flush dev ib0
	check "the peer is found again after that" reaches "$v4"
	check "arping gets its answers" arping -q -c 2 -w "$patience" -I ib0 "$v4"
	check_refused "nobody answers for an address that nobody has" answers 10.99.0.200
	check "a packet to a permanent neighbour arrives" permanent_neighbour "$other"
}

permanent_neighbour() { # hardware address
	ip neighbour replace "$v4" lladdr "$1" dev ib0 nud permanent && reaches "$v4" && ip neighbour del "$v4" dev ib0
}

# --- ping ---

test_sizes() { # address, length of the headers
	local size
	for size in "${sizes[@]}" $((ib_mtu - $2)); do
		check "ping $1 with $size bytes in one packet" reaches "$1" -M do -s "$size"
	done
	for size in $((ib_mtu - $2 + 1)) "${fragmented[@]}"; do
		check "ping $1 with $size bytes in fragments" reaches "$1" -s "$size"
	done
	check "a packet of the MTU and one byte cannot leave whole" cannot_leave_whole $((ib_mtu - $2 + 1)) answers "$1"
}

# Nothing is promised about single datagrams, so a few may get lost.
flood() { # address, size
	local count received
	count=$(some 1000)
	received=$(ping -q -f -c "$count" -W "$patience" -s "$2" "$1" | sed -n 's/.* \([0-9]*\) received.*/\1/p')
	holds "${received:-0}" -ge $((count - count / 50))
}

# --- TCP and UDP ---

# An amount, not a time: iperf3's server gives up on a test that takes longer than its time and ten seconds. A small
# amount in small blocks and windows, so that most of it is not still on its way when the sender ends the test.
amount=(-n 4M)
tcp=()
[ "${1:-}" != short ] || amount=(-n 1M)
[ "$KERNEL" != debug ] || amount=(-n 150K) tcp=(-l 4K -w 8K)

measured() { # iperf3 option...: what the receiver got, in bytes
	iperf iperf3 "${amount[@]}" "$@" && iperf_received 10000
}

test_iperf() {
	check "TCP to the peer" measured -c "$v4" "${tcp[@]}"
	check "TCP from the peer" measured -c "$v4" "${tcp[@]}" -R
	check "TCP over IPv6, four connections" measured -c "$v6" "${tcp[@]}" -P 4
	check "TCP both ways at once" measured -c "$v4" "${tcp[@]}" --bidir
	check "UDP to the peer" measured -c "$v4" -u -b 20M -l 1000
	check "UDP from the peer, packets of the MTU" measured -c "$v4" -u -b 20M -l $((ib_mtu - 28)) -R
	check "UDP over IPv6, four streams" measured -c "$v6" -u -b 5M -l 64 -P 4
}

same_bytes() { # address, port
	local sent
	sent=$(timeout "$longest" python3 selftests/ipoib/transfer.py send "$1" "$2" "$(some 10000000)") || return
	equal "$sent" "$(told "digest.$2" "$peer")"
}

receive_bytes() { # port
	tell "digest.$1" "$(python3 selftests/ipoib/transfer.py receive "$1")"
}

# --- what is on the link ---

capture() { # a file of one exchange of every kind
	: >/tmp/tcpdump.log
	tcpdump -i ib0 -w "$1" -U 2>/tmp/tcpdump.log &
	eventually grep -q 'listening on' /tmp/tcpdump.log || return
	ip neighbour flush dev ib0
	ping -q -c 2 -i 0.2 -W "$patience" "$v4" && ping -q -c 2 -i 0.2 -W "$patience" "$v6" &&
		ping -q -c 1 -W "$patience" -s 5000 "$v4" || return
	# The last packet: what tcpdump has not read when it ends is lost.
	eventually captured "$1" 'IP .*offset 4072,.*10.99.0.2 > 10.99.0.1' && kill %tcpdump && wait %tcpdump
}

captured() { # file, extended regular expression
	tcpdump -r "$1" -nn -v -v 2>/dev/null | tr '\n' ' ' | sed 's/ \([0-9:]*\.[0-9]* [AI]\)/\n\1/g' >/tmp/capture.txt
	matches "$2" "$(cat /tmp/capture.txt)"
}

# Packets that tcpdump finds fault with, of those that were captured. Whole words: a flow label may have "bad" in it.
faults_found() {
	grep -wE 'bad|wrong|truncated|invalid' /tmp/capture.txt
	grep -F '[|' /tmp/capture.txt
}

test_capture() {
	local file=/tmp/ib0.pcap
	check "tcpdump captures on ib0" capture "$file"
	check "an ARP request with 20-byte addresses" captured "$file" 'ARP, .*who-has 10.99.0.2 .*tell 10.99.0.1.*, length 56'
	check "an ARP reply with the peer's address" captured "$file" "ARP, .*Reply 10.99.0.2 is-at $(told address "$peer"), length 56"
	check "a neighbour solicitation" captured "$file" 'IP6 .*neighbor solicitation, .*who has fd00:99::2'
	check "a neighbour advertisement with the peer's address" captured "$file" \
		"IP6 .*neighbor advertisement, .*tgt is fd00:99::2.*$(told address "$peer")"
	check "an IPv4 echo request" captured "$file" 'IP .*10.99.0.1 > 10.99.0.2: ICMP echo request'
	check "an IPv4 echo reply" captured "$file" 'IP .*10.99.0.2 > 10.99.0.1: ICMP echo reply'
	check "an IPv6 echo request with its checksum right" captured "$file" 'IP6 .*\[icmp6 sum ok\].*echo request'
	check "a fragment" captured "$file" 'IP .*offset 4072,.*10.99.0.1 > 10.99.0.2'
	check_equal "nothing malformed" "" "$(faults_found)"
}

# --- counters ---

no_errors() {
	local name
	for name in rx_errors tx_errors rx_dropped tx_dropped rx_over_errors rx_length_errors; do
		equal "$name 0" "$name $(statistic "$name")" || return
	done
}

bring_up 9000
tell address "$(hardware_address)"
barrier ready

if [ "$NODE" = 2 ]; then
	in_background iperf3 -s
	in_background receive_bytes 7001
	in_background receive_bytes 7002
	barrier done
	take_down
	finish
fi

test_neighbours
test_sizes "$v4" 28
test_sizes "$v6" 48
check "a flood of small pings" flood "$v4" 8
check "a flood of large pings" flood "$v6" 4000
test_capture
test_iperf
check "megabytes over TCP arrive as they were sent" same_bytes "$v4" 7001
check "megabytes over TCP on IPv6 too" same_bytes "$v6" 7002
check "no error was counted" no_errors
barrier done
take_down
finish
