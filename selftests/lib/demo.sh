# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the acts of `make demo` are written with: commands are shown as an administrator types them, with what they print, on n1.

failed=0

heading() { # text
	on_node 1 printf '\n== %s\n\n' "$1"
}

run() { # command...
	local output
	output=$("$@" 2>&1) || failed=1
	[ "$NODE" = 1 ] || return 0
	printf '# %s\n' "$*"
	[ -z "$output" ] || printf '%s\n' "$output"
}

# What is not worth showing.
quietly() { # command...
	"$@" >/dev/null 2>&1 || {
		printf 'failed: %s\n' "$*"
		failed=1
	}
}

end() {
	[ "$failed" = 0 ] || note "something failed on node n$NODE"
	exit "$failed"
}
