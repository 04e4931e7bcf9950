#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One host asks a slow acceptor for many connections at once, another one for a few, with the kernel's connection manager and with
# oxib's: nobody is told that it cannot be reached, and those few are served.
#
# slow_acceptor.sh [CM [MANY [FEW [MILLISECONDS]]]]: both connection managers, 600 and 20, each granted after 3 milliseconds
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/acm.sh

cms=(kernel oxib)
[ $# = 0 ] || cms=("$1")
many=${2:-600}
few=${3:-20}
milliseconds=${4:-3}
port=7777
topologies=/tmp

outcome() { # host, word
	awk -v word="$2" '$1 == word { print $2 }' "/tmp/outcome.$1"
}

call_from() { # host, number
	at "$1" python3 selftests/cm/slow.py call "$(v4_of "$1")" "$(v4_of h2)" "$port" "$2" >"/tmp/outcome.$1"
}

call_both() {
	local caller
	call_from h1 "$many" &
	caller=$!
	pause 1
	call_from h3 "$few" || return
	wait "$caller"
}

# Early repetitions make up for lost messages. A peer that is alive and slow gets no more than a twentieth.
asked_once() { # host, number
	holds "$(port_field "$1" cm_tx_msgs/req)" -le $(($2 + $2 / 20))
}

requests() { # host
	printf '%s, %s of them again' "$(port_field "$1" cm_tx_msgs/req)" "$(port_field "$1" cm_tx_retries/req)"
}

unload() {
	case $driver in
	oxib) eventually unload_managers && unload_oxib ;;
	*) modprobe -r ib_ipoib && eventually unload_managers ;;
	esac
}

test_cm() {
	case $cm in
	oxib) driver=oxib ;;
	*) driver=ib_ipoib ;;
	esac
	check "$cm: IP over InfiniBand loads" load_driver "$driver"
	check "$cm: the interfaces come up" interfaces_up "${hosts[@]}"
	if [ "$cm" = oxib ]; then
		check "oxib: the connection manager loads" load_managers
	else
		check "kernel: the connection manager loads" load_managers kernel
	fi
	check "$cm: h1 and h3 reach h2" eventually host_reaches h1 "$(v4_of h2)"
	check "$cm: h3 does" eventually host_reaches h3 "$(v4_of h2)"
	in_background_at h2 python3 selftests/cm/slow.py serve "$(v4_of h2)" "$port" "$milliseconds"
	check "$cm: h2 listens" eventually listens_cm h2 "$port"
	check "$cm: h1 asks for $many connections, h3 for $few" call_both
	note "$cm: h1:" "$(xargs </tmp/outcome.h1)"
	note "$cm: h1's REQs:" "$(requests h1)"
	check "$cm: h1 repeats few of them" asked_once h1 "$many"
	note "$cm: h3:" "$(xargs </tmp/outcome.h3)"
	check_equal "$cm: h3 gets all of its own" "$few" "$(outcome h3 CONNECT_RESPONSE)"
	check_equal "$cm: none of h1 is told that h2 is unreachable" '' "$(outcome h1 UNREACHABLE)"
	check_equal "$cm: and each comes to something" 0 "$(outcome h1 NOTHING)"
	stop_jobs
	check "$cm: it unloads" unload
}

ulimit -n 65536
printf '%s\n' 'star hosts=3' >/tmp/three.fabric
bring_up_fabric three h2
for cm in "${cms[@]}"; do
	test_cm
done
take_down_fabric
finish
