#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# An HCA whose queue pairs cannot be reset, and one that takes a part of a chain of requests only: what it may still use is
# neither freed nor unmapped, the log says so, packets that still come land in that memory, and nothing else
# waits for it: sockets, routes, network namespaces. Once it can be reset again, everything works. The debug kernel knows each
# mapping (CONFIG_DMA_API_DEBUG), and looks at what is written where (KASAN).
#
# nodes: 1
# kernels: fast debug
# timeout: 400
# memory: 2048

. selftests/lib/infiniband.sh

mapped_memory=/sys/kernel/debug/dma-api
options=/sys/kernel/config/softib/hca/h2

# Receives of a ring, by default.
ring=256
# Mappings that come and go meanwhile, whatever becomes of h2: management datagrams, and receives that h1 posts again later.
others=16

knows_mappings() {
	[ -e "$mapped_memory/dump" ]
}

mappings() {
	! knows_mappings || awk '$2 == "softib"' "$mapped_memory/dump" | wc -l
}

# Where nobody knows it, there is nothing to check.
check_mapped() { # description, at least
	! knows_mappings || check "$1" holds "$(mappings)" -ge $(($2 - others))
}

fault() { # file, value
	printf '%s\n' "$2" >"$options/$1"
}

set_mode() { # host, datagram|connected
	at "$1" sh -c "echo $2 >/sys/class/net/ib0/mode" && eventually has_carrier "$1"
}

# What is said of memory that is lost since the last look.
left() {
	dmesg | grep -E 'infiniband h2: the memory of [0-9]+ .* stays with the device' | tail -n "+$((seen + 1))"
}

look_anew() {
	seen=0
	seen=$(left | wc -l)
}

