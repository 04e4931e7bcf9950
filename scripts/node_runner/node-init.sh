#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The first process of a node. The root it starts on is the shared guest, read-only; it puts a writable layer in
# memory over that, mounts what the runner gives the node, runs the node's command, and switches the node off.
#
# The kernel's command line gives NODE, NODES, KERNEL, MACHINE, LIMIT and CLOCK, which arrive as environment variables; on
# user-mode Linux DIRECTORIES, CABLES and MHZ, too.

# shellcheck source=scripts/node_runner/directory.sh
. /oxib/scripts/node_runner/directory.sh
# shellcheck source=scripts/node_runner/patience.sh
. /oxib/scripts/node_runner/patience.sh

# The switch works while this process waits; it must neither end nor touch a disk that is going away. Nor may it run:
# user-mode Linux ends the programs on other processors, and this one's end is a panic.
switch_off() {
	sync
	sleep 1000000 &
	# That has to be loaded, libraries and all, before the root goes. It is when it sleeps: a program that waits for a file does not.
	while [ -e /proc/self ] && ! grep -q '^State:.S' "/proc/$!/status"; do :; done
	echo o >/proc/sysrq-trigger
	wait
}

fatal() {
	echo "node-init: $*" >/dev/console
	switch_off
}

mount_needed() { # tag, directory, ro|rw
	mount_directory "$@" || fatal "cannot mount $1 on $2"
}

make_root() {
	mount -t tmpfs tmpfs /tmp
	mkdir /tmp/upper /tmp/work /tmp/merged
	mount -t overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/merged ||
		fatal "cannot make a writable root"
	mount --move /oxib /tmp/merged/oxib
	mount -t devtmpfs devtmpfs /tmp/merged/dev
	cd /tmp/merged || fatal "the writable root has gone"
	mount --move . /
}

mount_all() {
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mkdir -p /dev/pts /dev/shm /lib/modules
	mount -t devpts devpts /dev/pts
	mount -t tmpfs tmpfs /dev/shm
	mount -t tmpfs tmpfs /run
	mount -t tmpfs tmpfs /tmp
	ln -sfn /proc/self/fd /dev/fd
	mount_needed modules /lib/modules ro
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t configfs configfs /sys/kernel/config
	mount_needed build /build ro
	mount_needed out /out rw
	mount_needed shared /shared rw
}

# What user-mode Linux has not by itself.
complete_process() {
	# The node may be killed: its log should not wait in its memory.
	echo 20 >/proc/sys/vm/dirty_writeback_centisecs
	echo 20 >/proc/sys/vm/dirty_expire_centisecs
	# Programs that measure time by the processor's counter look up its rate.
	awk -v mhz="$MHZ" '{ print } /^processor/ { print "cpu MHz\t\t: " mhz }' /proc/cpuinfo >/run/cpuinfo
	mount --bind /run/cpuinfo /proc/cpuinfo
	[ -z "${CABLES:-}" ] || insmod /build/scripts/node_runner/cable/node_cable.ko fds="$CABLES" node="$NODE" ||
		fatal "the node has no cables: build the modules for its kernel"
}

# Programs find softib's library where it was built.
offer_provider() {
	[ ! -d /build/libsoftib ] ||
		echo "driver /build/libsoftib/libsoftib" >/etc/libibverbs.d/softib.driver
}

settle() {
	umask 022
	hostname "n$NODE"
	echo "127.0.0.1 localhost n$NODE" >/etc/hosts
	be_patient
	ip link set lo up
	echo 1 >/proc/sys/kernel/panic_on_oops
	stop_fair_servers
	offer_provider
}

# The scheduler's fair server keeps real-time tasks from starving the others; no node has such tasks. Its timer warns of
# itself (hrtimer_forward, in Linux 7.2 and 7.3) when the host stops a virtual processor between the timer's end and its callback
# for so long that another processor has started the timer again, and the host is not ours.
stop_fair_servers() {
	for runtime in /sys/kernel/debug/sched/fair_server/cpu*/runtime; do
		[ ! -e "$runtime" ] || echo 0 >"$runtime" || fatal "cannot switch the fair server off: $runtime"
	done
}

# Leaks show once their objects are 5 s old; the second scan leaves out what was only in flight during the first.
report_leaks() {
	[ -w /sys/kernel/debug/kmemleak ] || return 0
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >/dev/console
}

run_command() {
	status=0
	/bin/sh /out/command >/out/log 2>&1 </dev/null || status=$?
	report_leaks
	echo "$status" >/out/status
}

prompt() {
	echo "A prompt on node n$NODE of $NODES. Ctrl-D ends the nodes."
	[ "$MACHINE" != qemu ] || echo "Ctrl-A X kills them."
	# No login shell: that would lose the path of the command oxib.
	setsid --ctty --wait /bin/bash
	echo 0 >/out/status
}

inside() {
	mount_all
	[ "$MACHINE" != uml ] || complete_process
	settle
	export HOME=/tmp TERM="${TERM:-linux}" PATH=/usr/sbin:/usr/bin:/sbin:/bin:/build/tool LANG=C.UTF-8
	export NODE NODES KERNEL MACHINE LIMIT="${LIMIT:-}" PATIENCE CLOCK="${CLOCK:-}" MODULES=/build
	cd /oxib || fatal "the checkout is not there"
	: >/out/begun
	if [ -e /out/prompt ]; then prompt; else run_command; fi
	switch_off
}

if [ "${1:-}" = inside ]; then
	inside
else
	mount -t proc proc /proc
	make_root
	# shellcheck disable=SC2094 # a console is no file
	exec chroot . /bin/sh /oxib/scripts/node_runner/node-init.sh inside <dev/console >dev/console 2>&1
fi
