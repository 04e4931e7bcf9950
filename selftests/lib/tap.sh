# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# TAP, the output of every test that is a shell script. A script may define explain_failure, which is called at its
# first failed check.

tap_number=0
tap_failures=0

ok() { # description
	tap_number=$((tap_number + 1))
	printf 'ok %d - %s\n' "$tap_number" "$1"
}

not_ok() { # description, [comments]
	tap_number=$((tap_number + 1))
	tap_failures=$((tap_failures + 1))
	printf 'not ok %d - %s\n' "$tap_number" "$1"
	[ -z "${2:-}" ] || printf '%s\n' "$2"
	[ "$tap_failures" != 1 ] || ! declare -F explain_failure >/dev/null || explain_failure
}

skip() { # description, reason
	tap_number=$((tap_number + 1))
	printf 'ok %d - %s # SKIP %s\n' "$tap_number" "$1" "$2"
}

note() { # text: as comments
	printf '%s\n' "$*" | sed 's/^/# /'
}

# Run a command; its success is the check. What it printed is shown only if it failed.
check() { # description, command...
	local description=$1 output=/tmp/check.$$
	shift
	if "$@" >"$output" 2>&1; then
		ok "$description"
	else
		not_ok "$description" "$(
			note "$* failed:"
			tail -n 40 "$output" | sed 's/^/#   /'
		)"
	fi
}

# The same for a command that has to be refused.
check_refused() { # description, command...
	local description=$1
	shift
	check "$description" refused "$@"
}

refused() {
	! "$@"
}

check_equal() { # description, expected, found
	check "$1" equal "$2" "$3"
}

equal() { # expected, found
	[ "$1" = "$2" ] || {
		printf 'expected: %s\nfound:    %s\n' "$1" "$2"
		return 1
	}
}

# `test`, saying what it compared.
holds() { # operand, operator, operand
	[ "$@" ] || {
		printf 'does not hold: %s\n' "$*"
		return 1
	}
}

matches() { # extended regular expression, text
	printf '%s\n' "$2" | grep -qE -e "$1" || {
		printf 'no line matches %s in:\n%s\n' "$1" "$2"
		return 1
	}
}

# End a script that made checks. Where it is part of another one (see parts), that prints the plan.
finish() {
	if [ -n "${TAP_PART:-}" ]; then
		printf '%d\n' "$tap_number" >"$TAP_PART"
	else
		printf '1..%d\n' "$tap_number"
	fi
	exit $((tap_failures > 0))
}
