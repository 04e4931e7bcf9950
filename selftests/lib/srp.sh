# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# SCSI over RDMA (SRP): ib_srpt on n2 exports a disk in memory, ib_srp on n1 logs in to it. For scripts that have cm.sh, and
# say by which RDMA device (srp_device), what a login names besides the target (srp_destination), which initiators the target
# knows (srp_initiators), the TCP port at which it listens by rdma_cm, if it does (srp_port), and whether the device does not tell
# of a packet before the RTU (srp_needs_rtu). They have these commands:
#
# make_device, remove_device    the RDMA device
# go_deaf                       throw away all that arrives
# drop_rtu                      throw away the RTUs that arrive
# hear_again                    throw nothing away any more
# has_dropped                   whether something was thrown away
# hammer                        send requests for the target that their senders reject

srp_device=rxe0
srp_destination=
srp_initiators=()
srp_port=0
srp_needs_rtu=1

# The target's GUID, its service ID, and what initiators call it. By default ib_srpt uses the GUID of its first device.
srp_guid=0002c90300f1b001
srp_disk_size=$((4 << 20))

# --- the target ----------------------------------------------------------------------------------------------------------

srp_target=/sys/kernel/config/target
srp_store=$srp_target/core/rd_mcp_1
srp_fabric=$srp_target/srpt

# Prints the name of the port in configfs: the last half of its GID.
srp_port_name() {
	cut -d : -f 5-8 "/sys/class/infiniband/$srp_device/ports/1/gids/0"
}

# Creates the disk, which stays when the target goes.
make_disk() {
	modprobe target_core_mod && mkdir -p "$srp_store/disk" &&
		echo "rd_pages=$((srp_disk_size / 4096))" >"$srp_store/disk/control" && echo 1 >"$srp_store/disk/enable"
}

remove_disk() {
	rmdir "$srp_store/disk" "$srp_store" && modprobe -r target_core_mod
}

# Creates the folders from the port down to the access list of each initiator.
export_disk() {
	local name initiator
	modprobe ib_srpt "srpt_service_guid=$srp_guid" || return
	name=$(srp_port_name)
	srp_group=$srp_fabric/$name/$name
	mkdir -p "$srp_group" && mkdir "$srp_group/lun/lun_0" && ln -s "$srp_store/disk" "$srp_group/lun/lun_0/disk" || return
	for initiator in "${srp_initiators[@]}"; do
		mkdir -p "$srp_group/acls/$initiator/lun_0" &&
			ln -s "$srp_group/lun/lun_0" "$srp_group/acls/$initiator/lun_0/lun" || return
	done
	echo "$srp_port" >"$srp_fabric/discovery_auth/rdma_cm_port" && open_target
}

open_target() {
	echo 1 >"$srp_group/enable"
}

close_target() {
	echo 0 >"$srp_group/enable"
}

unexport_disk() {
	local initiator
	close_target && echo 0 >"$srp_fabric/discovery_auth/rdma_cm_port" || return
	for initiator in "${srp_initiators[@]}"; do
		rm "$srp_group/acls/$initiator/lun_0/lun" &&
			rmdir "$srp_group/acls/$initiator/lun_0" "$srp_group/acls/$initiator" || return
	done
	rm "$srp_group/lun/lun_0/disk" && rmdir "$srp_group/lun/lun_0" "$srp_group" "${srp_group%/*}" "$srp_fabric"
}

unload_target() {
	unexport_disk && rmmod ib_srpt
}

# --- the initiator -------------------------------------------------------------------------------------------------------

# Loads ib_srp. It logs in again every second after a connection loss, and holds I/O back meanwhile.
load_initiator() {
	modprobe sd_mod && modprobe ib_srp fast_io_fail_tmo=off dev_loss_tmo=600 reconnect_delay=1 ch_count=2
}

ask_login() { # id_ext
	echo "id_ext=$1,ioc_guid=$srp_guid,$srp_destination,tl_retry_count=2" >"/sys/class/infiniband_srp/srp-$srp_device-1/add_target"
}

