# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Debian roots from the mirror the host's own apt uses. Sourced after cache.sh and progress.sh.

debian_suite=trixie
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# Print "URI SUITE" for each binary source in the host's apt configuration, both file formats.
apt_sources() {
	local file
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -f "$file" ] || continue
		sed -nE 's/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+)[[:space:]]+([^[:space:]]+).*/\2 \3/p' "$file"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -f "$file" ] || continue
		apt_sources_deb822 "$file"
	done
}

apt_sources_deb822() {
	awk '
		function flush(   i, j, nu, ns, u, s) {
			if (enabled && types ~ /(^| )deb( |$)/) {
				nu = split(uris, u, " "); ns = split(suites, s, " ")
				for (i = 1; i <= nu; i++) for (j = 1; j <= ns; j++) print u[i], s[j]
			}
			types = uris = suites = ""; enabled = 1
		}
		BEGIN { enabled = 1 }
		/^#/ { next }
		/^[[:space:]]*$/ { flush(); next }
		tolower($1) == "types:" { sub(/^[^:]*:[[:space:]]*/, ""); types = $0; next }
		tolower($1) == "uris:" { sub(/^[^:]*:[[:space:]]*/, ""); uris = $0; next }
		tolower($1) == "suites:" { sub(/^[^:]*:[[:space:]]*/, ""); suites = $0; next }
		tolower($1) == "enabled:" { enabled = tolower($2) != "no"; next }
		END { flush() }
	' "$1"
}

# The mirror of the main archive: the first source whose suite is a Debian release, and neither its security
# updates nor anyone else's archive (those do not carry the suite, which the download of its InRelease shows).
debian_mirror() {
	local uri suite
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		printf '%s\n' "${DEBIAN_MIRROR%/}"
		return
	fi
	while read -r uri suite; do
		case $suite in *-security | */updates | */) continue ;; esac
		if suite_exists "${uri%/}" "$debian_suite"; then
			printf '%s\n' "${uri%/}"
			return
		fi
	done < <(apt_sources | sort -u)
	fail "no source in /etc/apt carries Debian $debian_suite: set DEBIAN_MIRROR to the URL of a Debian mirror that this host can reach"
}

suite_exists() { # mirror, suite
	local file status=0
	file=$(mktemp)
	/usr/lib/apt/apt-helper download-file "$1/dists/$2/InRelease" "$file" >/dev/null 2>&1 || status=1
	rm -f "$file" "$file".*
	return "$status"
}

# Print sources.list lines for the suites given.
debian_sources() { # mirror, suite...
	local mirror=$1 suite
	shift
	for suite in "$@"; do
		suite_exists "$mirror" "$suite" || continue
		printf 'deb [signed-by=%s] %s %s main\n' "$debian_keyring" "$mirror" "$suite"
	done
}

# The host's proxy settings, as options for the apt that mmdebstrap runs with a configuration of its own.
debian_proxy_options() {
	apt-config dump --format '%F "%v";%n' | sed -nE 's/^(Acquire::https?::Proxy "[^"]+";)$/--aptopt=\1/p'
}

need_mmdebstrap() {
	[ -r "$debian_keyring" ] || need_package debian-archive-keyring
	command -v mmdebstrap >/dev/null || need_package mmdebstrap
}

need_package() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	step "install $1 on this host" env DEBIAN_FRONTEND=noninteractive sh -c '
		apt-get install --yes --no-install-recommends "$1" ||
		{ apt-get update && apt-get install --yes --no-install-recommends "$1"; }' sh "$1"
}

# debian_root STEP DIR PACKAGES SOURCES OPTION...: make a root in DIR, which must not exist.
debian_root() {
	local name=$1 dir=$2 packages=$3 sources=$4 proxies
	shift 4
	mapfile -t proxies < <(debian_proxy_options)
	# A file, because a step has no standard input.
	printf '%s\n' "$sources" >"$dir.list"
	# What mmdebstrap mounts in the root goes when it ends, however it ends.
	step "$name" unshare --mount --propagation private env TMPDIR=/tmp mmdebstrap --mode=root --variant=minbase --architectures=amd64 \
		--include="$packages" "${proxies[@]}" --aptopt='Acquire::Retries "5"' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
		"$@" "$debian_suite" "$dir" "$dir.list"
	rm -f "$dir.list"
}
