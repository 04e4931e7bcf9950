#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The members of a group, as the subnet administrator knows them: who only sends to it joins it as such, who hears it is a full
# member, and who leaves is none.
#
# nodes: 1
# kernels: fast
# timeout: 180

. selftests/infiniband.sh

# 239.9.9.9 in the default partition, as saquery writes it.
group=ff12:401b:ffff::f09:909

# How a host's port has joined it: 1 as a full member, 8 to send (SendOnlyFullMember); nothing as none. Who does not know the
# SM_Key is not told.
join_state() { # host
	local gid
	gid=$(port_field "$1" gids/0 | sed -E 's/(^|:)0+([0-9a-f])/\1\2/g; s/:0:0:0:/::/')
	at h4 saquery --smkey 1 -m | awk -v group="$group" -v gid="$gid" '
		/MGID\.+/ { sub(/.*\.\.+/, ""); mgid = $0 }
		/PortGid\.+/ { sub(/.*\.\.+/, ""); port = $0 }
		/ScopeState\.+/ { sub(/.*\.\.+/, ""); if (mgid == group && port == gid) print substr($0, length($0)) }'
}

is_member() { # host, join state
	equal "$2" "$(join_state "$1")"
}

listening() { # host
	ip netns exec "$1" python3 selftests/ipoib/group.py listen --member 239.9.9.9 5000 >/tmp/heard &
	jobs_running+=($!)
	eventually grep -q listening /tmp/heard
}

is_heard() { # text
	at h1 python3 selftests/ipoib/group.py say 239.9.9.9 5000 "$1"
	grep -qx "$1" /tmp/heard
}

bring_up_fabric star h4
load_driver oxib || bail_out "oxib.ko could not be loaded"
check "each host has an interface with carrier" interfaces_up "${hosts[@]}"
check "h2 listens to a group" listening h2
check "h2 is a full member" eventually is_member h2 1
check "h2 hears what h1 says" eventually is_heard hello
check "h1, which only sends, has joined for that alone" eventually is_member h1 8
check "h3 is no member" is_member h3 ''
stop_jobs
check "h2 does not listen any more, and is no member" eventually is_member h2 ''
check "h1 has still joined to send" is_member h1 8
check "oxib.ko can be unloaded" unload_driver
check "then nobody is a member" is_member h1 ''
stop_sm
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
