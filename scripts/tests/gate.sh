#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make gate` in a made-up repository, whose .ci/run does what a test says.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
repository=$place/repository

# shellcheck disable=SC2016 # .ci/run expands it
commit() { # what .ci/run does
	printf '%s\n' 'cd "$(dirname "$0")/.."' "$1" >"$repository/.ci/run"
	git -C "$repository" add -A
	git -C "$repository" -c user.name=test -c user.email=test@localhost commit --quiet --message change
}

make_repository() {
	mkdir -p "$repository/scripts/lib" "$repository/.ci"
	cp scripts/gate "$repository/scripts/"
	cp scripts/lib/signals.sh "$repository/scripts/lib/"
	cp Makefile .gitignore "$repository/"
	git -C "$repository" init --quiet
}

gate() { # make's argument...
	make --no-print-directory -C "$repository" gate "$@" >"$place/report" 2>"$place/said"
}

said() { # extended regular expression
	matches "$1" "$(cat "$place/said")"
}

outcome() { # jq filter
	jq -r "$1" "$repository/out/gate.json"
}

runs() {
	wc -l <"$place/runs"
}

head_commit() {
	git -C "$repository" rev-parse HEAD
}

closes=$'echo "1 flaky: debug/cm (umldebug-7.3)"\necho "7 passed, 0 failed, 2 skipped"'

make_repository
commit "echo >>$place/runs; $closes"
check "a commit that passes" gate
check_equal "the outcome says so" "0 7 0 2" "$(outcome '[.status, .passed, .failed, .skipped] | join(" ")')"
check_equal "and of which commit" "$(head_commit)" "$(outcome .commit)"
check_equal "the flaky jobs are named" "debug/cm (umldebug-7.3)" "$(outcome '.flaky | join(" ")')"
check_equal "the report is printed" "7 passed, 0 failed, 2 skipped" "$(tail -n 1 "$place/report")"
check "the same commit again passes" gate
check "and says that it has passed" said 'has passed on .*: 7 passed'
check_equal "without a run" 1 "$(runs)"
check "AGAIN=1 runs it" gate AGAIN=1
check_equal "once more" 2 "$(runs)"

commit "[ -z \"\$(git status --porcelain --ignored)\" ] || exit 1; [ ! -e left ] || exit 1; : >left; $closes"
check "the clone of another commit is clean" gate
check "and is clean again after a run that left a file" gate AGAIN=1

: >"$repository/uncommitted"
check "what is not committed is not in the clone" gate AGAIN=1
check "and that is said" said 'not committed'
rm "$repository/uncommitted"

commit "echo '6 passed, 1 failed'; exit 1"
check_refused "a commit that fails fails" gate
check_equal "the outcome says so, too" "1 6 1" "$(outcome '[.status, .passed, .failed] | join(" ")')"
check_refused "and it runs again each time" gate

# The signal reaches .ci/run, which closes its run.
commit "trap 'kill %1; echo \"3 passed, 2 failed\"; exit 1' TERM; : >$place/waits; sleep 1000 & wait"
bash "$repository/scripts/gate" >"$place/report" 2>"$place/said" &
until [ -e "$place/waits" ]; do sleep 0.1; done
kill $!
check_refused "a signal ends it" wait $!
check_equal "with the counts of what had run" "3 2" "$(outcome '[.passed, .failed] | join(" ")')"
finish
