# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts of acm/ are written with, besides infiniband.sh: entries of the address cache, and two subnets with a router.

# shellcheck source=selftests/lib/infiniband.sh
. selftests/lib/infiniband.sh
# shellcheck source=selftests/lib/subnets.sh
. selftests/lib/subnets.sh

driver=oxib

# --- what programs connect by ------------------------------------------------------------------------------------------------------

load_managers() { # [kernel]: on its connection manager, not on oxib's
	modprobe -a ib_uverbs && { [ "${1:-}" = kernel ] || insmod "$MODULES/ib_cm.ko"; } && modprobe -a rdma_cm rdma_ucm
}

unload_managers() {
	local module
	for module in rdma_ucm rdma_cm iw_cm ib_cm; do
		[ ! -d "/sys/module/$module" ] || rmmod "$module" || return
	done
}

# The kernel's ib_cm comes and goes with ib_ipoib.
load_managers_of() { # driver
	if [ "$1" = oxib ]; then load_managers; else load_managers kernel; fi
}

unload_managers_of() { # driver
	if [ "$1" = oxib ]; then unload_managers; else rmmod rdma_ucm rdma_cm iw_cm; fi
}

listens_cm() { # host, port
	at "$1" rdma resource show cm_id | grep -q "state LISTEN .*:$2 "
}

# Between its two connections the server of perftest listens again, and with -R its client does not wait for that. But the client looks
# up the server's name for each of them, name-of-ADDRESS, which takes long here: a name server is asked first that nobody is.
slow_names() { # address...
	local address
	for address in "$@"; do
		printf '%s name-of-%s\n' "$address" "$address" >>/etc/hosts
	done
	printf '%s\n' "nameserver $(v4_of h99)" "options attempts:1 timeout:$((3 * frugality))" >/etc/resolv.conf
	echo 'hosts: dns files' >/etc/nsswitch.conf
}

# --- the cache -------------------------------------------------------------------------------------------------------------------

# Each host has a namespace, and so a cache, of its own.
cache_at() { # host, word...
	at "$1" python3 selftests/acm/cache.py "${@:2}"
}

statistic_at() { # host, name
	cache_at "$1" stats "$2"
}

# Of all the counters, at once: python starts slowly in a node.
statistics_of() { # host
	cache_at "$1" stats >"/tmp/acm.$1"
}

noted() { # host, name: as statistics_of found it
	awk -v name="$2" '$1 == name { print $2 }' "/tmp/acm.$1"
}

qpn_of() { # host, [interface]
	local address
	address=$(at "$1" cat "/sys/class/net/${2:-ib0}/address")
	IFS=: read -r _ a b c _ <<<"$address"
	printf '0x%s%s%s\n' "$a" "$b" "$c"
}

# The hosts' entries, as requests: without queue pairs, which the peers are asked for.
entries_of() { # host...
	local host gid
	for host in "$@"; do
		gid=$(port_field "$host" gids/0)
		printf 'replace %s %s\nreplace %s %s\n' "$(v4_of "$host")" "$gid" "$(v6_of "$host")" "$gid"
	done
}

know() { # host, other host...
	entries_of "${@:2}" | cache_at "$1" -
}

# --- two subnets -----------------------------------------------------------------------------------------------------------------

all_have_prefixes() { # hosts of the first subnet, of the second
	local host
	for host in $1; do gid_has_prefix "$host" 1 || return; done
	for host in $2; do gid_has_prefix "$host" 2 || return; done
}

# Two subnets with a subnet manager in each.
bring_up_managed_subnets() { # topology, hosts of the first subnet, of the second
	local first second
	read -ra first <<<"$2"
	read -ra second <<<"$3"
	load_softib || bail_out "softib.ko could not be loaded"
	fabric_up "$1" || bail_out "the fabric $1 could not be built"
	start_subnet 1 2 "${first[@]}"
	start_subnet 2 1 "${second[@]}"
	eventually all_active || bail_out "not all ports became active"
	eventually all_have_prefixes "$2" "$3" || bail_out "not all ports have their subnet's prefix"
}

# With a driver's interfaces in one IP subnet.
bring_up_subnets_with() { # driver, topology, hosts of the first subnet, of the second, [parameter of the module...]
	bring_up_managed_subnets "${@:2:3}"
	load_driver "$1" "${@:5}" || bail_out "$1 could not be loaded"
	check "every host's interface comes up" interfaces_up "${hosts[@]}"
}

bring_up_subnets() { # topology, hosts of the first subnet, of the second, [parameter of the module...]
	bring_up_subnets_with oxib "$@"
}

# h1 and h2 on one side, h3 and h4 on the other.
# What oxib has answered programs, or left to the subnet administrator.
programs_at() { # host, answered|declined
	oxib -n "$1" -j acm stats | jq ".\"programs-$2\" // .programs_$2"
}

bring_up_routed_fabric() { # [parameter of the module...]
	bring_up_subnets routed "h1 h2" "h3 h4" "$@"
}

take_down_routed_fabric() {
	stop_jobs
	check "the driver can be unloaded" unload_driver
	stop_sm
	check "the fabric can be taken down" fabric_down
	check "softib.ko can be unloaded" unload_softib
}

# How long something takes until it is so, in milliseconds; nothing if it never is.
time_until() { # command...
	local begin end
	begin=$(date +%s%3N)
	eventually "$@" >/dev/null || return
	end=$(date +%s%3N)
	printf '%d\n' $((end - begin))
}

# Found again; how long that took is noted.
returns() { # host, address
	local time
	time=$(time_until host_answers "$1" "$2") || return
	note "after $time ms"
}

# Of several requests none is answered: one may be lost at any time.
is_lost() { # host, address
	matches ' 0 received' "$(at "$1" ping -q -c 3 -i 0.2 -W 2 "$2")"
}

# --- modes of an interface -----------------------------------------------------------------------------------------------------

set_mode() { # datagram|connected
	local host
	for host in "${hosts[@]}"; do
		at "$host" sh -c "echo $1 >/sys/class/net/ib0/mode" || return
	done
	for host in "${hosts[@]}"; do
		eventually has_carrier "$host" || return
	done
}

connections_at() { # host
	at "$1" ethtool -S ib0 | awk '$1 == "connections_out:" { print $2 }'
}

# One that is lost because an acknowledgement is late, as there are no retries, is made again for the next packet.
has_connections_to() { # host, address
	host_answers "$1" "$2"
	holds "$(connections_at "$1")" -gt 0 || {
		at "$1" ethtool -S ib0 | grep -E 'connect|: [1-9]'
		return 1
	}
}
