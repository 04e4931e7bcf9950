#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The address cache by netlink: what it takes and refuses, bulk loads, announcements, whose it is; and the kernel's own tool
# speaks it by its specification.
#
# nodes: 1
# kernels: fast
# timeout: 400

. selftests/lib/node.sh

netlink() { # case, argument...
	python3 selftests/acm/netlink.py "$@"
}

by_specification() { # argument...
	python3 "$MODULES/linux/tools/net/ynl/pyynl/cli.py" --spec Documentation/netlink/specs/oxib.yaml "$@"
}

# The schema is looked at once: that takes long.
ynl() { # argument...
	by_specification --no-schema "$@"
}

as_nobody() { # command...
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"
}

# The kernel's tool prints what Python has.
ynl_shows() { # regular expression, argument...
	local expression=$1
	shift
	matches "$expression" "$(ynl "$@" 2>&1 | tr '\n' ' ')"
}

load_oxib
check "each attribute that must be there is asked for" netlink missing
check "values that are too short or too long are refused" netlink lengths
check "values out of their range are refused" netlink ranges
check "requests about interfaces and paths are checked, too" netlink interfaces
check "values at the end of their range are taken" netlink limits
check "entries are added, replaced and deleted" netlink single
check "dumps and flushes are filtered" netlink filters
check "loads come in parts and happen at once" netlink load
check "a wrong record is named" netlink records
check "a load that fails changes nothing" netlink atomic
check "changes are announced" netlink changes
check "lifetimes end" netlink expiry
check "an entry costs at most 96 bytes" netlink memory
check "garbage is refused" netlink garbage

# Each namespace's own
check "who is no administrator may look alone" as_nobody python3 selftests/acm/netlink.py may_read_only
check "an entry of this namespace" netlink add 10.1.0.1 fec0::1
ip netns add other
in_other() {
	ip netns exec other "$@"
}
check_equal "another namespace has a cache of its own" "" "$(in_other python3 selftests/acm/netlink.py show)"
check "which takes its own entries" in_other python3 selftests/acm/netlink.py add 10.1.0.1 fec0::2
check "and tells them from this one's" matches '^10.1.0.1 fec0::1 ' "$(netlink show)"
check "a user may be the administrator of a namespace of its own" as_nobody unshare --user --map-root-user --net \
	python3 selftests/acm/netlink.py single
check "a namespace goes with its entries" ip netns delete other

# The kernel's own tool
check "the specification keeps to the kernel's schema" \
	by_specification --schema "$MODULES/linux/Documentation/netlink/genetlink.yaml" --list-ops
check "ynl shows entries" ynl_shows "'address': '10.1.0.1'.*'gid': 'fec0::1'.*'source': 'netlink'" --dump entry-get
check "ynl adds an entry" ynl --do entry-add --json '{"address": "fd00::7", "gid": "fec0::7", "qpn": 77, "pkey": 32769}'
check "ynl shows one" ynl_shows "'pkey': 32769.*'qpn': 77" --do entry-get --json '{"address": "fd00::7"}'
check "ynl is told what is wrong" ynl_shows "QPN 0x1 is out of range.*bad-attr.*qpn" --do entry-replace \
	--json '{"address": "fd00::7", "gid": "fec0::7", "qpn": 1}'
check "ynl is told what is missing" ynl_shows "miss-type.*gid" --do entry-replace --json '{"address": "fd00::7"}'
check "ynl filters" ynl_shows "^\[[^{]*\{[^{]*fd00::7[^{]*$" --dump entry-get --json '{"address": "fd00::", "prefix-length": 16}'
check "ynl loads" ynl --do load --json '{"entries": "fd000000000000000000000000000008fec0000000000000000000000000000800000000000000000000000000000000", "flags": ["commit"]}'
check "ynl shows what was loaded" ynl_shows "'source': 'file'" --do entry-get --json '{"address": "fd00::8"}'
check "ynl shows statistics" ynl_shows "'entries': 3.*'entries-file': 1.*'loads': [1-9]" --do stats-get
check "ynl deletes an entry" ynl --do entry-del --json '{"address": "10.1.0.1"}'
check "ynl lists interfaces" ynl_shows "^\[\]" --dump interface-get
check "ynl lists paths" ynl_shows "^\[\]" --dump path-get
check "ynl sets how an interface uses the cache" ynl_shows "interface 1 is not one of oxib" --do interface-set --json '{"ifindex": 1, "acm": "only"}'
check "ynl resolves an address" ynl_shows "interface 1 is not one of oxib" --dump resolve --json '{"ifindex": 1, "address": "fd00::7"}'
check "ynl asks for a path" ynl_shows "interface 1 is not one of oxib" --dump path-resolve --json '{"ifindex": 1, "dgid": "fec0::7"}'
check "ynl flushes" ynl --do entry-flush --json '{"source": "netlink"}'
check_equal "and leaves the rest" "fd00::8" "$(netlink show | cut -d ' ' -f 1)"

unload_oxib
check_refused "without the module there is no such family" netlink show
finish
