# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Commands that hear of the signals to their script: bash hands one to no child in the foreground. Sourced.

# Set once a signal has come.
ended=
child=
trap 'ended=yes; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT HUP

# run COMMAND...: run it in the background and wait for its end. A signal interrupts `wait`, which is then called again.
run() {
	local status=0
	[ -z "$ended" ] || return 1
	"$@" &
	child=$!
	# The signal may have come just before.
	[ -z "$ended" ] || kill -TERM "$child"
	wait "$child" || status=$?
	while kill -0 "$child" 2>/dev/null; do
		status=0
		wait "$child" || status=$?
	done
	child=
	return "$status"
}
