#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The address cache's part of the benchmark, in a node with --icount: look-ups among so many entries, in the cache, in a bare
# hash table, in the kernel's neighbours; what an entry takes. scripts/bench reads what it prints: "result MEASUREMENT
# KEY=VALUE...", "memory entries=NUMBER bytes=NUMBER slab=NUMBER".
#
# acm.sh ROUNDS ENTRIES...

. selftests/lib/node.sh

rounds=$1
burst=64
control=/sys/kernel/debug/oxib_bench
# With more, the kernel's table wants to grow beyond what it can allocate, and the kernel warns.
most_neighbours=500000

measure() { # measurement, entries
	echo "acm-$1 $2 $burst $rounds" >"$control" || bail_out "the measurement $1 of $2 entries failed"
	printf 'result acm-%s %s\n' "$1" "$(cat "$control")"
}

# A GID for each address, as a site would have them.
entries() { # how many
	awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++)
		printf "10.%d.%d.%d fec0:0:0:2::%x:%x\n", i / 65536, i / 256 % 256, i % 256, i / 65536 + 1, i % 65536 }'
}

# The table grows in the background, and gives memory back after a time of grace.
settle() {
	sleep 5
}

slab_bytes() { # cache of the kernel's
	awk -v name="$1" '$1 == name { print $3 * $4 }' /proc/slabinfo
}

if ! modprobe udp_tunnel || ! load_oxib acm_entries=2000000 || ! insmod "$MODULES/bench/oxib_bench.ko"; then
	bail_out "oxib or the benchmark's module could not be loaded"
fi
ip link add floor0 type dummy
ip link set floor0 arp on up
sysctl -q net.ipv4.neigh.default.gc_thresh3=4000000 net.ipv4.neigh.default.gc_thresh2=4000000
for number in "${@:2}"; do
	entries "$number" >/tmp/entries.data
	began=${EPOCHREALTIME/./}
	oxib acm load --replace-all /tmp/entries.data >/dev/null || bail_out "$number entries could not be loaded"
	note "$number entries loaded in $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
	settle
	measure loop "$number"
	measure cache-hit "$number"
	measure cache-miss "$number"
	printf 'memory entries=%d bytes=%d slab=%d\n' "$number" "$(oxib -j acm stats | jq .memory)" \
		"$(slab_bytes oxib_acm)"
	measure table-hit "$number"
	measure table-miss "$number"
	if [ "$number" -le "$most_neighbours" ]; then
		measure neighbours-hit "$number"
		measure neighbours-miss "$number"
	fi
	ip link set floor0 down && ip link set floor0 up
done
rmmod oxib_bench
unload_oxib
finish
