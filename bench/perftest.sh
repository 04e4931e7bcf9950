#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the benchmark of programs that runs perftest's: ib_send_lat and ib_write_bw, on softib over one switch and on
# soft-RoCE over a pair of net devices of its own, by turns. scripts/bench reads what it prints:
# "perftest DEVICE PROGRAM BYTES VALUE", microseconds of a message one way or MiB/s.
#
# perftest.sh REPETITIONS SMALL LARGE     with so many messages of up to 4 KiB, and of 1 MiB, in each repetition

. selftests/lib/acm.sh
. bench/soft_roce.sh

repetitions=$1 small=$2 large=$3
programs=(ib_send_lat ib_write_bw)
# The column of its typical latency, or of its average rate.
declare -A columns=([ib_send_lat]=5 [ib_write_bw]=4)

# Beside the fabric, with the MTU of its cables.
add_cable() {
	ip link add rxe1 netns h1 type veth peer name rxe1 netns h2
	for host in h1 h2; do
		ip -n "$host" link set rxe1 mtu 9000 up
	done
}

# perftest measures how fast the processor's clock is, and gives 0 where it cannot: then it is asked again.
measure() { # device, prefix of its names, 'words', program, bytes, messages
	local words="-F $3 -s $5 -n $6" value=0.00 _
	for _ in {1..10}; do
		serve_and_call 18515 "$4 -d $2h1 $words" "$4 -d $2h2 $words 10.86.0.1"
		value=$(awk -v bytes="$5" -v column="${columns[$4]}" '$1 == bytes { print $column }' /tmp/client)
		[ "$value" = 0.00 ] || break
	done
	printf 'perftest %s %s %d %s\n' "$1" "$4" "$5" "$value"
}

bring_up_fabric switched_pair h1
stop_sm
add_cable
bring_up_soft_roce rxe1
for ((repetition = 0; repetition < repetitions; repetition++)); do
	for program in "${programs[@]}"; do
		for row in "64 $small" "4096 $small" "1048576 $large"; do
			# shellcheck disable=SC2086 # words
			measure softib '' '' "$program" $row
			# shellcheck disable=SC2086 # words
			measure rxe rxe_ "-x $gid" "$program" $row
		done
	done
done
take_down_soft_roce
take_down_fabric
ok "the measurements were taken"
finish
