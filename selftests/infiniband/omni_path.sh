#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A port of Omni-Path is left alone, and the log says so by its name; that of InfiniBand beside it is not. (It is softib's, which says
# that it is one.)
#
# nodes: 1
# kernels: fast
# timeout: 60

. selftests/lib/infiniband.sh

add_hca() { # name, 1 if it says that it is of Omni-Path
	local options=/sys/kernel/config/softib/hca/$1
	ip link add "$1c" type dummy && ip link set "$1c" mtu 9000 up && mkdir -p "$options" && printf '%s\n' "$2" >"$options/omni_path" &&
		rdma link add "$1" type softib netdev "$1c"
}

remove_hca() { # name
	rdma link delete "$1" && rmdir "/sys/kernel/config/softib/hca/$1" && ip link delete "$1c"
}

interfaces() {
	find /sys/class/net -name 'ib*' -printf '%f\n'
}

# The class of a port's connection manager is shown by its counters.
has_connection_manager() { # HCA
	test -e "/sys/class/infiniband/$1/ports/1/cm_tx_msgs"
}

load_softib || bail_out "softib.ko could not be loaded"
check "there is an HCA of InfiniBand" add_hca plain 0
check "there is one that says it is of Omni-Path" add_hca omni 1
check "oxib is loaded" load_oxib
check "and its connection manager" insmod "$MODULES/ib_cm.ko"
check_equal "there is one interface" ib0 "$(interfaces)"
check "so is the connection manager" has_connection_manager plain
check_refused "the other has none" has_connection_manager omni
check_equal "the log has a line on the interface" 1 "$(dmesg | grep -c 'omni: port 1: no IPoIB interface: oxib does not support Omni-Path')"
check_equal "and one on connections" 1 "$(dmesg | grep -c 'omni: port 1: no connection manager: oxib does not support Omni-Path')"
check "the modules go" rmmod ib_cm
check "oxib goes" unload_oxib
check "the HCAs go" remove_hca plain
check "both" remove_hca omni
check "so does the directory of HCAs" rmdir /sys/kernel/config/softib/hca
check "softib.ko can be unloaded" unload_softib
finish
