#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What softib is configured with wrongly is refused, with a line in the log that says why, and changes nothing.
#
# nodes: 1
# kernels: fast
# timeout: 180

. selftests/lib/fabric.sh

softib=/sys/kernel/config/softib

# The log has to say what is wrong.
refused_because() { # extended regular expression, command...
	local because=$1
	shift
	dmesg --clear
	if "$@" 2>/dev/null; then
		printf 'it was taken\n'
		return 1
	fi
	kernel_log_has "softib.*($because)"
}

into() { # file, text
	printf '%s\n' "$2" >"$1"
}

# More than configfs takes at once: the rest would come as a write of its own.
too_much_into() { # file
	printf 't0 %.0s' {1..1500} | dd of="$1" bs=8192 iflag=fullblock status=none
}

file_says() { # file, text
	equal "$2" "$(cat "$1")"
}

# Each text is refused for the file, which says what it said before.
refuses() { # file, extended regular expression of the log's line, text...
	local file=$1 because=$2 before text
	before=$(cat "$file")
	shift 2
	for text in "$@"; do
		check "${file#"$softib"/}: '${text:0:60}' is refused" refused_because "$because" into "$file" "$text"
	done
	check "${file#"$softib"/} says what it said" file_says "$file" "$before"
}

load_softib || bail_out "softib.ko could not be loaded"
ip link add t0 type veth peer name t1
ip link add t2 type veth peer name t3
ip link property add dev t0 altname another_name_of_t0

check_refused "there are no other folders" mkdir "$softib/bridge"
check "a switch's directory can be made" mkdir -p "$softib/switch/t"
refuses "$softib/switch/t/enable" 'switch t: enable takes 0 or 1' 2 -1 yes ''
check "a switch without ports is not enabled" refused_because 'switch t: it has no ports' into "$softib/switch/t/enable" 1
refuses "$softib/switch/t/guid" 'switch t: guid takes a number' -1 g1 0xx 1234567890abcdef 0x12345678123456781
refuses "$softib/switch/t/ports" 'switch t: there is no net device nowhere' 'nowhere' 't0 nowhere'
refuses "$softib/switch/t/ports" 'switch t: net device (t0|another_name_of_t0) is named twice' 't0 t0' 't0 t2 t0' \
	't0 another_name_of_t0'
refuses "$softib/switch/t/ports" 'switch t: net device lo is no Ethernet' lo 't0 lo'
check "ports: too much at once is refused" refused_because 'switch t: ports takes less than [0-9]+ bytes' \
	too_much_into "$softib/switch/t/ports"
refuses "$softib/switch/t/ports" 'switch t: ports takes text' $'t0 \xff'
check "ports takes good ones after that" into "$softib/switch/t/ports" "t0 t2"
check "the switch is enabled" into "$softib/switch/t/enable" 1
refuses "$softib/switch/t/ports" 'switch t: it is enabled: write 0 to .enable.' t0 ''
refuses "$softib/switch/t/guid" 'switch t: it is enabled: write 0 to .enable.' 0x1234
check "the switch is enabled all the time" file_says "$softib/switch/t/enable" 1
check "a second switch's directory can be made" mkdir "$softib/switch/u"
refuses "$softib/switch/u/ports" "switch u: net device t0 is another port's cable" 't0 t1' t0

check_refused "an HCA cannot have a switch's net device" rdma link add x type softib netdev t0
check "the log says why" kernel_log_has "softib.* hca x: .* another port's cable"
check "an HCA has its cable" rdma link add h type softib netdev t1
refuses "$softib/switch/u/ports" "switch u: net device t1 is another port's cable" t1
check_refused "a second HCA cannot have the same" rdma link add i type softib netdev t1
check_refused "nor the same name" rdma link add h type softib netdev t3
check_refused "an HCA has to have an Ethernet device" rdma link add i type softib netdev lo
check "the log says why" kernel_log_has "softib.* hca i: .* no Ethernet"

