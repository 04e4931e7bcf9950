#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's kernel as packaged: softib, installed, is the fabric that Documentation/softib.md offers to the tests of other projects.
# Its commands are run as they are written there.
#
# nodes: 1
# kernels: stock
# part: stock/all
# timeout: 300

. selftests/fabric.sh

tree=/tmp/softib
release=$(uname -r)

# What `make install SOFTIB=y` does, in a tree of its own with those of Debian's modules that matter.
install_fabric() {
	local target=$tree/lib/modules/$release
	mkdir -p "$target/updates" "$target/kernel/drivers/infiniband" /usr/share/softib &&
		cp -r "/lib/modules/$release/kernel/drivers/infiniband/core" "$target/kernel/drivers/infiniband/" &&
		cp "/lib/modules/$release/modules."{order,builtin,builtin.modinfo} "$target/" &&
		cp "$MODULES/softib.ko" "$target/updates/" && depmod -b "$tree" &&
		cp -r scripts/fabric scripts/fabric_builder "$topologies" /usr/share/softib/ &&
		ln -sfn ../share/softib/fabric /usr/sbin/softib-fabric
}

modprobe() {
	command modprobe -d "$tree" "$@"
}

# The second block of the section: the first is for the machine that builds.
commands() {
	awk '/^## / { here = $0 == "## For the tests of other projects" } /^```/ { inside = !inside; number += here && inside; next }
		here && inside && number == 2' Documentation/softib.md
}

runs_as_written() { # command
	eval "$1" </dev/null
}

check "softib can be installed" install_fabric
number=0
while read -r -u 3 command; do
	number=$((number + 1))
	check "$command" runs_as_written "$command"
done 3< <(commands)
check_equal "there are twelve commands" 12 "$number"
check_equal "nothing is left of it" "" "$(ip netns list)$(rdma link show)"
rmmod ib_umad ib_uverbs
check "softib.ko can be unloaded" unload_softib
finish
