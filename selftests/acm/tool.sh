#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The command oxib: each of its commands, its JSON, what it says of mistakes, its files, a million lines, announcements, its
# completions and its manual page, the unit that loads files when the module comes.
#
# nodes: 1
# kernels: fast
# timeout: 500
# memory: 2048

. selftests/lib/infiniband.sh

place=/tmp/tool
mkdir -p "$place"

# A command fails with that status, for a reason that matches on either output. With status 0 it does its work, and notes that.
fails() { # status, extended regular expression, command...
	local wanted=$1 expression=$2 status=0
	shift 2
	"$@" >"$place/said" 2>&1 || status=$?
	equal "status $wanted" "status $status" && matches "$expression" "$(cat "$place/said")"
}

# What a command prints.
prints() { # text, command...
	local wanted=$1
	shift
	equal "$wanted" "$("$@")"
}

# What jq makes of a command's JSON.
json() { # expression, wanted, command of `oxib -j`...
	local expression=$1 wanted=$2
	shift 2
	equal "$wanted" "$(oxib -j "$@" | jq -c "$expression")"
}

fills() { # file, line...
	local file=$place/$1
	shift
	printf '%s\n' "$@" >"$file"
}

# --- without the module ------------------------------------------------------------------------------------------------------

test_without_module() {
	fills one.data '10.1.0.1 fec0::1'
	check "without oxib it says what to do" fails 1 'oxib is not loaded.*modprobe oxib' oxib acm show
	check "without oxib files can be checked" prints '1 entries, no mistakes' oxib acm load --check "$place/one.data"
	check "without oxib they cannot be loaded" fails 1 'oxib is not loaded' oxib acm load "$place/one.data"
	check "words that are no command are refused" fails 2 'unrecognized subcommand' oxib acm frobnicate
	check "a namespace that is not there is told" fails 1 'network namespace nowhere.*No such file' oxib -n nowhere acm show
}

# --- entries -----------------------------------------------------------------------------------------------------------------

test_entries() {
	check "an empty cache is shown as nothing" prints '' oxib acm show
	check "an empty cache is an empty array" json . '[]' acm show
	check "an entry is added" oxib acm add 10.1.0.1 fec0:0:0:1::201:2ff
	check "one with everything is added" oxib acm add 10.1.0.2 fec0::2 qpn 0x48 pkey 0x8001 lifetime 3600
	check "one of IPv6 is added" oxib acm add fd00::1 fec0::1
	check "an entry is shown" prints '10.1.0.1 gid fec0::1:0:0:201:2ff source netlink' oxib acm show 10.1.0.1
	check "all of an entry is shown" matches '^10\.1\.0\.2 gid fec0::2 qpn 72 pkey 0x8001 source netlink lifetime 3[56][0-9][0-9]$' \
		"$(oxib acm show to 10.1.0.2)"
	check "all of an entry is in JSON" json '.[0] | [.address, .gid, .qpn, .pkey, .source, .lifetime > 3000, .lifetime <= 3600]' \
		'["10.1.0.2","fec0::2",72,"0x8001","netlink",true,true]' acm show to 10.1.0.2
	check "entries are shown in the order of their addresses" json 'map(.address)' '["10.1.0.1","10.1.0.2","fd00::1"]' acm show
	check "an address that has none is shown as nothing" prints '' oxib acm show 10.1.0.9
	check "a second one for an address is refused" fails 1 'exist|already' oxib acm add 10.1.0.1 fec0::9
	check "an entry is replaced" oxib acm replace 10.1.0.1 fec0::9 qpn 5
	check "it is the new one" prints '10.1.0.1 gid fec0::9 qpn 5 source netlink' oxib acm show 10.1.0.1
	check "an entry is deleted" oxib acm del fd00::1
	check "one that is not there cannot be" fails 1 'none|No such|no entry' oxib acm del fd00::1
	oxib acm flush
}