# SCSI commands time out late, because the target is away for some time. ib_srp ends the connections of a target that was
# deleted after its disk and its port have gone, and refuses another login (EEXIST) until then.
log_in() {
	eventually ask_login "$srp_guid" && eventually disk_is_there &&
		echo 600 >"/sys/block/$(basename "$(disk)")/device/timeout" && eventually is_looked_at
}

# The device file is there before the kernel has looked for partitions. If the target goes meanwhile, that waits for it as all
# reads do (fast_io_fail_tmo=off), and ib_srp cannot be unloaded until then. A program that opens the disk waits until it has been looked at.
is_looked_at() {
	dd if="$(disk)" of=/dev/null bs=4k count=1 iflag=direct status=none
}

# Prints the device of the only disk.
disk() {
	local block
	for block in /sys/block/sd*; do
		[ ! -e "$block" ] || printf '/dev/%s\n' "${block##*/}"
	done
}

disk_is_there() {
	[ -b "$(disk)" ]
}

disk_has_gone() {
	[ -z "$(disk)" ]
}

ports_of_targets() {
	find /sys/class/srp_remote_ports -mindepth 1
}

log_out() {
	local port
	for port in $(ports_of_targets); do
		echo 1 >"$port/delete"
	done
	eventually disk_has_gone && eventually has_no_target
}

has_no_target() {
	[ -z "$(ports_of_targets)" ]
}

target_is() { # running|blocked
	equal "$1" "$(cat "$(ports_of_targets)/state")"
}

write_disk() {
	head -c "$srp_disk_size" /dev/urandom >/tmp/written &&
		dd if=/tmp/written of="$(disk)" bs=256k oflag=direct conv=fsync status=none
}

reads_back() {
	# Of fewer packets than a target may send ahead: if it waited for acknowledgements of an answer when it goes silent, n1 would
	# send nothing more, and not notice.
	dd if="$(disk)" bs=64k iflag=direct status=none | cmp - /tmp/written
}

# Reads the disk a few times a second, until the job is killed or a read fails.
reads_on() {
	while reads_back; do pause 0.2; done
}

begin_reading() {
	reads_on >/tmp/reading 2>&1 &
	reading=$!
}

# Fails if any read has failed or returned other data.
end_reading() {
	if has_ended "$reading"; then
		cat /tmp/reading
		return 1
	fi
	end_processes "$reading"
	reads_back
}

# --- what is tested ------------------------------------------------------------------------------------------------------

# The connection managers of n1 and n2, for the descriptions.
combination=

test_use() {
	check "$combination: n1 logs in" log_in
	check "$combination: it writes the disk" write_disk
	check "$combination: it reads back what it wrote" reads_back
	check "$combination: it logs out" log_out
	check "$combination: it logs in again" log_in
	check "$combination: the disk is as it was" reads_back
}

# The target of n2 goes and comes back while n1 reads.
comes_back() { # description, command to vanish, command to come back
	on_node 1 begin_reading
	barrier reading
	on_node 2 check "$combination: $1" "$2"
	on_node 1 check "$combination: n1 notices: $1" eventually target_is blocked
	barrier noticed
	on_node 2 check "$combination: it comes back" "$3"
	on_node 1 check "$combination: n1 is logged in again by itself" eventually target_is running
	on_node 1 check "$combination: all that was read is what was written" end_reading
	barrier back
}

# The device goes while the target is still configured.
lose_device() {
	remove_device && unexport_disk
}

return_device() {
	make_device && export_disk
}

# A device that reports the first packet (IB_EVENT_COMM_EST) lets the target establish the connection without an RTU. Other
# devices depend on the RTU that answers the repeated REP.
test_lost_rtu() {
	on_node 1 check "$combination: n1 logs out" log_out
	on_node 2 check "$combination: n2 does not get RTUs" drop_rtu
	barrier dropping
	on_node 1 check "$combination: n1 logs in all the same" log_in
	on_node 2 check "$combination: an RTU was thrown away" eventually has_dropped
	[ -n "$srp_needs_rtu" ] || barrier logged_in
	on_node 2 check "$combination: n2 gets everything again" hear_again
	barrier hearing
	on_node 1 check "$combination: n1 reads" reads_back
	barrier read
}

