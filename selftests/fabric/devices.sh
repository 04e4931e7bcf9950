#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What programs see of HCAs: ibv_devices and ibv_devinfo print what the fabric was brought up with, as the subnet manager's side has
# it; two HCAs in one namespace, and none; events, to the last, as an HCA goes; soft-RoCE in the same node.
#
# nodes: 1
# kernels: fast
# timeout: 240

. selftests/lib/fabric.sh

subnet=fec0:0000:0000:0007
# What both subnet managers are told.
lines=("lmc 1" "subnet_prefix 0x$(printf '%s' "$subnet" | tr -d :)")

# --- the other side -------------------------------------------------------------------------------------------

# "LID GUID WIDTH SPEED" of a host's port, as h2 discovers it across the fabric.
discovered() { # host
	at h2 ibnetdiscover --ports | awk -v name="'$1'" '$1 == "CA" && index($0, "( " name " - ") { print $2, $4, $5, $6 }'
}

discovered_lid() { # host
	discovered "$1" | cut -d ' ' -f 1
}

# A number of 64 bits, 0x and digits, as ibv_devinfo writes it.
in_groups() { # number
	local digits
	digits=$(printf '%016x' "$1")
	printf '%s:%s:%s:%s\n' "${digits:0:4}" "${digits:4:4}" "${digits:8:4}" "${digits:12:4}"
}

# By the Ethernet address of its cable.
expected_guid() { # host
	local address
	address=$(at "$1" cat /sys/class/net/port1/address | tr -d :)
	printf '0x%016x\n' $(((0x${address:0:6} ^ 0x020000) << 40 | 0xfffe000000 | 0x${address:6}))
}

# As ibv_devinfo writes the speed that ibnetdiscover writes.
declare -A speeds=([SDR]='2.5 Gbps (1)' [DDR]='5.0 Gbps (2)' [QDR]='10.0 Gbps (4)' [FDR10]='10.0 Gbps (8)' [FDR]='14.0 Gbps (16)'
	[EDR]='25.0 Gbps (32)' [HDR]='50.0 Gbps (64)' [NDR]='100.0 Gbps (128)')
declare -A widths=([1x]='1X (1)' [4x]='4X (2)' [8x]='8X (4)' [12x]='12X (8)')

# --- what programs print -----------------------------------------------------------------------------------------

here() { # command...: in the namespace of scripts/fabric
	"$@"
}

# Each line of ibv_devinfo as "name: value".
devinfo() { # host|here, [option...]
	local place=(at "$1")
	[ "$1" != here ] || place=(here)
	"${place[@]}" timeout $((2 * patience)) ibv_devinfo "${@:2}" | sed -E 's/^[[:space:]]+//; s/:[[:space:]]+/: /; s/[[:space:]]+$//'
}

# Each of these lines is printed.
prints() { # 'host [option...]', line...
	local output line words
	read -ra words <<<"$1"
	output=$(devinfo "${words[@]}")
	shift
	for line in "$@"; do
		printf '%s\n' "$output" | grep -qxF -e "$line" || {
			printf 'no line "%s" in:\n%s\n' "$line" "$output"
			return 1
		}
	done
}

# The names that ibv_devices lists.
listed() { # host|here
	local place=(at "$1")
	[ "$1" != here ] || place=(here)
	"${place[@]}" ibv_devices | awk '$NF ~ /^[0-9a-f]+$/ && length($NF) == 16 { print $1 }' | sort | paste -s -d ' '
}

lists_guid() { # host
	matches "^ *$1[[:space:]]+$(printf '%016x' "$(expected_guid "$1")")\$" "$(at "$1" ibv_devices)"
}

# --- hosts ---------------------------------------------------------------------------------------------------------

