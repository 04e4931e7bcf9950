#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Adapters of all kinds (scripts/fabric_builder/personalities.py): between two nodes whose HCAs resemble one, datagrams,
# connections, a stream out of a file's pages and NVMe over RDMA work; under traffic the HCA is removed, and another one works.
#
# adapters.sh [PERSONALITY...]: those, or all
#
# nodes: 2
# kernels: fast
# timeout: 600

. selftests/lib/fabric.sh
. selftests/lib/nvme.sh

personalities=("$@")
[ $# -gt 0 ] || personalities=(connectx3 connectx5 irdma poor)
topologies=/tmp
length=$(some 2000000)
disk_size=$((2 << 20))

address_of() { # v4, node
	printf '10.88.0.%d\n' "$2"
}

own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")

write_topology() { # personality
	printf '%s\n' "hca hca0 personality=$1" "cable hca0 @eth0" >/tmp/adapter.fabric
}

add_hca() {
	fabric_up adapter
}

remove_hca() {
	fabric_down && ib_is_gone
}

up() {
	eventually ib_exists && ip address replace "$own/24" brd + dev ib0 && ip link set ib0 up && eventually carrier_is 1
}

go_to_mode() { # datagram|connected
	printf '%s\n' "$1" >/sys/class/net/ib0/mode && eventually carrier_is 1
}

has_shared_receives() {
	[ "$(cat /sys/kernel/config/softib/hca/hca0/srq)" = 1 ]
}

# Long segments go by the HCA where it cuts.
cuts() {
	[ "$(cat /sys/kernel/config/softib/hca/hca0/tso)" = 1 ]
}

hca_counter() { # name
	cat "/sys/class/infiniband/hca0/ports/1/hw_counters/$1"
}

# A file's pages are pieces of a packet each.
sends_file() {
	timeout $((4 * patience)) python3 selftests/infiniband/pages.py "$there" 5001 "$length"
}

# Most of what is sent was cut by the HCA.
sends_file_cut() {
	local sent cut
	sent=$(hca_counter sent_packets)
	cut=$(hca_counter cut_packets)
	sends_file || return
	sent=$(($(hca_counter sent_packets) - sent))
	cut=$(($(hca_counter cut_packets) - cut))
	printf '%d packets, %d of them cut by the HCA\n' "$sent" "$cut"
	holds $((2 * cut)) -gt "$sent"
}

talk() { # description
	local size
	for size in 56 1500 20000; do
		check "$1: n$NODE reaches the other with $size bytes" eventually reaches "$there" -s "$size"
	done
}

listen() {
	python3 selftests/infiniband/pages.py listen 5001 >/tmp/arrived &
	jobs_running+=($!)
	eventually grep -q listening /tmp/arrived
}

test_stream() {
	on_node 2 listen
	barrier listening
	if cuts; then
		on_node 1 check "$kind: a file is sent, cut by the HCA" eventually sends_file_cut
	else
		on_node 1 check "$kind: a file is sent" sends_file
	fi
	barrier sent
	if [ "$NODE" = 2 ]; then
		check "$kind: it arrives" eventually grep -q "^good $length$" /tmp/arrived
		check_refused "$kind: and nothing else" grep -v -e "^good $length$" -e listening /tmp/arrived
	fi
	stop_jobs
}

test_connections() {
	if ! has_shared_receives; then
		check_refused "$kind: n$NODE has no connected mode, as its HCA has no shared receives" go_to_mode connected
		return
	fi
	check "$kind: n$NODE goes to connected mode" go_to_mode connected
	barrier connected
	talk "$kind, connected"
	barrier talked
	check "$kind: it goes back" go_to_mode datagram
}

test_disk() {
	on_node 2 check "$kind: the target listens" export_namespace
	barrier exported
	if [ "$NODE" = 1 ]; then
		check "$kind: the host finds the target" connect
		check "$kind: it writes the disk" write_all
		check "$kind: it reads back what it wrote" reads_back
		check "$kind: it disconnects" disconnect
	fi
	barrier used
	on_node 2 check "$kind: the target can go" unexport_namespace
}

test_removal() {
	in_background ping -q -f -s 1500 "$there"
	in_background ping -q -i 0.01 -s 20000 "$there"
	barrier traffic
	check "$kind: packets pass n$NODE" packets_pass
	barrier passing
	on_node 2 check "$kind: the HCA of n2 goes under traffic" eval 'packets_pass && remove_hca'
	on_node 2 check "$kind: another one comes" add_hca
	on_node 2 check "$kind: its interface comes up" up
	check "$kind: n$NODE reaches the other again" eventually reaches "$there" -s 1500
	barrier again
	stop_jobs
}

# Its own jobs end by themselves.
start_manager() {
	start_sm_here
	manager=${jobs_running[-1]}
	jobs_running=()
}

# Its port has gone: there is nothing that it could take leave of.
stop_manager() {
	kill -KILL "$manager"
	wait "$manager"
}

check "softib.ko can be loaded" load_softib
check "oxib.ko can be loaded" load_oxib
check "so can its connection manager" insmod "$MODULES/ib_cm.ko"
check "what stands on it" modprobe -a nvmet_rdma nvme_rdma
ip link set eth0 mtu 9000 up
for kind in "${personalities[@]}"; do
	write_topology "$kind"
	check "$kind: n$NODE has such an HCA" add_hca
	barrier cabled
	on_node 1 start_manager
	check "$kind: n$NODE comes up" up
	barrier up
	talk "$kind"
	barrier talked
	test_stream
	test_connections
	barrier connections
	test_disk
	test_removal
	barrier done
	on_node 2 check "$kind: the HCA of n2 goes" remove_hca
	barrier gone
	if [ "$NODE" = 1 ]; then
		check "$kind: the HCA of n1 goes" remove_hca
		stop_manager
	fi
done
rmmod nvme_rdma nvmet_rdma nvmet rdma_cm iw_cm ib_cm 2>/dev/null
check "oxib.ko can be unloaded" unload_oxib
check "softib.ko can be unloaded" unload_softib
finish