test_filters() {
	oxib acm add 10.1.0.1 fec0::1
	oxib acm add 10.1.1.1 fec0::2
	oxib acm add 10.2.0.1 fec0::1
	oxib acm add fd00::1 fec0::1
	fills filter.data '10.1.0.7 fec0::7'
	oxib acm load "$place/filter.data"
	check "entries of a prefix are shown" json 'map(.address)' '["10.1.0.1","10.1.0.7","10.1.1.1"]' acm show to 10.1.0.0/16
	check "entries of a GID are shown" json 'map(.address)' '["10.1.0.1","10.2.0.1","fd00::1"]' acm show gid fec0::1
	check "entries of a source are shown" json 'map(.address)' '["10.1.0.7"]' acm show source file
	check "entries of all of these are shown" json 'map(.address)' '["10.1.0.1"]' acm show to 10.1.0.0/16 gid fec0::1 source netlink
	check "IPv4 and IPv6 are apart" json 'map(.address)' '["fd00::1"]' acm show to ::/0
	check "an IPv4-mapped address is one of IPv4" json 'map(.address)' '["10.2.0.1"]' acm show ::ffff:10.2.0.1
	check "a prefix of these is, too" json 'map(.address)' '["10.1.0.1","10.1.0.7","10.1.1.1"]' acm show to ::ffff:10.1.0.0/112
	check "a prefix is flushed" oxib acm flush to ::ffff:10.1.1.0/120
	check "only that is" json length 4 acm show
	check "a source is flushed" oxib acm flush source file
	check "only that is, too" json 'map(.source) | unique' '["netlink"]' acm show
	check "a GID is flushed" oxib acm flush gid fec0::1
	check "nothing else of netlink was there" json length 0 acm show
	oxib acm add 10.1.0.1 fec0::1
	check "a prefix with bits behind it is refused" fails 2 'give 10\.1\.0\.0/16' oxib acm flush to 10.1.0.1/16
	check "nothing was flushed by that" json length 1 acm show
	check "all is flushed" oxib acm flush
	check "nothing is left" json length 0 acm show
}

# --- what the kernel refuses -------------------------------------------------------------------------------------------------

test_refusals() {
	check "a multicast GID is refused, and named" fails 1 '\(in: gid\)' oxib acm add 10.1.0.1 ff12:401b::1
	check "the reserved GID is refused, and named" fails 1 '\(in: gid\)' oxib acm add 10.1.0.1 ::
	check "no address is refused, and named" fails 1 '\(in: address\)' oxib acm add 0.0.0.0 fec0::1
	check "a multicast address is refused, and named" fails 1 '\(in: address\)' oxib acm add 224.0.0.1 fec0::1
	check "a loopback address is refused, and named" fails 1 '\(in: address\)' oxib acm add ::1 fec0::1
	for number in 0 1 0x1000000; do
		check "queue pair $number is refused, and named" fails 1 '\(in: qpn\)' oxib acm add 10.1.0.1 fec0::1 qpn "$number"
	done
	for key in 0 0x8000; do
		check "P_Key $key is refused, and named" fails 1 '\(in: pkey\)' oxib acm add 10.1.0.1 fec0::1 pkey "$key"
	done
	check "words that mean nothing are refused" fails 2 "'mtu' is not known here" oxib acm add 10.1.0.1 fec0::1 mtu 5
	check "nothing was added" json length 0 acm show
	check "a GID that does not leave its subnet is taken, with a note" matches 'note:.*fe80::/64' \
		"$(oxib acm add 10.1.0.1 fe80::1 2>&1)"
	check "it is there" json length 1 acm show
	check "a stranger may look" unprivileged oxib acm show
	check "a stranger may not change" fails 1 'CAP_NET_ADMIN.*root' unprivileged oxib acm flush
	check "a stranger may not load" fails 1 'CAP_NET_ADMIN.*root' unprivileged oxib acm load "$place/one.data"
	check "nothing was changed" json length 1 acm show
	oxib acm flush
}

unprivileged() { # command...
	setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all "$@"
}

