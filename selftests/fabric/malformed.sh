#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Frames that are no packets, packets whose headers lie, SMPs from the wrong side or with too many hops: an HCA, a switch and
# a router drop them, count them by cause, and work on.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/fabric.sh

random=$(some 5000)
causes=(malformed bad_icrc wrong_queue_pair wrong_pkey wrong_qkey)

counted() { # cause: by the HCA of h1
	port_field h1 "hw_counters/$1"
}

counts() {
	local cause
	for cause in "${causes[@]}"; do
		counted "$cause"
	done | tr '\n' ' '
}

# Each cause has been counted more often than before.
all_rose() { # counts before
	local cause before
	read -r -a before <<<"$1"
	for cause in "${causes[@]}"; do
		holds "$(counted "$cause")" -gt "${before[0]}" || {
			printf '%s was not counted\n' "$cause"
			return 1
		}
		before=("${before[@]:1}")
	done
}

# From the far end of the cable of h1 it looks as if the switch had sent it.
put_on_cable() { # interface, DLID, SLID
	python3 selftests/fabric/malformed.py "$1" "$2" "$3" "$random"
}

# Of a group by the LID alone, or by the number of the queue pair alone: 20 in each way.
put_half_of_groups() {
	python3 selftests/fabric/malformed.py s1-1 "$(port_number h1 lid)" "$(port_number h2 lid)" groups
}

# From the other end of the cable between the two, which has no other MTU than Ethernet's: 20 for no queue pair.
put_payloads() { # bytes
	at h2 python3 selftests/fabric/malformed.py port1 "$(port_number h1 lid)" "$(port_number h2 lid)" payload "$1"
}

counts_from() { # cause, number: at least
	holds "$(counted "$1")" -ge "$2"
}

dropped_by() { # switch/s1|router/r1: for whichever cause
	awk '{ sum += $2 } END { print sum + 0 }' "/sys/kernel/config/softib/$1/drops"
}

drops_more() { # switch/s1|router/r1, than
	holds "$(dropped_by "$1")" -gt "$2"
}

lid_of_switch() {
	at h1 ibswitches | sed -nE 's/.*"s1".* lid ([0-9]+) .*/\1/p'
}

# Too many long MADs would use up all that h1 has posted for those of the right length.
serves() {
	at h3 perfquery "$(port_number h1 lid)" 1
}

works() {
	all_active && serves && master_is h3 h1 && host_reaches h2 "$(v4_of h1)" && at h3 ibnetdiscover
}

bring_up_fabric star h1
check "IP over InfiniBand comes up" ipoib_up h1 h2
counted_before=$(counts)
check "an HCA gets malformed frames" put_on_cable s1-1 "$(port_number h1 lid)" "$(port_number h2 lid)"
check "each cause has been counted" all_rose "$counted_before"
note "$(paste -d' ' <(printf '%s\n' "${causes[@]}") <(counts | tr ' ' '\n'))"
check "the fabric works" eventually works
counted_before=$(counted wrong_queue_pair)
check "an HCA gets datagrams of which the LID or the queue pair alone is a group's" put_half_of_groups
check "it takes neither" eventually counts_from wrong_queue_pair $((counted_before + 40))
dropped_before=$(dropped_by switch/s1)
check "a switch gets them for itself" at h4 python3 selftests/fabric/malformed.py port1 "$(lid_of_switch)" \
	"$(port_number h4 lid)" "$random"
check "it has dropped some" eventually drops_more switch/s1 "$dropped_before"
check "the fabric works after that" eventually works
dropped_before=$(dropped_by switch/s1)
check "a switch gets them to pass on" at h4 python3 selftests/fabric/malformed.py port1 "$(port_number h1 lid)" \
	"$(port_number h4 lid)" "$random"
check "it has dropped some of these" eventually drops_more switch/s1 "$dropped_before"
check "the fabric works after that, too" eventually works
take_down_fabric

# A port of which the MTU is 256 bytes.
bring_up_fabric narrow h1
counted_before=$(counted wrong_queue_pair)
check "an HCA gets datagrams as long as its port carries" put_payloads 256
check "it takes them, and looks for their queue pair" eventually counts_from wrong_queue_pair $((counted_before + 20))
counted_before=$(counted malformed)
check "it gets longer ones" put_payloads 260
check "to it they are malformed" eventually counts_from malformed $((counted_before + 20))
take_down_fabric

bring_up_fabric routed 'h1 subnet_prefix 0xfec0000000000001' 'h3 subnet_prefix 0xfec0000000000002'
dropped_before=$(dropped_by router/r1)
check "a router gets them" put_on_cable s1-3 0 "$(port_number h2 lid)"
check "it has dropped some" eventually drops_more router/r1 "$dropped_before"
check "the subnets are as they were" all_active
take_down_fabric
finish
