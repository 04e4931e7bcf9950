#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Documentation/softib.md: every command in its blocks is run as it is written there, and does what the page says.
#
# nodes: 1
# kernels: fast
# timeout: 240

. selftests/lib/fabric.sh

page=Documentation/softib.md

# The lines of the blocks of a section, without the comments of one written between them.
commands_of() { # heading
	awk -v heading="## $1" '/^## / { here = $0 == heading } /^```/ { block = !block; next } here && block' "$page" |
		sed 's/  *#.*//'
}

# A command of the page is run in this shell, as an administrator types it.
runs_as_written() { # command
	eval "$1" </dev/null
}

run_section() { # heading
	local command number=0
	while read -r command; do
		number=$((number + 1))
		[ -z "$command" ] || check "$1: $command" runs_as_written "$command"
	done < <(commands_of "$1")
	check "$1: there are commands" holds "$number" -gt 0
}

# The servers of the page end with their clients.
wait_for_servers() {
	local job
	for job in $(jobs -p); do
		[[ " ${sm_processes[*]} " == *" $job "* ]] || check "a server ends well" wait "$job"
	done
}

five='A fabric in five commands'
check_equal "there are five commands" 5 "$(commands_of "$five" | wc -l)"
mapfile -t five_commands < <(commands_of "$five")
for command in "${five_commands[@]::4}"; do
	check "$five: $command" runs_as_written "$command"
done
mapfile -t hosts < <(scripts/fabric show | awk '$1 == "host" { sub(":.*", "", $2); print $2 }' | uniq)
check_equal "it has the hosts that the page names" "h1 h2 h3 h4" "${hosts[*]}"
check "every port is active" all_active
check_refused "subnet managers are not started twice" scripts/fabric manage
check "a host's ibnetdiscover shows the switch and the hosts" says h4 ibnetdiscover '"s1"' '"h1"' '"h2"' '"h3"'
check "IP over InfiniBand comes up" ipoib_up "${hosts[@]}"

# Between the last two, while h1 goes on saying something to h3.
in_background_at h1 ping -q -i 0.2 "$(v4_of h3)"
run_section 'Playing tricks on it'
check "every port becomes active again" eventually all_active
check "hosts reach each other again" eventually host_reaches h1 "$(v4_of h3)"
stop_jobs
for port in "" "$(at h1 ibswitches | sed -nE 's/.* lid ([0-9]+) .*/\1/p') 1"; do
	check "perfquery -x $port: packets to groups are counted, and others" says h1 "perfquery -x $port" \
		'UnicastXmitPkts:\.+[1-9]' 'UnicastRcvPkts:\.+[1-9]' 'MulticastXmitPkts:\.+[1-9]' 'MulticastRcvPkts:\.+[1-9]'
done
run_section 'Programs'
wait_for_servers
rmmod ib_ipoib
check "$five: ${five_commands[4]}" runs_as_written "${five_commands[4]}"
check_equal "nothing is left of it" "" "$(ip netns list)$(rdma link show)"

ip link add eth1 type veth peer name eth2
ip link add eth3 type veth peer name eth4
ip link set eth1 up && ip link set eth2 up && ip link set eth3 up && ip link set eth4 up
run_section 'Without scripts/fabric'
run_section 'The files in /sys/kernel/config/softib'
run_section 'Two HCAs without a cable'
check_equal "nothing is left of that either" "" "$(rdma link show)"
check "softib.ko can be unloaded" unload_softib
finish