# --- files -------------------------------------------------------------------------------------------------------------------

test_files() {
	cp /etc/hosts "$place/hosts"
	printf '%s\n' '10.1.0.21 node21' 'fd00::21 node21' '127.0.1.1 ownname' >>/etc/hosts
	fills ibacm.data '# InfiniBand Communication Management Assistant' '' '10.1.0.20 fec0::20' 'node21 fec0::21' '10.1.0.21 fec0::21'
	fills more.data '10.1.0.22 fec0::22 qpn 0x48 pkey 0x8001 lifetime 600 # n22' 'fd00::22 fec0::22'
	check "a file of ibacm is loaded, names and all" json '.entries, .files, .names' $'3\n1\n1' acm load "$place/ibacm.data"
	check "its entries are there" json 'map([.address, .gid, .source])' \
		'[["10.1.0.20","fec0::20","file"],["10.1.0.21","fec0::21","file"],["fd00::21","fec0::21","file"]]' acm show
	check "another file is loaded" prints '2 entries loaded' oxib acm load "$place/more.data"
	check "both are there" json length 5 acm show
	check "one file instead of both" oxib acm load --replace-all "$place/more.data"
	check "only that is there" json 'map([.address, .qpn, .pkey])' '[["10.1.0.22",72,"0x8001"],["fd00::22",null,null]]' acm show
	check "what a directory has is loaded" json .files 4 acm load --replace-all "$place"
	check "an empty standard input does not replace all of that" fails 1 'nothing was read.*the cache is as it was' replaces_by ''
	check "nor does an empty file" fails 1 'nothing was read' oxib acm load --replace-all /dev/null
	check "it is still there" json length 7 acm show
	check "a comment alone does" replaces_by '# none'
	check "it has" json length 0 acm show
	check "the standard input is loaded" oxib acm load - < <(echo '10.1.0.30 fec0::30')
	check "it is there" json length 1 acm show 10.1.0.30
	check "a name that is only the host's own is refused" fails 1 'f\.txt:1: .*ownname.*127\.0\.1\.1' \
		loads_text 'ownname fec0::1'
	check "a name that nobody knows is refused" fails 1 'f\.txt:1: .*no-such-node.*cannot be resolved' loads_text 'no-such-node fec0::1'
	cp "$place/hosts" /etc/hosts
	oxib acm flush
}

replaces_by() { # text of the standard input
	oxib acm load --replace-all - < <(printf %s "$1")
}

loads_text() { # line...
	fills f.txt "$@"
	oxib acm load "$place/f.txt"
}

test_wrong_files() {
	local before after
	oxib acm add 10.1.0.1 fec0::1
	before=$(oxib acm show)
	fills wrong.txt '10.1.0.40 fec0::40' '10.1.0.41' '10.1.0.300 fec0::1' '10.1.0.42 fec0::42 qpn 1' '' '10.1.0.43 ff12::1' \
		'10.1.0.44 fec0::44 mtu 5' '10.1.0.40 fec0::41'
	fills again.txt '# nothing' '10.1.0.40 fec0::40'
	check "files with mistakes are not loaded" fails 1 'wrong\.txt:2: the GID is missing' oxib acm load "$place/wrong.txt" "$place/again.txt"
	check "every mistake is told, with its place" equal "$(printf '%s\n' wrong.txt:{2,3,4,6,7,8} again.txt:2)" \
		"$(sed -nE 's|^oxib: .*/([a-z]+\.txt:[0-9]+): .*|\1|p' "$place/said")"
	check "an address in two files is told with both places" matches \
		'again\.txt:2: 10\.1\.0\.40 is there already: .*wrong\.txt:1$' "$(cat "$place/said")"
	after=$(oxib acm show)
	check "nothing was loaded" equal "$before" "$after"
	check "a file that is not there is told" fails 1 'missing\.txt: No such file' oxib acm load "$place/one.data" "$place/missing.txt"
	check "nothing was loaded by that" equal "$before" "$(oxib acm show)"
	oxib acm flush
}

