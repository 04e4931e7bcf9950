#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The choice of the Linux version, against mirrors that offer different versions. Runs in the toolchain root, with an
# apt-cache of its own.

set -u

# shellcheck source=selftests/lib/tap.sh
. selftests/lib/tap.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/bin"
cp scripts/lib/linux-tried "$place/tried"

# The mirror: what apt-cache says of it.
cat >"$place/bin/apt-cache" <<'END'
#!/bin/bash
case $1 in
pkgnames) printf 'linux-source-%s\n' $MIRROR ;;
madison) printf ' %s | %s-1~bpo13+1 | mirror\n' "$2" "${2#linux-source-}.12" "$2" "${2#linux-source-}.9" ;;
esac
END
# As apt's, it does not wait for another that writes the lists.
cat >"$place/bin/apt-get" <<'END'
#!/bin/bash
mkdir "$OXIB_CACHE/lists" || exit 100
sleep 0.3
rmdir "$OXIB_CACHE/lists"
END
chmod +x "$place/bin/apt-cache" "$place/bin/apt-get"

# Run a command of scripts/lib/linux.sh in an empty cache, with that mirror and that KERNEL=. The versions tried are 7.3 and 7.2.
choose() { # versions on the mirror, KERNEL, command...
	local mirror=$1 kernel=$2
	shift 2
	rm -rf "$place/cache"
	mkdir -p "$place/cache"
	choose_again "$mirror" "$kernel" "$@"
}

choose_again() { # versions on the mirror, KERNEL, command...
	PATH=$place/bin:$PATH MIRROR=$1 OXIB_KERNEL=$2 OXIB_CACHE=$place/cache OXIB_INSIDE=1 OXIB_LISTS_UPDATED=yes \
		bash -euc '. scripts/lib/cache.sh; . scripts/lib/progress.sh; . scripts/lib/linux.sh; linux_tried=(7.3 7.2)
			env_machine() { OXIB_MACHINE=$1 "${@:2}"; }
			is_one_of() { [[ " $1 " != *" $("${@:2}") "* ]] || echo yes; }
			on_a_line() { "$@" | paste -s -d " "; }
			"$@"' \
		choose "${@:3}" 2>"$place/warnings"
}

# Two commands with the same empty cache, at the same time, both of which want new lists of packages.
update_lists_twice() {
	local pids=() pid status=0
	rm -rf "$place/cache"
	for _ in 1 2; do
		env PATH="$place/bin:$PATH" OXIB_CACHE="$place/cache" OXIB_INSIDE=1 \
			bash -euc '. scripts/lib/cache.sh; . scripts/lib/progress.sh; . scripts/lib/linux.sh; update_package_lists' &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=$?
	done
	return "$status"
}

warns() { # extended regular expression
	grep -qE -e "$1" "$place/warnings" || {
		printf 'no warning matches %s in:\n' "$1"
		cat "$place/warnings"
		return 1
	}
}

warns_of_nothing() {
	! grep . "$place/warnings"
}

check_choice() { # description, expected, versions on the mirror, KERNEL, command...
	check_equal "$1" "$2" "$(choose "${@:3}")"
}

check_failure() { # description, warning, versions on the mirror, KERNEL, command...
	check_refused "$1" choose "${@:3}"
	check "$1: the message says why" warns "$2"
}

check_choice "both are offered: the newest is the default" 7.3 '6.12 7.2 7.3' '' linux_version
check "and nothing is warned of" warns_of_nothing
check_choice "a newer one is offered that nobody tried: the newest that was tried" 7.3 '7.2 7.3 7.4' '' linux_version
check_choice "7.2 is not offered any more: 7.3" 7.3 '6.12 7.3' '' linux_version
check_choice "7.3 is not offered any more: 7.2" 7.2 '6.12 7.2' '' linux_version
check "and that is said" warns 'does not offer linux-source-7.3; using 7.2'
check_equal "the next command does not ask again" 7.2 "$(choose_again '' '' linux_version)"
check_failure "neither is offered: an error" 'offers none of the kernels .*7.3 7.2.*7.9 6.12' '6.12 7.9' '' linux_version

check "two commands at once read the lists of packages one after the other" update_lists_twice

rm -rf "$place/cache"
mkdir -p "$place/cache/source-7.3"
touch "$place/cache/source-7.3/.key"
check_equal "7.3 is in the cache: no mirror is asked" 7.3 "$(choose_again '' '' linux_version)"

check_choice "KERNEL= chooses a version" 7.2 '7.2 7.3' 7.2 linux_version
check_choice "or an exact one" 7.2.9 '7.2 7.3' 7.2.9 linux_version
check_choice "or a release" 7.2.12 '7.2 7.3' 7.2.12+deb13-amd64 linux_version
check_choice "a version newer than the newest tried is taken" 7.4 '7.4' 7.4 linux_version
check "with a warning" warns 'Linux 7.4 is newer than 7.3'
check_failure "one that is too old is refused" 'needs Linux 7.2 or newer, and KERNEL=6.12' '6.12' 6.12 linux_version
check_failure "so is a release of another flavour" 'cloud and rt flavours' '7.3' 7.3.4+deb13-rt-amd64 linux_version
check_failure "and what is no version" 'no version of Linux' '7.3' latest linux_version

check_choice "the other versions of those tried are tested, too" 7.2 '6.12 7.2 7.3 7.4' '' other_versions 7.3
check_choice "none if the mirror does not have them any more" '' '7.3' '' other_versions 7.3

check_choice "an identifier has the version" fast-7.3 '7.2 7.3' '' kernel_id fast
check_choice "an identifier stays what it is" stock-7.2 '7.2 7.3' '' kernel_id stock-7.2
check_choice "those of processes, too" umldebug-7.3 '7.2 7.3' '' kernel_id umldebug
check_failure "other names are refused" 'no test kernel slow; there are' '7.3' '' kernel_id slow
# What nodes are, whatever this machine has.
check_choice "MACHINE=qemu boots a kernel for PCs" yes '7.3' '' is_one_of "fast stock" env_machine qemu node_kernel
check_choice "MACHINE=uml the kernel uml" uml '7.3' '' env_machine uml node_kernel
check_choice "without MACHINE= it is one of the two" yes '7.3' '' is_one_of "fast uml" node_kernel
check_failure "other machines are refused" 'there are qemu and uml' '7.3' '' env_machine pc node_kernel
check_choice "modules for a process are not position-independent" \
	"ARCH=um KRUSTFLAGS=-Crelocation-model=static -Ccode-model=large" '7.3' '' on_a_line module_arguments uml-7.3
check_choice "clang builds the debug kernels" "LLVM=1 ARCH=um" '7.3' '' on_a_line make_arguments umldebug-7.3
finish
