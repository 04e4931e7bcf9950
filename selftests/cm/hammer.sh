#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Many senders reject their own requests at once, while a consumer in the kernel watches: the first event of each new identifier
# is its request, and the listener's handler gets no other event.
#
# hammer.sh [CM [REQUESTS]]: the connection manager of n1, oxib; how many requests, 3000, or on the debug kernel a part of that.
#
# nodes: 2
# kernels: fast debug
# smp: 4
# timeout: 400

. selftests/lib/cm.sh

cm=${1:-oxib}
number=${2:-$(some 3000)}

hammer() {
	PYTHONPATH=selftests/ipoib:selftests/fabric python3 selftests/cm/hammer.py "$(address_of v4 2)" "$(address_of v4 1)" "$consumer_service" "$number"
}

ground_up
if [ "$NODE" = 1 ]; then
	check "n1 runs the connection manager of $cm" load_cm "$cm"
	check "a consumer watches" consumer watch=1
fi
barrier watching
on_node 2 check "$number requests are sent, and each rejected by its sender" hammer
barrier hammered
if [ "$NODE" = 1 ]; then
	check "the consumer is told of each request" eventually consumer_was_told requests "$number"
	if [ "$cm" = oxib ]; then
		check "and that it is rejected" eventually consumer_was_told rejections "$number"
	else
		skip "and that it is rejected" "the kernel's connection manager handles a REJ beside its REQ, and drops it if it is faster"
	fi
	check "before it nothing is reported, nor twice, nor beside it" consumer_was_told strays 0
	note_counters
	check "the consumer can go" rmmod cm_consumer
	check "n1 can unload it" unload_cm
fi
barrier unloaded
ground_down
finish