test_ranks() {
	fills rank.data '10.1.0.1 fec0::1'
	oxib acm add 10.1.0.1 fec0::9
	check "a file replaces what netlink gave" oxib acm load "$place/rank.data"
	check "it has" prints '10.1.0.1 gid fec0::1 source file' oxib acm show 10.1.0.1
	check "netlink does not replace what a file gave" fails 1 . oxib acm replace 10.1.0.1 fec0::9
	check "it has not" prints '10.1.0.1 gid fec0::1 source file' oxib acm show 10.1.0.1
	oxib acm flush
}

test_save() {
	fills save.data '10.1.0.1 fec0::1' '10.1.0.2 fec0::2 qpn 72 pkey 0x8001' 'fd00::3 fec0:0:0:1::3'
	oxib acm load "$place/save.data"
	oxib acm add 10.1.0.9 fec0::9
	check "the cache is saved" oxib acm save "$place/saved.txt"
	check "all of it is" equal 4 "$(grep -cv '^#' "$place/saved.txt")"
	oxib acm flush
	check "what was saved is loaded" prints '4 entries loaded' oxib acm load "$place/saved.txt"
	oxib acm save "$place/again.txt"
	check "it is what was saved" cmp "$place/saved.txt" "$place/again.txt"
	check "one source is saved" equal 0 "$(oxib acm save - source netlink | grep -cv '^#')"
	echo kept >"$place/planted"
	ln -s "$place/planted" "$place/link.txt"
	check "a link is not followed" fails 1 'symbolic link' oxib acm save "$place/link.txt"
	check "what it leads to is as it was" equal kept "$(<"$place/planted")"
	check "what cannot be written is told" fails 1 'writing /nowhere/file' oxib acm save /nowhere/file
	oxib acm flush
}

# --- a million lines ---------------------------------------------------------------------------------------------------------

some_lines() { # how many
	awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++)
		printf "10.%d.%d.%d fec0:0:0:1::%x:%x\n", 64 + int(i / 65536), int(i / 256) % 256, i % 256, int(i / 65536) + 1, i % 65536 }'
}

# More than a pipe holds is not read.
first_lines() (
	set -o pipefail
	oxib acm show | head -n 1
)

to_full() { # command...
	"$@" >/dev/full
}

test_million() {
	local million=1000000 began
	some_lines $million >"$place/million.txt"
	began=${EPOCHREALTIME/./}
	check "a million lines are loaded" prints "$million entries loaded" oxib acm load "$place/million.txt"
	note "a million lines: $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
	check "all of them are there" json '.entries, .entries_file' "$million"$'\n'"$million" acm stats
	check "none takes more than 96 bytes" holds "$(oxib -j acm stats | jq '.memory / .entries | ceil')" -le 96
	check "the first and the last one are found" prints $'10.64.0.0 gid fec0::1:0:0:1:0 source file\n10.79.66.63 gid fec0::1:0:0:10:423f source file' \
		eval 'oxib acm show 10.64.0.0; oxib acm show 10.79.66.63'
	check "256 of them are listed" json length 256 acm show to 10.70.7.0/24
	sed -i '999999s/.*/10.79.66.62 nonsense/' "$place/million.txt"
	check "one wrong line among them is found" fails 1 "million\.txt:999999: 'nonsense' is not a GID" oxib acm load --replace-all "$place/million.txt"
	check "and nothing has changed" json .entries "$million" acm stats
	began=${EPOCHREALTIME/./}
	check "they are flushed" oxib acm flush
	note "flushed: $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
	check "nothing is left of them" json .entries 0 acm stats
	some_lines 20000 >"$place/terminal.txt"
	check "on a terminal there is a progress bar" matches 'loading \[' \
		"$(script -qec "oxib acm load $place/terminal.txt" /dev/null | tr '\r' '\n')"
	check "a reader who leaves is no error" first_lines
	check "a full disk is one" fails 1 'writing to the standard output: No space left' to_full oxib acm show
	check "but a load is done, and its status says so" fails 0 'note: the entries are loaded; writing .*No space left' \
		to_full oxib acm load "$place/one.data"
	check "what it loaded is there" json length 1 acm show 10.1.0.1
	mkfifo "$place/fifo"
	head -n 1 "$place/fifo" >/dev/null &
	jobs_running+=($!)
	check "so is a reader who leaves a pipe that was named" fails 1 'writing .*/fifo: Broken pipe' oxib acm save "$place/fifo"
	stop_jobs
	oxib acm flush
	rm "$place/million.txt"
}

