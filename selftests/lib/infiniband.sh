# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of infiniband/ are written with, besides fabric.sh: interfaces of oxib or of the kernel's ib_ipoib on the
# hosts of a fabric. A driver takes all HCAs of its node, so two drivers on one fabric are in two nodes.

# shellcheck source=selftests/lib/fabric.sh
. selftests/lib/fabric.sh

# Host hN of node M is 10.88.M.N and fd00:88::M:N.
v4_of() { # host, [node]
	printf '10.88.%d.%d\n' "${2:-$NODE}" "$(host_number "$1")"
}

v6_of() { # host, [node]
	printf 'fd00:88::%x:%x\n' "${2:-$NODE}" "$(host_number "$1")"
}

# --- the driver ----------------------------------------------------------------------------------------------------------------

load_driver() { # oxib|ib_ipoib, [parameter...]
	driver=$1
	case $driver in
	oxib) load_oxib "${@:2}" ;;
	*) modprobe "$@" ;;
	esac
}

has_no_connection() { # host
	local queue_pairs
	queue_pairs=$(at "$1" rdma resource show qp) && ! grep 'type RC' <<<"$queue_pairs"
}

# The kernel's driver ends connections in the background, and in Linux 7.2 and 7.3 does not wait for that when it goes: completion queues
# that are still in use then stay for ever, with a warning each.
connections_end() {
	local host
	for host in "${hosts[@]}"; do
		at "$host" ip link set ib0 down && eventually has_no_connection "$host" || return
	done
}

# With the kernel's driver goes its connection manager, which leaves oxib's no port.
unload_driver() {
	case $driver in
	oxib) unload_oxib ;;
	*) connections_end && modprobe -r "$driver" ;;
	esac
}

has_interface() { # host
	at "$1" test -e /sys/class/net/ib0
}

has_carrier() { # host
	at "$1" grep -q 1 /sys/class/net/ib0/carrier
} 2>/dev/null # an interface that is down has none

# The interface is there, and is up.
has_no_carrier() { # host
	equal 0 "$(at "$1" cat /sys/class/net/ib0/carrier)"
}

has_ipv6() {
	[ -e /proc/net/if_inet6 ]
}

interface_up() { # host
	eventually has_interface "$1" &&
		at "$1" ip address replace "$(v4_of "$1")/16" brd + dev ib0 &&
		{ ! has_ipv6 || at "$1" ip address replace "$(v6_of "$1")/64" dev ib0 nodad; } &&
		at "$1" ip link set ib0 up
}

interfaces_up() { # host...
	local host
	for host in "$@"; do
		interface_up "$host" || return
	done
	for host in "$@"; do
		eventually has_carrier "$host" || return
	done
}

mtu_of() { # host
	at "$1" cat /sys/class/net/ib0/mtu
}

counter_at() { # host, name: of ethtool -S; nothing with a driver that does not have it
	at "$1" ethtool -S ib0 | awk -v name="$2:" '$1 == name { print $2 }'
}

hardware_address_at() { # host
	at "$1" cat /sys/class/net/ib0/address
}

flush_neighbours() { # host...
	local host
	for host in "$@"; do
		at "$host" ip neighbour flush dev ib0
	done
}

# How the GID at that place of a host's port has joined a group, as saquery writes it: 1 as a full member, 8 to send
# (SendOnlyFullMember); nothing as none. h4 has the subnet manager. Who does not know the SM_Key is not told.
join_state() { # group, host, place
	local gid records
	gid=$(short_gid "$(port_field "$2" "gids/$3")")
	records=$(at h4 saquery --smkey 1 -m) || {
		echo unanswered
		return
	}
	awk -v group="$1" -v gid="$gid" '
		/MGID\.+/ { sub(/.*\.\.+/, ""); mgid = $0 }
		/PortGid\.+/ { sub(/.*\.\.+/, ""); port = $0 }
		/ScopeState\.+/ { sub(/.*\.\.+/, ""); if (mgid == group && port == gid) print substr($0, length($0)) }' <<<"$records"
}

# A port's clients are to register again, as when a subnet manager comes: h4 tells the port.
register_again() { # host
	at h4 python3 selftests/infiniband/reregister.py "$(umad_of h4)" "$(port_number "$1" lid)"
}

mount_debugfs() {
	mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
}

# As debugfs has them: without leading zeros, all groups.
debug_gid() { # GID
	sed -E 's/(^|:)0+([0-9a-f])/\1\2/g' <<<"$1"
}

# Whether ib0 of a host knows a path to a destination, as debugfs says: yes or no; nothing if it wants none.
knows_path() { # host, GID
	awk -v gid="$(debug_gid "$2")" '$1 == "GID:" { is_it = $2 == gid } is_it && $1 == "complete:" { print $2 }' \
		"/sys/kernel/debug/ipoib/ib0@$1_path"
}

# A packet to that destination finds no path.
has_lost_path() { # host, GID, IP address there
	host_answers "$1" "$3" -W 1
	equal no "$(knows_path "$1" "$2")"
}

# --- traffic -------------------------------------------------------------------------------------------------------------------

# What iperf3 sends if it is not told. Most of it does not fit in the sender's buffers: what is there when the sender has
# ended, the receiver does not count.
amount=(-n 4M -w 128K)
[ "$KERNEL" != debug ] || amount=(-n 150K -w 16K)

measure() { # iperf3 option...
	iperf ip netns exec h1 iperf3 "$@"
}

measured() { # iperf3 option...: what the receiver got, in bytes
	measure "${amount[@]}" "$@" && iperf_received 10000
}

both_ways_for() { # seconds, iperf3 option...
	local way
	measure -t "$1" --bidir "${@:2}" || return
	for way in sum_received sum_received_bidir_reverse; do
		holds "$(jq ".end.$way.bytes // 0" /tmp/iperf.json)" -gt 10000 || return
	done
}

# For a time: one direction may have sent its amount before the other has begun. On a busy host one may begin late.
measured_both_ways() { # iperf3 option...
	both_ways_for 2 "$@" || both_ways_for 15 "$@"
}

# --- fabrics -------------------------------------------------------------------------------------------------------------------

# What each node has of a shared fabric.
shared_topology=shared

# The nodes' fabrics are one: a switch in each, with the cable between the nodes. The first node's h1 has the subnet manager.
bring_up_shared_fabric() { # driver, [parameter of the driver...]
	local manager=()
	[ "$NODE" != 1 ] || manager=(h1)
	ip link set eth0 mtu 9000 up
	barrier cable
	bring_up_fabric "$shared_topology" "${manager[@]}"
	load_driver "$@" || bail_out "$1 could not be loaded"
	barrier driver
	check "$1 makes an interface in each host, with carrier" interfaces_up "${hosts[@]}"
	barrier up
}

take_down_shared_fabric() {
	stop_jobs
	barrier leaving
	# While there is a subnet manager: nobody would answer it when it leaves its groups.
	check "$driver can be unloaded" unload_driver
	barrier left
	stop_sm
	check "the fabric can be taken down" fabric_down
	check "softib.ko can be unloaded" unload_softib
}
