#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the stack leaves to the sender of a packet: with HCAs that compute checksums and cut segments oxib has them do it, with
# others it does it itself; and packets in many pieces. What arrives is looked at byte by byte.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

length=$(some 2000000)

feature_is() { # host, feature of ethtool, on|off
	matches "(^|[[:space:]])$2: $3( \[[a-z ]*\])?(\$|[[:space:]])" "$(at "$1" ethtool -k ib0)"
}

# What the kernel's checks of checksums in software have found wrong in a host.
complaints() { # host
	at "$1" nstat -asz TcpInCsumErrors UdpInCsumErrors Udp6InCsumErrors IpInHdrErrors | awk 'NR > 1 { sum += $2 } END { print sum + 0 }'
}

good() { # host: how many transfers arrived as they were sent
	grep -c "^good $length$" "/tmp/stream.$1"
}

has_good() { # host, number
	equal "$2" "$(good "$1")"
}

arrives() { # from, to, [address]
	local before
	before=$(good "$2")
	at "$1" timeout $((4 * patience)) python3 selftests/fabric/stream.py send "${3:-$(v4_of "$2")}" 5001 "$length" || return
	eventually has_good "$2" $((before + 1))
}

posts() { # host
	counter_at "$1" tx_posts
}

sent() { # host
	at "$1" cat /sys/class/net/ib0/statistics/tx_packets
}

# Several packets on the wire for each time that the device was told of any: at first the stack may send little at once.
is_cut() { # from, to, [address]
	local posts sent
	posts=$(posts "$1")
	sent=$(sent "$1")
	arrives "$@" || return
	posts=$(($(posts "$1") - posts))
	sent=$(($(sent "$1") - sent))
	printf '%d posts, %d packets\n' "$posts" "$sent"
	holds "$sent" -gt $((3 * posts))
}

# A file's pages go out as they are: the packets have as many pieces as pages.
sends_file() { # from, to
	local before
	before=$(good "$2")
	at "$1" timeout $((4 * patience)) python3 selftests/infiniband/pages.py "$(v4_of "$2")" 5001 "$length" || return
	eventually has_good "$2" $((before + 1))
}

# Pages of a file that change while they are sent: checksum and bytes have to be of one moment.
sends_changing_file() { # from, to
	at "$1" timeout "$longest" python3 selftests/infiniband/changing.py "$(v4_of "$2")" 5002 $((32 * length))
}

# Five datagrams to a port that nobody has.
sends_wrong_checksums() { # from, to
	at "$1" python3 - "$(v4_of "$2")" <<'END'
import socket
import struct
import sys

LENGTH, WRONG = 308, 0xBAD0
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as sock:
    for _ in range(5):
        sock.sendto(struct.pack("!4H", 5999, 5999, LENGTH, WRONG).ljust(LENGTH, b"x"), (sys.argv[1], 0))
END
}

finds_wrong_checksums() { # host, at least
	holds "$(complaints "$1")" -ge "$2"
}

# The stack's own limit of bytes on their way would keep the ring from being full.
has_short_ring() { # host
	at "$1" ethtool -G ib0 tx 128 && eventually has_carrier "$1" &&
		at "$1" sh -c 'echo max | tee /sys/class/net/ib0/queues/tx-*/byte_queue_limits/limit_min'
}

fills_ring() { # from, to
	arrives "$@" && holds "$(counter_at "$1" tx_stopped)" -gt 0
}

nothing_is_lost() { # host
	equal 0 "$(at "$1" ethtool -S ib0 | awk '/tx_drop_(memory|full|length|header|refused)|tx_errors/ { sum += $2 } END { print sum + 0 }')"
}

bring_up_fabric offload h1
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "IP over InfiniBand comes up" interfaces_up "${hosts[@]}"
for host in "${hosts[@]}"; do
	for feature in scatter-gather tx-checksumming tcp-segmentation-offload generic-segmentation-offload; do
		check "$host: $feature is on" feature_is "$host" "$feature" on
	done
done
check "h1 says which checksums its HCA found right" feature_is h1 rx-checksumming on
check "h3, whose HCA cannot, does not" feature_is h3 rx-checksumming off
for host in "${hosts[@]}"; do
	at "$host" python3 selftests/infiniband/pages.py listen 5001 >"/tmp/stream.$host" &
	jobs_running+=($!)
	eventually grep -q listening "/tmp/stream.$host"
done
at h2 python3 selftests/infiniband/changing.py listen 5002 >/tmp/changing &
jobs_running+=($!)
eventually grep -q listening /tmp/changing
check "h1 to h2, by the HCAs: what is sent arrives" eventually is_cut h1 h2
check "h1 to h3, which checks in software: so it does" eventually is_cut h1 h3
check "h3 to h1, cut by the driver" eventually is_cut h3 h1
check "h1 to h2 over IPv6, which the driver cuts" eventually is_cut h1 h2 "$(v6_of h2)"
check "h3 to h2 over IPv6" eventually is_cut h3 h2 "$(v6_of h2)"
check "h1 to h2, out of pages of a file" sends_file h1 h2
check "h3 to h2, out of pages of a file" sends_file h3 h2
check "h3 to h2, out of pages of a file that is written meanwhile" sends_changing_file h3 h2
check_equal "h2 has seen no wrong checksum of it" 0 "$(complaints h2)"
for feature in tso tx sg; do
	check "$feature is switched off in h3" at h3 ethtool -K ib0 "$feature" off
	check "h3 to h1: what is sent arrives all the same" arrives h3 h1
done
check "all is switched on again" at h3 ethtool -K ib0 sg on tx on tso on
check "h3 to h1: what is sent arrives, cut by the driver" eventually is_cut h3 h1
check "h1 has a small MTU" at h1 ip link set ib0 mtu 600
check "h1 to h3: what is sent arrives" eventually is_cut h1 h3
check "h1 to h3 over UDP in fragments" host_reaches h1 "$(v4_of h3)" -s 20000
check "h3 has the shortest ring" has_short_ring h3
check "h3 to h1, with a ring that is full at times: what is sent arrives" eventually fills_ring h3 h1
for host in "${hosts[@]}"; do
	check_equal "$host has seen no wrong checksum" 0 "$(complaints "$host")"
	check "$host has dropped nothing of its own" nothing_is_lost "$host"
done
for host in h1 h3; do
	check "h2 sends datagrams whose checksums are wrong to $host" sends_wrong_checksums h2 "$host"
	check "$host finds that" eventually finds_wrong_checksums "$host" 5
done
stop_jobs
check "oxib.ko can be unloaded" unload_driver
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
