#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The first process of a node, in the guest root as /sbin/node-init: fetch the real one from the checkout.
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=none,msize=262144 oxib /oxib &&
	exec /bin/sh /oxib/scripts/node_runner/node-init.sh
echo "node-init: the checkout could not be mounted"
