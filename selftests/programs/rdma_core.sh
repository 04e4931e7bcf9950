#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# rdma-core's own tests, those that Debian packages with its Python bindings, on an HCA of softib with oxib's connection manager and
# with the kernel's, and on soft-RoCE. What comes of each is in the tables beside this file.
#
# rdma_core.sh [all]: on soft-RoCE all of them, too, and not only those of rdma_cm. The others reach nothing of this project: they
# show what softib is compared with.
#
# nodes: 1
# kernels: fast
# memory: 2048
# timeout: 600

. selftests/lib/acm.sh

extent=${1:-own}
here=$PWD/selftests/programs
suite=/tmp/suite

# With what the tests want beside them.
unpack() {
	mkdir -p "$suite" && cp -r /usr/share/doc/rdma-core/tests "$suite" && gunzip "$suite"/tests/*.gz &&
		cp "$suite/tests/args_parser.py" "$suite"
}

# Of what no driver here has: programmable adapters, and memory of graphics processors.
others=(test_mlx5 test_efa test_cuda)

modules() {
	local file
	for file in "$suite"/tests/test_*.py; do
		basename "$file" .py
	done | grep -vE "$(IFS='|' && printf '^(%s)' "${others[*]}")"
}

# In a table's form.
run_modules() { # host, device, module...
	local module
	for module in "${@:3}"; do
		(cd "$suite" && in_place "$1" timeout $((2 * patience)) python3 -W ignore "$here/rdma_core.py" "$2" "$module" 2>"/tmp/errors.$module") ||
			printf 'ended\t%s\t%s\n' "$module" "$(tail -n 1 "/tmp/errors.$module")"
	done | sort
}

# In a host, or on the node itself.
in_place() { # host|node, command...
	case $1 in
	node) "${@:2}" ;;
	*) at "$@" ;;
	esac
}

count() { # outcome, table
	grep -c "^$1" "$2"
}

# As the page has them.
published() { # outcome, column
	awk -F ' *[|] *' -v outcome="$1" -v column="$2" '$2 == outcome { print $(column + 2) }' Documentation/softib.md
}

# They come out as the table says, and the page.
check_table() { # description, expected table, table, column of the page
	local outcome
	for outcome in passed failed skipped; do
		check_equal "$1: the page has how many are $outcome" "$(count "$outcome" "$3")" "$(published "$outcome" "$4")"
	done
	cp "$3" /out
	check "$1: each test comes out as in $(basename "$2")" diff "$2" "$3"
}

# By rdma_cm's tests the connection managers are told apart.
on_softib() {
	bring_up_fabric star h1
	load_driver oxib || bail_out "oxib could not be loaded"
	check "the interfaces come up" interfaces_up "${hosts[@]}"
	check "oxib's connection manager is loaded" load_managers
	run_modules h1 h1 "${names[@]}" >/tmp/softib
	check_table softib "$here/rdma_core.softib" /tmp/softib 1
	check "it can be unloaded" unload_managers
	check "the kernel's connection manager is loaded" load_managers kernel
	run_modules h1 h1 test_rdmacm >/tmp/kernel
	check "with it rdma_cm's tests come out alike" diff <(grep "test_rdmacm" /tmp/softib) /tmp/kernel
	check "it can be unloaded" unload_managers
	check "oxib can be unloaded" unload_driver
	take_down_fabric
}

load_both() {
	load_oxib && load_managers
}

on_rxe() {
	ip link add wire type veth peer name end
	ip link set end up
	ip link set wire mtu 9000 up
	ip address add 10.77.0.1/24 dev wire
	modprobe rdma_rxe && rdma link add rxe0 type rxe netdev wire
	check "soft-RoCE is active" eventually rxe_is_active
	check "oxib and its connection manager are loaded" load_both
	if [ "$extent" = all ]; then
		run_modules node rxe0 "${names[@]}" >/tmp/rxe
		check_table soft-RoCE "$here/rdma_core.rxe" /tmp/rxe 2
	else
		run_modules node rxe0 test_rdmacm >/tmp/rxe
		check "soft-RoCE: rdma_cm's tests come out as in the table" diff <(grep test_rdmacm "$here/rdma_core.rxe") /tmp/rxe
	fi
	check "the connection manager can be unloaded" unload_managers
	check "oxib can be unloaded" unload_oxib
	rdma link delete rxe0
}

ulimit -l unlimited
check "the tests are there" unpack
mapfile -t names < <(modules)
on_softib
on_rxe
finish
