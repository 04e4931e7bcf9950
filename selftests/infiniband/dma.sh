#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# HCAs whose consumers map their memory, as for hardware, under the kernel's debugging of DMA (CONFIG_DMA_API_DEBUG), which knows
# each mapping: oxib maps what it sends and receives, in both modes, and nothing of it stays mapped.
#
# nodes: 1
# kernels: debug
# timeout: 300
# memory: 2048

. selftests/lib/infiniband.sh

mapped_memory=/sys/kernel/debug/dma-api

# Of all HCAs: it is their parent's.
mappings() {
	awk '$2 == "softib"' "$mapped_memory/dump" | wc -l
}

set_modes() { # datagram|connected
	local host
	for host in "${hosts[@]}"; do
		at "$host" sh -c "echo $1 >/sys/class/net/ib0/mode" && eventually has_carrier "$host" || return
	done
}

talk() { # description
	local size
	for size in 0 64 1000 20000; do
		check "$1: h1 reaches h2 with $size bytes" eventually host_reaches h1 "$(v4_of h2)" -s "$size"
	done
	check "$1: by IPv6" eventually host_reaches h2 "$(v6_of h1)" -s 1000
	check "$1: TCP to h2" measured -c "$(v4_of h2)"
	check "$1: TCP from h2" measured -c "$(v4_of h2)" -R
}

[ -e "$mapped_memory/dump" ] || bail_out "this kernel does not know what is mapped (CONFIG_DMA_API_DEBUG)"
bring_up_fabric mapped h1
check "the memory of management datagrams is mapped" holds "$(mappings)" -gt 0
load_driver oxib || bail_out "oxib.ko could not be loaded"
before=$(mappings)
check "the interfaces come up" interfaces_up "${hosts[@]}"
check "so is that of oxib" holds "$(mappings)" -gt "$before"
in_background_at h2 iperf3 -s
eventually listens_tcp h2 5201 || bail_out "iperf3 does not listen"
talk datagrams
check "both hosts go to connected mode" set_modes connected
talk connections
check "and back" set_modes datagram
stop_jobs
check "oxib.ko can be unloaded" unload_driver
check "the test of verbs can be loaded" load_verbs_test
verbs "mapped memory: " h1 h2 memory
check "it can be unloaded" rmmod verbs_test
stop_sm
check "the fabric can be taken down" fabric_down
# While their parent is there.
check_equal "nothing is mapped any more" 0 "$(mappings)"
check_equal "the kernel has known of all mappings" N "$(cat "$mapped_memory/disabled")"
check "softib.ko can be unloaded" unload_softib
finish
