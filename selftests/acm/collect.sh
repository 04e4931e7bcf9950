#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# scripts/collect-fabric on two subnets: GIDs from their subnet administrators, addresses from a table, from a neighbour table and
# from the resolver; what it makes for the cache, for /etc/hosts and for dnsmasq, which gives a host its address by it; merging,
# and everything that it refuses.
#
# nodes: 1
# kernels: fast
# timeout: 500

. selftests/lib/infiniband.sh

place=/tmp/collect
mkdir -p "$place/merged"
collect=scripts/collect-fabric

# Hosts h1 and h2 are in the first subnet, h3 and h4 in the second. Host N of subnet S is 10.88.S.N and fd00:88:S::N.
subnet_of() { # host
	printf '%d\n' $((($(host_number "$1") + 1) / 2))
}

address_of() { # host
	printf '10.88.%d.%d\n' "$(subnet_of "$1")" "$(host_number "$1")"
}

address6_of() { # host
	printf 'fd00:88:%d::%d\n' "$(subnet_of "$1")" "$(host_number "$1")"
}

# In the short form, as the resolver of the shell's `getent` has it.
gid_of() { # host
	python3 -c 'import ipaddress, sys; print(ipaddress.ip_address(sys.argv[1]))' "$(port_field "$1" gids/0)"
}

is_routable() { # host
	matches "^fec0:0000:0000:000$(subnet_of "$1"):" "$(port_field "$1" gids/0)"
}

bring_interface_up() { # host
	eventually has_interface "$1" &&
		at "$1" ip address replace "$(address_of "$1")/24" brd + dev ib0 &&
		at "$1" ip address replace "$(address6_of "$1")/64" dev ib0 nodad &&
		at "$1" ip link set ib0 up
}

collects() { # host, [option...]
	at "$1" "$collect" collect "${@:2}"
}

# The words of a file before comments.
lines_of() { # file
	sed 's/ *#.*//' "$1" | grep .
}

# What the subnets' files have to have, of IPv4 and of IPv6, or of one of both.
expected_data() { # address function, host...
	local host
	for host in "${@:2}"; do
		printf '%s %s\n' "$("$1" "$host")" "$(gid_of "$host")"
	done | sort
}

# It fails, and each expression matches what it says.
fails_with() { # 'expression[;...]', command...
	local expressions
	IFS=';' read -ra expressions <<<"$1"
	shift
	if "$@" >"$place/said" 2>&1; then
		cat "$place/said"
		return 1
	fi
	for expression in "${expressions[@]}"; do
		matches "$expression" "$(cat "$place/said")" || return
	done
}

# --- addresses from each source ------------------------------------------------------------------------------------------------

test_table() {
	local host
	for host in h1 h2 h3; do
		printf '%s %s # of IPv4\n' "$host" "$(address_of "$host")"
	done >"$place/table"
	# By its GUID, with both addresses.
	printf '%s %s %s\n' "$(port_guid h4)" "$(address_of h4)" "$(address6_of h4)" >>"$place/table"
	check "addresses come from a table: the first subnet" collects h1 --table "$place/table" "$place/table1"
	check "it has the GIDs of its ports" equal "$(expected_data address_of h1 h2)" "$(lines_of "$place/table1.data" | sort)"
	check "addresses come from a table: the second subnet" collects h3 --table "$place/table" "$place/table2"
	check "it has both addresses of a port" equal "$(expected_data address6_of h4)" \
		"$(lines_of "$place/table2.data" | grep "^$(address6_of h4)")"
	check "the lines of the other subnet are told" matches 'table: 2 of its lines are about no port of this subnet: 3, 4$' \
		"$(collects h1 --table "$place/table" "$place/table1" 2>&1)"
}

test_neighbours() {
	at h1 ip neighbour flush dev ib0
	check "addresses come from neighbours that are asked for" collects h1 --neighbours ib0 --sweep --strict "$place/neighbours1"
	check "they are those of the table, and this host's own" equal "$(expected_data address_of h1 h2)" \
		"$(lines_of "$place/neighbours1.data" | grep -v ^fd00 | sort)"
	check "this host's own of IPv6 is there" equal "$(expected_data address6_of h1)" \
		"$(lines_of "$place/neighbours1.data" | grep "^$(address6_of h1)")"
}

