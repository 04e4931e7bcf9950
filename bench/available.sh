# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The memory that a node has left, for benchmarks of what something takes: the difference of two readings.

# Free pages that the processors keep for themselves (count:) are in no sum of /proc/meminfo.
available() { # KiB
	sync
	echo 3 >/proc/sys/vm/drop_caches
	awk -v page="$(($(getconf PAGESIZE) / 1024))" '$1 == "MemAvailable:" { sum = $2 } $1 == "count:" { sum += page * $2 }
		END { print sum }' /proc/meminfo /proc/zoneinfo
}

# Waits for what programs had that end in the background, and for what is freed later.
available_at_rest() { # KiB
	local still=0 before=0 now
	while [ "$still" != 3 ]; do
		now=$(available)
		[ $((now > before ? now - before : before - now)) -le 64 ] && still=$((still + 1)) || still=0
		before=$now
		pause 0.2
	done
	printf '%d\n' "$now"
}
