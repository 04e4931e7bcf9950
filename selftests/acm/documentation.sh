#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Documentation/many-subnets.md: every command in its blocks is run as it is written there, on two subnets with a router, and does
# what the page says. What the page has of the subnet managers' files is what these run with.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/acm.sh

page=Documentation/many-subnets.md
place=/tmp/guide

# The lines of the blocks of a section, of one block if its number is given.
blocks_of() { # heading, [number]
	awk -v heading="## $1" -v wanted="${2:-0}" '
		/^## / { here = $0 == heading; number = 0 }
		/^```/ { block = !block; number += block; next }
		here && block && (!wanted || number == wanted)' "$page"
}

# What the page says of its own nodes is said of the fabric's: h1 is node1, h3 is node3.
of_this_fabric() {
	sed -e "s/fec0:0:0:1::202:c900:0:2/$(port_field h1 gids/0)/g" -e "s/fec0:0:0:2::202:c900:0:2/$(port_field h3 gids/0)/g" \
		-e 's/mlx5_0/h1/g' -e 's/10\.88\.0\.3/'"$(v4_of h3)"'/g'
}

# As an administrator types it, on a host.
runs_as_written() { # host, command
	at "$1" bash -c "$2" </dev/null
}

run_block() { # host, heading, number
	local command number=0
	while read -r command; do
		number=$((number + 1))
		check "$1: $command" runs_as_written "$1" "$command"
	done < <(blocks_of "$2" "$3" | of_this_fabric)
	check "$2: there are commands" holds "$number" -gt 0
}
