#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's kernel as packaged: oxib.ko loads into it unpatched and does its main job.
#
# nodes: 2
# kernels: stock
# part: stock/all
# timeout: 300

. selftests/lib/node.sh

received_over() { # iperf3 option...
	iperf iperf3 -n 4M -c 10.99.0.2 "$@" && iperf_received 100000
}

quiet() {
	! dmesg --level err,crit,alert,emerg | grep oxib
}

check "this is Debian's kernel" matches 'Debian' "$(cat /proc/version)"
check_equal "the module is made for it" "$(uname -r)" "$(modinfo -F vermagic "$MODULES/oxib.ko" | cut -d ' ' -f 1)"
make_rxe 9000
check "oxib.ko loads" load_oxib
check "ib0 appears" eventually ib_exists
check "it comes up" ib_up
check_equal "its type is InfiniBand" infiniband "$(link_field .link_type)"
check_equal "its MTU is the port's less 4" 4092 "$(link_field .mtu)"
barrier up
if [ "$NODE" = 2 ]; then
	in_background iperf3 -s
	barrier serving
	barrier done
	take_down
	finish
fi
barrier serving
check "ping over IPv4" reaches 10.99.0.2
check "ping over IPv6" reaches fd00:99::2
check "ping with the largest packet" reaches 10.99.0.2 -M do -s 4064
check "ping in fragments" reaches 10.99.0.2 -s 20000
check "iperf3 over TCP" received_over
check "iperf3 over TCP, the other way" received_over -R
check "iperf3 over UDP" received_over -u -b 20M -l 1000
check "the module says nothing of errors" quiet
barrier done
take_down
check "it loads again" load_oxib
check "and unloads again" unload_oxib
finish