# --- announcements -----------------------------------------------------------------------------------------------------------

announced() { # extended regular expression
	grep -qE -e "$1" "$place/announced"
}

test_monitor() {
	local form
	for form in "" -j; do
		# shellcheck disable=SC2086 # no word, or one
		oxib $form acm monitor >"$place/announced" &
		jobs_running+=($!)
		check "monitor $form: an entry comes" eventually adds_until_announced
		oxib acm del 10.1.0.77
		check "monitor $form: it goes" eventually announced '^Deleted 10\.1\.0\.77 gid fec0::77|"event":"del".*10\.1\.0\.77'
		oxib acm load - < <(echo '10.1.0.78 fec0::78') >/dev/null
		check "monitor $form: one comes from a file" eventually announced '^10\.1\.0\.78 .* source file$|"new".*10\.1\.0\.78.*"file"'
		oxib acm flush
		check "monitor $form: it is flushed" eventually announced '^Deleted 10\.1\.0\.78|"event":"del".*10\.1\.0\.78'
		stop_jobs
	done
	check "each line of JSON is a value" jq -e .event "$place/announced"
}

# Its number is in `process` then.
start_monitor() {
	oxib acm monitor >"$place/announced" 2>"$place/said" &
	process=$!
	jobs_running+=("$process")
}

# The kernel takes those that listen out of the group, and would tell them nothing of the next oxib.
test_end_of_monitor() {
	local process
	start_monitor
	check "monitor listens" eventually adds_until_announced
	check "that does not keep oxib from being unloaded" unload_oxib
	check "monitor ends with oxib" eventually has_ended "$process"
	check "and says so" matches '^oxib: oxib was unloaded' "$(cat "$place/said")"
	stop_jobs
}

# A monitor that is not read from gets no word of the end: its socket is full, and stays so after the loss was told.
test_end_of_slow_monitor() {
	local process
	start_monitor
	check "a monitor that will be slow listens" eventually adds_until_announced
	kill -STOP "$process"
	some_lines 200000 >"$place/many.txt"
	check "more comes than its socket holds" prints "200000 entries loaded" oxib acm load "$place/many.txt"
	check "oxib is unloaded meanwhile" unload_oxib
	kill -CONT "$process"
	check "the slow monitor ends, too" eventually has_ended "$process"
	check "it says that it lost changes" announced '^Lost: changes were missed'
	check "and that oxib was unloaded" matches '^oxib: oxib was unloaded' "$(cat "$place/said")"
	stop_jobs
	rm "$place/many.txt"
}

# Until it listens. What changes nothing is not announced.
adds_until_announced() {
	oxib acm replace 10.1.0.77 fec0::1
	oxib acm replace 10.1.0.77 fec0::77
	pause 0.1
	announced '10\.1\.0\.77.*fec0::77'
}

# --- with interfaces ---------------------------------------------------------------------------------------------------------

