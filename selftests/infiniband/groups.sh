#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The members of a group, as the subnet administrator knows them: who only sends to it joins it as such, who hears it is a full
# member, and who leaves is none, also if it sends nothing more. After a restart of the subnet manager with another MTU no group
# is asked for as the broadcast group was before: OpenSM would refuse that, or make a group that refuses all others. A queue
# pair that cannot be attached to the broadcast group leaves the link down; one that could not be detached is destroyed all the
# same. Other rings change no membership. A Q_Key that the adapter refuses at first is set later.
#
# nodes: 1
# kernels: fast
# timeout: 180

. selftests/lib/infiniband.sh

# 239.9.9.9 in the default partition, as saquery writes it.
group=ff12:401b:ffff::f09:909

# 224.0.0.99.
unreported=ff12:401b:ffff::63

is_member() { # host, join state, [group]
	equal "$2" "$(join_state "${3:-$group}" "$1" 0)"
}

listening() { # host, [group]
	: >/tmp/heard
	ip netns exec "$1" python3 selftests/ipoib/group.py listen --member "${2:-239.9.9.9}" 5000 >/tmp/heard &
	jobs_running+=($!)
	eventually grep -q listening /tmp/heard
}

is_heard() { # text
	at h1 python3 selftests/ipoib/group.py say 239.9.9.9 5000 "$1"
	grep -qx "$1" /tmp/heard
}

# --- a queue that sends nothing more -----------------------------------------------------------------------------------

# Nothing follows on the last packet to the group: the stack reports none of these groups, and without IPv6 it has no other reason
# to send. The packets are short, so that the device copies them and no completion says that the queue is done with their address
# handle.
test_leaving() {
	local text
	check "h2: IPv6 is off" at h2 sh -c 'echo 1 >/proc/sys/net/ipv6/conf/ib0/disable_ipv6'
	check "h2: groups that routers do not forward are not reported" at h2 sysctl -qw net.ipv4.igmp_link_local_mcast_reports=0
	# Until the stack has reported the groups that it was in before.
	pause 3
	check "h2 listens to a group that is not reported" listening h2 224.0.0.99
	check "h2 is a full member of that" eventually is_member h2 1 "$unreported"
	for text in one two three; do
		check "h2 says $text there" at h2 python3 selftests/ipoib/group.py say 224.0.0.99 5000 "$text"
	done
	stop_jobs
	check "h2 does not listen any more, sends nothing, and is no member" eventually is_member h2 '' "$unreported"
}

# --- a restart of the subnet manager -----------------------------------------------------------------------------------

# Their GIDs come before that of the broadcast group, and so does the news that their memberships have ended. With so many, the
# interface looks after them while that news is still on its way.
held=100

are_members() { # number of groups
	local host
	for host in "${hosts[@]}"; do
		holds "$(counter_at "$host" multicast_groups)" -ge "$1" || return
	done
}

# So many more requests than before, the broadcast group's among them, and all of them have been granted.
have_joined_anew() {
	local host
	for host in "${hosts[@]}"; do
		holds "$(counter_at "$host" sa_joins)" -gt $((joins[$host] + held)) || return
	done
	are_members $((held + 2))
}

declare -A joins

restart_sm_with_mtu() { # code of IBTA 15.2.5.17, [more of the partition's flags]
	local host
	for host in "${hosts[@]}"; do
		joins[$host]=$(counter_at "$host" sa_joins)
	done
	stop_sm h4
	printf 'Default=0x7fff, ipoib, mtu=%d%s: ALL=full;\n' "$1" "${2:-}" >/tmp/sm.h4/partitions.conf
	start_sm h4
}

mtu_can_be() { # number
	at h1 ip link set ib0 mtu "$1" && equal "$1" "$(mtu_of h1)"
}

