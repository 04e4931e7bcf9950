#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What scripts/modules takes for built, when sources change while it builds, and what it takes of another checkout. Runs in the
# toolchain root, in a checkout with one source and a cache of its own, where the compiler copies that source.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
checkout=$place/checkout
source=$checkout/rust/code.rs
export BUILT=$place/cache/checkouts/made/build/uml-7.3 SOURCE=$source COMPILED=$place/compiled

stub() { # script
	cat >"$checkout/scripts/$1"
	chmod +x "$checkout/scripts/$1"
}

make_checkout() {
	local kernel
	mkdir -p "$checkout"/{Kbuild,ib_cm,rust,selftests,scripts/module_builder,scripts/node_runner/cable}
	cp -r scripts/lib scripts/modules "$checkout/scripts/"
	echo first >"$source"
	for kernel in uml-7.3 umldebug-7.3; do
		mkdir -p "$place/cache/kernel/$kernel"
		echo 'made-up kernel' >"$place/cache/kernel/$kernel/.key"
	done
	stub cargo </dev/null
	stub kernel </dev/null
}

# The compiler reads, then something may happen, then it writes. It is make's only if the object is older than the source.
make_compiler() {
	stub in-toolchain <<-'END'
		#!/bin/bash
		set -e
		[ "$1" = make ] || exit 0
		[ ! -e "$BUILT/oxib.ko" ] || [ "$SOURCE" -nt "$BUILT/oxib.ko" ] || exit 0
		read=$(cat "$SOURCE")
		echo run >>"$COMPILED"
		eval "${MEANWHILE:-}"
		sleep 0.1
		printf '%s\n' "$read" >"$BUILT/oxib.ko"
		[ -z "${OXIB_INCREMENTAL:-}" ] || : >"$BUILT/incremental"
		[ -z "${FAILS:-}" ]
	END
	stub tool <<-'END'
		#!/bin/bash
		made=$BUILT/../../build/tool-$OXIB_CHECKOUT_ID
		mkdir -p "$made" && : >"$made/oxib"
	END
	stub provider <<-'END'
		#!/bin/bash
		made=$BUILT/../../build/provider-$OXIB_CHECKOUT_ID
		mkdir -p "$made" && : >"$made/libsoftib.so"
	END
}

modules() { # argument...
	env -u OXIB_INSIDE OXIB_CACHE="$place/cache" OXIB_CHECKOUT_ID=made "$checkout/scripts/modules" "$@" >"$place/said" 2>&1
}

builds() {
	modules uml-7.3 || {
		cat "$place/said"
		return 1
	}
}

# A command is run in the middle of the build.
builds_while() { # command
	MEANWHILE=$1 builds
}

has_modules() {
	modules --has uml-7.3
}

compilations() {
	wc -l <"$COMPILED"
}

check_thrown_away() { # what happens meanwhile, command, file that is named
	check_refused "$1 after the compiler has read: it fails" builds_while "$2"
	check "$1: the message names it" matches "changed while .* uml-7.3 were built: $3" "$(cat "$place/said")"
	check_refused "$1: nothing is taken for built" has_modules
	check_refused "$1: nothing is left for make to take" test -e "$BUILT"
	check "$1: the next build succeeds" builds
	check "$1: and is taken" has_modules
	check_equal "$1: it has the code as it is" "$(cat "$source")" "$(cat "$BUILT/oxib.ko")"
}

make_checkout
make_compiler
check_refused "nothing is built at first" has_modules
check "modules are built" builds
check "they are there" has_modules
check_equal "with the code" first "$(cat "$BUILT/oxib.ko")"
check "again" builds
check_equal "nothing is compiled a second time" 1 "$(compilations)"
echo second >"$source"
check_refused "a change of a source makes them old" has_modules
# shellcheck disable=SC2016 # the compiler expands it
check_thrown_away "a source changes" 'echo third >"$SOURCE"' rust/code.rs
echo fourth >"$source"
# shellcheck disable=SC2016 # the compiler expands it
check_thrown_away "a source comes" ': >"$(dirname "$SOURCE")/more.rs"' rust/more.rs
echo fifth >"$source"
# shellcheck disable=SC2016 # the compiler expands it
check_thrown_away "a source goes" 'rm "$(dirname "$SOURCE")/more.rs"' rust/more.rs
echo sixth >"$source"
# shellcheck disable=SC2016 # the compiler expands it
check_thrown_away "a source changes and the build fails" 'echo seventh >"$SOURCE"; FAILS=yes' rust/code.rs
echo eighth >"$source"
check_refused "a build fails" builds_while FAILS=yes
check "what it had built is left for make" test -e "$BUILT/oxib.ko"
check_refused "but is not taken for built" has_modules

# A mutant's copy of the checkout has a build directory of its own.
copied=$place/cache/checkouts/mutant/build-mutant/uml-7.3

mutant_modules() { # argument...
	env -u OXIB_INSIDE OXIB_CACHE="$place/cache" OXIB_CHECKOUT_ID=mutant OXIB_BUILD=build-mutant \
		"$checkout/scripts/modules" "$@" >"$place/said" 2>&1
}

copies() {
	mutant_modules --copy uml-7.3
}

check "a copy of what is not whole" copies
check_refused "is none" test -e "$copied"
check "modules are built" builds
touch "$source"
check "a copy of them" copies
check_equal "has the code" eighth "$(cat "$copied/oxib.ko")"
check_refused "is not older than a source that only seems newer" test "$source" -nt "$copied/oxib.ko"
echo ninth >"$source"
check "is older than a source that changes" test "$source" -nt "$copied/oxib.ko"
rm -r "$copied"
echo eighth >"$source"
exec 7>>"$place/cache/lock/build-uml-7.3-made"
flock 7
check "a copy of what is being built" copies
check_refused "is none" test -e "$copied"
exec 7>&-
check "a copy once it is built" copies
check "is one" test -e "$copied"
rm -r "$copied"
# What the compiler has kept there stays.
mkdir -p "$copied/kept"
BUILT=$copied OXIB_INCREMENTAL=1 check "modules are built incrementally" mutant_modules uml-7.3
check "so the compiler is told" test -e "$copied/incremental"
check "no copy takes their place" test -d "$copied/kept"
rm -r "$copied"
debug=${copied/uml-/umldebug-}
BUILT=$debug OXIB_INCREMENTAL=1 check "for a debug kernel they are built whole" mutant_modules umldebug-7.3
check_refused "whatever is asked for" test -e "$debug/incremental"
check "a build of its own" test -e "$debug/oxib.ko"
echo ninth >"$source"
check "a copy of what was built from another source" copies
check_refused "is none" test -e "$copied"
# Mutants are tried side by side in one toolchain root, with one folder of logs.
BUILT=$copied check "a mutant is built" mutant_modules uml-7.3
check "the log is that of its build directory" test -e "$place/cache/checkouts/mutant/log/build-mutant"
finish
