#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A peer that has lost a connection without a word, as when its power fails, asks again as the
# same queue pair: from the address that it had, and from another one; it had called, or had been
# called. Its connection comes up in no more tries than with the kernel's connection manager on
# n1. n2 has the kernel's both times.
#
# moved.sh [CM]: the connection manager of n1, oxib.
#
# nodes: 2
# kernels: fast
# timeout: 600

. selftests/lib/cm.sh

cm=${1:-oxib}
own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")
other=10.77.0.102

play() { # connection manager of n1
	case $NODE in
	1) moved stays ;;
	2) moved moves "$other" ;;
	esac >"/tmp/moved.$1" 2>&1 || {
		tail -n 5 "/tmp/moved.$1"
		return 1
	}
}

moved() { # role, address...
	timeout "$longest" python3 selftests/cm/moved.py "$1" "$own" "$there" "${@:2}"
}

pass() { # connection manager of n1
	local mine=$1
	[ "$NODE" = 1 ] || mine=kernel
	check "$1: n$NODE runs the connection manager of $mine" load_cm "$mine"
	barrier loaded
	on_node 1 check "$1: n1 serves whoever comes back" play "$1"
	on_node 2 check "$1: n2 comes back each time" play "$1"
	barrier moved
	check "$1: n$NODE can unload it" unload_cm
	barrier unloaded
}

tries() { # connection manager, case
	sed -n "s/^result: $2 //p" "/tmp/moved.$1"
}

compare_tries() { # case
	note "$1: connected at try $(tries kernel "$1") with the kernel's, at try $(tries "$cm" "$1") with $cm's"
	check "$1: no more tries than with the kernel's" holds "$(tries "$cm" "$1")" -le "$(tries kernel "$1")"
}

ground_up
if [ "$NODE" = 2 ]; then
	ip address replace "$other/24" dev "$ethernet"
fi
barrier addresses
[ "$NODE" = 2 ] || eventually answers "$other" || bail_out "the second address of n2 is not reached"
pass kernel
pass "$cm"
if [ "$NODE" = 2 ]; then
	for name in caller-same caller-other server-same server-other; do
		compare_tries "$name"
	done
fi
ground_down
finish
