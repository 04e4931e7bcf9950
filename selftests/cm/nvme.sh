#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# NVMe over RDMA: n2 exports a namespace in memory, n1 writes to it and reads it back, disconnects and connects again, and
# finds it again by itself after its port had been closed, and after the whole target had been unloaded.
#
# nvme.sh [N1:N2...]: the connection managers of the host n1 and the target n2.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/cm.sh

combinations=("$@")
[ $# -gt 0 ] || combinations=(oxib:oxib oxib:kernel kernel:oxib)
name=nqn.2026-01.example:memory
disk_size=$((16 << 20))
target=/sys/kernel/config/nvmet

# One that comes back with another is another disk to the host.
disk_uuid=5a0d5a0d-0000-4000-8000-000000000002

# --- the target ----------------------------------------------------------------------------------------------------------

export_namespace() {
	local subsystem=$target/subsystems/$name
	modprobe -a nvmet nvmet_rdma && truncate -s "$disk_size" /tmp/disk &&
		mkdir "$subsystem" && echo 1 >"$subsystem/attr_allow_any_host" &&
		mkdir "$subsystem/namespaces/1" && echo -n /tmp/disk >"$subsystem/namespaces/1/device_path" &&
		echo -n "$disk_uuid" >"$subsystem/namespaces/1/device_uuid" &&
		echo 1 >"$subsystem/namespaces/1/enable" && open_port
}

nvmet_port=$target/ports/1

open_port() {
	mkdir "$nvmet_port" && echo rdma >"$nvmet_port/addr_trtype" && echo ipv4 >"$nvmet_port/addr_adrfam" &&
		echo -n "$(address_of v4 2)" >"$nvmet_port/addr_traddr" && echo 4420 >"$nvmet_port/addr_trsvcid" &&
		ln -s "$target/subsystems/$name" "$nvmet_port/subsystems/$name"
}

close_port() {
	rm "$nvmet_port/subsystems/$name" && rmdir "$nvmet_port"
}

unexport_namespace() {
	close_port && echo 0 >"$target/subsystems/$name/namespaces/1/enable" &&
		rmdir "$target/subsystems/$name/namespaces/1" "$target/subsystems/$name"
}

# Nothing of the target is left but the disk.
unload_target() {
	unexport_namespace && rmmod nvmet_rdma nvmet
}

# --- the host ------------------------------------------------------------------------------------------------------------

# Signs of life once a second, so that it is noticed soon when the target has gone.
connect() {
	nvme connect --transport rdma --traddr "$(address_of v4 2)" --trsvcid 4420 --nqn "$name" \
		--hostnqn nqn.2026-01.example:n1 --hostid 5a0d5a0d-0000-4000-8000-000000000001 \
		--nr-io-queues 2 --keep-alive-tmo 2 --reconnect-delay 1 --ctrl-loss-tmo 600 && eventually [ -b /dev/nvme0n1 ]
}

disconnect() {
	nvme disconnect --nqn "$name" && eventually has_gone
}

has_gone() {
	[ ! -e /dev/nvme0n1 ]
}

controller_is() { # state
	[ "$(cat /sys/class/nvme/nvme0/state)" = "$1" ]
}

# Something new each time, on all of the disk, past the host's cache.
write_all() {
	head -c "$disk_size" /dev/urandom >/tmp/written &&
		dd if=/tmp/written of=/dev/nvme0n1 bs=64k oflag=direct conv=fsync status=none
}

reads_back() {
	dd if=/dev/nvme0n1 bs=64k iflag=direct status=none | cmp - /tmp/written
}

# --- what is tested ------------------------------------------------------------------------------------------------------

test_use() {
	check "$combination: the host finds the target" connect
	check "$combination: it writes the disk" write_all
	check "$combination: it reads back what it wrote" reads_back
	check "$combination: it disconnects" disconnect
	check "$combination: it connects again" connect
	check "$combination: the disk is as it was" reads_back
}

# Both nodes: n2 lets its target vanish and come back, n1 watches.
vanishes() { # description, command to vanish, command to come back
	on_node 2 check "$combination: $1" "$2"
	on_node 1 check "$combination: the host notices: $1" eventually controller_is connecting
	barrier noticed
	on_node 2 check "$combination: it comes back" "$3"
	on_node 1 check "$combination: the host is connected again after that" eventually controller_is live
	on_node 1 check "$combination: and the disk is as it was" reads_back
	barrier back
}

test_combination() {
	local mine=${combination%:*}
	[ "$NODE" = 1 ] || mine=${combination#*:}
	check "$combination: n$NODE runs the connection manager of $mine" load_cm "$mine"
	on_node 1 modprobe nvme_rdma
	on_node 2 check "$combination: the target is set up" export_namespace
	barrier exported
	on_node 1 test_use
	barrier used
	vanishes "the target's port is closed" close_port open_port
	vanishes "the target is unloaded" unload_target export_namespace
	on_node 1 check "$combination: the host disconnects in the end" disconnect
	barrier disconnected
	on_node 2 check "$combination: the target can go" unexport_namespace
	check "$combination: n$NODE can unload it" unload_cm
	barrier unloaded
}

ground_up
for combination in "${combinations[@]}"; do
	test_combination
done
ground_down
finish
