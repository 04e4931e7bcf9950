# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Several measurements in one node, one after the other, as scripts/bench --smoke takes them. Sourced.

# Run commands that `--` separates. Before each, its words are printed behind "part", so that a
# report can tell whose results follow.
sequence() { # command..., [--, command...]...
	local word words=()
	for word in "$@" --; do
		if [ "$word" != -- ]; then
			words+=("$word")
		elif [ ${#words[@]} != 0 ]; then
			printf 'part %s\n' "${words[*]}"
			"${words[@]}"
			words=()
		fi
	done
}