test_resolver() {
	local host
	cp /etc/hosts "$place/etc-hosts"
	for host in "${hosts[@]}"; do
		printf '%s %s-ib\n' "$(address_of "$host")" "$host"
		printf '192.0.2.%s %s-ib\n' "$(host_number "$host")" "$host"
	done >>/etc/hosts
	check "addresses come from the resolver, by names made of descriptions" \
		collects h3 --resolve --name '{host}-ib' --within 10.88.0.0/16 --strict "$place/resolved2"
	check "those of other networks are left out" equal "$(expected_data address_of h3 h4)" "$(lines_of "$place/resolved2.data" | sort)"
	check "a fragment of /etc/hosts is made" equal "$(printf '10.88.2.%s\th%s-ib\n' 3 3 4 4)" "$(lines_of "$place/resolved2.hosts" | sort)"
	cp "$place/etc-hosts" /etc/hosts
	check "a port without an address is left out, and told" matches "'h4' port 1 .*no address of it is known" \
		"$(collects h3 --neighbours ib0 --within 10.88.2.3/32 "$place/one" 2>&1)"
	check "or refused" fails_with "'h4' port 1 .*no address of it is known" \
		collects h3 --neighbours ib0 --within 10.88.2.3/32 --strict "$place/one"
}

# --- merging -------------------------------------------------------------------------------------------------------------------

test_merge() {
	check "two subnets are merged" "$collect" merge --output "$place/merged/all" "$place/neighbours1" "$place/resolved2"
	check "the merged file has the nodes of both" equal "$(expected_data address_of h1 h2 h3 h4)" \
		"$(lines_of "$place/merged/all.data" | grep -v ^fd00 | sort)"
	check "the command oxib takes it" oxib acm load --check "$place/merged"
	check "the same subnet twice is refused, with both places" \
		fails_with "table1\.data:[0-9]*: the address 10\.88\.1\.1 is there already: .*neighbours1\.data:;the GID fec0;\.hosts:.* name h1;\.dnsmasq:.*client" \
		"$collect" merge --output "$place/twice" "$place/neighbours1" "$place/table1"
	check "the same files twice are refused" fails_with 'neighbours1: it is given twice' \
		"$collect" merge --output "$place/twice" "$place/neighbours1" "$place/merged/../neighbours1"
	check "nothing is written then" test ! -e "$place/twice.data"
	cp "$place/resolved2.data" "$place/other.data"
	sed 's/h3-ib/h1/' "$place/resolved2.hosts" >"$place/other.hosts"
	cp "$place/resolved2.dnsmasq" "$place/other.dnsmasq"
	check "a name in two subnets is refused" fails_with 'other\.hosts:[0-9]*: the name h1 is there already: .*neighbours1\.hosts:' \
		"$collect" merge --output "$place/twice" "$place/neighbours1" "$place/other"
	printf 'nonsense\n' >>"$place/other.data"
	check "a line that is none is refused" fails_with 'other\.data:[0-9]*: it is no line' \
		"$collect" merge --output "$place/twice" "$place/other"
	check "an input that is not there is refused" fails_with 'nowhere\.data: No such file' \
		"$collect" merge --output "$place/twice" "$place/nowhere"
}

# --- DHCP ----------------------------------------------------------------------------------------------------------------------

# As the client's identifier has it: no IAID, a DUID of the vendor 713 with the port's GUID.
client_settings() { # host
	local guid
	guid=$(port_guid "$1" | sed 's/^0x//; s/../&:/g; s/:$//')
	printf '[Match]\nName=ib0\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n'
	printf '[DHCPv4]\nClientIdentifier=duid\nIAID=0\nDUIDType=vendor\nDUIDRawData=00:00:02:c9:00:%s\n' "$guid"
}

has_its_address() {
	matches "inet 10\.88\.1\.2/24" "$(at h2 ip -4 address show dev ib0)"
}

test_dhcp() {
	mkdir -p /run/systemd /etc/systemd/network "$place/network"
	printf '%032x\n' 0x1b0a7 >/etc/machine-id
	client_settings h2 >"$place/network/asks.network"
	at h2 ip address flush dev ib0
	in_background_at h1 dnsmasq --no-daemon --conf-file=/dev/null --port=0 --interface=ib0 --bind-interfaces \
		--dhcp-range=10.88.1.0,static,255.255.255.0,1h --dhcp-hostsfile="$place/table1.dnsmasq" --dhcp-leasefile="$place/leases" \
		--dhcp-authoritative
	in_background_at h2 unshare --mount sh -c "mount --bind $place/network /etc/systemd/network && mount -t tmpfs none /run/systemd &&
		mount -o remount,ro /sys && exec /usr/lib/systemd/systemd-networkd"
	check "dnsmasq gives a host its address by the file" eventually has_its_address
	stop_jobs
}

# --- what it refuses -----------------------------------------------------------------------------------------------------------

