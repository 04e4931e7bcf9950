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

. selftests/lib/fabric.sh
# shellcheck source=selftests/lib/installed.sh
. selftests/lib/installed.sh

# The library is then found where it was installed alone.
install_fabric() {
	rm -f /etc/libibverbs.d/softib.driver
	SOFTIB=y install_built
}

# What a command has to have printed, by a word of it.
declare -A expected=(
	[manage]='^fec0:0:0:2::/64, OpenSM in h5: 2 active ports$'
	[ibv_devinfo]='^hca_id:\s+h1$ state:\s+PORT_ACTIVE'
	[ibnetdiscover]='"l1" "l2" "s1" "s2" "h4" ^Rt\s.*"r1"'
	[saquery]='NodeDescription\.*h1$ NodeDescription\.*l2$ NodeDescription\.*r1$'
)

runs_as_written() { # command
	local word pattern
	eval "$1" >/tmp/said 2>&1 </dev/null || {
		cat /tmp/said
		return 1
	}
	for word in "${!expected[@]}"; do
		[[ " $1 " == *" $word "* ]] || continue
		# shellcheck disable=SC2086 # words
		for pattern in ${expected[$word]}; do
			matches "$pattern" "$(cat /tmp/said)" || return
		done
	done
}

is_not_of_the_checkout() {
	equal /usr/share/softib "$(dirname "$(realpath "$(command -v softib-fabric)")")" &&
		equal "driver softib" "$(cat /etc/libibverbs.d/softib.driver)"
}

check "Debian's modules have a place to be joined in" replace_modules veth
check "softib can be installed" install_fabric
check "depmod finds it" depmod
check "what is used is what was installed" is_not_of_the_checkout
number=0
server=
while read -r -u 3 command; do
	number=$((number + 1))
	check "$command" runs_as_written "$command"
	[[ $command != *'&' ]] || server=$!
# The first block is for the machine that builds.
done 3< <(block_of Documentation/softib.md 'For the tests of other projects' 2)
check_equal "there are twelve commands" 12 "$number"
check "rping's server ends well" wait "$server"
check_equal "nothing is left of it" "" "$(ip netns list)$(rdma link show)"
check "all can be unloaded" modprobe -r rdma_ucm rdma_cm ib_cm oxib softib ib_umad ib_uverbs
give_modules_back
finish
