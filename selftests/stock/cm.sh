#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's kernel as packaged: with oxib installed, `modprobe rdma_cm` by itself takes oxib's connection manager, and
# Debian's own rdma_cm and rdma-core work on it.
#
# nodes: 2
# kernels: stock
# part: stock/all
# timeout: 300

. selftests/lib/cm.sh

# What `make install` does, in a tree of its own with those of Debian's modules that matter: a node's /lib/modules is
# not to be written to, and depmod reads each of Debian's thousands.
tree=/tmp/installed
release=$(uname -r)

install_modules() {
	local target=$tree/lib/modules/$release
	mkdir -p "$target/updates" "$target/kernel/drivers/infiniband" &&
		cp -r "/lib/modules/$release/kernel/drivers/infiniband/core" "$target/kernel/drivers/infiniband/" &&
		cp "/lib/modules/$release/modules."{order,builtin,builtin.modinfo} "$target/" &&
		cp "$MODULES/"{oxib,ib_cm}.ko "$target/updates/" && depmod -b "$tree"
}

installed_at() { # module: where modprobe would take it from, below the kernel's directory
	local file
	file=$(modinfo -b "$tree" -n "$1") && printf '%s\n' "${file#"$tree/lib/modules/$release/"}"
}

load_installed() {
	modprobe -d "$tree" -a rdma_ucm ib_uverbs
}

cannot_be_unloaded() { # module
	! rmmod "$1" 2>&1
}

quiet() {
	! dmesg --level err,crit,alert,emerg | grep -E 'oxib|ib_cm|rdma_cm|version magic|Unknown symbol|disagrees'
}

answered() { # message...: the port received some of each
	local message
	for message in "$@"; do
		holds "$(cm_counter rx_msgs "$message")" -gt 0 || return
	done
}

check "oxib can be installed" install_modules
check_equal "modprobe prefers its ib_cm" updates/ib_cm.ko "$(installed_at ib_cm)"
check_equal "rdma_cm stays Debian's" kernel "$(installed_at rdma_cm | cut -d / -f 1)"
ground_up
check "modprobe rdma_ucm loads all" load_installed
check "rdma_cm stands on oxib" runs_cm oxib
check "ib_cm cannot be unloaded below it" cannot_be_unloaded ib_cm
barrier loaded
for family in v4 v6; do
	if [ "$NODE" = 2 ]; then
		in_background rping -s -a "$(address_of "$family" 2)" -P
		check "a server listens ($family)" eventually listen_all 7174
		barrier "serving-$family"
	else
		barrier "serving-$family"
		check "rping reaches it ($family)" timeout $((5 * patience)) rping -c -a "$(address_of "$family" 2)" -C 20 -S 4000
	fi
	barrier "done-$family"
	stop_jobs
done
case $NODE in
1) check "replies were counted" answered rep ;;
2) check "requests were counted" answered req rtu ;;
esac
barrier counted
check "everything can be unloaded" unload_cm
check "nothing complains" quiet
ground_down
finish
