# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's test of an RDMA device's verbs, selftests/fabric/verbs: its results as TAP. For scripts that have node.sh.

verbs_control=/sys/kernel/debug/verbs_test

load_verbs_test() {
	modprobe ib_core && insmod "$MODULES/selftests/fabric/verbs/verbs_test.ko"
}

# Tests of a device that is known to differ from the specification, by their name, with the reason.
declare -A verbs_differences=()

# A prefix tells what is tested again, where it is. Nothing at all is a failure as well.
verbs() { # prefix, device of side a, device of side b, group|all, [LID of side a's router, of side b's, [number of routers between]]
	local prefix=$1 line verdict name count=0
	shift
	printf '%s\n' "$*" >"$verbs_control" || {
		not_ok "$prefix: the verbs' tests run"
		return
	}
	cp "$verbs_control" /tmp/verbs
	while read -r line; do
		case $line in
		'ok - '*' # SKIP '*)
			name=${line#ok - }
			skip "$prefix${name%% # SKIP *}" "${name#* # SKIP }"
			;;
		'ok - '*) ok "$prefix${line#ok - }" ;;
		'not ok - '*)
			name=${line#not ok - }
			verdict=${verbs_differences[$name]:-}
			if [ -n "$verdict" ]; then skip "$prefix$name" "$verdict"; else not_ok "$prefix$name"; fi
			;;
		'# '*) note "${line#\# }" ;;
		esac
		count=$((count + 1))
	done </tmp/verbs
	check "${prefix}there were tests" holds "$count" -gt 0
}
