#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The part of the benchmark of programs that runs inside a node: ibv_rc_pingpong between two network namespaces, on softib and on
# soft-RoCE, by turns, over the same pair of net devices. scripts/bench reads what it prints: "pingpong DEVICE WAY BYTES USEC",
# WAY being polled or events.
#
# pingpong.sh REPETITIONS SMALL LARGE     with so many exchanges of 64 bytes and of 1 MiB in each repetition

. selftests/acm.sh

repetitions=$1 small=$2 large=$3
exchange_port=18515

# Notes the index of the GID of an IPv4 address.
find_gid() { # host, device
	gid=$(at "$1" sh -c "grep -l 0000:0000:0000:0000:0000:ffff: /sys/class/infiniband/$2/ports/1/gids/*" 2>/dev/null | head -n 1)
	gid=${gid##*/}
	[ -n "$gid" ]
}

# The kernel makes it in the first namespace.
add_rxe() { # host
	ip -n "$1" address add "10.86.0.$(host_number "$1")/24" dev port1 &&
		at "$1" rdma link add "rxe_$1" type rxe netdev port1 && rdma dev set "rxe_$1" netns "$1"
}

rxe_is_active() { # host
	at "$1" rdma link show "rxe_$1/1" | grep -q 'state ACTIVE'
}

listens() {
	at h1 ss -ltn | grep -q ":$exchange_port "
}

exchange() { # device, prefix of its names, GID index, polled|events, bytes, exchanges
	local words="-g $3 -s $5 -n $6 -r 16" server
	[ "$4" = polled ] || words="$words -e"
	# shellcheck disable=SC2086 # words
	ip netns exec h1 timeout "$longest" ibv_rc_pingpong -d "$2h1" $words >/tmp/server 2>&1 &
	server=$!
	eventually listens || bail_out "the server does not listen: $(cat /tmp/server)"
	# shellcheck disable=SC2086 # words
	at h2 timeout "$longest" ibv_rc_pingpong -d "$2h2" $words 10.86.0.1 >/tmp/client 2>&1 ||
		bail_out "the client failed: $(cat /tmp/client)"
	wait "$server" || bail_out "the server failed: $(cat /tmp/server)"
	printf 'pingpong %s %s %d %s\n' "$1" "$4" "$5" "$(awk '/usec\/iter/ { print $(NF - 1) }' /tmp/client)"
}

bring_up_fabric pair h1
stop_sm
modprobe -a ib_uverbs rdma_rxe || bail_out "soft-RoCE could not be loaded"
for host in h1 h2; do
	add_rxe "$host" || bail_out "there is no soft-RoCE device in $host"
	eventually rxe_is_active "$host" || bail_out "soft-RoCE does not come up in $host"
done
eventually find_gid h1 rxe_h1 || bail_out "soft-RoCE has no GID of its address"
for ((repetition = 0; repetition < repetitions; repetition++)); do
	for row in "polled 64 $small" "events 64 $small" "polled 1048576 $large" "events 1048576 $large"; do
		# shellcheck disable=SC2086 # words
		exchange softib '' 0 $row
		# shellcheck disable=SC2086 # words
		exchange rxe rxe_ "$gid" $row
	done
done
for host in h1 h2; do
	at "$host" rdma link delete "rxe_$host"
done
take_down_fabric
ok "the measurements were taken"
finish