# All groups of IPv4, of which the broadcast group is the last, and each has one line.
groups_have_mtu() { # code of IBTA 15.2.5.17
	local codes
	codes=$(at h4 saquery --smkey 1 -g | awk '
		/MGID\.+/ { sub(/.*\.\.+/, ""); mgid = $0 }
		/Mtu\.+/ { sub(/.*\.\.+/, ""); if (mgid ~ /^ff12:401b:/) print }')
	holds "$(wc -l <<<"$codes")" -ge $((held + 2)) && equal "$(printf '0x%x' $((0x80 + $1)))" "$(sort -u <<<"$codes")"
}

nobody_was_refused() {
	refused kernel_log_has 'does not let port'
}

# --- attachments -------------------------------------------------------------------------------------------------------

# Failures of h3's HCA.
faults=/sys/kernel/config/softib/hca/h3

fault() { # file, value
	printf '%s\n' "$2" >"$faults/$1"
}

test_attachment() {
	local message='ib0: the queue pair cannot be attached to the broadcast group'
	check "h3: queue pairs cannot be attached to groups" fault attaches_fail 1
	check "h3: ib0 goes down" at h3 ip link set ib0 down
	check "h3: and up" at h3 ip link set ib0 up
	check "h3: the log says what it lacks" eventually kernel_log_has "$message"
	# Two more tries.
	pause 4
	check "h3: it has no carrier" has_no_carrier h3
	check_equal "h3: the log has said so once" 1 "$(dmesg | grep -c "$message")"
	check_equal "h3: and once that it could not be detached from its groups" 1 \
		"$(dmesg | grep -c 'infiniband h3: ib0: the queue pair cannot be detached from')"
	check "h3: they can be attached again" fault attaches_fail 0
	check "h3: it has carrier" eventually has_carrier h3
	check "h3: it hears h1" eventually host_reaches h1 "$(v4_of h3)"
}

# The attachments that could not end go on.
test_detachment() {
	check "h3: queue pairs cannot be detached from groups" fault detaches_fail 1
	check "h3: ib0 goes down, detaching no queue pair" at h3 ip link set ib0 down
	check "h3: and up, attaching them" at h3 ip link set ib0 up
	check "h3: it has carrier without detachments" eventually has_carrier h3
	# A peer that is known needs no group.
	check "h1 forgets it" flush_neighbours h1
	check "h3: it hears h1 ask for it without detachments" eventually host_reaches h1 "$(v4_of h3)"
	check "h3 listens to a group" listening h3
	check "h3 hears what h1 says" eventually is_heard attached
	stop_jobs
	check "h3: they can be detached again" fault detaches_fail 0
}

# --- Q_Key -------------------------------------------------------------------------------------------------------------

test_qkey() {
	check "h3: its queue pairs cannot be changed" fault resets_fail 1
	restart_sm_with_mtu 5 ', Q_Key=0x0b1c'
	check "the groups have another Q_Key: each host joins them" eventually have_joined_anew
	check "h3: the log says that it cannot have it" eventually kernel_log_has 'infiniband h3: ib0: Q_Key 0xb1c cannot be set'
	check "h3: it has no carrier" eventually has_no_carrier h3
	check "others have it" eventually host_reaches h1 "$(v4_of h2)"
	check "h3: they can be changed again" fault resets_fail 0
	check "h3: it has carrier" eventually has_carrier h3
	check "h3: it hears h1" eventually host_reaches h1 "$(v4_of h3)"
}

# --- rings -------------------------------------------------------------------------------------------------------------

# Of IPv4 alone, since test_leaving: the stack asks for routers by IPv6 when the carrier comes, and joins their group to send.
test_rings() {
	local before groups
	check "h2 listens to a group" listening h2
	check "h2 hears what h1 says" eventually is_heard before
	# Until the stack has reported its groups.
	pause 3
	before=$(counter_at h2 sa_joins)
	groups=$(counter_at h2 multicast_groups)
	check "h2: other rings" at h2 ethtool -G ib0 tx 512 rx 512
	check "h2: it has carrier" eventually has_carrier h2
	check "h2: the queue pair is another one, and hears the group" eventually is_heard after
	# One that the stack sends to may be, as with the address handle ended a membership to send.
	check "h2: its groups were not joined anew" holds "$(counter_at h2 sa_joins)" -le $((before + 1))
	check_equal "h2: it is a member of as many" "$groups" "$(counter_at h2 multicast_groups)"
	check "h2 is still a full member for the subnet administrator" is_member h2 1
}

bring_up_fabric star h4
mkdir -p "$faults"
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
test_leaving
test_attachment
test_detachment
for host in "${hosts[@]}"; do
	at "$host" sysctl -qw net.ipv4.igmp_max_memberships="$held"
	in_background_at "$host" python3 selftests/ipoib/group.py hold --ipv4 "$held"
done
check "each host is a member of $held groups more" eventually are_members $((held + 2))
test_rings
for code in 5 4 5; do
	mtu=$(((128 << code) - 4))
	restart_sm_with_mtu "$code"
	check "MTU $mtu: each host joins all of its groups after a restart of the subnet manager" eventually have_joined_anew
	check "MTU $mtu: the broadcast group has it" eventually mtu_can_be "$mtu"
	check "MTU $mtu: all other groups have it" groups_have_mtu "$code"
	check "MTU $mtu: no join was refused" nobody_was_refused
done
test_qkey
stop_jobs
check "oxib.ko can be unloaded" unload_driver
check_refused "each queue pair could be destroyed" kernel_log_has 'a queue pair cannot be destroyed'
check "then nobody is a member" is_member h1 ''
stop_sm
rmdir "$faults"
check "the fabric can be taken down" fabric_down
check "softib.ko can be unloaded" unload_softib
finish
