# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of cm/ are written with, besides node.sh: which connection manager a node runs, its counters, and
# programs that serve on one node and are called from another.

# shellcheck source=selftests/node.sh
. selftests/node.sh

# --- which connection manager a node runs ------------------------------------------------------------------------------

# In the order in which they can be unloaded. What stands on the connection manager comes before it.
above_cm=(nvme_rdma nvmet_rdma rdma_ucm rdma_cm iw_cm ib_ipoib)

is_loaded() { # module
	[ -d "/sys/module/$1" ]
}

holders_of() { # module
	find "/sys/module/$1/holders" -type l -printf '%f ' 2>/dev/null
}

# Whether a module is one of those that hold another.
holds_module() { # module, held module
	[ -e "/sys/module/$2/holders/$1" ] || {
		printf '%s is not held by %s but by: %s\n' "$2" "$1" "$(holders_of "$2")"
		return 1
	}
}

# The kernel's own, or oxib's in its place, and rdma_cm on it with its door to user space.
load_cm() { # oxib|kernel
	case $1 in
	oxib) load_oxib_cm ;;
	kernel) modprobe ib_cm ;;
	esac || return
	modprobe -a rdma_cm rdma_ucm ib_umad ib_uverbs && runs_cm "$1"
}

load_oxib_cm() {
	is_loaded oxib || load_oxib || return
	[ -e "$MODULES/ib_cm.ko" ] || {
		printf 'there is no %s: oxib has no connection manager\n' "$MODULES/ib_cm.ko"
		return 1
	}
	insmod "$MODULES/ib_cm.ko"
}

# rdma_cm stands on ib_cm, and oxib's ib_cm on oxib, which the kernel's own has never heard of.
runs_cm() { # oxib|kernel
	holds_module rdma_cm ib_cm || return
	case $1 in
	oxib) holds_module ib_cm oxib && has_class ;;
	kernel) ! holds_module ib_cm oxib >/dev/null 2>&1 || {
		printf 'ib_cm is the one of oxib, not the kernel\n'
		return 1
	} ;;
	esac
}

# A port that has a connection manager counts its messages.
has_class() {
	[ ! -e /sys/class/infiniband/rxe0 ] || [ -d "$port_directory/cm_tx_msgs" ] || {
		printf 'the port has no counters of a connection manager: the other one may have its class\n'
		dmesg | grep -E 'oxib|ib_cm' | tail -n 5
		return 1
	}
}

# Nothing may hold it any more: a reference that was lost shows here.
unload_cm() {
	local module
	for module in "${above_cm[@]}" ib_cm oxib; do
		! is_loaded "$module" || rmmod "$module" || return
	done
}

# --- what a port's connection manager counted --------------------------------------------------------------------------

port_directory=/sys/class/infiniband/rxe0/ports/1

cm_counter() { # tx_msgs|tx_retries|rx_msgs|rx_duplicates, message
	printf '%s\n' "$(<"$port_directory/cm_$1/$2")"
}

# --- the ground --------------------------------------------------------------------------------------------------------

# The two addresses of the node on the cable; rxe has a GID for each.
address_of() { # v4|v6, node
	case $1 in
	v4) printf '10.77.0.%d\n' "$2" ;;
	v6) printf 'fd00:77::%d\n' "$2" ;;
	esac
}

# Everything below the connection manager. IPv6 without duplicate address detection: addresses are good at once.
ground_up() { # [Ethernet MTU]
	ulimit -l unlimited
	ulimit -n 65536
	make_rxe "${1:-9000}"
	ip address replace "$(address_of v6 "$NODE")/64" dev "$ethernet" nodad || bail_out "the Ethernet device takes no IPv6 address"
	barrier ground
	eventually answers "$(address_of v4 "$peer")" || bail_out "the other node is not reached by IPv4"
	eventually answers "$(address_of v6 "$peer")" || bail_out "the other node is not reached by IPv6"
}

ground_down() {
	stop_jobs
	rdma link delete rxe0
}

# --- programs that serve -----------------------------------------------------------------------------------------------

# How many ids listen on one of these ports.
listeners() { # port...
	local any
	any=$(IFS='|' && printf '%s' "$*")
	rdma resource show cm_id | grep -cE "state LISTEN .*src-addr [^ ]*:($any) "
}

listen_all() { # number, port...
	[ "$(listeners "${@:2}")" -ge "$1" ]
}

# Wait until a process of this shell ends by itself, and take its status. One that does not is ended.
ends_well() { # process, log
	eventually has_ended "$1" || kill "$1"
	wait "$1" || {
		printf 'it ended with status %d, having said:\n' $?
		tail -n 15 "$2"
		return 1
	}
}

has_ended() { # process
	! kill -0 "$1"
}
