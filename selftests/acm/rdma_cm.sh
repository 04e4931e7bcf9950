#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# NVMe over RDMA across a router, by the IP addresses of oxib's interfaces: the disk of n3, used by n1, in an InfiniBand subnet
# each; n2 between them is a router. How often the subnet administrators are asked is counted: never by who accepts a
# connection, once by who makes one. (Programs in user space need verbs there, which softib does not have.)
#
# nodes: 3
# kernels: fast
# timeout: 500

. selftests/fabric.sh
. selftests/cm.sh
. selftests/nvme.sh

prefix=0xfec000000000000
far=$((4 - NODE))

# The target is on n3.
address_of() { # v4, node of two: 2 is the far one
	if [ "$1" = v4 ]; then v4_of_node $((2 * $2 - 1)); else v6_of_node $((2 * $2 - 1)); fi
}

v4_of_node() { # node
	printf '10.88.0.%d\n' "$1"
}

v6_of_node() { # node
	printf 'fd00:88::%d\n' "$1"
}

# --- a subnet on each side -------------------------------------------------------------------------------------------------------

port=/sys/class/infiniband/hca0/ports/1

guid_here() {
	awk -F: '{ print "0x" $5 $6 $7 $8 }' "$port/gids/0"
}

# With the LID that the router expects, and all paths to other subnets by the router.
start_subnet_here() {
	local guid lid
	guid=$(guid_here)
	lid=0x${guid: -4}
	mkdir -p /tmp/sm
	printf '%s %s %s\n\n' "$guid" "$lid" "$lid" >/tmp/sm/guid2lid
	printf '%s%d *\n' "$prefix" "$far" >/tmp/sm/prefix-routes.conf
	printf '%s\n' "log_file /tmp/sm/log" "dump_files_dir /tmp/sm" "sweep_interval 5" "subnet_prefix $prefix$NODE" \
		"honor_guid2lid_file TRUE" "prefix_routes_file /tmp/sm/prefix-routes.conf" >/tmp/sm/opensm.conf
	OSM_TMP_DIR=/tmp/sm OSM_CACHE_DIR=/tmp/sm opensm --config /tmp/sm/opensm.conf >/tmp/sm/output 2>&1 &
	jobs_running+=($!)
}

has_prefix() {
	grep -q "^fec0:0000:0000:000$NODE:" "$port/gids/0"
}

route() {
	ip link set eth0 mtu 9000 up && ip link set eth1 mtu 9000 up && load_softib && fabric_up crossing
}

stand_in_subnet() {
	start_subnet_here && eventually hca_is_active && eventually has_prefix
}

interface_here() {
	ip address replace "$(v4_of_node "$NODE")/24" brd + dev ib0 &&
		ip address replace "$(v6_of_node "$NODE")/64" dev ib0 nodad &&
		ip link set ib0 up && eventually carrier_is 1
}

learn_of_far() {
	local gid
	gid=$(told gid "$far")
	printf 'replace %s %s\nreplace %s %s\n' "$(v4_of_node "$far")" "$gid" "$(v6_of_node "$far")" "$gid" |
		python3 selftests/acm/cache.py -
}

# --- questions to the subnet administrator ---------------------------------------------------------------------------------------

# Each subnet's manager is on its host, so questions to it are not on the cable: who asks calls this function, whoever it is.
tracing=/sys/kernel/tracing

count_queries() {
	mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
	echo 'p:queries ib_sa_path_rec_get' >"$tracing/kprobe_events" && echo 1 >"$tracing/events/kprobes/queries/enable"
}

all_queries() {
	awk '$1 == "queries" { print $2 }' "$tracing/kprobe_profile"
}

queries_are() { # least, most
	local number
	number=$(all_queries)
	note "asked $number times"
	holds "$number" -ge "$1" && holds "$number" -le "$2"
}

stop_counting() {
	echo 0 >"$tracing/events/kprobes/queries/enable"
	: >"$tracing/kprobe_events"
}

path_queries() {
	ethtool -S ib0 | awk '$1 == "sa_path_queries:" { print $2 }'
}

# --- programs --------------------------------------------------------------------------------------------------------------------

test_disk() { # description
	check "$1: the host finds the target" connect
	check "$1: it writes the disk" write_all
	check "$1: it reads back what it wrote" reads_back
	check "$1: it disconnects" disconnect
}

if [ "$NODE" = 2 ]; then
	check "n2 is a router between its cables" route
else
	check "n$NODE has an HCA on its cable" hca_up
fi
barrier cabled
[ "$NODE" = 2 ] || check "n$NODE: its subnet comes up" stand_in_subnet
barrier subnets
if [ "$NODE" != 2 ]; then
	check "n$NODE: oxib loads, with its connection manager" load_cm oxib
	check "n$NODE: ib0 appears" eventually ib_exists
	check "n$NODE: it comes up" interface_here
	tell gid "$(cat "$port/gids/0")"
fi
barrier up
[ "$NODE" = 2 ] || check "n$NODE learns of the other" learn_of_far
barrier learned
if [ "$NODE" = 1 ]; then
	check "n1 reaches n3 by IPv4" eventually answers "$(v4_of_node 3)"
	check "n1 reaches n3 by IPv6" eventually answers "$(v6_of_node 3)"
fi
barrier reached
before=0
if [ "$NODE" != 2 ]; then
	before=$(path_queries)
	check "n$NODE: queries are counted" count_queries
fi
for nvme_family in v4 v6; do
	on_node 3 check "the target listens to IP$nvme_family" export_namespace
	barrier "exported $nvme_family"
	if [ "$NODE" = 1 ]; then
		modprobe nvme_rdma
		test_disk "across the router by IP$nvme_family"
	fi
	barrier "used $nvme_family"
	on_node 3 check "the target can go" unexport_namespace
done
# One for each connection by rdma_cm itself: twice that of the administration, and two for input and output.
on_node 1 check "n1 asked once for each connection, at most" queries_are 1 6
on_node 3 check "n3 asked for no path" queries_are 0 0
if [ "$NODE" != 2 ]; then
	check_equal "n$NODE: oxib asked for no path more" "$before" "$(path_queries)"
	stop_counting
fi
barrier gone
if [ "$NODE" = 2 ]; then
	check "n2: the router can go" fabric_down
else
	check "n$NODE: oxib and its connection manager can be unloaded" unload_cm
	stop_jobs
	check "n$NODE: the HCA can go" rdma link delete hca0
fi
check "n$NODE: softib.ko can be unloaded" unload_softib
finish
