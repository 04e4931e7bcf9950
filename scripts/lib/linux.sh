# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Which Linux a command is for. Sourced after cache.sh and progress.sh.
#
# A version is X.Y, the newest X.Y.Z on the mirror, or an exact X.Y.Z. A test kernel's identifier is its name and its
# version, as in fast-7.3: its tree is kernel/fast-7.3 in the cache, its modules are checkouts/CHECKOUT/build/fast-7.3,
# its source is source-7.3.
#
# OXIB_KERNEL (KERNEL= of make) chooses the version: X.Y, X.Y.Z, or the release of a stock kernel. OXIB_MACHINE
# (MACHINE= of make) chooses what nodes are: qemu (machines), or uml (processes, user-mode Linux).

# shellcheck disable=SC2154 # cache and checkout are cache.sh's

mapfile -t linux_tried < <(grep -v '^#' "$checkout/scripts/lib/linux-tried")

# older A B: version A precedes version B.
older() {
	[ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

# Print the versions of Linux whose source the mirror offers, newest first. Needs the toolchain.
linux_offered() {
	"$checkout/scripts/in-toolchain" apt-cache pkgnames linux-source- |
		sed -nE 's/^linux-source-([0-9]+\.[0-9]+)$/\1/p' | sort -rV
}

# Print the versions that were tried and that the mirror offers, newest first.
linux_tried_and_offered() {
	local offered
	offered=$(linux_offered)
	printf '%s\n' "${linux_tried[@]}" | grep -xF "$offered" || : # none is an answer, too
}

# One at a time: apt does not wait for another that writes the lists, it fails.
update_package_lists() {
	[ -n "${OXIB_LISTS_UPDATED:-}" ] || (
		cache_lock package-lists
		step "read the mirror's package lists" "$checkout/scripts/in-toolchain" apt-get update
	)
	export OXIB_LISTS_UPDATED=yes
}

# Print the newest version that was tried and that the mirror offers.
linux_fallback() {
	local found
	update_package_lists
	found=$(linux_tried_and_offered | head -n 1)
	[ -n "$found" ] ||
		fail "the mirror offers none of the kernels that oxib was tried on (${linux_tried[*]}); its linux-source packages are of $(linux_offered | paste -s -d ' '). Check that DEBIAN_MIRROR carries the trixie-backports suite, or try another version with KERNEL="
	printf 'oxib: warning: the mirror does not offer linux-source-%s; using %s instead\n' "${linux_tried[0]}" "$found" >&2
	printf '%s\n' "$found"
}

# Print the version for commands that name none. The mirror is asked only if the newest version is not in the cache,
# and its answer is kept for a day.
linux_default() {
	local answer=$cache/linux-default found
	if [ -f "$cache/source-${linux_tried[0]}/.key" ]; then
		printf '%s\n' "${linux_tried[0]}"
	elif [ -n "$(find "$answer" -mtime -1 -newer "$checkout/scripts/lib/linux-tried" 2>/dev/null)" ]; then
		cat "$answer"
	else
		"$checkout/scripts/toolchain"
		update_package_lists
		if linux_offered | grep -qxF "${linux_tried[0]}"; then
			printf '%s\n' "${linux_tried[0]}"
		else
			found=$(linux_fallback)
			printf '%s\n' "$found" | tee "$answer"
		fi
	fi
}

# Refuse a version that is too old; warn of one that nobody has tried.
check_version() { # version
	local version oldest=${linux_tried[-1]} newest=${linux_tried[0]}
	version=$(printf '%s\n' "$1" | cut -d . -f 1,2)
	older "$version" "$oldest" && fail "oxib needs Linux $oldest or newer, and KERNEL=$OXIB_KERNEL is Linux $version"
	! older "$newest" "$version" ||
		printf 'oxib: warning: Linux %s is newer than %s, the newest that oxib was tried on\n' "$version" "$newest" >&2
}

# Print the version that this command is for.
linux_version() {
	local version=${OXIB_KERNEL:-}
	case $version in
	"")
		linux_default
		return
		;;
	*+*-cloud-* | *+*-rt-*) fail "KERNEL=$version: oxib is for Debian's generic kernels, as 7.3.4+deb13-amd64; of the cloud and rt flavours nothing is known" ;;
	*+*-amd64) version=${version%%+*} ;;
	esac
	[[ $version =~ ^[0-9]+\.[0-9]+(\.[0-9]+)?$ ]] ||
		fail "KERNEL=$OXIB_KERNEL is no version of Linux: give one as 7.3, or a release as 7.3.4+deb13-amd64"
	check_version "$version"
	printf '%s\n' "$version"
}

# Print the other versions that were tried and that the mirror offers.
other_versions() { # version
	"$checkout/scripts/toolchain"
	update_package_lists
	linux_tried_and_offered | grep -vxF "$1" || : # often there is none
}

test_kernels='fast|debug|stock|uml|umldebug'

# is_test_kernel WORD: it is the name of a test kernel, or an identifier.
is_test_kernel() {
	[[ $1 =~ ^($test_kernels)(-[0-9][0-9.]*)?$ ]]
}

# Print a test kernel's identifier.
kernel_id() { # name or identifier
	is_test_kernel "$1" || fail "there is no test kernel ${1:-without a name}; there are ${test_kernels//|/, }"
	case $1 in
	*-*) printf '%s\n' "$1" ;;
	*) printf '%s-%s\n' "$1" "$(linux_version)" ;;
	esac
}

# is_uml IDENTIFIER: the kernel is a process of the host (user-mode Linux).
is_uml() {
	[[ $1 == uml-* || $1 == umldebug-* ]]
}

# Print what make is told to build a kernel, an argument a line.
make_arguments() { # identifier
	case $1 in debug-* | umldebug-*) printf 'LLVM=1\n' ;; esac
	! is_uml "$1" || printf 'ARCH=um\n'
}

# Print what make is told to build modules for it. User-mode Linux compiles Rust as position-independent code, which
# refers to symbols in a way (R_X86_64_GOTPCREL) that its module loader does not know.
module_arguments() { # identifier
	make_arguments "$1"
	! is_uml "$1" || printf 'KRUSTFLAGS=-Crelocation-model=static -Ccode-model=large\n'
}

# Whether hardware virtualisation is really there: /dev/kvm alone may be an emulation that crawls.
has_kvm() {
	grep -qE '^flags.* (vmx|svm)( |$)' /proc/cpuinfo && [ -r /dev/kvm ] && [ -w /dev/kvm ]
}

# Print what nodes are, unless a test says that it needs the other: what starts fastest here.
machine() {
	case ${OXIB_MACHINE:-} in
	qemu | uml) printf '%s\n' "$OXIB_MACHINE" ;;
	"") if has_kvm; then echo qemu; else echo uml; fi ;;
	*) fail "MACHINE=$OXIB_MACHINE: there are qemu and uml" ;;
	esac
}

# Print the name of the kernel that nodes boot if none is asked for: one that is built anyway where nodes are like that. Where they
# usually are processes, a PC gets Debian's kernel, which needs no build.
node_kernel() {
	local chosen
	chosen=$(machine)
	case $chosen in
	qemu) if has_kvm; then echo fast; else echo stock; fi ;;
	uml) echo uml ;;
	esac
}
