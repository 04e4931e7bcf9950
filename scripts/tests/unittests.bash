# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Each test of a Python file as a check of its own. Sourced.

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

_names() { # file
	sed -nE 's/^class (\w+)\(unittest.TestCase\):$/\1/p; s/^    def (test_\w+)\(self\):$/.\1/p' "$1" |
		awk '/^[^.]/ { of = $0; next } { print of $0 }'
}

run_unittests() { # file
	local each names
	mapfile -t names < <(_names "$1")
	for each in "${names[@]}"; do
		check "${each//_/ }" python3 "$1" "$each"
	done
	finish
}
