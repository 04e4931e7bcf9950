# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What scripts of acm/ are written with whose hosts are nodes: n1 and n3 are in an InfiniBand subnet each, on their own cable, and
# n2 between them is the router. So n1 and n3 can have drivers and connection managers of their own. Both are in one IP subnet.

# shellcheck source=selftests/lib/fabric.sh
. selftests/lib/fabric.sh

far=$((4 - NODE))
prefix=0xfec000000000000

is_router() {
	[ "$NODE" = 2 ]
}

v4_of_node() { # node
	printf '10.88.0.%d\n' "$1"
}

v6_of_node() { # node
	printf 'fd00:88::%d\n' "$1"
}

# --- the subnets -----------------------------------------------------------------------------------------------------------------

port_here=/sys/class/infiniband/hca0/ports/1

gid_here() {
	cat "$port_here/gids/0"
}

guid_here() {
	gid_here | awk -F: '{ print "0x" $5 $6 $7 $8 }'
}

# With the LID that the router expects, and all paths to the other subnet by the router.
start_subnet_here() {
	local guid lid
	guid=$(guid_here)
	lid=0x${guid: -4}
	mkdir -p /tmp/sm
	printf '%s %s %s\n\n' "$guid" "$lid" "$lid" >/tmp/sm/guid2lid
	printf '%s%d *\n' "$prefix" "$far" >/tmp/sm/prefix-routes.conf
	printf '%s\n' "log_file /tmp/sm/log" "dump_files_dir /tmp/sm" "sweep_interval 5" "subnet_prefix $prefix$NODE" \
		"honor_guid2lid_file TRUE" "prefix_routes_file /tmp/sm/prefix-routes.conf" "$SM_PATIENCE" \
		>/tmp/sm/opensm.conf
	OSM_TMP_DIR=/tmp/sm OSM_CACHE_DIR=/tmp/sm opensm --config /tmp/sm/opensm.conf >/tmp/sm/output 2>&1 &
	subnet_manager=$!
}

has_prefix() {
	grep -q "^fec0:0000:0000:000$NODE:" "$port_here/gids/0"
}

route() {
	ip link set eth0 mtu 9000 up && ip link set eth1 mtu 9000 up && load_softib && fabric_up crossing
}

lay_ground() {
	if is_router; then
		route || bail_out "n2 is no router"
	else
		hca_up || bail_out "there is no HCA on the cable"
	fi
	barrier cabled
	if ! is_router; then
		start_subnet_here
		eventually hca_is_active || bail_out "the port does not become active"
		eventually has_prefix || bail_out "the port does not get its subnet's prefix"
	fi
	barrier subnets
}

clear_ground() {
	barrier leaving
	if is_router; then
		check "n2: the router can go" fabric_down
	else
		kill "$subnet_manager" && wait "$subnet_manager" 2>/dev/null
		check "n$NODE: the HCA can go" rdma link delete hca0
	fi
	check "n$NODE: softib.ko can be unloaded" unload_softib
}

# --- drivers ---------------------------------------------------------------------------------------------------------------------

# With the connection manager of the same hand, and rdma_cm on it.
load_oxib_here() {
	load_oxib && insmod "$MODULES/ib_cm.ko" && modprobe rdma_cm
}

load_kernel_here() {
	modprobe -a ib_ipoib rdma_cm
}

unload_here() {
	local module
	for module in nvme_rdma nvmet_rdma nvmet rdma_cm iw_cm ib_ipoib ib_cm oxib; do
		[ ! -d "/sys/module/$module" ] || rmmod "$module" || return
	done
}

interface_here() {
	eventually ib_exists && ip address replace "$(v4_of_node "$NODE")/24" brd + dev ib0 &&
		ip address replace "$(v6_of_node "$NODE")/64" dev ib0 nodad &&
		ip link set ib0 up && eventually carrier_is 1
}

# --- what each knows of the other ------------------------------------------------------------------------------------------------

# By the cache, with the queue pair or without.
enter_far() { # [qpn N]
	local gid
	gid=$(told gid "$far")
	oxib acm replace "$(v4_of_node "$far")" "$gid" "$@" && oxib acm replace "$(v6_of_node "$far")" "$gid" "$@"
}

# As an administrator without oxib has to.
enter_neighbour() { # hardware address
	ip neighbour replace "$(v4_of_node "$far")" lladdr "$1" dev ib0 nud permanent &&
		ip neighbour replace "$(v6_of_node "$far")" lladdr "$1" dev ib0 nud permanent
}

# --- traffic ---------------------------------------------------------------------------------------------------------------------

mtu_here() {
	cat /sys/class/net/ib0/mtu
}

# In connected mode, by a connection alone. What the stack learned of smaller packets before would stay with it for minutes.
takes_largest() {
	ip route flush cache && answers "$(v4_of_node "$far")" -M do -s $(($(mtu_here) - 28))
}

reaches_far() { # description
	check "$1: n$NODE reaches n$far by IPv4" eventually answers "$(v4_of_node "$far")"
	check "$1: n$NODE reaches n$far by IPv6" eventually answers "$(v6_of_node "$far")"
	check "$1: n$NODE reaches n$far with packets of the MTU" eventually takes_largest
}
