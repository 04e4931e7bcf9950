#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Background jobs of selftests end with all that they have started (selftests/lib/jobs.sh). Runs in the toolchain root.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh
# shellcheck source=selftests/lib/jobs.sh
. selftests/lib/jobs.sh

# As in a node, but for the patience.
patience=2
pause() { # seconds
	sleep "$1"
}

# Names the programs of this run: the host may run others of these tests, too.
nap=$$

# In shells of functions, as those of `at`.
run() { # command...
	"$@"
	echo "not reached" >&2
}

run_two() {
	run sleep "${nap}1" &
	run sleep "${nap}2"
}

# Each program starts when the one before has been ended.
run_on() {
	while :; do
		run sleep "${nap}3"
	done
}

# shellcheck disable=SC2016 # that shell expands it
deaf() {
	bash -c 'trap "" TERM; while :; do sleep 0.01; done' "deaf-$nap"
}

# Words of a command: sleeps are their numbers.
is_running() { # extended regular expression
	pgrep --full --exact "$1"
}

starts() { # extended regular expression
	for _ in {1..100}; do
		is_running "$1" >/dev/null && return
		pause 0.1
	done
	return 1
}

check_ends() { # what, extended regular expression, command...
	in_background "${@:3}"
	check "$1: it runs" starts "$2"
	stop_jobs
	check_refused "$1: it has ended once the jobs are stopped" is_running "$2"
	check_equal "$1: there are no jobs" 0 "${#jobs_running[@]}"
}

check_ends "a program" "sleep ${nap}0" sleep "${nap}0"
check_ends "a program of a function" "sleep ${nap}4" run sleep "${nap}4"
check_ends "one below another" "sleep ${nap}[12]" run_two
check_ends "one that is started again and again" "sleep ${nap}3" run_on
check_ends "one that ignores the signal" "bash -c .* deaf-$nap" deaf
in_background sleep "${nap}5"
in_background true
pause 0.5
stop_jobs
check_refused "a job beside one that has ended by itself ends" is_running "sleep ${nap}5"
sleep "${nap}7" &
other=$!
stop_jobs
check "without jobs nothing is waited for, and nothing ended" kill -0 "$other"
in_background sleep "${nap}8"
stop_jobs
check "what is no job runs on" is_running "sleep ${nap}7"
end_processes "$other"
check_refused "until it is ended by its number" is_running "sleep ${nap}7"
finish
