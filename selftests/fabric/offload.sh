#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the options of an HCA do: the kernel's ib_ipoib has checksums and TCP segmentation done by those that can, and TCP
# goes through between all of them; alias GUIDs, the MTU and the length of inline data are what was asked for.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/fabric.sh

amount=$(some 8000000)

feature_is() { # host, feature of ethtool, on|off
	matches "(^|[[:space:]])$2: $3( \[fixed\])?(\$|[[:space:]])" "$(at "$1" ethtool -k ib0)"
}

# What the kernel's checks of checksums in software have found wrong in a host, and what it had to send again.
complaints() { # host
	at "$1" nstat -asz TcpInCsumErrors IpInHdrErrors | awk 'NR > 1 { sum += $2 } END { print sum + 0 }'
}

arrives() { # from, to
	local before
	before=$(grep -c good "/tmp/stream.$2")
	at "$1" timeout $((4 * patience)) python3 selftests/fabric/stream.py send "$(v4_of "$2")" 5001 "$amount" || return
	eventually all_good "$2" $((before + 1))
}

all_good() { # host, count
	equal "$2" "$(grep -c "^good $amount$" "/tmp/stream.$1")"
}

packets() { # host: that its HCA has sent
	port_field "$1" hw_counters/sent_packets
}

messages() { # host: that its interface has sent
	at "$1" cat /sys/class/net/ib0/statistics/tx_packets
}

# The HCA sends more packets than the interface gives it: some of those are for several. A slow sender makes few of them.
cuts() { # from, to
	local packets messages
	packets=$(packets "$1")
	messages=$(messages "$1")
	arrives "$1" "$2" || return
	packets=$(($(packets "$1") - packets))
	messages=$(($(messages "$1") - messages))
	printf '%d messages, %d packets\n' "$messages" "$packets"
	holds $((2 * packets)) -gt $((3 * messages))
}

gid_is() { # host, index, GUID in four groups
	matches ":$3\$" "$(port_field "$1" "gids/$2")"
}

takes_inline() { # host, bytes
	matches "verbs_test: $1 takes $2 bytes inline" "$(dmesg)"
}

bring_up_fabric offload h1
check "h1 has its first alias GUID" gid_is h1 1 1234:0000:0000:0001
check "and the second" gid_is h1 2 1234:0000:0000:0002
check "and no third" gid_is h1 3 0000:0000:0000:0000
check "the subnet sees them" says h3 "smpquery guidinfo $(port_number h1 lid)" 0x1234000000000001 0x1234000000000002
check "the link of h3 has its MTU" says h1 "smpquery portinfo $(port_number h3 lid) 1" 'MtuCap:\.+2048' \
	'NeighborMTU:\.+2048'
check "the link of h1 has another" says h1 "smpquery portinfo $(port_number h1 lid) 1" 'MtuCap:\.+4096'
check "the test of verbs can be loaded" load_verbs_test
verbs "HCAs that can: " h1 h2 offload
verbs "HCAs that cannot: " h3 h3 offload
verbs "much inline data: " h1 h2 queue
verbs "little inline data: " h3 h1 queue
check "h1 takes what it was told to" takes_inline h1 1024
check "h3 too" takes_inline h3 64
check "it can be unloaded" rmmod verbs_test
check "IP over InfiniBand comes up" ipoib_up "${hosts[@]}"
for host in h1 h2; do
	for feature in rx-checksumming tx-checksumming tx-checksum-ipv4 tcp-segmentation-offload; do
		check "$host: $feature is on" feature_is "$host" "$feature" on
	done
done
for feature in tx-checksumming tcp-segmentation-offload; do
	check "h3: $feature is off" feature_is h3 "$feature" off
done
for host in "${hosts[@]}"; do
	at "$host" python3 selftests/fabric/stream.py listen 5001 >"/tmp/stream.$host" &
	jobs_running+=($!)
	eventually grep -q listening "/tmp/stream.$host"
done
check "h1 to h2, both of which can: what is sent arrives, cut by the HCA" cuts h1 h2
check "h1 to h3, which checks in software: so it does" cuts h1 h3
check "h3 to h1, which checks what software made" arrives h3 h1
for host in "${hosts[@]}"; do
	check_equal "$host has seen no wrong checksum" 0 "$(complaints "$host")"
done
check "checksums are switched off in h1" at h1 ethtool -K ib0 tx off
check "h1 to h2: what is sent arrives all the same" arrives h1 h2
take_down_fabric
finish
