# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# For scripts that run the commands of Documentation/many-subnets.md as they are written there, on the hosts of a fabric. The
# script has node.sh, and defines of_this_fabric, a filter that puts names and addresses of the fabric in the place of the page's.

: "${patience:?is set by node.sh}"

page=$PWD/Documentation/many-subnets.md
# Where the page's files are, with the scripts of the checkout.
place=/tmp/guide

make_place() {
	mkdir -p "$place" && ln -sfn "$PWD/scripts" "$place/scripts"
}

# A block of a section.
block() { # heading, number of the block
	awk -v heading="## $1" -v wanted="$2" '
		/^## / { here = $0 == heading; number = 0 }
		/^```/ { inside = !inside; number += inside; next }
		here && inside && number == wanted' "$page"
}

runs_as_written() { # host, command
	(cd "$place" && at "$1" bash -c "$2" </dev/null)
}

# All on one host.
run_block() { # host, heading, number of the block
	local command number=0
	while read -r -u 3 command; do
		number=$((number + 1))
		check "$1: $command" runs_as_written "$1" "$command"
	done 3< <(block "$2" "$3" | of_this_fabric)
	check "block $3 of '$2' has commands" holds "$number" -gt 0
}

has_a_listener() { # host
	at "$1" rdma resource show cm_id | grep -q 'state LISTEN'
}

has_no_listener() { # host
	! has_a_listener "$1"
}

call() { # server's host, its command, client's host, its command
	local server status=0
	runs_as_written "$1" "exec timeout $((2 * patience)) $2" >/tmp/server 2>&1 &
	server=$!
	eventually has_a_listener "$1" || note "$2: it does not listen"
	runs_as_written "$3" "timeout $((2 * patience)) $4" || status=$?
	[ "$status" = 0 ] || end_processes "$server"
	wait "$server" || status=$?
	eventually has_no_listener "$1"
	[ "$status" = 0 ] || cat /tmp/server
	return "$status"
}

# perftest's server listens again for its second connection, and with -R its client does not wait for that.
call_patiently() { # as for call
	case $2 in
	ib_*) eventually call "$@" ;;
	*) call "$@" ;;
	esac
}

# Each on the host that its line names: COMMAND # on HOST[, a server]
run_on_hosts() { # heading, number of the block, number of commands
	local line command host server='' where='' number=0
	while read -r -u 3 line; do
		number=$((number + 1))
		command=${line%%  *# on *}
		host=${line##*# on }
		if [[ $host == *", a server" ]]; then
			server=$command where=${host%%,*}
		elif [ -n "$server" ]; then
			check "$where: $server; $host: $command" call_patiently "$where" "$server" "$host" "$command"
			server=
		else
			check "$host: $command" runs_as_written "$host" "$command"
		fi
	done 3< <(block "$1" "$2" | of_this_fabric)
	check_equal "block $2 of '$1' has $3 commands" "$3" "$number"
}
