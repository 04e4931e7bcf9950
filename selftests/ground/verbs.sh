#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The judge of the fabric's HCAs is judged: the test of verbs passes on soft-RoCE where that keeps to the specification, and
# what soft-RoCE does differently is listed here.
#
# verbs.sh [GROUP]: only these of the tests.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/node.sh
. selftests/lib/verbs.sh

flushed="soft-RoCE completes what it cannot even send as flushed"
verbs_differences=(
	["datagram: a Q_Key with its highest bit set is the sender's own"]="soft-RoCE sends every Q_Key as it is"
	["datagram: an empty message does not end well in a receive without room for a GRH"]="soft-RoCE completes no receive for it, nor for the message after it"
	["datagram: a SEND that fails stops the send queue"]="soft-RoCE's queue pair goes to the error state"
	["datagram: a SEND waits while the send queue is drained"]="soft-RoCE goes on with the next request alone"
	["datagram: many SENDs wait while the send queue is drained"]="soft-RoCE goes on with the next request alone"
	["queue: a shared receive queue's last receive is told once"]="soft-RoCE tells each time that the state is set to error"
	["queue: a shared receive queue's last datagram is told once"]="soft-RoCE tells each time that the state is set to error"
	["refused: a path MTU that there is not"]="soft-RoCE takes 0"
	["refused: more than 7 retries"]="soft-RoCE looks at no count"
	["refused: more than 7 RNR retries"]="soft-RoCE looks at no count"
	["refused: an RNR timer of more than 31"]="soft-RoCE does not look at it"
	["memory: REG_MR of a zero-based region is refused"]="soft-RoCE takes the flag, and looks at it for memory windows alone"
	["queue: a notification on the processor of its completion vector"]="soft-RoCE has one work queue for all vectors"
	["memory: LOCAL_INV of a key that does not exist"]=$flushed
	["failing: a SEND with a wrong L_Key"]=$flushed
	["failing: a receive with a wrong L_Key"]="soft-RoCE's receiver says: local QP operation error"
	["failing: a message of one packet longer than its receive"]="soft-RoCE answers: remote operation error"
	["failing: a message of several packets longer than its receive"]="soft-RoCE answers: remote operation error"
)

ip link add eth9 type dummy
ethernet=eth9
make_rxe 9000
check "the test of verbs can be loaded" load_verbs_test
verbs "" rxe0 rxe0 "${1:-all}"
check "it can be unloaded" rmmod verbs_test
rdma link delete rxe0
finish
