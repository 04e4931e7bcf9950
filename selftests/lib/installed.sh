# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A node on which oxib is installed, for scripts that run what guides say of that as it is written there.

# A node's /lib/modules is not to be written to, and depmod reads each of Debian's thousands: in its place comes a tree with those
# that matter. Those of net devices, which the kernel loads by itself, are loaded before.
replace_modules() { # module of the kernel...
	local release tree=/tmp/modules target
	release=$(uname -r)
	target=$tree/$release
	modprobe -a "$@" && mkdir -p "$target/kernel/drivers/infiniband" &&
		cp -r "/lib/modules/$release/kernel/drivers/infiniband/core" "$target/kernel/drivers/infiniband/" &&
		cp "/lib/modules/$release/modules."{order,builtin,builtin.modinfo} "$target/" && mount --bind "$tree" /lib/modules
}

give_modules_back() {
	umount /lib/modules
}

# What `make install` does once all is built; with SOFTIB=y in the environment the fabric, too.
install_built() {
	scripts/install built "$MODULES" "$(uname -r)"
}

# The lines of a block of a page.
block_of() { # page, heading, number of the block
	awk -v heading="## $2" -v wanted="$3" '
		/^## / { here = $0 == heading; number = 0 }
		/^```/ { inside = !inside; number += inside; next }
		here && inside && number == wanted' "$1"
}
