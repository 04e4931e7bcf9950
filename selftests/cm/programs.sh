#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Unmodified programs between two nodes, of which one or both run oxib's connection manager, over IPv4 and IPv6.
#
# programs.sh [N1:N2...]: the connection managers of n1, which calls, and of n2, which serves.
#
# nodes: 2
# kernels: fast
# timeout: 500

. selftests/cm.sh

combinations=("$@")
[ $# -gt 0 ] || combinations=(oxib:oxib oxib:kernel kernel:oxib)

# --- the programs --------------------------------------------------------------------------------------------------------

# Over IPv6 not mckey, as rdma_cm refuses IPv6 groups on RoCE v2, and not cmtime, which meets its peer over IPv4 alone.
declare -A programs=(
	[v4]="rping ucmatose udaddy mckey rstream riostream ib_send_lat ib_write_bw cmtime"
	[v6]="rping ucmatose udaddy rstream riostream ib_send_lat ib_write_bw"
)

# udaddy has no option for its port. cmtime has one, but needs two: one for TCP, with the same number.
declare -A port=([rping]=7001 [ucmatose]=7002 [udaddy]=7174 [rstream]=7004 [riostream]=7005 [ib_send_lat]=7006
	[ib_write_bw]=7007 [cmtime]=7471)

group=239.77.1.1
connections=$(some 1000)

declare -A perftest_family=([v4]="" [v6]="--ipv6 --ipv6-addr")

# The words of both ends that are the same.
both_ends() { # v4|v6, program
	case $2 in
	rping) printf '%s ' -p "${port[rping]}" -C 20 -S 4000 -V ;;
	ucmatose) printf '%s ' -p "${port[ucmatose]}" -c 20 -C 10 -S 1000 ;;
	udaddy) printf '%s ' -c 20 -C 10 -S 1000 ;;
	mckey) printf '%s ' -m "$group" -C 10 -S 1000 ;;
	rstream | riostream) printf '%s ' -p "${port[$2]}" -S 1000 -I 10 -C 10 -T v ;;
	ib_*) printf '%s ' -R -F -n 50 -s 4096 -p "${port[$2]}" "${perftest_family[$1]}" ;;
	cmtime) printf '%s ' -p "${port[cmtime]}" -c "$connections" ;;
	esac
}

# stdbuf: what mckey says shows when it has joined.
server_of() { # v4|v6, program, own address
	case $2 in
	rping) printf '%s ' rping -s -a "$3" ;;
	mckey) printf '%s ' stdbuf -oL mckey -b "$3" ;;
	ib_*) printf '%s ' "$2" ;;
	*) printf '%s ' "$2" -b "$3" ;;
	esac
	both_ends "$1" "$2"
}

client_of() { # v4|v6, program, own address, the peer's
	case $2 in
	rping) printf '%s ' rping -c -a "$4" ;;
	mckey) printf '%s ' mckey -s -b "$3" ;;
	ib_*) printf '%s ' "$2" "$4" ;;
	*) printf '%s ' "$2" -s "$4" ;;
	esac
	both_ends "$1" "$2"
}

# --- serving and calling -------------------------------------------------------------------------------------------------

declare -A servers=()

serve_all() { # v4|v6
	local program listening=()
	for program in ${programs[$1]}; do
		# shellcheck disable=SC2046 # words
		timeout $((10 * patience)) $(server_of "$1" "$program" "$(address_of "$1" "$NODE")") >"/tmp/$program.log" 2>&1 &
		servers[$program]=$!
		[ "$program" = mckey ] || listening+=("${port[$program]}")
	done
	eventually listen_all ${#listening[@]} "${listening[@]}" || note "not all of them listen: $(rdma resource show cm_id)"
	[ ! -e /tmp/mckey.log ] || eventually grep -q 'joined' /tmp/mckey.log || note "mckey did not join"
}

check_servers() { # v4|v6
	local program
	for program in ${programs[$1]}; do
		check "$combination, $1: the server of $program ends well" ends_well "${servers[$program]}" "/tmp/$program.log"
		rm -f "/tmp/$program.log"
	done
}

call_all() { # v4|v6
	local program
	for program in ${programs[$1]}; do
		# shellcheck disable=SC2046 # words
		check "$combination, $1: $program" timeout $((2 * patience)) \
			$(client_of "$1" "$program" "$(address_of "$1" "$NODE")" "$(address_of "$1" "$peer")")
	done
}

run_programs() { # v4|v6
	on_node 2 serve_all "$1"
	barrier serving
	on_node 1 call_all "$1"
	barrier called
	on_node 2 check_servers "$1"
}

# --- a combination ---------------------------------------------------------------------------------------------------------

# The cable and the rxe device stay; what stands on them changes.
test_combination() {
	local mine=${combination%:*}
	[ "$NODE" = 1 ] || mine=${combination#*:}
	check "$combination: n$NODE runs the connection manager of $mine" load_cm "$mine"
	barrier loaded
	run_programs v4
	run_programs v6
	on_node 1 check "$combination: the requests were counted" holds "$(cm_counter tx_msgs req)" -gt $((2 * connections))
	on_node 1 check "$combination: and the answers" holds "$(cm_counter rx_msgs rep)" -gt $((2 * connections))
	on_node 2 check "$combination: the service resolutions were counted" holds "$(cm_counter rx_msgs sidr_req)" -ge 40
	check "$combination: n$NODE can unload it" unload_cm
	barrier unloaded
}

ground_up
for combination in "${combinations[@]}"; do
	test_combination
done
ground_down
finish
