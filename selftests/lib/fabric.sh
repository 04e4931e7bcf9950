# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of fabric/ are written with, besides node.sh: fabrics of softib, subnet managers in their hosts, what the
# diagnostic programs say, and the kernel's IP over InfiniBand. A fabric is in one node; host N of it is the network
# namespace hN, with the HCA hN.

# shellcheck source=selftests/lib/node.sh
. selftests/lib/node.sh
# shellcheck source=selftests/lib/verbs.sh
. selftests/lib/verbs.sh

topologies=selftests/fabric/topologies

load_softib() { # [parameter...]
	modprobe -a ib_core ib_umad && insmod "$MODULES/softib.ko" "$@"
}

unload_softib() {
	rmmod softib
}

at() { # host, command...
	local host=$1
	shift
	ip netns exec "$host" "$@"
}

in_background_at() { # host, command...
	in_background ip netns exec "$@"
}

# Whether so many programs have come into a host. One that comes when those there have been ended keeps the namespace.
has_programs() { # host, number
	holds "$(ip netns pids "$1" | wc -l)" -ge "$2"
}

listens_tcp() { # host, port
	at "$1" ss -ltn | grep -q ":$2 "
}

# The hosts of the fabric that is up.
hosts=()

# No subnet manager finds what one of an earlier fabric left.
fabric_up() { # topology
	rm -rf /tmp/sm.*
	scripts/fabric up "$topologies/$1.fabric" && mapfile -t hosts < <(ip netns list | awk '{ print $1 }' | sort -V) &&
		ip -all netns exec sh -c '. scripts/node_runner/patience.sh; be_patient_in_namespace' >/dev/null
}

fabric_down() {
	scripts/fabric down
}

# Everything from nothing to a fabric whose hosts have subnet managers: 'HOST [LINE OF OPENSM.CONF[;...]]' for each of those.
bring_up_fabric() { # topology, subnet manager...
	local manager host line lines
	load_softib || bail_out "softib.ko could not be loaded"
	fabric_up "$1" || bail_out "the fabric $1 could not be built"
	shift
	for manager in "$@"; do
		read -r host line <<<"$manager"
		IFS=';' read -ra lines <<<"$line"
		start_sm "$host" "${lines[@]}"
	done
	eventually all_active || {
		scripts/fabric show
		tail -n 20 /tmp/sm.*/log
		bail_out "not all ports became active"
	}
}

# The end of every script that loaded the module: what it forgot shows in kmemleak's report once it has gone.
take_down_fabric() {
	stop_jobs
	# Before the subnet managers: nobody would answer it when it leaves its groups.
	rmmod ib_ipoib 2>/dev/null
	stop_sm
	check "the fabric can be taken down" fabric_down
	check "softib.ko can be unloaded" unload_softib
}

# --- subnet managers ---------------------------------------------------------------------------------------------------------

declare -A sm_processes=()

# In a place of its own, sweeping often: what it was not told of it finds soon.
start_sm() { # host, [line of opensm.conf...]
	local host=$1 place=/tmp/sm.$1
	shift
	mkdir -p "$place"
	printf '%s\n' "log_file $place/log" "dump_files_dir $place" "sweep_interval 5" "sminfo_polling_timeout 1000" \
		"polling_retry_number 3" "partition_config_file $place/partitions.conf" \
		"prefix_routes_file $place/prefix-routes.conf" "$SM_PATIENCE" "$@" >"$place/opensm.conf"
	OSM_TMP_DIR=$place OSM_CACHE_DIR=$place ip netns exec "$host" opensm --config "$place/opensm.conf" >"$place/output" 2>&1 &
	sm_processes[$host]=$!
}

