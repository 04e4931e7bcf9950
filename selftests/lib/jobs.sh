# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Background jobs of a script, and how they end. Sourced by node.sh, which has `pause` and `patience`.

# shellcheck disable=SC2154 # patience is node.sh's

# Background jobs of this script, ended by stop_jobs.
jobs_running=()

in_background() { # command...
	"$@" >/dev/null 2>&1 &
	jobs_running+=($!)
}

stop_jobs() {
	[ ${#jobs_running[@]} = 0 ] || end_processes "${jobs_running[@]}"
	jobs_running=()
}

# Succeeds if a process has ended, even if this shell has not waited for it yet.
has_ended() { # process
	! grep -qs '^State:[[:space:]]*[^Z]' "/proc/$1/status"
}

# Ends processes of this shell with all that they have started, and waits for all of them. A function in the background is a
# shell, and the end of that shell alone leaves its program running.
end_processes() { # process...
	local job_processes
	mapfile -t job_processes < <(stop_with_children "$@")
	if [ ${#job_processes[@]} != 0 ]; then
		kill "${job_processes[@]}"
		kill -CONT "${job_processes[@]}"
		wait_until_ended "${job_processes[@]}"
	fi
	wait "$@"
} 2>/dev/null

# Stops processes and all that they have started, and prints their numbers. One that is stopped starts no more.
stop_with_children() { # process...
	local process job_children
	for process in "$@"; do
		kill -STOP "$process" && printf '%d\n' "$process"
		mapfile -t job_children < <(pgrep --parent "$process")
		stop_with_children "${job_children[@]}"
	done
} 2>/dev/null

# One that does not end is killed.
wait_until_ended() { # process...
	local process deadline=$((SECONDS + patience))
	for process in "$@"; do
		until has_ended "$process"; do
			((SECONDS <= deadline)) || kill -KILL "$process"
			pause 0.1
		done
	done
}
