# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The words of a command: `--help`, and words that it does not know. Sourced, and called before anything is made.

# help_if_asked WORD...: if one of them asks for help, print the comment at the top of the script, and end.
help_if_asked() {
	local word
	for word in "$@"; do
		case $word in
		-h | --help)
			awk 'NR > 3 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
			exit 0
			;;
		esac
	done
}

# refuse_words USAGE: the words make no command.
refuse_words() {
	printf 'oxib: usage: %s\n' "$1" >&2
	exit 2
}

# take_no_words WORD...: help is all that there is to ask for.
take_no_words() {
	help_if_asked "$@"
	[ $# = 0 ] || refuse_words "scripts/$(basename "$0") [--help]"
}

# take_words PATTERN USAGE WORD...: the words, with spaces in between, match the extended regular expression.
take_words() {
	local word
	help_if_asked "${@:3}"
	for word in "${@:3}"; do
		[[ $word =~ ^[^[:space:]]+$ ]] || refuse_words "$2"
	done
	[[ "${*:3}" =~ ^($1)$ ]] || refuse_words "$2"
}
