# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# How long a node waits for what should come soon. Its processors are shared with other nodes and other programs, which may have
# them for many seconds: what would be a failure on a node of its own is none here. Sourced; KERNEL is set.

# Seconds in which a condition should come true, for scripts and programs of selftests/.
case $KERNEL in
debug) PATIENCE=300 ;;
*) PATIENCE=60 ;;
esac
# Unless the run is stopped before (see test_runner/job.py): then a check should fail and say its name.
if [ "$PATIENCE" -gt $((${LIMIT:-3600} / 2)) ]; then
	PATIENCE=$((LIMIT / 2))
fi
# A line of each opensm.conf: the milliseconds that an agent has for its answer. OpenSM asks it four times altogether, and then
# leaves the port out of the subnet until the next sweep. Five times what it has by itself, and little enough for a port that has
# gone: a sweep that asks one takes three seconds longer.
SM_PATIENCE="transaction_timeout 1000"
export PATIENCE SM_PATIENCE

# Seconds until the kernel reports a stall, as words of its command line, which node_runner/kernel.py puts there: a boot may
# stand still as well, before any program can set them. A soft lockup is reported after twice its threshold, of which the kernel
# takes 60 at most; then an RCU grace period, a work queue.
# shellcheck disable=SC2034 # kernel.py reads it
STALLS="watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120 workqueue.watchdog_thresh=120"

_tell() { # value, file
	[ ! -w "$2" ] || echo "$1" >"$2"
}

# The node's kernel, before its devices come up.
be_patient() {
	# Seconds until a task counts as hung, and until the kernel reports that a net device is still in use.
	_tell 120 /proc/sys/kernel/hung_task_timeout_secs
	_tell 60 /proc/sys/net/core/netdev_unregister_timeout_secs
	# Three times as many solicitations until a neighbour counts as gone. Network namespaces take these over.
	_tell 9 /proc/sys/net/ipv4/neigh/default/ucast_solicit
	_tell 9 /proc/sys/net/ipv4/neigh/default/mcast_solicit
	_tell 9 /proc/sys/net/ipv6/neigh/default/ucast_solicit
	_tell 9 /proc/sys/net/ipv6/neigh/default/mcast_solicit
	be_patient_in_namespace
	# The diagnostic programs give up after a second, in milliseconds.
	[ ! -d /etc/infiniband-diags ] || echo "timeout=10000" >/etc/infiniband-diags/ibdiag.conf
}

# What each network namespace has for itself: TCP's longest pause between repetitions, in milliseconds. A segment that was lost a few
# times while a node stood still is otherwise repeated a minute later.
be_patient_in_namespace() {
	_tell 5000 /proc/sys/net/ipv4/tcp_rto_max_ms
}
