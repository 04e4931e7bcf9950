# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of cm/ are written with, besides node.sh: which connection manager a node runs, its counters, and
# programs that serve on one node and are called from another.

# shellcheck source=selftests/lib/node.sh
. selftests/lib/node.sh

# --- which connection manager a node runs ------------------------------------------------------------------------------

# In the order in which they can be unloaded. What stands on the connection manager comes before it.
above_cm=(nvme_rdma nvmet_rdma ib_srp ib_srpt rdma_ucm rdma_cm iw_cm ib_ipoib)

is_loaded() { # module
	[ -d "/sys/module/$1" ]
}

holders_of() { # module
	find "/sys/module/$1/holders" -type l -printf '%f ' 2>/dev/null
}

# Whether a module is one of those that hold another.
holds_module() { # module, held module
	[ -e "/sys/module/$2/holders/$1" ] || {
		printf '%s is not held by %s but by: %s\n' "$2" "$1" "$(holders_of "$2")"
		return 1
	}
}

# The kernel's own, or oxib's in its place, and rdma_cm on it with its door to user space. ib_uverbs comes before it: a device
# that goes is taken from the last first, and ib_uverbs waits for programs that only rdma_cm tells of it.
load_cm() { # oxib|kernel
	modprobe -a ib_umad ib_uverbs || return
	case $1 in
	oxib) load_oxib_cm ;;
	kernel) modprobe ib_cm ;;
	esac || return
	modprobe -a rdma_cm rdma_ucm && runs_cm "$1"
}

# Parameters of oxib, where a script wants other ones.
oxib_parameters=()

load_oxib_cm() {
	is_loaded oxib || load_oxib "${oxib_parameters[@]}" || return
	[ -e "$MODULES/ib_cm.ko" ] || {
		printf 'there is no %s: oxib has no connection manager\n' "$MODULES/ib_cm.ko"
		return 1
	}
	insmod "$MODULES/ib_cm.ko"
}

# rdma_cm stands on ib_cm, and oxib's ib_cm on oxib, which the kernel's own has never heard of.
runs_cm() { # oxib|kernel
	holds_module rdma_cm ib_cm || return
	case $1 in
	oxib) holds_module ib_cm oxib && has_class ;;
	kernel) ! holds_module ib_cm oxib >/dev/null 2>&1 || {
		printf 'ib_cm is the one of oxib, not the kernel\n'
		return 1
	} ;;
	esac
}

# A port that has a connection manager counts its messages.
has_class() {
	[ ! -e /sys/class/infiniband/rxe0 ] || [ -d "$port_directory/cm_tx_msgs" ] || {
		printf 'the port has no counters of a connection manager: the other one may have its class\n'
		dmesg | grep -E 'oxib|ib_cm' | tail -n 5
		return 1
	}
}

# Nothing may hold it any more: a reference that was lost shows here.
unload_cm() {
	local module
	for module in "${above_cm[@]}" ib_cm oxib; do
		! is_loaded "$module" || rmmod "$module" || return
	done
}

# --- what a port's connection manager counted --------------------------------------------------------------------------

port_directory=/sys/class/infiniband/rxe0/ports/1

cm_counter() { # tx_msgs|tx_retries|rx_msgs|rx_duplicates, message
	printf '%s\n' "$(<"$port_directory/cm_$1/$2")"
}

# All that were not zero, as comments.
note_counters() {
	note "$(cd "$port_directory" && grep -v '^0$' cm_*/* /dev/null | tr '\n' ' ')"
}

# What there is, as comments: for a failure that leaves no other trace.
note_state() {
	note "$(rdma resource show qp; rdma statistic show; rdma link; ip neigh; ip -br address; tc qdisc show dev "$ethernet")"
	note_counters
}

# --- the ground --------------------------------------------------------------------------------------------------------

# The two addresses of the node on the cable; rxe has a GID for each.
address_of() { # v4|v6, node
	case $1 in
	v4) printf '10.77.0.%d\n' "$2" ;;
	v6) printf 'fd00:77::%d\n' "$2" ;;
	esac
}

# What filters of messages are in (party.py). Once in a boot, for all scripts.
can_filter() {
	[[ $(tc qdisc show dev "$ethernet") == *clsact* ]] || tc qdisc add dev "$ethernet" clsact
}