test_interfaces() {
	local gid
	check "the interface of a namespace is shown" json 'map([.ifname, .acm])' '[["ib0","prefer"]]' -n h1 acm interface show
	check "its mode is set" oxib -n h1 acm interface set dev ib0 acm only
	check "it is another one" json '.[0].acm' '"only"' -n h1 acm interface show dev ib0
	oxib -n h1 acm interface set dev ib0 acm prefer
	check "a mode that is none is refused" fails 2 "'on' is not a mode" oxib -n h1 acm interface set dev ib0 acm on
	check "an interface that is not there is told" fails 1 'the interface ib7: No such device' oxib -n h1 acm resolve 10.88.1.2 dev ib7
	check "lo is no interface of oxib" fails 1 . oxib -n h1 acm resolve 10.88.1.2 dev lo
	check "caches of namespaces are apart" json length 0 -n h2 acm show
	gid=$(port_field h2 gids/0)
	check "h2 is added in h1" oxib -n h1 acm add 10.88.1.2 "$gid"
	check "it is there" json length 1 -n h1 acm show
	check "and in no other namespace" json length 0 acm show
	check "it is resolved, step by step" json '(.steps | map(.step)), .entry.address, .path.dlid' \
		'["cache","sidr","path"]'$'\n"10.88.1.2"\n'"$(port_number h2 lid)" -n h1 acm resolve 10.88.1.2
	check "each step is shown with its time" matches '^path +ok +[0-9]+ us' "$(oxib -n h1 acm resolve 10.88.1.2 dev ib0)"
	# A host without entries takes no part in the exchange.
	check "h1 is added in h2" oxib -n h2 acm add 10.88.1.1 "$(port_field h1 gids/0)"
	check "all steps succeed" eventually oxib -n h1 acm resolve 10.88.1.2
	check "an address that the cache does not have is told" fails 1 '10\.88\.1\.99 is not resolved by the cache: no entry' \
		oxib -n h1 acm resolve 10.88.1.99
	check "that is told, too, where the steps cannot be printed" fails 1 '10\.88\.1\.99 is not resolved by the cache: no entry' \
		to_full oxib -n h1 acm resolve 10.88.1.99
	check "the path is shown" json 'map(select(.dlid == '"$(port_number h2 lid)"')) | length > 0' true -n h1 acm paths
	check "paths are flushed" oxib -n h1 acm paths flush
	check "none is left" json length 0 -n h1 acm paths
	check "an address gets a GID that nobody has" oxib -n h1 acm add 10.88.1.98 fec0::98
	check "paths are asked for ahead, once for each GID" json '.known, .missing, .unanswered' $'1\n["fec0::98"]\n[]' -n h1 acm paths preload
	check "that to h2 is there" json 'map(.dlid)' "[$(port_number h2 lid)]" -n h1 acm paths
	check "the GID without a path is named" matches '1 paths are known.no path to fec0::98' \
		"$(oxib -n h1 acm paths preload dev ib0 | tr '\n' ' ')"
	check "lo has no paths" fails 1 . oxib -n h1 acm paths preload dev lo
	check "the subnet administrator falls silent" kill -STOP "${sm_processes[h1]}"
	check "who waits for it keeps nobody from generic netlink" at h1 python3 selftests/acm/netlink.py silence ib0 10.88.1.98 fec0::98
	check "its silence is told, also where the paths cannot be printed" fails 1 'did not answer for [12] paths' \
		to_full oxib -n h1 acm paths preload dev ib0
	check "the subnet administrator is back" kill -CONT "${sm_processes[h1]}"
	oxib -n h1 acm del 10.88.1.98
}

# --- what belongs to it ------------------------------------------------------------------------------------------------------

# What bash completes a line to.
completes_to() { # wanted, word...
	local wanted=$1
	shift
	# shellcheck disable=SC2034 # for the completion
	COMP_WORDS=(oxib "$@") COMP_CWORD=$# COMPREPLY=()
	_oxib oxib "${!#}" "${COMP_WORDS[$#]}"
	matches "(^| )$wanted( |$)" "${COMPREPLY[*]}"
}

# As systemd starts it, without its file names.
unit_command() {
	sed -n 's|^ExecStart=/usr/sbin/||p' systemd/oxib-cache.service
}

# With the capabilities that the unit leaves to it, and no others.
as_the_unit() {
	local rights
	rights=$(sed -n 's/^CapabilityBoundingSet=//p' systemd/oxib-cache.service | sed 's/CAP_/+/g; s/ /,/g')
	# shellcheck disable=SC2046 # words
	setpriv --bounding-set="-all,${rights,,}" --inh-caps=-all $(unit_command)
}