stop_sm() { # [host...]: asked to, it leaves the port as one without a subnet manager
	local host
	[ $# -gt 0 ] || set -- "${!sm_processes[@]}"
	for host in "$@"; do
		kill "${sm_processes[$host]}"
	done
	for host in "$@"; do
		wait "${sm_processes[$host]}"
		unset "sm_processes[$host]"
	done
} 2>/dev/null

kill_sm() { # host
	kill -KILL "${sm_processes[$1]}" && wait "${sm_processes[$1]}"
	unset "sm_processes[$1]"
} 2>/dev/null

# What a host's device, its connection manager and TCP have counted, and the connections of its programs.
counted_by() { # host
	# shellcheck disable=SC2016 # an argument of that shell
	at "$1" sh -c 'cd "/sys/class/infiniband/$1/ports/1" && grep -Hv "^0$" hw_counters/* cm_*/*' sh "$1"
	at "$1" nstat -a | grep -E 'Retrans|Timeouts|Backlog|Rcvq|InErrs|OutDiscards|InDiscards'
	at "$1" ss -tin
}

# What the subnet managers see, and what they said; interfaces, and what their driver said: for a failure that leaves no other trace.
explain_fabric() {
	local host
	for host in "${hosts[@]:0:8}"; do
		note "$host: $(at "$host" ip -br address show dev ib0; at "$host" ip -s neighbour; at "$host" ethtool -S ib0 | grep -v ': 0$'; counted_by "$host")"
		note "$host: $(at "$host" rdma resource show qp type RC | head -n 20; at "$host" tc -s qdisc show dev ib0)"
	done
	# Without what the kernel has just told of its tasks.
	note "$(dmesg | grep -vE 'kworker|[Ww]orkqueue|pending:' | grep -E 'infiniband|oxib|ib[0-9]:' | tail -n 20)"
	for host in "${!sm_processes[@]}"; do
		note "$host: $(at "$host" timeout 20 iblinkinfo)"
		note "$host: $(tail -n 40 "/tmp/sm.$host/log")"
	done
}

# A subnet manager reads its files again.
reread() { # host...
	local host
	for host in "$@"; do
		kill -HUP "${sm_processes[$host]}"
	done
}

# --- ports -------------------------------------------------------------------------------------------------------------------

port_field() { # host, lid|sm_lid|lid_mask_count|state|phys_state|gids/0|pkeys/0|..., [port]
	at "$1" cat "/sys/class/infiniband/$1/ports/${3:-1}/$2"
}

# As oxib and saquery write it, without leading zeros.
short_gid() { # GID
	sed -E 's/(^|:)0+([0-9a-f])/\1\2/g; s/:0:0:0:/::/' <<<"$1"
}

port_number() { # host, lid|sm_lid|lid_mask_count, [port]: as a decimal number
	printf '%d\n' "$(port_field "$@")"
}

lid_is() { # host, LID
	equal "$2" "$(port_number "$1" lid)"
}

# By the file in which OpenSM keeps them. It reads that as it starts, with the line honor_guid2lid_file TRUE.
give_lid() { # host of the stopped subnet manager, host, LID
	local file=/tmp/sm.$1/guid2lid last
	last=$(($3 + (1 << $(port_number "$2" lid_mask_count)) - 1))
	awk -v guid="$(port_guid "$2")" -v lids="$(printf '0x%04x 0x%04x' "$3" "$last")" \
		'$1 == guid { $0 = guid " " lids } { print }' "$file" >/tmp/guid2lid && cp /tmp/guid2lid "$file"
}

ports_of() { # host
	at "$1" ls "/sys/class/infiniband/$1/ports"
}

# All its ports.
is_active() { # host
	equal "$1: 4: ACTIVE" "$1: $(at "$1" sh -c "sort -u /sys/class/infiniband/$1/ports/*/state")"
}

all_active() {
	local host
	for host in "${hosts[@]}"; do
		is_active "$host" || return
	done
}

umad_of() { # host: the device of ib_umad for its only port
	local file
	file=$(at "$1" sh -c "grep -lx '$1' /sys/class/infiniband_mad/umad*/ibdev") && printf '/dev/infiniband/%s\n' "$(basename "${file%/ibdev}")"
}

port_guid() { # host: as 0x and 16 digits
	port_field "$1" gids/0 | awk -F: '{ print "0x" $5 $6 $7 $8 }'
}

# --- routers -----------------------------------------------------------------------------------------------------------------

# A router's LID, where a host sees it.
router_lid() { # host, router
	at "$1" ibnetdiscover --ports | sed -nE "s/^RT +([0-9]+) .*\( '$2' - .*/\1/p"
}

# The GUID of a router's port, which it has from its net device.
router_guid() { # net device
	local address
	address=$(tr -d : <"/sys/class/net/$1/address")
	printf '0x%016x\n' $(((0x${address:0:6} ^ 0x020000) << 40 | 0xfffe000000 | 0x${address:6}))
}

# --- what programs say -------------------------------------------------------------------------------------------------------

# What a command prints in a host has to match each of the expressions.
says() { # host, 'command and arguments', extended regular expression...
	local host=$1 output
	# shellcheck disable=SC2086 # words
	output=$(at "$host" timeout $((2 * patience)) $2 2>&1) || {
		printf '%s failed:\n%s\n' "$2" "$output"
		return 1
	}
	shift 2
	while [ $# -gt 0 ]; do
		matches "$1" "$output" || return
		shift
	done
}

# The lines `ok` and `not ok` of a program of selftests/fabric/programs are checks. The last one is `end`.
take_report() { # name, file
	local verdict rest ended=0
	while read -r verdict rest; do
		case $verdict in
		ok) ok "$1: $rest" ;;
		not) not_ok "$1: ${rest#ok }" ;;
		end) ended=1 ;;
		*) note "$verdict $rest" ;;
		esac
	done <"$2"
	check_equal "$1 came to its end" 1 "$ended"
}

# The cables that a host's subnet has, as the file says. It is read once: python starts slowly in a node.
expected_links() { # topology, host
	local links=/tmp/links.$1.$2
	if [ ! -s "$links" ]; then
		python3 selftests/fabric/links.py expected "$topologies/$1.fabric" "$2" >"$links" || return
	fi
	cat "$links"
}

# The host discovers them.
discovers_its_subnet() { # topology, host
	local expected found
	expected=$(expected_links "$@") || return
	found=$(at "$2" ibnetdiscover --ports | python3 selftests/fabric/links.py discovered) || return
	equal "$expected" "$found"
}