# Everything below the connection manager. IPv6 without duplicate address detection: addresses are good at once.
ground_up() { # [Ethernet MTU]
	ulimit -l unlimited
	ulimit -n 65536
	make_rxe "${1:-9000}"
	can_filter || bail_out "there can be no filters on the Ethernet device"
	ip address replace "$(address_of v6 "$NODE")/64" dev "$ethernet" nodad || bail_out "the Ethernet device takes no IPv6 address"
	barrier ground
	eventually answers "$(address_of v4 "$peer")" || bail_out "the other node is not reached by IPv4"
	eventually answers "$(address_of v6 "$peer")" || bail_out "the other node is not reached by IPv6"
}

ground_down() {
	stop_jobs
	rdma link delete rxe0
}

# --- a consumer in the kernel ----------------------------------------------------------------------------------------------

# Its service.
# shellcheck disable=SC2034 # abuse.sh's and hammer.sh's
consumer_service=0x6f78696200000001

consumer() { # parameter...
	insmod "$MODULES/selftests/cm/consumer/cm_consumer.ko" "$@"
}

# How many events of a sort it was told of, while it watches.
consumer_was_told() { # questions|requests|rejections|strays, number
	equal "$2" "$(cat "/sys/module/cm_consumer/parameters/$1")"
}

# --- programs that serve -----------------------------------------------------------------------------------------------

# The ports on which something listens. One that does on every address has an id for each device besides.
listening_ports() {
	rdma resource show cm_id | sed -nE 's/.* state LISTEN .*src-addr [^ ]*:([0-9]+) .*/\1/p' | sort -u
}

listen_all() { # port...
	equal '' "$(comm -13 <(listening_ports) <(printf '%s\n' "$@" | sort -u))"
}

# Wait until a process of this shell ends by itself, and take its status. One that does not is ended.
ends_well() { # process, log
	eventually has_ended "$1" || {
		explain_program "$1"
		end_processes "$1"
	}
	wait "$1" || {
		printf 'it ended with status %d, having said:\n' $?
		tail -n 15 "$2"
		return 1
	}
}

# --- many connections -----------------------------------------------------------------------------------------------------

first_port=7200

# many.py, with an end if it hangs.
many() { # argument...
	timeout "$longest" python3 selftests/cm/many.py "$@"
}

many_listen() { # processes
	local ports
	mapfile -t ports < <(seq "$first_port" $((first_port + $1 - 1)))
	eventually listen_all "${ports[@]}"
}

# --- unmodified programs: the last node serves them, n1 calls -----------------------------------------------------------

# Which ones, over IPv4 and over IPv6: for the script to say.
declare -A programs=([v4]="" [v6]="")

# The connection managers of both, for the descriptions.
combination=

# udaddy has no option for its port. cmtime has one, but needs two: one for TCP, with the same number.
declare -A program_ports=([rping]=7001 [ucmatose]=7002 [udaddy]=7174 [rstream]=7004 [riostream]=7005 [ib_send_lat]=7006
	[ib_write_bw]=7007 [cmtime]=7471)

group=239.77.1.1
connections=$(some 200)

declare -A perftest_family=([v4]="" [v6]="--ipv6 --ipv6-addr")

# The words of both ends that are the same.
#
# riostream goes without -T v, by which the receiver looks at the data: with it the receiver waits for the last byte of an RDMA
# write and then expects all bytes before it. User-mode Linux patches no alternatives in, so its memcpy is memcpy_orig, which copies
# backwards where the low byte of the source's address is below that of the destination (arch/x86/lib/memcpy_64.S); rxe copies with
# it (rxe_mr_copy). Where the host takes the processor away in the middle of that, one end says "data verification failed" and
# ends, and the other spins for ever. On umldebug over IPv6, under load, with -T v: 3 of 46 runs hung with the kernel's ib_cm at
# both ends, and 1 of 79 with oxib's; without it none of 120.
both_ends() { # v4|v6, program
	case $2 in
	rping) printf '%s ' -p "${program_ports[rping]}" -C 20 -S 4000 -V ;;
	ucmatose) printf '%s ' -p "${program_ports[ucmatose]}" -c 20 -C 10 -S 1000 ;;
	udaddy) printf '%s ' -c 20 -C 1 -S 1000 ;;
	mckey) printf '%s ' -m "$group" -S 1000 ;;
	rstream) printf '%s ' -p "${program_ports[rstream]}" -S 1000 -I 10 -C 10 -T v ;;
	riostream) printf '%s ' -p "${program_ports[riostream]}" -S 1000 -I 10 -C 10 ;;
	ib_*) printf '%s ' -R -F -n 20 -s 4096 -p "${program_ports[$2]}" "${perftest_family[$1]}" ;;
	cmtime) printf '%s ' -p "${program_ports[cmtime]}" -c "$connections" ;;
	esac
}

