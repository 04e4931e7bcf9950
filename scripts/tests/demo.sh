#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make demo` and `make shell`, with nodes of both kinds, or of the kind that MACHINE= chose for the tests: they say which, the demo's
# nodes reach each other, across a router, too, and the prompt obeys. Runs in the toolchain root, when the modules have been built.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh
# shellcheck source=selftests/lib/installed.sh
. selftests/lib/installed.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# Where the commands for a prompt are.
guide=(Documentation/many-subnets.md 'Try it without hardware')
declare -A kinds=([uml]="processes of this machine" [qemu]="machines of QEMU's")

show() { # kind
	MACHINE=$1 KERNEL=${OXIB_KERNEL:-} bash -c "$(block_of README.md 'See it' 1 | grep '^make demo ')" >"$place/demo" 2>&1 || {
		cat "$place/demo"
		return 1
	}
}

shown() { # number of lines, regular expression
	equal "$1" "$(grep -c "$2" "$place/demo")" && return
	cat "$place/demo"
	return 1
}

# Types what the guide says once there is a prompt. A server listens before its client is typed. What is printed is not what was typed.
type_at_prompt() {
	local _ command
	for _ in {1..600}; do
		sleep 0.5
		! grep -q '^A prompt on node' "$place/prompt" || break
	done
	# shellcheck disable=SC2016 # the node expands them
	echo 'echo this is node $NODE of $NODES'
	while read -r command; do
		printf '%s\n' "$command"
		[[ $command != *' &' ]] || echo 'for _ in {1..300}; do ip netns exec h3 rdma resource show cm_id | grep -q LISTEN && break; sleep 0.2; done'
	done < <(block_of "${guide[@]}" 1 | tail -n +2)
}

prompt() { # kind
	local command
	command=$(block_of "${guide[@]}" 1 | head -n 1)
	matches '^make shell$' "$command" || return
	: >"$place/prompt"
	type_at_prompt | MACHINE=$1 KERNEL=${OXIB_KERNEL:-} timeout 900 script --quiet --return --command "$command" /dev/null >"$place/prompt" 2>&1
	matches 'this is node 1 of 2' "$(cat "$place/prompt")"
}

prompted() { # regular expression
	grep -q "$1" "$place/prompt" && return
	cat "$place/prompt"
	return 1
}

# shellcheck disable=SC2086 # words
for kind in ${OXIB_MACHINE:-uml qemu}; do
	check "make demo on $kind ends well" show "$kind"
	check "it says what its nodes are" grep -qF "the nodes are ${kinds[$kind]}" "$place/demo"
	check "IPv4 and IPv6 answer, and IPv4 across the router" shown 3 ' 3 received, 0% packet loss'
	check "TCP and UDP arrive, and TCP across the router" shown 3 'receiver$'
	check "rping crosses the router" shown 1 'ping data: rdma-ping-9: '
	check "no host has sent to a group for that" shown 4 'h[1-4]  *0  *[0-9]*  *[01]$'
	check "where rping is called no path is asked for" shown 1 'h3  *0  *[0-9]*  *0$'
	check "make shell on $kind gives a prompt" prompt "$kind"
	check "rping, typed there as the guide has it, crosses the router" prompted 'ping data: rdma-ping-9: '
	check "ping does" prompted ' 3 received, 0% packet loss'
	check "each step to the peer's address is well" prompted '^path *ok '
done
finish
