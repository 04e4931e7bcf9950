#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The check of the benchmark's results. Runs in the toolchain root.

set -u

# shellcheck source=selftests/tap.sh
. selftests/tap.sh

tests() {
	sed -nE 's/^class (\w+)\(unittest.TestCase\):$/\1/p; s/^    def (test_\w+)\(self\):$/.\1/p' scripts/tests/bench_check.py |
		awk '/^[^.]/ { of = $0; next } { print of $0 }'
}

mapfile -t found < <(tests)
for each in "${found[@]}"; do
	check "${each//_/ }" python3 scripts/tests/bench_check.py "$each"
done
finish