# stdbuf: what mckey says shows when it has joined. It is sent more datagrams than it waits for, as some may get lost.
server_of() { # v4|v6, program, own address
	case $2 in
	rping) printf '%s ' rping -s -a "$3" ;;
	mckey) printf '%s ' stdbuf -oL mckey -C 10 -b "$3" ;;
	ib_*) printf '%s ' "$2" ;;
	*) printf '%s ' "$2" -b "$3" ;;
	esac
	both_ends "$1" "$2"
}

client_of() { # v4|v6, program, own address, the peer's
	case $2 in
	rping) printf '%s ' rping -c -a "$4" ;;
	mckey) printf '%s ' mckey -C 100 -s -b "$3" ;;
	ib_*) printf '%s ' "$2" "server-$1" ;;
	*) printf '%s ' "$2" -s "$4" ;;
	esac
	both_ends "$1" "$2"
}

declare -A servers=()

# Its end shows at the meeting place.
serve() { # program, command...
	local program=$1 status=0
	shift
	timeout "$longest" "$@" &
	# shellcheck disable=SC2064 # this process
	trap "kill $!" TERM
	wait $! || status=$?
	: >"$meeting_place/served.$program"
	return "$status"
}

serve_all() { # v4|v6
	local program listening=()
	for program in ${programs[$1]}; do
		rm -f "$meeting_place/served.$program"
		# shellcheck disable=SC2046 # words
		serve "$program" $(server_of "$1" "$program" "$(address_of "$1" "$NODE")") >"/tmp/$program.log" 2>&1 &
		servers[$program]=$!
		[ "$program" = mckey ] || listening+=("${program_ports[$program]}")
	done
	eventually listen_all "${listening[@]}" || note "not all of them listen: $(rdma resource show cm_id)"
	[ ! -e /tmp/mckey.log ] || eventually grep -q 'joined' /tmp/mckey.log || note "mckey did not join"
}

check_servers() { # v4|v6
	local program
	for program in ${programs[$1]}; do
		check "$combination, $1: the server of $program ends well" ends_well "${servers[$program]}" "/tmp/$program.log"
		rm -f "/tmp/$program.log"
	done
}

# mckey's datagrams may all get lost on a busy machine: they are sent until its server has had enough of them. No program
# begins before the server of the one before has ended: cmtime makes up numbers of queue pairs, and one that a connection of
# another program still has would be stale.
call() { # program, command...
	local program=$1 deadline=$((SECONDS + patience))
	shift
	watched $((2 * patience)) "$@" || return
	until [ -e "$meeting_place/served.$program" ] || ((SECONDS > deadline)); do
		pause 0.2
		[ "$program" != mckey ] || [ -e "$meeting_place/served.mckey" ] || watched $((2 * patience)) "$@" || return
	done
}

# Between its two connections perftest's server listens again, and its client does not wait for that. But the client looks up
# the server's name for each of them, which takes long here: a name server is asked first that nobody is. So the server is
# in time.
slow_names() {
	printf '%s\n' "$(address_of v4 "$NODES") server-v4" "$(address_of v6 "$NODES") server-v6" >>/etc/hosts
	printf '%s\n' "nameserver $(nobody)" "options attempts:1 timeout:$((3 * frugality))" >/etc/resolv.conf
	echo 'hosts: dns files' >/etc/nsswitch.conf
}

# An address in this node's subnet that no node has.
nobody() {
	local own
	own=$(address_of v4 "$NODE")
	printf '%s.99\n' "${own%.*}"
}

call_all() { # v4|v6
	local program
	for program in ${programs[$1]}; do
		# shellcheck disable=SC2046 # words
		check "$combination, $1: $program" call "$program" \
			$(client_of "$1" "$program" "$(address_of "$1" 1)" "$(address_of "$1" "$NODES")")
	done
}

run_programs() { # v4|v6
	on_node "$NODES" serve_all "$1"
	barrier serving
	on_node 1 call_all "$1"
	barrier called
	on_node "$NODES" check_servers "$1"
}
