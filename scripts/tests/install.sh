#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `make install KDIR=stock`, for each version of Debian's kernel: what it installs, and what it says of the release; and with the
# software fabric. Then a relative DESTDIR, with a made-up tree of a kernel.
# Runs in the toolchain root, when the modules have been built.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh
# shellcheck source=selftests/lib/installed.sh
. selftests/lib/installed.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

# What a page says, but into a place of this test's own.
install_as_written() { # page, heading, directory of the page, version, directory, log
	local command
	command=$(block_of "$1" "$2" 1 | sed "s| DESTDIR=$3\$| DESTDIR=$5|")
	matches " DESTDIR=$5\$" "$command" || return
	KERNEL=$4 bash -c "$command" >"$6" 2>&1 || {
		cat "$6"
		return 1
	}
}

install_stock() { # version, directory, log
	install_as_written README.md 'Install it' /tmp/oxib-node "$@"
}

files_in() { # directory
	find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -s -d ' '
}

test_version() { # version
	local target=$place/$1 log=$place/log.$1 release modules
	check "Linux $1: the modules are installed" install_stock "$1" "$target" "$log"
	release=$(files_in "$target/usr/lib/modules")
	modules=$target/usr/lib/modules/$release/updates
	check "Linux $1: for a release of that version" matches "^$1(\\.[0-9]+)?\\+.*-amd64$" "$release"
	check_equal "Linux $1: oxib.ko and ib_cm.ko, and nothing else" "ib_cm.ko oxib.ko" "$(files_in "$modules")"
	check_equal "Linux $1: oxib.ko is for that release" "$release" "$(modinfo -F vermagic "$modules/oxib.ko" | cut -d ' ' -f 1)"
	check_refused "Linux $1: no directory /lib, which would replace a node's link when it is copied there" test -e "$target/lib"
	check "Linux $1: the output says which release" grep -qF "load into kernel $release only" "$log"
	check "Linux $1: and what to do on others" grep -qF 'make install KDIR=stock KERNEL=RELEASE' "$log"
	check "Linux $1: the command oxib runs" "$target/usr/sbin/oxib" --version
	check "Linux $1: nothing loads ib_ipoib by itself" grep -qx 'blacklist ib_ipoib' "$target/usr/lib/modprobe.d/oxib.conf"
	check "Linux $1: its manual page is there" test -s "$target/usr/share/man/man8/oxib.8"
}

install_fabric() {
	install_as_written Documentation/softib.md 'For the tests of other projects' /tmp/softib "$OXIB_KERNEL" "$place/fabric" "$place/log.fabric"
}

# The same symbol of the same version on both sides.
registers() { # library, libibverbs
	objdump -T "$1" | grep -qE '\*UND\*.*\(IBVERBS_PRIVATE_34\) verbs_register_driver_34$' &&
		objdump -T "$2" | grep -qE '\.text.* IBVERBS_PRIVATE_34 +verbs_register_driver_34$'
}

test_fabric() {
	local target=$place/fabric
	check "SOFTIB=y: the modules are installed" install_fabric
	check_equal "SOFTIB=y: softib.ko as well" "ib_cm.ko oxib.ko softib.ko" "$(files_in "$target"/usr/lib/modules/*/updates)"
	check_equal "SOFTIB=y: libibverbs is told of its library" "driver softib" "$(cat "$target/etc/libibverbs.d/softib.driver")"
	check_equal "SOFTIB=y: which is there" libsoftib-rdmav34.so "$(files_in "$target/usr/lib/x86_64-linux-gnu/libibverbs")"
	check "SOFTIB=y: and registers with the guest's libibverbs, which has that version" registers \
		"$target/usr/lib/x86_64-linux-gnu/libibverbs/libsoftib-rdmav34.so" /cache/guest/usr/lib/x86_64-linux-gnu/libibverbs.so.1
	check "SOFTIB=y: softib-fabric reads the topologies that are there" \
		"$target/usr/sbin/softib-fabric" check "$target/usr/share/softib/topologies/star.fabric"
	check_refused "SOFTIB=yes is refused" make --no-print-directory install KDIR=stock KERNEL="$OXIB_KERNEL" SOFTIB=yes DESTDIR="$target"
}

# A checkout whose modules are built already, and a kernel's tree that installs them as an empty directory.
make_tree() {
	mkdir -p "$place/checkout/scripts" "$place/tree"
	cp -r scripts/{install,lib} "$place/checkout/scripts/"
	printf '#!/bin/bash\n' >"$place/checkout/scripts/modules"
	chmod +x "$place/checkout/scripts/modules"
	# shellcheck disable=SC2016 # make expands it
	printf 'modules_install:\n\tmkdir -p "$(INSTALL_MOD_PATH)/lib/modules/made"\n' >"$place/tree/Makefile"
}

install_from_tree() { # DESTDIR
	(cd "$place" && DESTDIR=$1 checkout/scripts/install "$place/tree")
}

test_relative() {
	make_tree
	check "a relative DESTDIR is taken" install_from_tree node/root
	check "it begins in the working directory" test -d "$place/node/root/usr/lib/modules/made"
	check_equal "nothing is installed in the kernel's tree" Makefile "$(files_in "$place/tree")"
}

for version in "${OXIB_KERNEL:?}" ${OXIB_OTHER_KERNELS:-}; do
	test_version "$version"
done
test_fabric
test_relative
finish
