# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two nodes with an HCA each, joined by their Ethernet cable, and with a connection manager each. The subnet manager runs on n1.
# For scripts that have cm.sh and fabric.sh.

: "${NODE:?is set inside a node}"

port_here=/sys/class/infiniband/hca0/ports/1
subnet_manager=

# oxib makes no interfaces.
# shellcheck disable=SC2034 # cm.sh's
oxib_parameters=(ipoib=0)

make_device() {
	rdma link add hca0 type softib netdev eth0 || return
	if [ "$NODE" = 1 ]; then
		mkdir -p /tmp/sm
		printf '%s\n' "log_file /tmp/sm/log" "dump_files_dir /tmp/sm" "sweep_interval 2" "$SM_PATIENCE" >/tmp/sm/opensm.conf
		OSM_TMP_DIR=/tmp/sm OSM_CACHE_DIR=/tmp/sm opensm --config /tmp/sm/opensm.conf >/tmp/sm/output 2>&1 &
		subnet_manager=$!
	fi
	eventually hca_is_active
}

remove_device() {
	if [ -n "$subnet_manager" ]; then
		kill "$subnet_manager" && wait "$subnet_manager"
		subnet_manager=
	fi
	rdma link delete hca0
}

cable_up() {
	load_softib || bail_out "softib.ko could not be loaded"
	ip link set eth0 mtu 9000 up
	tc qdisc add dev eth0 clsact || bail_out "there can be no filters on the Ethernet device"
	barrier cable
	make_device || bail_out "the port of n$NODE does not become active"
	tell guid "$(port_guid_here)"
	tell lid "$(cat "$port_here/lid")"
	barrier active
}

cable_down() {
	check "n$NODE: the HCA can go" remove_device
	check "n$NODE: softib.ko can be unloaded" unload_softib
}

# As ib_srpt writes it.
port_guid_here() {
	cut -d : -f 5-8 "$port_here/gids/0"
}

# --- what arrives ----------------------------------------------------------------------------------------------------------

# Offsets count from the LRH, which BTH, DETH and the message follow. Subnet management on virtual lane 15 always passes.
drop_frames() { # match of u32...
	tc filter add dev eth0 ingress protocol 0x88b5 prio 1 u32 match u8 0x00 0xf0 at 0 "$@" action drop
}

go_deaf() {
	drop_frames
}

drop_rtu() {
	drop_frames match u32 1 0xffffff at 12 match u16 0x0014 0xffff at 44
}

hear_again() {
	tc filter delete dev eth0 ingress
}

has_dropped() {
	tc -s filter show dev eth0 ingress | grep -Eq 'dropped [1-9]'
}

# Sends requests from n1 for a service of n2, each rejected by its sender.
hammer_service() { # service, number, private data
	local node ends=()
	for node in 1 2; do
		ends+=("$(told lid "$node"),0x$(told guid "$node" | tr -d :)")
	done
	PYTHONPATH=selftests/ipoib:selftests/fabric python3 selftests/cm/hammer.py "${ends[@]}" "$@"
}
