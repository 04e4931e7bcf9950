#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What softib is configured with wrongly is refused, with a line in the log that says why, and changes nothing.
#
# nodes: 1
# kernels: fast
# timeout: 180

. selftests/fabric.sh

softib=/sys/kernel/config/softib

# The log's last line has to say what is wrong.
refused_because() { # extended regular expression, command...
	local because=$1
	shift
	dmesg --clear
	if "$@" 2>/dev/null; then
		printf 'it was taken\n'
		return 1
	fi
	kernel_log_has "softib.*($because)"
}

into() { # file, text
	printf '%s\n' "$2" >"$1"
}

load_softib || bail_out "softib.ko could not be loaded"
ip link add t0 type veth peer name t1
ip link add t2 type veth peer name t3
check "a switch's directory can be made" mkdir -p "$softib/switch/t"
for text in 2 -1 yes ''; do
	check "enable: '$text' is refused" refused_because 'enable|0 or 1' into "$softib/switch/t/enable" "$text"
done
check "a switch without ports is not enabled" refused_because 'port' into "$softib/switch/t/enable" 1
check "ports: a net device that is not there" refused_because 'nowhere' into "$softib/switch/t/ports" "t0 nowhere"
check "ports: a net device twice" refused_because 't0' into "$softib/switch/t/ports" "t0 t0"
check "ports: no Ethernet" refused_because 'lo' into "$softib/switch/t/ports" "t0 lo"
check "good ones are taken after that" into "$softib/switch/t/ports" "t0 t2"
check "the switch is enabled" into "$softib/switch/t/enable" 1
check "ports: not while it is enabled" refused_because 'enabled|disable' into "$softib/switch/t/ports" "t0"
check "what was set stands" equal "t0 t2" "$(cat "$softib/switch/t/ports")"
check "a second switch's directory can be made" mkdir "$softib/switch/u"
check "ports: not those of another switch" refused_because 't0' \
	eval "into $softib/switch/u/ports 't0 t1' && into $softib/switch/u/enable 1"
check_refused "an HCA cannot have a switch's net device" rdma link add x type softib netdev t0
check "an HCA has its cable" rdma link add h type softib netdev t1
check_refused "a second one cannot have the same" rdma link add i type softib netdev t1
check_refused "nor the same name" rdma link add h type softib netdev t3
check "the HCA goes" rdma link delete h
check "a net device that goes takes its cable away" ip link delete t2
check "the switch is disabled" into "$softib/switch/t/enable" 0
check "the directories go" rmdir "$softib/switch/u" "$softib/switch/t" "$softib/switch"
ip link delete t0
check "softib.ko can be unloaded" unload_softib
finish
