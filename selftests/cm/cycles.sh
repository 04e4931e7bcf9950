#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Connections that a consumer in the kernel opens and closes in turn, straight on the connection manager.
#
# cycles.sh [CM [CYCLES]]: the connection manager of both nodes, oxib; how many connections, 10000. On the debug kernel
# it is a part of debug/cm, and longer of soak/cm.
#
# nodes: 2
# kernels: fast
# timeout: 300

. selftests/cm.sh

cm=${1:-oxib}
cycles=${2:-10000}
own=$(address_of v4 "$NODE")
there=$(address_of v4 "$peer")
# In turn, before the nodes meet: they do not wait for each other for ever.
most=10000

consumer() { # parameter...
	insmod "$MODULES/selftests/cm/consumer/cm_consumer.ko" "$@"
}

open_and_close() { # number
	consumer from="$own" to="$there" cycles="$1" && rmmod cm_consumer
}

ground_up
check "n$NODE runs the connection manager of $cm" load_cm "$cm"
on_node 2 check "a consumer serves" consumer
barrier serving
for ((left = cycles; left > 0; left -= part)); do
	part=$((left < most ? left : most))
	on_node 1 check "$part connections come and go" open_and_close "$part"
	barrier called
done
on_node 2 check "and end" rmmod cm_consumer
barrier ended
check "n$NODE can unload it" unload_cm
ground_down
finish