test_port() { # host, MTU, 'MTU as printed'
	local lid guid width speed sm
	read -r lid guid width speed < <(discovered "$1")
	sm=$(discovered_lid h1)
	check "$1: the subnet has found it" holds "$lid" -gt 0
	check_equal "$1: its GUID is by its Ethernet address" "$(expected_guid "$1")" "$guid"
	check "$1: ibv_devices has its GUID" lists_guid "$1"
	check "$1: ibv_devinfo has its GUIDs" prints "$1 -d $1" "node_guid: $(in_groups "$guid")" "sys_image_guid: $(in_groups "$guid")" \
		"transport: InfiniBand (0)" "phys_port_cnt: 1"
	check "$1: its LIDs, and that of the subnet manager" prints "$1 -d $1 -i 1" "port: 1" "port_lid: $lid" "sm_lid: $sm" "port_lmc: 0x01"
	check "$1: its state" prints "$1 -v" "state: PORT_ACTIVE (4)" "phys_state: LINK_UP (5)" "link_layer: InfiniBand"
	check "$1: its MTU" prints "$1 -d $1 -i 1" "max_mtu: $3" "active_mtu: $3"
	check "$1: its rate" prints "$1 -v -i 1" "active_width: ${widths[$width]}" "active_speed: ${speeds[$speed]}"
	check "$1: its GID" prints "$1 -v" "GID[  0]: $subnet:$(in_groups "$guid")"
	check_refused "$1: it has no port 2" at "$1" ibv_devinfo -d "$1" -i 2
}

test_hosts() {
	test_port h1 4096 "4096 (5)"
	test_port h3 2048 "2048 (4)"
	check "its fields are the same by ibv_devinfo of all HCAs" equal "$(devinfo h1 -v)" "$(devinfo h1 -v -d h1)"
}

test_down() {
	check "a cable is pulled" pull h3
	check "its port is down" eventually prints "h3 -v" "state: PORT_DOWN (1)" "phys_state: POLLING (2)"
	check "put back" put_back h3
	check "it is active again" eventually prints "h3 -v" "state: PORT_ACTIVE (4)" "phys_state: LINK_UP (5)"
}

# --- namespaces ----------------------------------------------------------------------------------------------------

test_namespaces() {
	check_equal "a host lists its HCA alone" h1 "$(listed h1)"
	check_equal "two HCAs in a namespace are both listed" "near rxe_far" "$(listed here)"
	check "each is opened" prints "here" "hca_id: near" "hca_id: rxe_far"
	check "and alone, by its name" equal "hca_id: rxe_far" "$(devinfo here -d rxe_far | grep hca_id)"
	check "a namespace is made that has no HCA" ip netns add bare
	check_equal "there none is listed" "" "$(listed bare)"
	check "none is found" matches 'No IB devices found' "$(at bare ibv_devinfo 2>&1)"
	check_refused "nor opened" at bare ibv_devinfo -d h1
	ip netns delete bare
}

# --- events --------------------------------------------------------------------------------------------------------

other_lid=32

# Lines of events that had been seen before what is watched.
seen=0

watch_anew() {
	seen=$(wc -l </tmp/events)
}

watched_events() { # regular expression
	matches "$1" "$(tail -n "+$((seen + 1))" /tmp/events)"
}

test_events() {
	local watcher
	# What is to end is the program: a function would be a shell.
	ip netns exec h3 ibv_asyncwatch -d h3 >/tmp/events 2>&1 &
	watcher=$!
	check "ibv_asyncwatch watches h3" eventually watched_events '^h3: async event FD'
	pull h3
	check "it sees the port go" eventually watched_events 'IBV_EVENT_PORT_ERR .*port 1$'
	put_back h3
	check "and come" eventually watched_events 'IBV_EVENT_PORT_ACTIVE .*port 1$'
	stop_sm h1
	watch_anew
	check "its LID is to be another one" give_lid h1 h3 "$other_lid"
	start_sm h1 "${lines[@]}" 'honor_guid2lid_file TRUE'
	check "it sees its LID change" eventually watched_events 'IBV_EVENT_LID_CHANGE .*port 1$'
	check "to that one" eventually lid_is h3 "$other_lid"
	check "and that it is to register again" eventually watched_events 'IBV_EVENT_CLIENT_REREGISTER .*port 1$'
	stop_sm h1
	watch_anew
	start_sm h2 "${lines[@]}"
	check "it sees another subnet manager" eventually watched_events 'IBV_EVENT_SM_CHANGE .*port 1$'
	check "its HCA is deleted" at h3 rdma link delete h3
	check "the program is told, at last" eventually watched_events 'IBV_EVENT_DEVICE_FATAL'
	# It goes on to read, and ib_uverbs lets it wait, whichever device it was.
	kill "$watcher"
	check "it ends when it is asked to" eventually has_ended "$watcher"
	kill -KILL "$watcher" 2>/dev/null
	wait "$watcher" 2>/dev/null
	check_equal "h3 lists no HCA" "" "$(listed h3)"
}

