# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# NVMe over RDMA: a target that exports a namespace in memory at the address `address_of FAMILY 2`, and a host. For scripts that
# have node.sh.

# v4 or v6.
nvme_family=v4

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
	mkdir "$nvmet_port" && echo rdma >"$nvmet_port/addr_trtype" && echo "ip$nvme_family" >"$nvmet_port/addr_adrfam" &&
		echo -n "$(address_of "$nvme_family" 2)" >"$nvmet_port/addr_traddr" && echo 4420 >"$nvmet_port/addr_trsvcid" &&
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

# Seconds without a sign of life after which host and target give each other up. A target that goes says so, by ending its
# connections; if that message is lost the host still notices within the patience of `eventually`. Fewer seconds than a queue pair
# waits before it repeats a lost packet (4.3 s on softib) would end controllers that are well: the host then waits a minute for
# the answer to its first command.
# shellcheck disable=SC2154 # node.sh's
keep_alive=$((patience / 2))

connect() {
	nvme connect --transport rdma --traddr "$(address_of "$nvme_family" 2)" --trsvcid 4420 --nqn "$name" \
		--hostnqn nqn.2026-01.example:n1 --hostid 5a0d5a0d-0000-4000-8000-000000000001 \
		--nr-io-queues 2 --keep-alive-tmo "$keep_alive" --reconnect-delay 1 --ctrl-loss-tmo 600 && eventually [ -b /dev/nvme0n1 ]
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