# The neighbour entries stay, so that packets to a host that is down are sent all the same.
know_each_other() {
	local one other
	for one in h1 h2; do
		other=h$((3 - ${one#h}))
		at "$one" ip neighbour replace "$(v4_of "$other")" lladdr "$(hardware_address_at "$other")" dev ib0 nud permanent || return
	done
}

received() { # host: packets that its HCA took
	at "$1" perfquery -x | awk -F '[.:]+' '/^PortRcvPkts/ { print $2 }'
}

# Packets of a size that takes whole pages.
still_comes() {
	local before
	before=$(received h2)
	at h1 timeout "$patience" ping -q -f -c 200 -W 1 -s 1500 "$(v4_of h2)"
	holds "$(received h2)" -gt $((before + 50))
}

# How many mappings there are while h2 is down and lacks nothing.
without_h2() {
	at h2 ip link set ib0 down || return
	base=$(mappings)
	interface_up h2 && eventually has_carrier h2
}

cannot_be_reset() { # mode, [command of h2 right before]
	look_anew
	check "$1: queue pairs cannot be reset" fault resets_fail 1
	check "$1: h2 is taken down" at h2 sh -c "${2:-:}; ip link set ib0 down"
	note "$1: $base mappings without h2, $(mappings) now; $(left)"
	check "$1: the log says that the receive ring's memory stays" matches "the memory of [0-9]+ receives stays" "$(left)"
	check_mapped "$1: it stays mapped" $((base + ring))
}

# More groups than the stack joins to send, each time that it comes up.
held=15

holds_groups() { # number
	holds "$(counter_at h2 multicast_groups)" -ge "$1"
}

carrier_changes() {
	at h2 cat /sys/class/net/ib0/carrier_changes
}

# A queue pair that is repaired leaves its groups, and the interface has no carrier until it is back in them.
was_repaired() { # changes of the carrier before
	holds "$(carrier_changes)" -gt "$1"
}

# Requests to send and to receive are refused in the middle of chains, but fewer than there are in a ring: it can begin from the start.
# Queue pairs are repaired for that, and h2 stays a member of its groups.
refuse_under_traffic() { # mode
	local groups joins changes
	groups=$(counter_at h2 multicast_groups)
	in_background_at h2 python3 selftests/ipoib/group.py hold --ipv4 "$held"
	check "$1: h2 is a member of $held more groups than before" eventually holds_groups $((groups + held))
	joins=$(counter_at h2 sa_joins) changes=$(carrier_changes)
	check "$1: the device refuses every 700th request" fault refuse_every 700
	at h1 timeout "$patience" ping -q -f -c 300 -W 1 -s 1500 "$(v4_of h2)"
	at h2 timeout "$patience" ping -q -f -c 300 -W 1 -s 1500 "$(v4_of h1)"
	at h2 timeout "$patience" ping -q -i 0.05 -c 30 -W 1 -s 20000 "$(v4_of h1)"
	check "$1: it takes all again" fault refuse_every 0
	check "$1: h2 has carrier after that" eventually has_carrier h2
	check "$1: h1 reaches it after that" eventually host_reaches h1 "$(v4_of h2)" -s 1500
	# A connection whose requests are refused ends by itself. It is chance whether a datagram is refused beside it.
	if [ "$1" = datagrams ]; then
		check "$1: a queue pair was repaired" eventually was_repaired "$changes"
		check "$1: its groups were not joined anew" holds "$(counter_at h2 sa_joins)" -lt $((joins + held))
	fi
	note "$1: joins before and after: $joins $(counter_at h2 sa_joins); changes of the carrier: $changes $(carrier_changes)"
	stop_jobs
}

works_again() { # mode
	check "$1: the device works again" fault resets_fail 0
	check "$1: h2 comes up" interface_up h2
	check "$1: it has carrier" eventually has_carrier h2
	check "$1: h1 reaches it" eventually host_reaches h1 "$(v4_of h2)" -s 1500
	check "$1: it reaches h1" eventually host_reaches h2 "$(v4_of h1)" -s 1500
}

bring_up_fabric mapped h1
mkdir -p "$options"
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "the interfaces come up" interfaces_up "${hosts[@]}"
check "h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)" -s 1500
check "h2 goes down and comes up" without_h2
check "they know each other for good" know_each_other
refuse_under_traffic datagrams
# With so many packets h1 has mapped more memory.
check "datagrams: h2 goes down and comes up" without_h2
check "they know each other again" know_each_other
cannot_be_reset datagrams
check "datagrams: packets still come to them" still_comes
works_again datagrams

# The ring is posted in one chain: the device takes a part of it, which it then keeps.
at h2 ip link set ib0 down
look_anew
before=$(mappings)
check "a part: the device takes 99 receives of the chain" fault refuse_every 100
check "a part: queue pairs cannot be reset" fault resets_fail 1
check_refused "a part: h2 does not come up" at h2 ip link set ib0 up
note "a part: $before mappings before, $(mappings) after; $(left)"
check_mapped "a part: these stay mapped" $((before + 99))
check "a part: the log has their number" matches 'the memory of 99 receives stays' "$(left)"
check "a part: the device takes all again" fault refuse_every 0
works_again "a part"

for host in h1 h2; do
	check "connections: $host goes to connected mode" set_mode "$host" connected
done
check "connections: h1 reaches h2" eventually host_reaches h1 "$(v4_of h2)" -s 20000
check "connections: h2 reaches h1" eventually host_reaches h2 "$(v4_of h1)" -s 20000
refuse_under_traffic connections
# With its routes goes what it has learned of smaller packets meanwhile.
check "h2 goes down and comes up" without_h2
check "connections: h2 sends by one" eventually host_answers h2 "$(v4_of h1)" -M do -s 20000
# What h2 sends waits in the ring of its connection from then on, but not for long: then the connection breaks.
tc qdisc add dev s1-2 root netem loss 100%
cannot_be_reset connections "ping -q -c 1 -W 0.02 -M do -s 20000 $(v4_of h1)"
check "connections: what was sent stays, too" matches 'the memory of [0-9]+ sends of a connection stays' "$(left)"
tc qdisc delete dev s1-2 root
works_again connections

check "oxib.ko can be unloaded" unload_driver
rmdir "$options"
stop_sm
# Nothing of a host's waits for memory that is lost.
check "the fabric can be taken down" fabric_down
! knows_mappings || check_equal "the kernel has known of all mappings" N "$(cat "$mapped_memory/disabled")"
check "softib.ko can be unloaded" unload_softib
finish
