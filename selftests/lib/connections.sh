# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Connections of programs, many at once, and the queries of paths that they cost. Sourced after acm.sh.

# shellcheck disable=SC2154 # longest is node.sh's, tracing fabric.sh's

# The servers of the last call of serve_connections.
servers=()

# A program in each host that takes so many connections. Returns when all of them listen.
serve_connections() { # number, port, host...
	local host
	servers=()
	for host in "${@:3}"; do
		at "$host" timeout "$longest" ucmatose -b "$(v4_of "$host")" -p "$2" -c "$1" -C 1 -S 100 &
		servers+=($!)
	done
	eventually all_listen "${@:2}"
}

all_listen() { # port, host...
	local host
	for host in "${@:2}"; do
		listens_cm "$host" "$1" || return
	done
}

# So many connections to each address, at the same time.
call_connections() { # number, port, host, address...
	local address processes=()
	for address in "${@:4}"; do
		at "$3" timeout "$longest" ucmatose -s "$address" -p "$2" -c "$1" -C 1 -S 100 &
		processes+=($!)
	done
	wait_for_all "${processes[@]}"
}

# Connections from a host to others on the same fabric.
connects() { # number, port, host, host...
	local host addresses=()
	for host in "${@:4}"; do
		addresses+=("$(v4_of "$host")")
	done
	serve_connections "$1" "$2" "${@:4}" && call_connections "$1" "$2" "$3" "${addresses[@]}" &&
		wait_for_all "${servers[@]}" && return
	# They would wait for what does not come.
	end_processes "${servers[@]}"
	return 1
}

wait_for_all() { # process...
	local process status=0
	for process in "$@"; do
		wait "$process" || status=1
	done
	return "$status"
}

# The queries that a command has sent, by all hosts, for paths. watch_queries was called before. What was sent before the command,
# and is sent again meanwhile as its answer is late, is not the command's.
asks() { # least, most, command...
	local before number
	before=$(watched_transactions)
	: >"$tracing/trace"
	"${@:3}" || return
	number=$(watched_transactions | grep -cvFx "${before:-none}")
	printf 'the subnet administrators were asked %d times, in %d tries\n' "$number" "$(watched_tries)"
	holds "$number" -ge "$1" && holds "$number" -le "$2" && return
	grep -E " $sent_events: " "$tracing/trace"
	return 1
}

# How long the kernel waits for a local service: one that answers late on a busy machine costs no query.
wait_long() { # milliseconds
	python3 selftests/acm/local_service.py patience "$1"
}
