# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Soft-RoCE beside softib's HCAs, for bench/pingpong.sh and bench/perftest.sh: rxe_h1 in h1 and rxe_h2 in h2, with 10.86.0.1 and
# 10.86.0.2.

# The kernel makes it in the first namespace.
add_rxe() { # host, net device
	ip -n "$1" address add "10.86.0.$(host_number "$1")/24" dev "$2" &&
		at "$1" rdma link add "rxe_$1" type rxe netdev "$2" && rdma dev set "rxe_$1" netns "$1"
}

rxe_is_active() { # host
	at "$1" rdma link show "rxe_$1/1" | grep -q 'state ACTIVE'
}

# Notes the index of the GID of an IPv4 address.
find_gid() { # host, device
	gid=$(at "$1" sh -c "grep -l 0000:0000:0000:0000:0000:ffff: /sys/class/infiniband/$2/ports/1/gids/*" 2>/dev/null | head -n 1)
	gid=${gid##*/}
	[ -n "$gid" ]
}

# Both, and their GIDs' index as $gid.
bring_up_soft_roce() { # net device, which has this name in both hosts
	local host
	modprobe -a ib_uverbs rdma_rxe || bail_out "soft-RoCE could not be loaded"
	for host in h1 h2; do
		add_rxe "$host" "$1" || bail_out "there is no soft-RoCE device in $host"
		eventually rxe_is_active "$host" || bail_out "soft-RoCE does not come up in $host"
	done
	eventually find_gid h1 rxe_h1 || bail_out "soft-RoCE has no GID of its address"
}

take_down_soft_roce() {
	local host
	for host in h1 h2; do
		at "$host" rdma link delete "rxe_$host"
	done
}

listens() { # port
	at h1 ss -ltn | grep -q ":$1 "
}

# A server in h1 and its client in h2, which finds it by TCP; what they say is in /tmp/server and /tmp/client.
serve_and_call() { # port, 'server words', 'client words'
	local server
	# shellcheck disable=SC2086,SC2154 # words; node.sh's
	ip netns exec h1 timeout "$longest" $2 >/tmp/server 2>&1 &
	server=$!
	eventually listens "$1" || bail_out "the server does not listen: $(cat /tmp/server)"
	# shellcheck disable=SC2086 # words
	at h2 timeout "$longest" $3 >/tmp/client 2>&1 || bail_out "the client failed: $(cat /tmp/client)"
	wait "$server" || bail_out "the server failed: $(cat /tmp/server)"
}
