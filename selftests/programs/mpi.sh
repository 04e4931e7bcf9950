#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What parallel programs are made with, unmodified, as Debian packages it: UCX, libfabric, OpenMPI. Hosts of two InfiniBand subnets
# are in one IP subnet, with a router between.
#
# UCX takes the LID of a router from the FLID of the subnet that it leads to (selftests/lib/subnets.sh); libfabric and rdma_cm find the way
# by IP address. Documentation/many-subnets.md says what a site has to set, and its commands are run as they are written there.
#
# nodes: 1
# kernels: fast
# memory: 2048
# timeout: 600

. selftests/lib/acm.sh

flid=0x0a00

# By that hosts find each other.
name_hosts() {
	local host
	for host in "${hosts[@]}"; do
		printf '%s %s\n' "$(v4_of "$host")" "$host"
	done >>/etc/hosts
}

know_all() {
	know h1 h2 h3 h4 && know h2 h1 h3 h4 && know h3 h1 h2 h4 && know h4 h1 h2 h3
}

# As a machine of its own; "..." of the words are for the shell there.
in_host() { # host, words...
	timeout $((2 * patience)) selftests/programs/into_host "$@" </dev/null
}

# What the client said is left in /tmp/client.
serve_and_call() { # server host, port, client host, server's words, client's words
	local server status=0
	in_host "$1" "$4" >/tmp/server 2>&1 &
	server=$!
	eventually listens_tcp "$1" "$2" || printf 'the server does not listen\n'
	in_host "$3" "$5" >/tmp/client 2>&1 || {
		status=$?
		end_processes "$server"
	}
	wait "$server" || status=$?
	[ "$status" = 0 ] || tail -n 20 /tmp/server /tmp/client
	return "$status"
}

# --- UCX ------------------------------------------------------------------------------------------------------------------------

# The client tells which transport it took.
ucx() { # client host, rc|ud, test of ucx_perftest, bytes
	local words="UCX_TLS=$2,self UCX_LOG_LEVEL=info ucx_perftest -P 0"
	serve_and_call h1 13337 "$1" "$words" "$words h1 -t $3 -s $4 -n $(some 200)" &&
		matches "inter-node .*\($2_verbs/$1:1[ )]" "$(cat /tmp/client)"
}

test_ucx() { # description, client host
	local transport test
	for transport in rc ud; do
		for test in tag_lat tag_bw ucp_put_lat ucp_get ucp_fadd; do
			case $test in
			ucp_fadd) check "$1: UCX, $transport, $test" ucx "$2" "$transport" "$test" 8 ;;
			*) check "$1: UCX, $transport, $test" ucx "$2" "$transport" "$test" 100000 ;;
			esac
		done
	done
}

# --- libfabric --------------------------------------------------------------------------------------------------------------------

pingpong() { # client host, provider, kind of endpoint
	local words="fi_pingpong -c -p '$2' -e $3"
	serve_and_call h1 47592 "$1" "$words" "$words h1"
}

test_libfabric() { # description, client host
	check "$1: libfabric, connections" pingpong "$2" verbs msg
	check "$1: libfabric, messages of any length" pingpong "$2" "verbs;ofi_rxm" rdm
}

# --- OpenMPI ----------------------------------------------------------------------------------------------------------------------

# A rank on each host. What each exchange came to is left in /tmp/client.
mpi() { # 'options of mpirun'
	in_host h1 mpirun --host h1,h2,h3,h4 "$1" python3 selftests/programs/collectives.py >/tmp/client 2>&1 || {
		tail -n 30 /tmp/client
		return 1
	}
	matches '^ranks on h1 h2 h3 h4$' "$(cat /tmp/client)" && equal 12 "$(grep -c '^right' /tmp/client)"
}

test_mpi() {
	local transport
	for transport in rc ud; do
		check "OpenMPI over UCX, $transport, a rank on each host" mpi "--mca pml ucx -x UCX_TLS=$transport,self"
	done
	# What libfabric remembers of memory that the program has given back is wrong, on soft-RoCE as well: sums of a million bytes.
	check "OpenMPI over libfabric" mpi "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' \
		-x FI_MR_CACHE_MAX_COUNT=0"
}

# --- the guide --------------------------------------------------------------------------------------------------------------------

# The lines of the chapter's blocks. The page's nodes are the fabric's hosts.
chapter() {
	awk '/^## / { here = $0 == "## MPI, UCX and libfabric" } /^```/ { block = !block; next } here && block' Documentation/many-subnets.md |
		sed -E ':join; /\\$/ { N; s/\\\n[[:space:]]*//; b join }; s/\bnode([1-4])/h\1/g'
}

# What the page gives OpenSM is what is in use here.
test_settings() {
	check_equal "the guide: the prefix of subnet 1" "$(prefix_of 1)" "$(chapter | sed -n 's/^subnet_prefix //p')"
	check_equal "the guide: the router's LID there" "$(router_lid h1 r1)" "$(($(chapter | awk '/^0x/ { print $2 }')))"
}

serves() { # host
	listens_tcp "$1" 13337 || listens_tcp "$1" 47592
}

# As in the block: COMMAND # on HOST[, a server]
test_commands() {
	local line command place server='' number=0
	while read -r line; do
		number=$((number + 1))
		command=${line%%  *# on *}
		place=${line##*# on }
		if [[ $place == *", a server" ]]; then
			in_host "${place%%,*}" "$command" >/tmp/server 2>&1 &
			server=$!
			check "the guide: $command: it listens" eventually serves "${place%%,*}"
			continue
		fi
		check "the guide: $command" in_host "$place" "$command"
		[ -z "$server" ] || check "its server ends well" wait "$server"
		server=
	done < <(chapter | grep '# on ')
	check_equal "the guide has eight commands" 8 "$number"
}

ulimit -l unlimited
# What is ssh elsewhere.
export PRTE_MCA_plm_ssh_agent=$PWD/selftests/programs/into_host
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bring_up_routed_fabric
check "the connection manager is loaded" load_managers
name_hosts
check "each host knows the others" know_all
test_ucx switch h2
test_ucx router h3
test_libfabric switch h2
test_libfabric router h3
test_mpi
test_settings
test_commands
check "the connection manager can be unloaded" unload_managers
take_down_routed_fabric
finish