test_belongings() {
	# shellcheck disable=SC1091 # made by the command
	. "$MODULES/tool/oxib.bash" 2>/dev/null
	check "bash completes commands" completes_to show acm s
	check "bash completes keywords" completes_to lifetime acm add 10.1.0.1 fec0::1 ''
	check "bash completes options" completes_to --replace-all acm load --
	check "there are completions for zsh" grep -q '#compdef oxib' "$MODULES/tool/_oxib"
	check "there are completions for fish" grep -q 'complete -c oxib' "$MODULES/tool/oxib.fish"
	check "the manual page is well formed" mandoc -T lint -W warning "$MODULES/tool/oxib.8"
	check "the manual page is readable" matches 'oxib acm load .*FILE' "$(mandoc -T utf8 "$MODULES/tool/oxib.8" | sed 's/.\x08//g')"
	check "the unit is right" unit_is_right
	check "the rule is right" udevadm verify systemd/60-oxib-cache.rules
	mkdir -p /run/udev/rules.d
	cp systemd/60-oxib-cache.rules /run/udev/rules.d/
	check "the module's coming starts the unit" wants_unit add
	check "a later event of the module does not end it" wants_unit change
	check "the module's end does" leaves_unit remove
	mkdir -p /etc/rdma/oxib
	cp "$place/one.data" /etc/rdma/oxib/
	# shellcheck disable=SC2046 # words
	check "the unit's command loads what there is" prints '1 entries loaded' $(unit_command)
	chown 65534 /etc/rdma/oxib/one.data
	chmod 600 /etc/rdma/oxib/one.data
	check "with the unit's rights, too, and a file that only another user may read" prints '1 entries loaded' as_the_unit
	oxib acm flush
}

# The properties of such an event of the module after all rules.
event_of_module() { # action
	udevadm test --action="$1" /sys/module/oxib 2>/dev/null
}

# Whether the rule takes such an event of the module.
wants_unit() { # action
	matches '^ *SYSTEMD_WANTS=.*oxib-cache\.service' "$(event_of_module "$1")"
}

# Whether udev knows such an event, and the rule does not take it.
leaves_unit() { # action
	local properties
	properties=$(event_of_module "$1")
	matches "^ *ACTION=$1\$" "$properties" && ! matches '^ *SYSTEMD_WANTS=' "$properties"
}

unit_is_right() {
	mkdir -p /usr/lib/systemd/system
	cp systemd/oxib-cache.service /usr/lib/systemd/system/
	ln -sf "$MODULES/tool/oxib" /usr/sbin/oxib
	systemd-analyze verify --man=no oxib-cache.service
}

# What udev is told when the module comes: after its cache is there.
test_announcement_of_module() {
	udevadm monitor --kernel --property --subsystem-match=module >"$place/events" &
	jobs_running+=($!)
	eventually grep -q KERNEL "$place/events"
	load_oxib || bail_out "oxib.ko could not be loaded"
	check "the module's coming is announced" eventually grep -q 'DEVPATH=/module/oxib$' "$place/events"
	check "with what the rule looks for" equal "ACTION=add" "$(grep -A1 -B2 'DEVPATH=/module/oxib$' "$place/events" | grep ACTION | head -n 1)"
	stop_jobs
}

test_without_module
test_announcement_of_module
test_entries
test_filters
test_refusals
test_files
test_wrong_files
test_ranks
test_save
test_monitor
test_million
test_belongings
test_end_of_monitor
load_oxib || bail_out "oxib.ko could not be loaded again"
test_end_of_slow_monitor
bring_up_fabric star h1
load_driver oxib || bail_out "oxib could not be loaded"
check "oxib makes an interface in each host, with carrier" interfaces_up "${hosts[@]}"
test_interfaces
check "oxib.ko can be unloaded" unload_driver
take_down_fabric
finish
