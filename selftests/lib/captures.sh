# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What two connection managers put on the cable, compared; for scripts that source node.sh.

# A check for each step of the scenario, or for each call that is named.
compare_captures() { # reference, candidate, [name of a call...]
	local verdict text
	python3 selftests/cm/compare.py "$@" >/tmp/compared || not_ok "the captures can be compared"
	while IFS=' ' read -r verdict text; do
		case $verdict in
		same) ok "$text: the same messages" ;;
		different) not_ok "$text: the same messages" ;;
		*) note "  $verdict $text" ;;
		esac
	done < <(sed 's/^ /- /' /tmp/compared)
}
