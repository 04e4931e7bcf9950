#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Programs that spin are looked at before they are ended (selftests/lib/watched.sh). Runs in the toolchain root.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh
# shellcheck source=selftests/lib/jobs.sh
. selftests/lib/jobs.sh
# shellcheck source=selftests/lib/watched.sh
. selftests/lib/watched.sh

# As in a node.
patience=60
pause() { # seconds
	sleep "$1"
}

# Names the programs of this run: the host may run others of these tests, too.
nap=$$

said=$(mktemp)
trap 'rm -f "$said"' EXIT

in_a_function() {
	sleep "${nap}5"
	echo "not reached"
}

status_of() { # command...
	local status=0
	"$@" >"$said" 2>&1 || status=$?
	printf '%d\n' "$status"
}

is_gone() { # words of a command
	! pgrep --full --exact "$1"
}

check_equal "a program that ends keeps its status" 3 "$(status_of watched 60 bash -c 'exit 3')"
check_equal "and says nothing more" "" "$(cat "$said")"
check_equal "one that does not end is ended" 124 "$(status_of watched 0 sleep "${nap}4")"
check "its state is shown first" grep -q "^sleep ${nap}4 : S (sleeping), in " "$said"
check "it is gone" is_gone "sleep ${nap}4"
check_equal "one in a function, too" 124 "$(status_of watched 0 in_a_function)"
check "its state is shown" grep -q "^sleep ${nap}5 : S (sleeping), in " "$said"
check "it is gone as well" is_gone "sleep ${nap}5"
finish
