# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Counts of the scheduler's trace events, and of waits for locks. Each count is an instance of tracefs of its own, whose ring
# buffers count what passes a filter: nothing is read meanwhile, and old events may be overwritten. The instances stay until the
# node ends. Sourced; node.sh comes before.

tracing=/sys/kernel/tracing
# The names of the counts.
event_counts=()
# The instance that keeps the waits for locks, with their stacks. contention_begin has all waits but those of the first thread
# that waits for a spin lock; with two CPUs that is nearly each. So the slow path of spin locks is probed, where the kernel has
# probes: user-mode Linux has none.
lock_waits=$tracing/instances/lock_waits

# The groups of threads: programs, the workers of unbound work queues and those that belong to a CPU, and all others.
declare -A threads=(
	[program]='COMM == "cmtime"'
	[unbound_worker]='COMM ~ "kworker/u*"'
	[bound_worker]='COMM ~ "kworker/[0-9]*"'
	[other]='COMM != "cmtime" && !(COMM ~ "kworker/*")'
)

# An instance that does not trace yet.
make_instance() { # name
	mkdir "$tracing/instances/$1" && echo 0 >"$tracing/instances/$1/tracing_on"
}

enable_event() { # instance, event, filter
	local event=$tracing/instances/$1/events/$2
	echo "$3" >"$event/filter" && echo 1 >"$event/enable"
}

count_event() { # name, event, filter (0 lets all pass)
	if ! { make_instance "$1" && enable_event "$1" "$2" "$3"; }; then
		bail_out "the event $2 cannot be counted"
	fi
	event_counts+=("$1")
}

has_probes() {
	[ -e "$tracing/kprobe_events" ]
}

# A spin lock's contention_begin would count a wait twice.
keep_lock_waits() {
	make_instance lock_waits &&
		echo 16384 >"$lock_waits/buffer_size_kb" &&
		echo 1 >"$lock_waits/options/stacktrace" &&
		enable_event lock_waits lock/contention_begin 'flags != 1' &&
		{ ! has_probes || probe_spin_locks; }
}

probe_spin_locks() {
	local slow_path
	slow_path=$(awk '$3 ~ /^(native_)?queued_spin_lock_slowpath$/ { print $3; exit }' /proc/kallsyms)
	echo "p:oxib/spin_wait $slow_path" >"$tracing/kprobe_events" && enable_event lock_waits oxib/spin_wait 0
}

make_event_counts() {
	local group
	mountpoint -q "$tracing" || mount -t tracefs tracefs "$tracing"
	for group in "${!threads[@]}"; do
		count_event "wakeups_$group" sched/sched_wakeup "${threads[$group]//COMM/comm}"
		count_event "migrations_$group" sched/sched_migrate_task "${threads[$group]//COMM/comm}"
		count_event "switches_$group" sched/sched_switch "next_pid != 0 && (${threads[$group]//COMM/next_comm})"
	done
	count_event switches_idle sched/sched_switch 'next_pid == 0'
	count_event works workqueue/workqueue_queue_work 0
	keep_lock_waits || bail_out "waits for locks cannot be counted"
}

switch_event_counts() { # 0|1
	local each
	for each in "${event_counts[@]}" lock_waits; do
		echo "$1" >"$tracing/instances/$each/tracing_on"
	done
}

start_event_counts() {
	local each
	for each in "${event_counts[@]}" lock_waits; do
		: >"$tracing/instances/$each/trace"
	done
	interrupts_before=$(cpu_interrupts)
	switch_event_counts 1
}

stop_event_counts() {
	switch_event_counts 0
	interrupts_after=$(cpu_interrupts)
}

# The interrupts that CPUs have sent each other, to reschedule or to call a function.
cpu_interrupts() {
	awk '$1 == "RES:" || $1 == "CAL:" { for (i = 2; $i ~ /^[0-9]+$/; i++) sum += $i } END { print sum + 0 }' /proc/interrupts
}

# The events of an instance, those that were overwritten included. One that got lost is an error.
events_in() { # instance
	awk -F ': *' '$1 == "entries" || $1 == "overrun" { sum += $2 }
		($1 == "commit overrun" || $1 == "dropped events") && $2 > 0 { lost = 1 }
		END { print sum + 0; exit lost }' "$tracing/instances/$1"/per_cpu/cpu*/stats
}

# Lines "wait KIND FUNCTION NUMBER" of the waits: FUNCTION is the one that wanted the lock.
waits_by_function() {
	[ "$(awk '$1 == "overrun:" { sum += $2 } END { print sum + 0 }' "$lock_waits"/per_cpu/cpu*/stats)" = 0 ] ||
		bail_out "there were more waits for locks than the buffer takes"
	awk '
		function found(name) {
			if (cpu in kind) number[kind[cpu] " " name]++
			delete kind[cpu]
		}
		# The events of both CPUs are in one order: between an event and its stack there may be another one.
		match($0, /\[[0-9]+\]/) { cpu = substr($0, RSTART, RLENGTH) }
		/ (spin_wait|contention_begin): / { found("?") }
		/ spin_wait: / { kind[cpu] = "spin" }
		/ contention_begin: / {
			kind[cpu] = /MUTEX\|SPIN|SPIN\|MUTEX/ ? "mutex" : /MUTEX/ ? "mutex_sleep" : /SPIN/ ? "rwlock" : "semaphore"
		}
		# What belongs to the locks themselves.
		$1 == "=>" && $2 !~ /^(queued_|native_queued_|_raw_|__raw_|__mutex|mutex_|rwsem_|down|__down|percpu_|__percpu|rust_helper_|raw_spin_|__traceiter_)/ {
			found($2)
		}
		END {
			for (cpu in kind) number[kind[cpu] " ?"]++
			for (each in number) print "wait", each, number[each]
		}' "$lock_waits/trace"
}

# A line "scheduling NAME=NUMBER..." of the counts, and lines of the waits: those for spin locks are only in the latter.
print_event_counts() {
	local each number line="scheduling interrupts=$((interrupts_after - interrupts_before))"
	! has_probes || line+=" waits_spin=0"
	for each in "${event_counts[@]}"; do
		number=$(events_in "$each") || bail_out "events of $each were lost"
		line+=" $each=$number"
	done
	printf '%s\n' "$line"
	waits_by_function
	! has_probes || note "waits for spin locks that were missed, since the boot: $(awk '{ print $3 }' "$tracing/kprobe_profile")"
}