# --- soft-RoCE -----------------------------------------------------------------------------------------------------

listens() { # port
	ss -ltn | grep -q ":$1 "
}

# Only an HCA's own library can use it. From one to itself, or to another one; port and GID index are those of the arguments.
pingpong() { # server's device, client's device, 'words'
	local server status=0
	# shellcheck disable=SC2086 # words
	timeout $((4 * patience)) ibv_rc_pingpong -d "$1" -n 20 $3 >/tmp/server 2>&1 &
	server=$!
	eventually listens 18515 || printf 'the server does not listen\n'
	# shellcheck disable=SC2086 # words
	watched $((2 * patience)) ibv_rc_pingpong -d "$2" -n 20 $3 localhost || {
		status=$?
		kill "$server"
	}
	wait "$server" || {
		status=$?
		cat /tmp/server
	}
	return "$status"
}

env_pingpong() { # variable=value, argument...: with that in the environment
	local "${1?}"
	export "${1%%=*}"
	pingpong "${@:2}"
}

# The name that its file has for a library.
driver_of() { # name
	awk '$1 == "driver" { print $2 }' "/etc/libibverbs.d/$1.driver"
}

gid_of_v4() {
	grep -l '0000:ffff:0a4d' /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null | head -n 1 | xargs basename
}

# On a cable of its own.
make_rxe_beside() {
	modprobe rdma_rxe && ip link add ethernet1 type veth peer name ethernet2 && ip link set ethernet1 up &&
		ip link set ethernet2 up && ip address add 10.77.0.1/24 dev ethernet1 &&
		rdma link add rxe0 type rxe netdev ethernet1 && eventually rxe_is_active
}

test_beside_rxe() {
	check "soft-RoCE is in the same namespace" make_rxe_beside
	check_equal "soft-RoCE and softib's HCAs are listed" "near rxe0 rxe_far" "$(listed here)"
	check "soft-RoCE's is Ethernet" prints "here -d rxe0" "link_layer: Ethernet" "hca_id: rxe0"
	check "softib's is InfiniBand" prints "here -d near" "link_layer: InfiniBand" "hca_id: near"
	check "softib's HCAs talk to each other" pingpong near rxe_far "-g 0"
	check "soft-RoCE's talks to itself" pingpong rxe0 rxe0 "-g $(gid_of_v4)"
	# Libraries are asked in the order in which they were loaded.
	check "softib's do when soft-RoCE's library is the first" env_pingpong RDMAV_DRIVERS=rxe near rxe_far "-g 0"
	check "and the last" env_pingpong RDMAV_DRIVERS="$(driver_of softib)" near rxe_far "-g 0"
	check "soft-RoCE's does then" env_pingpong RDMAV_DRIVERS="$(driver_of softib)" rxe0 rxe0 "-g $(gid_of_v4)"
	check "it goes" rdma link delete rxe0
	check_equal "softib's stay" "near rxe_far" "$(listed here)"
}

ulimit -l unlimited
modprobe ib_uverbs
bring_up_fabric devices "h1 ${lines[0]};${lines[1]}"
test_hosts
test_down
test_namespaces
test_beside_rxe
test_events
take_down_fabric
finish
