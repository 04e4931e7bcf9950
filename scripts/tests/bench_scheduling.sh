#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The benchmark's counts of the scheduler's events and of waits for locks: what is read of tracefs, and the report. Runs in the
# toolchain root.

set -u

# shellcheck source=scripts/tests/unittests.bash
. scripts/tests/unittests.bash
# shellcheck source=bench/trace_events.sh
. bench/trace_events.sh

place=$(mktemp --directory)
trap 'rm -r "$place"' EXIT
# In place of tracefs.
tracing=$place
lock_waits=$place/instances/lock_waits

bail_out() {
	printf '%s\n' "$1"
	exit 1
}

stats() { # instance, CPU, entries, overrun, dropped
	mkdir -p "$place/instances/$1/per_cpu/cpu$2"
	printf '%s\n' "entries: $3" "overrun: $4" 'commit overrun: 0' 'bytes: 4000' "now ts:  2723.115600" "dropped events: $5" \
		'read events: 0' >"$place/instances/$1/per_cpu/cpu$2/stats"
}

all_are_counted() {
	stats wakeups 0 100 20 0
	stats wakeups 1 3 0 0
	equal 123 "$(events_in wakeups)"
}

a_lost_one_is_an_error() {
	stats wakeups 1 3 0 1
	! events_in wakeups
}

write_trace() {
	cat >"$lock_waits/trace" <<'END'
# tracer: nop
          cmtime-210     [001] d..2.    14.100001: spin_wait: (queued_spin_lock_slowpath+0x0/0x1f0)
          cmtime-210     [001] d..2.    14.100002: <stack trace>
 => queued_spin_lock_slowpath
 => _raw_spin_lock_irqsave
 => ib_send_mad
 => queued_nothing
     kworker/u8:1-33      [000] ...1.    14.100003: contention_begin: 0000000012345678 (flags=SPIN|MUTEX)
     kworker/u8:1-33      [000] ...1.    14.100004: <stack trace>
 => __traceiter_contention_begin
 => __mutex_lock
 => ucma_get_event
     kworker/u8:1-33      [000] ...1.    14.100005: contention_begin: 0000000012345678 (flags=MUTEX)
     kworker/u8:1-33      [000] ...1.    14.100006: <stack trace>
 => __mutex_lock
 => ucma_get_event
          cmtime-210     [001] d..2.    14.100007: contention_begin: 0000000012345679 (flags=SPIN|READ)
          cmtime-210     [001] d..2.    14.100008: contention_begin: 0000000012345679 (flags=READ)
          cmtime-210     [001] d..2.    14.100009: <stack trace>
 => rwsem_down_read_slowpath
 => down_read
 => do_user_addr_fault
          cmtime-210     [001] d..2.    14.100010: spin_wait: (queued_spin_lock_slowpath+0x0/0x1f0)
          cmtime-210     [001] d..2.    14.100011: <stack trace>
 => queued_spin_lock_slowpath
 => _raw_spin_lock
 => ib_send_mad
          cmtime-210     [001] d..2.    14.100012: spin_wait: (queued_spin_lock_slowpath+0x0/0x1f0)
     kworker/u8:1-33      [000] ...1.    14.100013: contention_begin: 0000000012345678 (flags=MUTEX)
          cmtime-210     [001] d..2.    14.100014: <stack trace>
 => queued_spin_lock_slowpath
 => _raw_spin_lock_bh
 => rxe_post_send
     kworker/u8:1-33      [000] ...1.    14.100015: <stack trace>
 => __mutex_lock
 => ucma_get_event
          cmtime-210     [001] d..2.    14.100016: contention_begin: 0000000012345678 (flags=MUTEX)
END
}

waits_have_the_function_that_wants_the_lock() {
	stats lock_waits 0 5 0 0
	write_trace
	equal 'wait mutex ucma_get_event 1
wait mutex_sleep ? 1
wait mutex_sleep ucma_get_event 2
wait rwlock ? 1
wait semaphore do_user_addr_fault 1
wait spin ib_send_mad 2
wait spin rxe_post_send 1' "$(waits_by_function | LC_ALL=C sort)"
}

waits_that_were_overwritten_are_an_error() {
	stats lock_waits 1 5 1 0
	write_trace
	! (waits_by_function)
}

check "all events of all CPUs are counted, those that were overwritten too" all_are_counted
check "a lost event is an error" a_lost_one_is_an_error
check "waits have the function that wants the lock" waits_have_the_function_that_wants_the_lock
check "waits that were overwritten are an error" waits_that_were_overwritten_are_an_error
run_unittests scripts/tests/bench_scheduling.py
