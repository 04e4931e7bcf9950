#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Scripts say what they do when they are asked, and refuse words that they do not know, before they make or remove anything. Runs
# in the toolchain root, in a copy of the checkout with a cache of its own, where what builds only notes that it was called.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export CALLED=$place/called

make_checkout() {
	local name
	mkdir -p "$place"/checkout/{bench,build,scripts} "$place"/cache/{checkouts/made/out,mutants,kernel}
	touch "$place"/checkout/build/kept "$place"/cache/{checkouts/made/out,mutants,kernel}/kept
	cp -r scripts/lib scripts/{bench,clean,demo,doc,guest,lint} "$place/checkout/scripts/"
	cp bench/control.c "$place/checkout/bench/"
	for name in in-toolchain kernel modules nodes toolchain; do
		# shellcheck disable=SC2016 # the script expands them
		printf '#!/bin/bash\nprintf "%%s\\n" "${0##*/} $*" >>"$CALLED"\nexit 1\n' >"$place/checkout/scripts/$name"
		chmod +x "$place/checkout/scripts/$name"
	done
}

# Run a script, without anything that the tests around this one have chosen. KERNEL_CHOSEN is for those that shall go on.
runs() { # script, word...
	env --ignore-environment PATH="$PATH" CALLED="$CALLED" OXIB_CACHE="$place/cache" OXIB_CHECKOUT_ID=made \
		${KERNEL_CHOSEN:+OXIB_KERNEL="$KERNEL_CHOSEN"} "$place/checkout/scripts/$1" "${@:2}" >"$place/said" 2>"$place/errors" </dev/null
}

# All that there is, with the times of changes.
listing() {
	find "$place" -mindepth 2 -printf '%p %T@\n' | sort
	[ ! -e "$CALLED" ] || cat "$CALLED"
}

makes_nothing() { # status, script, word...
	local before status=0
	before=$(listing)
	runs "${@:2}" || status=$?
	equal "status $1" "status $status" && equal "$before" "$(listing)"
}

helps() { # script, word...
	makes_nothing 0 "$@" && matches . "$(cat "$place/said")" && equal "" "$(cat "$place/errors")"
}

refuses() { # script, word...
	makes_nothing 2 "$@" && matches "^oxib: usage: scripts/$1 " "$(cat "$place/errors")"
}

# It goes on to what it needs first, which ends it here.
takes() { # what is called, script, word...
	rm -f "$CALLED"
	! KERNEL_CHOSEN=7.3 runs "${@:2}" && matches "^$1" "$(cat "$CALLED")"
}

make_checkout
for script in bench clean demo doc guest lint; do
	check "$script --help makes nothing" helps "$script" --help
	check "$script -h does not, either" helps "$script" -h
	check "$script refuses a word that it does not know" refuses "$script" frobnicate
	check "$script refuses an option that it does not know" refuses "$script" --frobnicate
	check "$script refuses an empty word" refuses "$script" ''
done
# The stubs above have the names of some of these.
describes() { # script
	[[ "$(OXIB_CACHE=$place/cache "scripts/$1" --help)" == "$1 "* ]]
}

for script in kernel modules source tool; do
	check "$script --help says what it builds" describes "$script"
done
check "what bench says is what it takes" matches '^bench --smoke \[packets' "$(runs bench --help && cat "$place/said")"
check "clean --help, behind another word, removes nothing" helps clean all --help

while read -r script words; do
	# shellcheck disable=SC2086 # words
	check "refused: $script $words" refuses "$script" $words
done <<'END_OF_WORDS'
bench packets cm
bench scheduling qemu
bench keep cm
bench --smoke scheduling
bench profile
bench profile cm ib_ipoib
bench profile tx-queue 64 32
bench profile tx-queue-ipoib 64
bench profile tx-queue-ipoib 64 many
bench profile there tx-queue-ipoib 64 32
bench profile ipoib oxib tx-queue-ipoib 64 32
bench profile tcp oxib hop plain datagram
clean all all
doc all
lint lane
lint lane shell frobnicate
lint shell python
END_OF_WORDS
check "refused: bench with two words in one" refuses bench 'profile cm oxib'

while read -r called script words; do
	# shellcheck disable=SC2086 # words
	check "taken: $script $words" takes "$called" "$script" $words
done <<'END_OF_WORDS'
modules bench
modules bench packets
modules bench scheduling
modules bench scheduling uml
modules bench keep
modules bench --smoke
modules bench --smoke profile
modules bench profile cm oxib
modules bench profile tx-queue-ipoib 64 32
modules bench profile hop fabric-chain 64 32
modules bench profile ipoib ib_ipoib peer rx-subnet-ipoib 64 32
modules bench profile tcp oxib hop offloads connected echo
modules demo
modules doc
kernel lint
modules lint lane modules rustdoc
in-toolchain lint lane shell
END_OF_WORDS
check "clean removes what was built" runs clean
check_refused "it is gone" test -e "$place/checkout/build"
check "the kernels are still there" test -e "$place/cache/kernel/kept"
check "clean all removes them" runs clean all
check_refused "they are gone" test -e "$place/cache/kernel"
finish
