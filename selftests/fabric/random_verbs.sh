#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# random_verbs.sh [SECONDS [SEED]]    for so long (default 10), by this seed (default 1; `random` for one that is drawn)
#
# Random sequences of commands to ib_uverbs from several threads: whatever a program does, a kernel with all checks has nothing to
# complain of, nothing hangs, and when the program has ended nothing is left of its objects and its memory.
#
# nodes: 1
# kernels: debug
# timeout: 100

. selftests/lib/fabric.sh

seconds=${1:-10}
seed=${2:-1}
[ "$seed" != random ] || seed=$((RANDOM << 15 | RANDOM))

run() {
	watched $((seconds + longest)) at h2 "$MODULES/libsoftib/random_verbs" h2 "$seconds" "$seed" >/tmp/verbs 2>&1
}

# Of all processes that pinned memory this is the only one that there was.
has_pinned_nothing() {
	! grep -H '^VmPin:' /proc/[0-9]*/status | grep -v '[[:space:]]0 kB$'
} 2>/dev/null

works() {
	at h1 timeout "$patience" ibv_devinfo -d h1 | grep -q PORT_ACTIVE && at h2 ibv_devinfo -d h2 | grep -q PORT_ACTIVE
}

ulimit -l unlimited
modprobe ib_uverbs
bring_up_fabric pair h1
note "seed $seed"
check "the program ends" run
take_report verbs /tmp/verbs
check "nothing is left of its objects" eventually has_no_objects h2
check "no memory is pinned" eventually has_pinned_nothing
check "the HCAs can be opened" eventually works
take_down_fabric
finish
