#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Two checkouts with one cache do not disturb each other: each has its own builds, results and logs, and these are kept as long
# as they are used. Runs in the toolchain root, and enters it from there.

set -u

# Mounts are made private from the root on, which has to be one for that.
if [ -z "${OXIB_NEW_ROOT:-}" ]; then
	place=$(mktemp -d)
	# shellcheck disable=SC2016 # the new shell expands it
	exec unshare --mount --propagation unchanged bash -c \
		'mount --rbind / "$1" && exec env OXIB_NEW_ROOT="$1" chroot "$1" env --chdir=/oxib bash "$2"' new-root "$place" "$0"
fi

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

place=$(mktemp -d)
declare -A ids
trap clean_up EXIT

clean_up() {
	local id
	rm -rf "$place"
	for id in "${ids[@]}"; do
		rm -rf "${OXIB_CACHE:?}/checkouts/$id" "$OXIB_CACHE/lock/checkout-$id"
	done
}

# Run a command with cache.sh's functions, as in a checkout outside of the toolchain root.
# shellcheck disable=SC2016 # the new shell expands it
outside() { # checkout, command...
	env -u OXIB_INSIDE -u OXIB_CHECKOUT_ID bash -euc '. "$0/scripts/lib/cache.sh"; "$@"' "$place/$1" "${@:2}"
}

# Run a command in the toolchain root of a checkout.
inside() { # checkout, command...
	env -u OXIB_INSIDE -u OXIB_CHECKOUT_ID "$place/$1/scripts/in-toolchain" "${@:2}"
}

writes() { # checkout, text
	inside "$1" sh -c "for name in build out log; do echo $2 >/cache/\$name/mark || exit; done"
}

has() { # checkout, text
	equal "$2 $2 $2" "$(inside "$1" cat /cache/build/mark /cache/out/mark /cache/log/mark | paste -s -d ' ')"
}

directory_of() { # checkout
	printf '%s/checkouts/%s\n' "$OXIB_CACHE" "${ids[$1]}"
}

# Both at the same time: each writes, waits until the other has written, and reads what it has itself.
meet() { # checkout, other
	inside "$1" bash -c "echo $1 >/cache/build/mark; : >/cache/meeting.$1
		until [ -e /cache/meeting.$2 ]; do sleep 0.1; done; [ \$(cat /cache/build/mark) = $1 ]"
}

for each in one two; do
	mkdir "$place/$each"
	cp -r scripts "$place/$each/"
	ids[$each]=$(outside "$each" checkout_id)
done

check "a checkout is named by its directory" matches '^one-[0-9]+$' "${ids[one]}"
check "one writes" writes one first
check "two writes" writes two second
check "one still has what is its own" has one first
check "two has, too" has two second
check "outside it is in the checkout's own directory" equal first "$(cat "$(directory_of one)/build/mark")"

meet one two >"$place/log" 2>&1 &
check "both at the same time have their own, two" meet two one
check "and one" wait $!
rm -f "$OXIB_CACHE"/meeting.{one,two}

# What cargo has built for another checkout, which is building: one of the files has gone since they were listed.
mkdir "$place/crates"
echo built >"$place/crates/there"
seeds() { # checkout
	# shellcheck disable=SC2016 # the new shell expands it
	PLACE=$place outside "$1" eval 'set -o pipefail
		newest_crates() { echo "$PLACE/crates"; }
		crates_of_others() { printf "%s\0" ./there ./gone; }
		seed_crates crates'
}
check "crates are copied from a checkout that is building" seeds one
check_equal "what is there still is there" built "$(cat "$(directory_of one)/build/crates-${ids[one]}/there")"

old=$(date --date '40 days ago' --iso-8601=seconds)
touch --date "$old" "$(directory_of one)/.used" "$(directory_of two)/.used"
outside two use_own
touch --date "$old" "$(directory_of one)/.used"
exec 5>>"$OXIB_CACHE/lock/checkout-${ids[one]}"
flock --shared 5
check "looking for what is not used any more" outside two tidy_checkouts
check "what is old but in use stays" test -d "$(directory_of one)"
exec 5>&-
check "looking again" outside two tidy_checkouts
check_refused "what is old and not in use goes" test -e "$(directory_of one)"
check "what was used lately stays" test -d "$(directory_of two)"
finish
