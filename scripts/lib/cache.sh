# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# The cache: where made things live, how one is recognised as whole, and the locks for making one. Sourced.
#
# A made thing is a directory with a `.key` in it. The key says what it was made from; it is written last, in a
# directory of a temporary name that is renamed into place, so that an interrupted step leaves nothing that looks
# finished.

# shellcheck disable=SC2034 # the variables are for the scripts that source this

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=$(realpath --canonicalize-missing "${OXIB_CACHE:-${HOME:-/root}/.cache/oxib}")
export OXIB_CACHE=$cache
# When the command that the user gave began: what it starts counts its elapsed time from then.
export OXIB_PROGRESS_START=${OXIB_PROGRESS_START:-$(date +%s)}

fail() {
	printf 'oxib: %s\n' "$*" >&2
	exit 1
}

need_root() {
	[ "$(id -u)" = 0 ] || fail "$1 needs root (it makes and enters Debian roots): run it with sudo, or as root"
}

# cache_lock NAME: hold the lock of that made thing, as descriptor 9, until this process and what it started end.
cache_lock() {
	mkdir -p "$cache/lock"
	exec 9>"$cache/lock/$1"
	if ! flock --nonblock 9; then
		printf 'oxib: waiting: another process is at work on this or with it: %s\n' "$1" >&2
		flock 9
	fi
}

# cache_share NAME: hold that made thing as it is, beside others that do, until this process and what it started end.
cache_share() {
	exec 9>>"$cache/lock/$1"
	flock --shared 9
}

# key_matches DIR KEY: DIR is whole and was made from KEY.
key_matches() {
	[ -f "$1/.key" ] && [ "$(cat "$1/.key")" = "$2" ]
}

# publish TMP DIR KEY: give a finished directory its key and its name.
publish() {
	printf '%s\n' "$3" >"$1/.key"
	sync -f "$1"
	if [ -e "$2" ]; then
		rm -rf --one-file-system "$2.old"
		mv "$2" "$2.old"
	fi
	mv "$1" "$2"
	rm -rf --one-file-system "$2.old"
}

# hash_of FILE...: one short hash over the contents.
hash_of() {
	cat "$@" | sha256sum | cut -c1-16
}

# checkout_id: names this checkout among those that share the cache. In the toolchain root each of them is /oxib, and
# what goes by paths and times (make, cargo) would take the output of one for that of another.
checkout_id() {
	printf '%s\n' "$OXIB_CHECKOUT_ID"
}
OXIB_CHECKOUT_ID=${OXIB_CHECKOUT_ID:-$(basename "$checkout")-$(printf '%s' "$checkout" | cksum | cut -d ' ' -f 1)}
export OXIB_CHECKOUT_ID

# The checkout's own directory in the cache, with build/, out/ and log/: checkouts that work at the same time do not disturb each
# other. In the toolchain root these are /cache/build and so on (see in-toolchain).
if [ -n "${OXIB_INSIDE:-}" ]; then
	own=$cache
else
	own=$cache/checkouts/$OXIB_CHECKOUT_ID
fi

# use_own: make the checkout's own directory, and hold it as it is until this process and what it started end, as descriptor 6.
use_own() {
	mkdir -p "$own/build" "$own/out" "$own/log" "$cache/lock"
	touch "$own/.used"
	exec 6>>"$cache/lock/checkout-$OXIB_CHECKOUT_ID"
	flock --shared 6
}

# Days after which the directory of a checkout that was not used any more is removed.
own_days=30

# tidy_checkouts: remove the directories of checkouts that have not been used for long, and are not in use.
tidy_checkouts() {
	local used directory
	while read -r used; do
		directory=$(dirname "$used")
		flock --nonblock "$cache/lock/checkout-$(basename "$directory")" rm -rf --one-file-system "$directory" || :
	done < <(find "$cache/checkouts" -mindepth 2 -maxdepth 2 -name .used -mtime "+$own_days" 2>/dev/null)
}

# seed_crates PREFIX: what cargo builds for this checkout begins with what it has built for another one, but for the project's own
# crates and programs: cargo would take another checkout's for this one's where its files are newer. That one may be building: files
# that go meanwhile are left out, and cargo builds them, as it does all of them where the copy fails.
seed_crates() (
	mine=$own/build/$1-$OXIB_CHECKOUT_ID
	[ ! -d "$mine" ] || return 0
	cache_lock "seed-$1"
	[ ! -d "$mine" ] || return 0
	other=$(newest_crates "$1")
	[ -n "$other" ] || return 0
	rm -rf "$mine.new"
	mkdir -p "$mine.new"
	if crates_of_others "$other" | tar --directory "$other" --ignore-failed-read --null --files-from=- --create --file=- |
		tar --directory "$mine.new" --extract --file=-; then
		mv -T "$mine.new" "$mine"
	else
		rm -rf "$mine.new"
	fi
)

newest_crates() { # prefix
	find "$cache"/checkouts/*/build -maxdepth 1 -name "$1-*" ! -name '*.new' -printf '%T@ %p\n' 2>/dev/null |
		sort -n | tail -n 1 | cut -d ' ' -f 2-
}

# What is not the project's own: its crates have its name in theirs, its programs have names without an ending.
crates_of_others() { # directory
	(cd "$1" && find . -type f ! -path '*oxib*' ! -path '*/incremental/*' ! -name .cargo-lock \
		! \( -path '*/deps/*' ! -name '*.*' \) -print0)
}