# A new device assigns the same queue pair numbers again. A disk that was just found is still being looked at.
renew_device() {
	eventually rmmod ib_srp && remove_device && make_device && load_initiator
}

# n1 disappears silently and returns with the same queue pair numbers, so that its old connection at n2 is stale.
test_stale() {
	on_node 1 check "$combination: n1 renews its RDMA device" renew_device
	on_node 1 check "$combination: and logs in" log_in
	barrier renewed
	on_node 2 check "$combination: n2 hears nothing" go_deaf
	barrier deaf
	on_node 1 check "$combination: n1 renews its RDMA device once more" renew_device
	barrier fresh
	on_node 2 check "$combination: n2 hears again" hear_again
	barrier hearing
	if [ "$NODE" = 1 ]; then
		dmesg --clear
		check_refused "$combination: n1 is not logged in over the old connection" ask_login "$srp_guid"
		check "$combination: it is told that this is stale" kernel_log_has 'REJ reason: stale connection'
		check "$combination: it logs in, when that has ended" eventually ask_login "$srp_guid"
		check "$combination: it finds the disk" eventually disk_is_there
		check "$combination: as it was" reads_back
	fi
	barrier fresh
}

asks_in_vain() {
	local turn
	for ((turn = 0; turn < 10; turn++)); do
		! ask_login 1 2>/dev/null || return 1
	done
}

# Requests that the target rejects arrive beside requests that their senders reject.
test_storm() {
	local asking
	if [ "$NODE" = 1 ]; then
		begin_reading
		asks_in_vain &
		asking=$!
		check "$combination: requests are sent and rejected by their senders" hammer
		check "$combination: logins to another target are rejected" wait "$asking"
		check "$combination: meanwhile n1 read what was written" end_reading
		check "$combination: it logs out" log_out
		check "$combination: it logs in again" log_in
	fi
	barrier calm
}

has_no_connection() {
	! rdma resource show qp | grep -q 'type RC'
}

# Unloads the initiator first, then the target first, each with a connection.
test_unloading() {
	check_refused "$combination: n$NODE does not unload ib_cm while it is used" rmmod ib_cm
	barrier refused
	on_node 1 check "$combination: n1 unloads its initiator while it is logged in" eventually rmmod ib_srp
	on_node 2 check "$combination: the target has no connection any more" eventually has_no_connection
	barrier initiator
	on_node 1 check "$combination: n1 loads it again" load_initiator
	on_node 1 check "$combination: and logs in" log_in
	barrier logged_in
	on_node 2 check "$combination: n2 unloads its target with n1 logged in" unload_target
	on_node 1 check "$combination: n1 notices" eventually target_is blocked
	on_node 1 check "$combination: n1 unloads its initiator, which tries to log in" eventually rmmod ib_srp
	on_node 2 check "$combination: n2's disk can go" remove_disk
	barrier target
}

test_combination() {
	local mine=${combination%:*}
	[ "$NODE" = 1 ] || mine=${combination#*:}
	check "$combination: n$NODE runs the connection manager of $mine" load_cm "$mine"
	on_node 1 check "$combination: n1 has an initiator" load_initiator
	on_node 2 check "$combination: n2 has a disk" make_disk
	on_node 2 check "$combination: and exports it" export_disk
	barrier exported
	on_node 1 test_use
	barrier used
	comes_back "the target is closed" close_target open_target
	comes_back "the target is unloaded" unload_target export_disk
	comes_back "the target's RDMA device goes" lose_device return_device
	comes_back "the target is silent" go_deaf hear_again
	test_lost_rtu
	test_storm
	test_stale
	test_unloading
	check "$combination: n$NODE can unload it" unload_cm
	barrier unloaded
}
