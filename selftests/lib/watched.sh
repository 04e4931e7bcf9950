# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Programs that may hang: what they are about is said before they are ended. Sourced by node.sh,
# after jobs.sh.

# Prints the state of a program that does not end and of those that it started, each thread of them, and of all connections: once
# it is killed, nothing tells.
explain_program() { # process
	local process thread
	for process in "$1" $(pgrep --parent "$1"); do
		for thread in "/proc/$process/task/"*; do
			printf '%s: %s, in %s\n' "$(tr '\0' ' ' <"$thread/cmdline")" "$(sed -n 's/^State:[[:space:]]*//p' "$thread/status")" \
				"$(cat "$thread/wchan")"
			cat "$thread/stack"
		done
	done
	rdma resource show qp
	rdma resource show cm_id
	rdma statistic show
	! declare -F note_counters >/dev/null || note_counters
} 2>/dev/null

# Runs a command like `timeout`, but explains a program that has not ended in time before it kills it.
watched() { # seconds, command...
	local deadline=$((SECONDS + $1)) process
	shift
	"$@" &
	process=$!
	until has_ended "$process"; do
		if ((SECONDS > deadline)); then
			printf 'it does not end:\n'
			explain_program "$process"
			end_processes "$process"
			return 124
		fi
		pause 0.1
	done
	wait "$process"
}
