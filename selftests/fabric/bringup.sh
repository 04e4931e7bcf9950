#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# OpenSM brings up each topology, and every diagnostic program shows what is there.
#
# bringup.sh [TOPOLOGY...]
#
# nodes: 1
# kernels: fast
# timeout: 600

. selftests/lib/fabric.sh

wanted=("$@")
[ $# -gt 0 ] || wanted=(pair star fattree two_ports routed)

# How many bits of a LID are the port's to choose, as the subnet manager is told.
declare -A lmcs=([star]=1 [two_ports]=2 [routed]=1)

# --- what is there -------------------------------------------------------------------------------------------------------

# Every port of a subnet's HCAs has LIDs of its own, as many as the LMC says.
lids_are_good() { # LMC, host...
	local lmc=$1 host port lid seen=' '
	shift
	for host in "$@"; do
		for port in $(ports_of "$host"); do
			lid=$(port_number "$host" lid "$port")
			holds "$lid" -gt 0 && holds $((lid % (1 << lmc))) -eq 0 || return
			case $seen in *" $lid "*) equal "$host has a LID of its own" "$host has the LID $lid of another" || return ;; esac
			seen+="$lid "
			equal "$host: $lmc" "$host: $(port_number "$host" lid_mask_count "$port")" || return
		done
	done
}

nodes_are() { # topology, host: what its SA knows of, by name
	local expected
	expected=$(expected_links "$@" | sed 's/:[0-9]*//g' | tr ' ' '\n' | sort -u)
	equal "$expected" "$(at "$2" saquery -N | sed -nE 's/^.*NodeDescription\.+ *//p' | sort -u)"
}

# The ends of links that are up and active, as iblinkinfo has them.
link_count() { # topology, host
	equal "$((2 * $(expected_links "$@" | wc -l)))" "$(at "$2" iblinkinfo --line | grep -c 'Active/ *LinkUp')"
}

no_errors() { # host, host
	says "$1" ibqueryerrors ' 0 bad nodes found' || return
	says "$1" "perfquery $(port_number "$2" lid) 1" 'PortXmitPkts|XmtPkts' 'SymbolErrorCounter:\.+0$|SymbolErrors:\.+0$'
}

# By the SA, and the way that it goes.
path_between() { # host, host
	local from to
	from=$(port_number "$1" lid)
	to=$(port_number "$2" lid)
	says "$1" "saquery --src-to-dst $from:$to" "dlid\.+ *$to" "slid\.+ *$from" 'pkey\.+ *0x[0-9a-fA-F]+' &&
		says "$1" "ibtracert $from $to" "From ca .*\"$1\"" "To ca .*\"$2\""
}

pings() { # host, host
	local server status=0 lid
	lid=$(port_number "$2" lid)
	at "$2" ibping --Server &
	server=$!
	eventually at "$1" timeout 20 ibping -c 1 "$lid" || status=1
	at "$1" timeout $((2 * patience)) ibping -c 2 "$lid" || status=1
	end_processes "$server"
	return "$status"
}

# Every LID that the LMC gives a host leads to it.
each_lid_answers() { # LMC, host, host
	local lid first
	first=$(port_number "$3" lid)
	for ((lid = first; lid < first + (1 << $1); lid++)); do
		says "$2" "smpquery nodedesc $lid" "\.$3\$" || return
	done
}

# --- a topology -----------------------------------------------------------------------------------------------------------

# The first host of a subnet has its manager; it asks after the last, and that asks as well.
test_subnet() { # topology, LMC, host...
	local topology=$1 lmc=$2 first=$3 last=${!#} lid
	lid=$(port_number "$last" lid)
	# Of bringing up: on a slow machine hosts ask before the switch knows the way.
	at "$first" ibqueryerrors --clear-errors >/dev/null
	check "$topology: each HCA has LIDs of its own, by an LMC of $lmc" eventually lids_are_good "$lmc" "${@:3}"
	check "$topology: ibnetdiscover shows the cables of the file to $first" eventually discovers_its_subnet "$topology" "$first"
	check "$topology: $last discovers the same" discovers_its_subnet "$topology" "$last"
	check "$topology: iblinkinfo shows each link, from both sides" eventually link_count "$topology" "$first"
	check "$topology: saquery shows the nodes by name" eventually nodes_are "$topology" "$first"
	check "$topology: ibstat" says "$last" ibstat "CA '$last'" 'State: Active' 'Physical state: LinkUp' \
		"Base lid: $lid" "LMC: $lmc" "SM lid: $(port_number "$first" lid)" 'Link layer: InfiniBand'
	check "$topology: ibstatus" says "$last" ibstatus "device '$last' port 1" 'state:.*4: ACTIVE' 'phys state:.*5: LinkUp'
	check "$topology: smpquery nodeinfo, by LID" says "$first" "smpquery nodeinfo $lid" \
		'NodeType:\.+Channel Adapter' "PortGuid:\.+$(port_guid "$last")"
	check "$topology: smpquery nodedesc, by each LID" each_lid_answers "$lmc" "$first" "$last"
	check "$topology: smpquery portinfo, by LID" says "$first" "smpquery portinfo $lid 1" "^Lid:\.+$lid$" \
		"SMLid:\.+$(port_number "$first" lid)$" 'LinkState:\.+Active' 'PhysLinkState:\.+LinkUp' "^LMC:\.+$lmc$"
	check "$topology: smpquery nodeinfo, by direct route" says "$last" 'smpquery -D nodeinfo 0,1' 'NodeType:\.+(Switch|Channel Adapter)'
	check "$topology: sminfo names $first as the master" master_is "$last" "$first"
	check "$topology: a path to $last, by the SA and by ibtracert" path_between "$first" "$last"
	check "$topology: ibping" pings "$first" "$last"
	check "$topology: ibqueryerrors and perfquery find no error" no_errors "$first" "$last"
}

test_topology() { # topology
	local topology=$1 lmc=${lmcs[$1]:-0} subnets managers=() number
	mapfile -t subnets < <(python3 selftests/fabric/links.py subnets "$topologies/$topology.fabric")
	for number in "${!subnets[@]}"; do
		managers+=("${subnets[number]%% *} lmc $lmc;subnet_prefix 0xfec000000000000$number")
	done
	bring_up_fabric "$topology" "${managers[@]}"
	ok "$topology: OpenSM makes every port active"
	for number in "${!subnets[@]}"; do
		# shellcheck disable=SC2086 # hosts are words
		test_subnet "$topology" "$lmc" ${subnets[number]}
	done
	stop_sm
	check "$topology: it can be taken down" fabric_down
	check "$topology: softib.ko can be unloaded" unload_softib
}

for topology in "${wanted[@]}"; do
	test_topology "$topology"
done
finish
