#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A host gets its address by DHCP over InfiniBand (RFC 4390): systemd-networkd asks, with a client identifier and for answers by
# broadcast, and dnsmasq in another host answers; on ib0 and on a child.
#
# nodes: 1
# kernels: fast
# timeout: 300

. selftests/lib/infiniband.sh

mkdir -p /run/systemd
printf '%032x\n' 0x1b0a7 >/etc/machine-id

serve() { # host, interface, third number of the addresses
	at "$1" ip address replace "10.$3.0.1/24" brd + dev "$2"
	in_background_at "$1" dnsmasq --no-daemon --conf-file=/dev/null --port=0 --interface="$2" --bind-interfaces \
		--dhcp-range="10.$3.0.100,10.$3.0.150,1h" --dhcp-leasefile=/tmp/leases --dhcp-authoritative
}

# In each host. The file system /sys is read-only, as in a container: nobody waits for udev then.
client_of() { # host, interface
	mkdir -p "/tmp/network.$1" /etc/systemd/network
	printf '[Match]\nName=%s\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n' "$2" >"/tmp/network.$1/asks.network"
	in_background_at "$1" unshare --mount sh -c "mount --bind /tmp/network.$1 /etc/systemd/network && mount -t tmpfs none /run/systemd &&
		mount -o remount,ro /sys && exec /usr/lib/systemd/systemd-networkd"
}

has_lease() { # host, interface, third number of the address
	matches "inet 10\.$3\.0\.1[0-4][0-9]/24" "$(at "$1" ip -4 address show dev "$2")"
}

bring_up_fabric star h1
load_driver oxib || bail_out "oxib could not be loaded"
check "oxib makes an interface in each host, with carrier" interfaces_up "${hosts[@]}"
check "h1 serves addresses" serve h1 ib0 90
check "h2 asks for one" client_of h2 ib0
check "h2 gets it" eventually has_lease h2 ib0 90
check "h2 reaches h1 from there" host_reaches h2 10.90.0.1
stop_jobs
check "h1: a child" at h1 ip link add link ib0 name c1 type ipoib
check "h3: a child" at h3 ip link add link ib0 name c1 type ipoib
check "h1: it comes up" at h1 ip link set c1 up
check "h3: it comes up" at h3 ip link set c1 up
eventually at h3 grep -q 1 /sys/class/net/c1/carrier
check "h1 serves addresses on it" serve h1 c1 91
check "h3 asks for one" client_of h3 c1
check "h3 gets it" eventually has_lease h3 c1 91
check "h3 reaches h1 from there" host_reaches h3 10.91.0.1
stop_jobs
check "oxib.ko can be unloaded" unload_driver
take_down_fabric
finish