check "a router's directory can be made" mkdir -p "$softib/router/r"
r=$softib/router/r
refuses "$r/ports" "router r: net device t0 is another port's cable" 't0 t3'
check "it takes a port" into "$r/ports" t3
refuses "$r/algorithmic" 'router r: algorithmic takes 0 or 1' 2 ''
refuses "$r/routes" 'router r: routes: .* a prefix has 64 bits' 'fec0::/48 1 5' 'fec0::1/64 1 5' 'fe80::/64 1 5' 'x 1 5'
refuses "$r/routes" 'router r: routes: .* a route is' 'fec0::/64 1' 'fec0::/64 1 5 6'
refuses "$r/routes" 'router r: routes: .* port' 'fec0::/64 0 5' 'fec0::/64 2 5' 'fec0::/64 x 5'
refuses "$r/routes" 'router r: routes: .* LID' 'fec0::/64 1 0' 'fec0::/64 1 0xc000' 'fec0::/64 1 fec0::1'
refuses "$r/routes" 'router r: routes: .* entry for that before' 'fec0::/64 1 5, fec0:0:0:0::/64 1 6'
refuses "$r/neighbours" 'router r: neighbours: .* a GID has' 'fe80::1 5' 'ff12::1 5' '0x1234 5'
refuses "$r/neighbours" 'router r: neighbours: .* LID' 'fec0::1 0' 'fec0::1 50000'
refuses "$r/neighbours" 'router r: neighbours: .* a neighbour is' 'fec0::1' 'fec0::1 1 5'
refuses "$r/neighbours" 'router r: neighbours: .* entry for that before' 'fec0::1 5, fec0:0::1 6'
check "routes are taken" into "$r/routes" 'fec0:0:0:2::/64 1 0x11,fec0:0:0:3::/64 1 18'
check "each has a line" file_says "$r/routes" $'fec0:0:0:2::/64 1 17\nfec0:0:0:3::/64 1 18'
printf 'fec0::1 5\nfec0::2 6\n' >/tmp/neighbours
check "so are lines of neighbours" cp /tmp/neighbours "$r/neighbours"
check "they stand there" file_says "$r/neighbours" "$(cat /tmp/neighbours)"
check "the router is enabled" into "$r/enable" 1
refuses "$r/algorithmic" 'router r: it is enabled' 0
refuses "$r/routes" 'router r: routes: .* has no port 2' 'fec0::/64 1 5, fec0:1::/64 2 5'
check "routes can be changed while it is" into "$r/routes" 'fec0:0:0:4::/64 1 19'
check "that is all there is then" file_says "$r/routes" 'fec0:0:0:4::/64 1 19'
check "they can be taken away" into "$r/routes" ''
check "nothing is there then" file_says "$r/routes" ''
check "the router is disabled" into "$r/enable" 0

check "options can be given to an HCA to come" mkdir -p "$softib/hca/k"
k=$softib/hca/k
refuses "$k/mtu" 'hca k: mtu takes' 0 128 1500 8192 ''
refuses "$k/max_inline" 'hca k: max_inline takes' -1 1025 much
refuses "$k/max_sge" 'hca k: max_sge takes' 0 33 many
refuses "$k/max_wr" 'hca k: max_wr takes' 511 16385 many
refuses "$k/srq" 'hca k: srq takes 0 or 1' 2 no
refuses "$k/command_ms" 'hca k: command_ms takes' 1001 slow
for flag in omni_path multicast sleeping_ah interrupts overtaking own_multicast; do
	refuses "$k/$flag" "hca k: $flag takes 0 or 1" 2 on ''
done
refuses "$k/failed" 'hca k: no device was made of it yet' 1
refuses "$k/refuse_every" 'hca k: no device was made of it yet' 0 5
refuses "$k/refuse_every" 'hca k: refuse_every takes 0 to 65536' 65537
refuses "$k/refuse_every" 'hca k: refuse_every takes a number' -1 some ''
refuses "$k/resets_fail" 'hca k: no device was made of it yet' 0 1
refuses "$k/resets_fail" 'hca k: resets_fail takes 0 or 1' 2 yes ''
for flag in attaches_fail detaches_fail; do
	refuses "$k/$flag" "hca k: $flag takes 0 or 1" 2 yes ''
done
refuses "$k/checksum" 'hca k: checksum takes 0 or 1' 2 on
refuses "$k/tso" 'hca k: tso takes 0 or 1' 2 on
refuses "$k/dma" 'hca k: dma takes 0 or 1' 2 on
refuses "$k/port2" 'hca k: port2 takes the name of one net device' 't2 t3' a/b a_name_that_is_too_long
refuses "$k/alias_guids" 'hca k: alias_guids' 0 x '1 1' '0x1 1' "$(seq -s ' ' 16)"
check "a second port is named that is not there" into "$k/port2" nowhere
check_refused "so there is no such HCA" rdma link add k type softib netdev t3
check "the log says why" kernel_log_has 'softib.* hca k: there is no net device nowhere here for its second port'
check "then none is named" into "$k/port2" ''
check "GUIDs are taken" into "$k/alias_guids" '0x1234 0xabcdef'
check "the HCA is made" rdma link add k type softib netdev t3
refuses "$k/mtu" 'hca k: a device was made of it: delete that' 2048
check "it has the GUIDs" matches '^fe80:0000:0000:0000:0000:0000:00ab:cdef$' \
	"$(cat /sys/class/infiniband/k/ports/1/gids/2)"
check "the HCA fails" into "$k/failed" 1
check "its port says so" refused cat /sys/class/infiniband/k/ports/1/state
check "it works again" into "$k/failed" 0
check "its port says so" cat /sys/class/infiniband/k/ports/1/state
check "it refuses requests" into "$k/refuse_every" 7
check "it says which" file_says "$k/refuse_every" 7
check "its resets fail" into "$k/resets_fail" 1
check "it says so" file_says "$k/resets_fail" 1
check "the HCA goes" rdma link delete k
check "its options can be changed then" into "$k/mtu" 2048
check "the other HCA goes" rdma link delete h

check "a net device that goes takes its cable away" ip link delete t2
check "the switch is disabled" into "$softib/switch/t/enable" 0
check "it is not enabled without its net device" refused_because 'there is no net device t2' into "$softib/switch/t/enable" 1
check "the directories go" find "$softib" -mindepth 1 -depth -type d -exec rmdir {} +
ip link delete t0
check "softib.ko can be unloaded" unload_softib
finish
