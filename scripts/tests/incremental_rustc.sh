#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What scripts/module_builder/incremental-rustc makes of the arguments that Kbuild has for rustc, and of the objects that rustc
# leaves. Runs in the toolchain root, with a rustc that writes down its arguments; the linker is the real one.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

wrapper=$PWD/scripts/module_builder/incremental-rustc
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/bin" "$place/rust"
cd "$place" || exit 1

# A symbol in each of two objects.
cat >bin/rustc <<'END'
#!/bin/bash
printf '%s\n' "$@" >arguments
[ -z "${FAILS:-}" ] || exit 1
while [ "$1" != --out-dir ]; do shift; done
for each in one ${OTHER:-other}; do
	printf '.globl %s\n%s:\n' "$each" "$each" | as -o "$2/made.$each.o"
done
END
chmod +x bin/rustc

compile() { # argument...
	PATH=$place/bin:$PATH "$wrapper" --edition=2021 -Ccodegen-units=1 --cfg MODULE --out-dir rust/ \
		--emit=dep-info=rust/.made.o.d "$@" made.rs >said 2>&1
}

symbols() {
	nm --format=posix rust/made.o | cut -d ' ' -f 1 | sort | paste -s -d ' '
}

check "a crate is compiled" compile --emit=obj=rust/made.o
check_equal "the object has what all units have" "one other" "$(symbols)"
check_equal "rustc has the other arguments, and its own ones" \
	"--edition=2021 --cfg MODULE --emit=dep-info=rust/.made.o.d --emit=obj made.rs --out-dir rust/made.o.units -Ccodegen-units=64 -Cincremental=rust/made.o.incremental" \
	"$(paste -s -d ' ' arguments)"
OTHER=third check "it is compiled again" compile --emit=obj=rust/made.o
check_equal "a unit that is gone leaves nothing" "one third" "$(symbols)"
check "no units stay" test ! -e rust/made.o.units
rm rust/made.o
FAILS=yes check_refused "a crate that does not compile" compile --emit=obj=rust/made.o
check "has no object" test ! -e rust/made.o
check "the next one is compiled" compile --emit=obj=rust/made.o
check_refused "what makes no object" compile --emit=metadata=rust/made.rmeta
check "is told so" grep -q 'no --emit=obj=FILE' said
finish
