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

. selftests/fabric.sh

wanted=("$@")
[ $# -gt 0 ] || wanted=(pair star fattree two_ports)

# --- what is there -------------------------------------------------------------------------------------------------------

# Every port of an HCA has a LID, all different; with an LMC of 1, even ones.
lids_are_good() {
	local host lid seen=' '
	for host in "${hosts[@]}"; do
		lid=$(port_number "$host" lid)
		holds "$lid" -gt 0 && holds $((lid % 2)) -eq 0 || return
		case $seen in *" $lid "*) equal "$host has a LID of its own" "$host has the LID $lid of another" || return ;; esac
		seen+="$lid "
		equal "$host: 1" "$host: $(port_number "$host" lid_mask_count)" || return
	done
}

nodes_are() { # topology: what the SA knows of, by name
	local expected
	expected=$(scripts/fabric check "$topologies/$1.fabric" | awk 'NR > 1 { sub(":.*", "", $2); print $2 }' | sort -u)
	equal "$expected" "$(at h1 saquery -N | sed -nE 's/^.*NodeDescription\.+ *//p' | sort -u)"
}

link_count() { # topology: ends of links that are up and active, as iblinkinfo has them
	local cables
	cables=$(scripts/fabric check "$topologies/$1.fabric" | sed -nE '1s/.* ([0-9]+) cables?$/\1/p')
	equal "$((2 * cables))" "$(at h1 iblinkinfo --line | grep -c 'Active/ *LinkUp')"
}

no_errors() {
	says h1 ibqueryerrors ' 0 bad nodes found' || return
	says h1 "perfquery $(port_number h2 lid) 1" 'PortXmitPkts|XmtPkts' 'SymbolErrorCounter:\.+0$|SymbolErrors:\.+0$'
}

path_to() { # host: by the SA, and the way that it goes
	says h1 "saquery --src-to-dst $(port_number h1 lid):$(port_number "$1" lid)" "dlid\.+ *$(port_number "$1" lid)" \
		"slid\.+ *$(port_number h1 lid)" 'pkey\.+ *0x[0-9a-fA-F]+' &&
		says h1 "ibtracert $(port_number h1 lid) $(port_number "$1" lid)" "From ca .*\"h1\"" "To ca .*\"$1\""
}

pings() { # host
	local server status=0
	at "$1" ibping --Server &
	server=$!
	eventually at h1 timeout 20 ibping -c 1 "$(port_number "$1" lid)" || status=1
	at h1 timeout $((2 * patience)) ibping -c 10 "$(port_number "$1" lid)" || status=1
	kill "$server"
	wait "$server" 2>/dev/null
	return "$status"
}

# --- a topology -----------------------------------------------------------------------------------------------------------

test_topology() { # topology
	local topology=$1 last
	bring_up_fabric "$topology" 'h1 lmc 1'
	last=${hosts[-1]}
	ok "$topology: OpenSM makes every port active"
	check "$topology: each HCA has LIDs of its own, and the LMC that is configured" eventually lids_are_good
	check "$topology: ibnetdiscover shows the cables of the file" eventually discovers_its_subnet "$topology" h1
	check "$topology: the last host discovers the same" discovers_its_subnet "$topology" "$last"
	check "$topology: iblinkinfo shows each link, from both sides" eventually link_count "$topology"
	check "$topology: saquery shows the nodes by name" eventually nodes_are "$topology"
	check "$topology: ibstat" says "$last" ibstat "CA '$last'" 'State: Active' 'Physical state: LinkUp' \
		"Base lid: $(port_number "$last" lid)" "SM lid: $(port_number h1 lid)" 'Link layer: InfiniBand'
	check "$topology: ibstatus" says "$last" ibstatus "device '$last' port 1" 'state:.*4: ACTIVE' 'phys state:.*5: LinkUp'
	check "$topology: smpquery nodeinfo, by LID" says h1 "smpquery nodeinfo $(port_number "$last" lid)" \
		'NodeType:\.+Channel Adapter' "PortGuid:\.+$(port_guid "$last")"
	check "$topology: smpquery nodedesc, by LID" says h1 "smpquery nodedesc $(port_number "$last" lid)" "\.$last\$"
	check "$topology: smpquery portinfo, by LID" says h1 "smpquery portinfo $(port_number "$last" lid) 1" \
		"^Lid:\.+$(port_number "$last" lid)$" "SMLid:\.+$(port_number h1 lid)$" 'LinkState:\.+Active' 'PhysLinkState:\.+LinkUp' 'LMC:\.+1$'
	check "$topology: smpquery nodeinfo, by direct route" says "$last" 'smpquery -D nodeinfo 0,1' 'NodeType:\.+(Switch|Channel Adapter)'
	check "$topology: sminfo names h1 as the master" master_is "$last" h1
	check "$topology: a path to $last, by the SA and by ibtracert" path_to "$last"
	check "$topology: ibping" pings "$last"
	check "$topology: ibqueryerrors and perfquery find no error" no_errors
	stop_sm
	check "$topology: it can be taken down" fabric_down
	check "$topology: softib.ko can be unloaded" unload_softib
}

for topology in "${wanted[@]}"; do
	test_topology "$topology"
done
finish