master_is() { # host to ask, host that is expected
	says "$1" sminfo "sm lid $(port_number "$2" lid) sm guid $(port_guid "$2" | sed "s|^0x0*|0x|"),.*SMINFO_MASTER"
}

# --- objects of programs -----------------------------------------------------------------------------------------------------

# What programs have of a kind of objects, the kernel's consumers left out.
objects_of_programs() { # host, qp|cq|pd|mr|cm_id|ctx
	at "$1" rdma -j resource show "$2" | jq '[.. | objects | select(has("pid") and (.pid != 0))] | length'
}

has_no_objects() { # host
	local kind
	for kind in qp cq pd mr cm_id ctx; do
		equal "$kind: 0" "$kind: $(objects_of_programs "$1" "$kind")" || return
	done
}

has_objects() { # host, kind...
	local host=$1 kind
	shift
	for kind in "$@"; do
		holds "$(objects_of_programs "$host" "$kind")" -gt 0 || return
	done
}

# --- one HCA in a node, without a fabric: on its Ethernet, in no namespace of its own ----------------------------------------

hca_up() {
	load_softib && ip link set eth0 mtu 9000 up && rdma link add hca0 type softib netdev eth0
}

hca_is_active() {
	[ "$(cat /sys/class/infiniband/hca0/ports/1/state)" = '4: ACTIVE' ]
}

# Without a namespace of its own.
start_sm_here() {
	mkdir -p /tmp/sm
	printf '%s\n' "log_file /tmp/sm/log" "$SM_PATIENCE" >/tmp/sm/opensm.conf
	OSM_TMP_DIR=/tmp/sm OSM_CACHE_DIR=/tmp/sm opensm --config /tmp/sm/opensm.conf >/tmp/sm/output 2>&1 &
	jobs_running+=($!)
}

# --- the kernel's IP over InfiniBand ------------------------------------------------------------------------------------------

# Host hN is number N.
host_number() { # host
	printf '%s\n' "${1#h}"
}

v4_of() { # host
	printf '10.88.0.%d\n' "$(host_number "$1")"
}

v6_of() { # host
	printf 'fd00:88::%x\n' "$(host_number "$1")"
}

ipoib_is_there() { # host
	at "$1" test -e /sys/class/net/ib0
}

ipoib_up() { # host...
	local host
	modprobe ib_ipoib || return
	for host in "$@"; do
		eventually ipoib_is_there "$host" &&
			at "$host" ip address replace "$(v4_of "$host")/24" brd + dev ib0 &&
			at "$host" ip address replace "$(v6_of "$host")/64" dev ib0 nodad &&
			at "$host" ip link set ib0 up || return
	done
	for host in "$@"; do
		eventually at "$host" grep -q 1 /sys/class/net/ib0/carrier || return
	done
}

host_reaches() { # host, address, [ping option...]
	at "$1" ping -q -c "$echoes" -i 0.2 -W "$answer_within" "${@:3}" "$2"
}

host_answers() { # host, address, [ping option...]: one
	at "$1" ping -q -c 1 -W 2 "${@:3}" "$2"
}

# A cable is pulled, or put back, at the host's end or at the switch's.
pull() { # host
	ip -n "$1" link set port1 down
}

put_back() { # host
	ip -n "$1" link set port1 up
}

# --- queries of the subnet administrator -------------------------------------------------------------------------------------------

tracing=/sys/kernel/tracing
sent=$tracing/events/ib_mad/ib_mad_ib_send_mad
# A datagram that finds the send queue of queue pair 1 full, as connections at once may fill it, waits, and is sent as this event.
sent_later=$tracing/events/ib_mad/ib_mad_send_done_resend
sent_events='ib_mad_(ib_send_mad|send_done_resend)'

# Starts to count the queries of paths by all hosts, with either driver. The numbers are those of the wire: class, method,
# attribute.
watch_queries() {
	local event
	[ -e "$tracing/trace" ] || mount -t tracefs tracefs "$tracing"
	for event in "$sent" "$sent_later"; do
		printf 'mgmt_class == 3 && method == 1 && attr_id == %d\n' $((16#3500)) >"$event/filter" && echo 1 >"$event/enable" || return
	done
	: >"$tracing/trace"
}

stop_watching_queries() {
	echo 0 >"$sent/enable" && echo 0 >"$sent_later/enable"
}

# A query that is not answered in time is sent again, by ib_sa ten times, with the same transaction ID: it counts once.
watched_queries() {
	watched_transactions | wc -l
}

watched_transactions() {
	grep -oE ' tid 0x[0-9a-f]+' "$tracing/trace" | sort -u
}

# How often queries were sent.
watched_tries() {
	grep -cE " $sent_events: " "$tracing/trace"
}

# --- bad cables ---------------------------------------------------------------------------------------------------------------------

# netem has lost some of the packets that left by a net device.
has_lost() { # net device, [at, host]
	local lost
	lost=$("${@:2}" tc -s qdisc show dev "$1" root | sed -nE 's/.*\(dropped ([0-9]+),.*/\1/p')
	holds "$lost" -gt 0
}