# Two ports as a subnet administrator tells of them.
records() { # prefix, [alias GUID of the first]
	local lid
	for lid in 5 6; do
		printf 'NodeRecord dump:\n\t\tlid.....................%d\n\t\tnode_type...............Channel Adapter\n' "$lid"
		printf '\t\tport_guid...............0x000000000000000%d\n\t\tport_num................1\n' "$lid"
		printf '\t\tNodeDescription.........node mlx5_%d\n' "$lid"
		printf 'PortInfoRecord dump:\n\tRID\n\t\tEndPortLid..............%d\n\t\tPortNum.................1\n' "$lid"
		printf '\tPortInfo dump:\n\t\tGidPrefix...............0x%s\n' "$1"
	done
	printf 'GUIDInfo Record dump:\n\t\tLID........................5\n\t\tBlock......................0\n'
	printf '\t\tGUID 0.....................0x0000000000000005\n\t\tGUID 1.....................0x%s\n' "${2:-0000000000000000}"
	printf '\t\tGUID %d.....................0x0000000000000000\n' 2 3 4 5 6 7
}

test_refusals() {
	local good=fec0000000000001
	records "$good" >"$place/records"
	printf '0x5 10.1.0.5\n0x6 10.1.0.6\n' >"$place/guids"
	check "no source of addresses is refused" fails_with 'Give --table FILE' "$collect" collect --records "$place/records" "$place/x"
	check "two ports of one name are refused" fails_with "the name node is that of two ports: .*mlx5_5.* and .*mlx5_6;{host}-{device}" \
		"$collect" collect --records "$place/records" --table "$place/guids" "$place/x"
	check "with the device in their names they are taken" \
		"$collect" collect --records "$place/records" --table "$place/guids" --name '{host}-{device}' "$place/x"
	check "they are called so" equal $'10.1.0.5\tnode-mlx5_5\n10.1.0.6\tnode-mlx5_6' "$(lines_of "$place/x.hosts")"
	printf '0x5 10.1.0.5\n0x6 10.1.0.5\n' >"$place/guids"
	check "an address of two ports is refused" fails_with "the address 10\.1\.0\.5 is that of two ports" \
		"$collect" collect --records "$place/records" --table "$place/guids" --name '{device}' "$place/x"
	printf 'n1\nn2 10.1.0.300\n\nn1 10.1.0.1\nn3 127.0.0.1\n0x5 10.1.0.5\n0000:0000:0000:0005 10.1.0.6\n' >"$place/guids"
	check "every mistake of a table is told" \
		fails_with "guids:1: the address is missing;guids:2: '10.1.0.300';guids:4: 'n1' is there already: .*guids:1;guids:5: 127;guids:7: '5' is there" \
		"$collect" collect --records "$place/records" --table "$place/guids" "$place/x"
	records fe80000000000000 >"$place/records"
	printf '0x5 10.1.0.5\n' >"$place/guids"
	check "a subnet without a prefix of its own is refused" fails_with 'fe80::/64.*subnet_prefix' \
		"$collect" collect --records "$place/records" --table "$place/guids" "$place/x"
	check "unless it is wanted" "$collect" collect --records "$place/records" --table "$place/guids" --link-local "$place/x"
	records "$good" 0001000200030005 >"$place/records"
	check "the alias that ends with the LID is the GID" "$collect" collect --records "$place/records" --table "$place/guids" "$place/x"
	check "it is" equal '10.1.0.5 fec0::1:1:2:3:5' "$(lines_of "$place/x.data")"
	check "or the port's own GUID is" "$collect" collect --records "$place/records" --table "$place/guids" --gid port "$place/x"
	check "it is, too" equal '10.1.0.5 fec0:0:0:1::5' "$(lines_of "$place/x.data")"
	printf '0x6 10.1.0.6\n' >"$place/guids"
	check "a port without such an alias is refused if one is wanted" fails_with 'no alias GUID' \
		"$collect" collect --records "$place/records" --table "$place/guids" --gid alias "$place/x"
	check "a subnet without a subnet manager is told" fails_with 'saquery.*failed' collects h1 --ca nowhere --resolve "$place/x"
	check "a directory that is not there is told" fails_with 'No such file' \
		"$collect" collect --records "$place/records" --table "$place/guids" "$place/nowhere/x"
}

bring_up_fabric routed "h1 subnet_prefix 0xfec0000000000001" "h3 subnet_prefix 0xfec0000000000002"
for host in "${hosts[@]}"; do
	check "$host has a GID of its subnet" eventually is_routable "$host"
done
load_driver oxib || bail_out "oxib could not be loaded"
for host in "${hosts[@]}"; do
	check "$host has an interface" bring_interface_up "$host"
done
for host in "${hosts[@]}"; do
	check "$host has carrier" eventually has_carrier "$host"
done
test_table
test_neighbours
test_resolver
test_merge
test_dhcp
test_refusals
check "oxib.ko can be unloaded" unload_driver
take_down_fabric
finish
