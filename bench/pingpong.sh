#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the benchmark of programs that runs inside a node: ibv_rc_pingpong between two network namespaces, on softib and on
# soft-RoCE, by turns, over the same pair of net devices. scripts/bench reads what it prints: "pingpong DEVICE WAY BYTES USEC",
# WAY being polled or events.
#
# pingpong.sh REPETITIONS SMALL LARGE     with so many exchanges of 64 bytes and of 1 MiB in each repetition

. selftests/lib/acm.sh
. bench/soft_roce.sh

repetitions=$1 small=$2 large=$3

exchange() { # device, prefix of its names, GID index, polled|events, bytes, exchanges
	local words="-g $3 -s $5 -n $6 -r 16"
	[ "$4" = polled ] || words="$words -e"
	serve_and_call 18515 "ibv_rc_pingpong -d $2h1 $words" "ibv_rc_pingpong -d $2h2 $words 10.86.0.1"
	printf 'pingpong %s %s %d %s\n' "$1" "$4" "$5" "$(awk '/usec\/iter/ { print $(NF - 1) }' /tmp/client)"
}

bring_up_fabric pair h1
stop_sm
bring_up_soft_roce port1
for ((repetition = 0; repetition < repetitions; repetition++)); do
	for row in "polled 64 $small" "events 64 $small" "polled 1048576 $large" "events 1048576 $large"; do
		# shellcheck disable=SC2086 # words
		exchange softib '' 0 $row
		# shellcheck disable=SC2086 # words
		exchange rxe rxe_ "$gid" $row
	done
done
take_down_soft_roce
take_down_fabric
ok "the measurements were taken"
finish
