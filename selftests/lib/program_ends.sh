# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Programs that are killed, and HCAs that go under programs: at each step of a program's life, under traffic, and with softib.ko. Nothing
# may be left of them, nor pinned. With the hosts h1 and h2.

# shellcheck source=selftests/lib/acm.sh
. selftests/lib/acm.sh

# The TCP port of perftest's programs and of the pingpongs.
exchange_port=18515

rdma_link_delete() { # host
	at "$1" rdma link delete "$1"
}

# --- under traffic -------------------------------------------------------------------------------------------------------------------

start_traffic() { # seconds
	at h1 timeout $((4 * patience)) ib_write_bw -d h1 -F -D "$1" -s 4096 >/tmp/server 2>&1 &
	server=$!
	eventually listens_tcp h1 "$exchange_port" || return
	at h2 timeout $((4 * patience)) ib_write_bw -d h2 -F -D "$1" -s 4096 "$(v4_of h1)" >/tmp/client 2>&1 &
	client=$!
	eventually has_objects h1 qp mr && eventually has_objects h2 qp mr && pause 1
}

has_traffic() {
	local before
	before=$(port_field h2 counters/port_xmit_packets)
	pause 1
	holds "$(port_field h2 counters/port_xmit_packets)" -gt "$before"
}

test_killed() {
	check "ib_write_bw writes" start_traffic 60
	check "rdma shows what it has" has_objects h1 qp cq pd mr ctx
	check "there is traffic" has_traffic
	pkill -KILL --ns $$ --nslist pid ib_write_bw
	wait "$server" "$client" 2>/dev/null
	check "nothing is left of the killed server" eventually has_no_objects h1
	check "nor of the client" eventually has_no_objects h2
}

test_removed() {
	check "ib_write_bw writes" start_traffic 60
	check "its HCA goes under traffic" rdma_link_delete h2
	check "the program ends" eventually has_ended "$client"
	check_refused "with an error" wait "$client"
	pkill -KILL --ns $$ --nslist pid ib_write_bw
	wait "$server" 2>/dev/null
	check "nothing is left of the other end" eventually has_no_objects h1
}

# --- at each step of a program -------------------------------------------------------------------------------------------------------

# Programs are killed there. Those that read and send do it all the time.
steps=(context pd mr cq reset init rtr rts receives unanswered reads sends)

came_there() { # host
	grep -qx there "/tmp/life.$1"
}

start_life() { # host, step
	rm -f "/tmp/life.$1"
	ip netns exec "$1" "$MODULES/libsoftib/life" "$1" "$2" >"/tmp/life.$1" 2>&1 &
	life=$!
	eventually came_there "$1" || {
		cat "/tmp/life.$1"
		kill -KILL "$life"
		return 1
	}
}

is_killed_at() { # step
	start_life h1 "$1" || return
	# It may be in the middle of what it does all the time.
	pause 0.1
	kill -KILL "$life"
	wait "$life"
	eventually has_no_objects h1
} 2>/dev/null

test_steps() {
	local step
	for step in "${steps[@]}"; do
		check "nothing is left of a program that is killed at the step $step" is_killed_at "$step"
	done
}

pinned_by() { # process: KiB
	awk '$1 == "VmPin:" { print $2 }' "/proc/$1/status"
}

has_pinned_nothing() { # process
	equal 0 "$(pinned_by "$1")"
}

# Those that do something all the time fail; the others wait for nothing of the HCA, and live on.
loses_its_hca_at() { # step
	start_life h2 "$1" || return
	pause 0.1
	rdma_link_delete h2 || return
	case $1 in
	reads | sends) eventually has_ended "$life" && ! wait "$life" || return ;;
	*) eventually has_pinned_nothing "$life" && kill -KILL "$life" && ! wait "$life" || return ;;
	esac
	eventually at h2 rdma link add h2 type softib netdev port1 && eventually is_active h2
} 2>/dev/null

test_losing_steps() {
	local step
	for step in "${steps[@]}"; do
		check "nothing is pinned by a program whose HCA goes at the step $step" loses_its_hca_at "$step"
	done
	check "nothing is left of them" eventually has_no_objects h2
}

# --- with softib.ko ------------------------------------------------------------------------------------------------------------------

# A switch would be in the way, and a subnet manager is in none once the ports are active.
test_unloaded() {
	local reader sender holder
	bring_up_fabric pair h1
	test_losing_steps
	stop_sm
	check "a program reads all the time" start_life h1 reads
	reader=$life
	check "another one sends" start_life h2 sends
	sender=$life
	check "a third one has a region" start_life h1 mr
	holder=$life
	check_equal "of pinned memory" 1024 "$(pinned_by "$holder")"
	check "softib.ko is unloaded meanwhile" unload_softib
	check "the one that reads ends" eventually has_ended "$reader"
	check_refused "with an error" wait "$reader"
	check "the one that sends ends" eventually has_ended "$sender"
	check_refused "with an error, too" wait "$sender"
	check_equal "nothing is pinned for the third one, which lives on" 0 "$(pinned_by "$holder")"
	kill -KILL "$reader" "$sender" "$holder" 2>/dev/null
	check "softib.ko can be loaded again" load_softib
	take_down_fabric
}
