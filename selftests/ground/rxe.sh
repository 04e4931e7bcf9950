#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The cable without oxib: two soft-RoCE devices talk to each other. Where this fails, oxib cannot work.
#
# nodes: 2
# kernels: fast
# timeout: 180

. selftests/lib/node.sh

make_rxe 9000
modprobe -a ib_uverbs rdma_ucm
barrier ready

if [ "$NODE" = 2 ]; then
	in_background rping -s -a 10.77.0.2 -P
	eventually rping -c -a 10.77.0.2 -C 1 || bail_out "the server does not answer on its own node"
	barrier serving
	barrier done
	stop_jobs
	exit 0
fi

barrier serving
check_equal "the port's MTU is 4096" 4096 "$(ibv_devinfo -d rxe0 | awk '$1 == "active_mtu:" { print $2 }')"
check "the port has the GID of its IPv4 address" grep -q '0000:ffff:0a4d:0001' /sys/class/infiniband/rxe0/ports/1/gids/*
check "rping crosses the cable" rping -c -a 10.77.0.2 -C 10 -S 4000
barrier done
finish
