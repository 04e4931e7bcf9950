# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Visible progress: each long command becomes a step with a name, an elapsed time and a log. Sourced after cache.sh.

# shellcheck disable=SC2154 # cache and own are cache.sh's

elapsed() {
	local seconds
	seconds=$(($(date +%s) - OXIB_PROGRESS_START))
	printf '%d:%02d' $((seconds / 60)) $((seconds % 60))
}

say() {
	printf '[%6s] %s\n' "$(elapsed)" "$*" >&2
}

# Whether this step has a line of a terminal to itself.
progress_alone() {
	[ -t 2 ] && [ -z "${OXIB_SIDE_BY_SIDE:-}" ]
}

# On a terminal the line is redrawn each second; elsewhere a line each half minute shows that the step lives.
progress_watch() { # pid, name, log
	local pid=$1 name=$2 log=$3 began=$SECONDS pause=30 line sleeper
	progress_alone && pause=1
	while kill -0 "$pid" 2>/dev/null; do
		sleep "$pause" 9>&- & # without the lock: it may outlive the step
		sleeper=$!
		wait -n "$pid" "$sleeper" 2>/dev/null || : # the status is taken later, by name
		if ! kill -0 "$pid" 2>/dev/null; then
			kill "$sleeper" 2>/dev/null || : # it may just have ended by itself
			break
		fi
		if progress_alone; then
			line=$(tail -n 1 "$log" | tr -cd '[:print:]' | cut -c1-70)
			printf '\r\033[K[%6s] %s (%d s) %s' "$(elapsed)" "$name" $((SECONDS - began)) "$line" >&2
		else
			say "$name ... ($((SECONDS - began)) s)"
		fi
	done
	progress_alone && printf '\r\033[K' >&2
	return 0
}

# step NAME COMMAND...: run the command with its output in a log; show the end of the log if it fails.
step() {
	local name=$1 began=$SECONDS log pid status=0
	# Mutants have build directories of their own, and are built side by side.
	local logs=$own/log${OXIB_BUILD:+/$OXIB_BUILD}
	shift
	mkdir -p "$logs"
	log=$logs/$(printf '%s' "$name" | tr -c '[:alnum:]._-' '-').log
	say "$name"
	# A group of its own, so that an interruption ends all that the command started, and not only the command.
	setsid "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	# shellcheck disable=SC2064 # the pid of this step, not of a later one
	trap "kill -- -$pid 2>/dev/null; wait $pid || :; exit 130" INT TERM HUP
	progress_watch "$pid" "$name" "$log"
	wait "$pid" || status=$?
	trap - INT TERM HUP
	if [ "$status" != 0 ]; then
		tail -n 30 "$log" >&2
		fail "$name failed (status $status). The whole log: $log"
	fi
	say "$name: done in $((SECONDS - began)) s"
}

# side_by_side COMMAND...: run commands of the checkout at once, each a line of words, and wait for all of them: most of what is
# built is one process of the compiler's, which leaves the other processors idle.
side_by_side() {
	local command pids=() pid status=0
	for command in "$@"; do
		# A group of its own each, as in step.
		# shellcheck disable=SC2086 # a line of words
		(cd "$checkout" && OXIB_SIDE_BY_SIDE=yes exec setsid $command) &
		pids+=($!)
	done
	# shellcheck disable=SC2064 # these, not those of a later call
	trap "kill -- ${pids[*]/#/-} 2>/dev/null; wait; exit 130" INT TERM HUP
	for pid in "${pids[@]}"; do
		wait "$pid" || status=$?
	done
	trap - INT TERM HUP
	return "$status"
}

# took THING: keep how long this script took to make it, in seconds, for `make test PLAN=1`.
took() {
	mkdir -p "$cache/took"
	printf '%d\n' "$SECONDS" >"$cache/took/$1"
}
