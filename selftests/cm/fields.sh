#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The same connections once on the kernel's connection manager and once on oxib's, in one subnet and across a router, by a
# consumer in the kernel that gives every parameter a value of its own (consumer/fields.c). Each field of the messages on the
# cable and of the headers before them, of an event, and of a queue pair's attributes has to be the same.
#
# nodes: 1
# kernels: fast
# timeout: 180

. selftests/lib/acm.sh
. selftests/lib/captures.sh

# Those that come up.
calls=(
	local
	"local with a hop"
	"local with an alternate path"
	"local unreliable"
	"local XRC"
	routed
	"routed with both directions"
	"routed unreliable"
)

load_manager() { # kernel|oxib
	case $1 in
	kernel) modprobe ib_cm ;;
	oxib) load_oxib ipoib=0 && insmod "$MODULES/ib_cm.ko" ;;
	esac
}

unload_manager() { # kernel|oxib
	rmmod ib_cm && { [ "$1" = kernel ] || rmmod oxib; }
}

# Of the longest packets that are looked at, so that many wait until tcpdump gets a processor.
start_capture() { # file
	: >/tmp/tcpdump.log
	ip netns exec h1 tcpdump --immediate-mode -U -s 512 -B 8192 -i port1 -w "$1" 2>/tmp/tcpdump.log &
	tcpdump=$!
	eventually grep -q 'listening on' /tmp/tcpdump.log || bail_out "tcpdump does not capture"
}

# On a busy host a DREQ is repeated before its answer comes, and answered again.
has_captured_all() { # kernel|oxib
	equal "${#calls[@]}" "$(python3 selftests/cm/ended.py "/out/$1.pcap")"
}

connect_all() { # kernel|oxib
	insmod "$MODULES/selftests/cm/consumer/cm_fields.ko" hosts=h1,h2,h3 router="$router" && cat /proc/cm_fields >"/tmp/$1.told"
}

pass() { # kernel|oxib
	check "$1: the connection manager is loaded" load_manager "$1"
	start_capture "/out/$1.pcap"
	check "$1: all connections come and go" connect_all "$1"
	check "$1: all of that is captured" eventually has_captured_all "$1"
	kill "$tcpdump" && wait "$tcpdump"
	check "$1: the consumer can be unloaded" rmmod cm_fields
	check "$1: the connection manager can be unloaded" unload_manager "$1"
}

told() { # kernel|oxib, call
	sed -n "s/^$2: //p" "/tmp/$1.told"
}

same_told() { # call
	holds "$(told kernel "$1" | wc -l)" -gt 100 && diff <(told kernel "$1") <(told oxib "$1")
}

# A REQ for a GID that its server does not have.
same_rejection() {
	holds "$(told kernel astray | wc -l)" -ge 3 && diff <(told kernel astray) <(told oxib astray)
}

bring_up_managed_subnets routed "h1 h2" "h3 h4"
router=$(printf '%d' "$(router_lid h1 r1)")
pass kernel
pass oxib
compare_captures /out/kernel.pcap /out/oxib.pcap "${calls[@]}"
for call in "${calls[@]}"; do
	check "$call: the consumers are told the same" same_told "$call"
done
check "astray: the callers are rejected alike" same_rejection
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
