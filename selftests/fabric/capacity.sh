#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# 64 HCAs and 8 switches fit into a node of 2 GiB: OpenSM brings them up, and the farthest reach each other.
#
# nodes: 1
# kernels: fast
# timeout: 900
# memory: 2048

. selftests/lib/fabric.sh

available() { # MiB
	awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo
}

before=$(available)
bring_up_fabric large h1
ok "OpenSM makes the ports of ${#hosts[@]} HCAs active"
check_equal "there are 64" 64 "${#hosts[@]}"
check "h1 discovers every cable" eventually discovers_its_subnet large h1
check "the last host discovers every cable" discovers_its_subnet large h64
with_fabric=$(available)
note "memory: $before MiB available before, $with_fabric with the fabric"
check "half of the memory is still available" holds "$with_fabric" -gt $((before / 2))
# ib_ipoib makes an interface in each host. Each would have 256 receives of 64 KiB posted for connected mode alone.
check "ib_ipoib can be loaded" modprobe ib_ipoib recv_queue_size=32
check "IP over InfiniBand comes up in the first and the last" ipoib_up h1 h64
check "the first reaches the last" eventually host_reaches h1 "$(v4_of h64)"
note "memory: $(available) MiB available with 64 interfaces"
take_down_fabric
finish
