#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Topology files: what the shapes consist of, and what is said of files that describe nothing that can be.
#
# nodes: 1
# kernels: fast
# timeout: 120

. selftests/lib/node.sh

# The summary of each file comes first, then port by port.
describes() { # topology, expected summary
	check_equal "$1: $2" "$2" "$(grep -A 1 -x "file $1" /tmp/described | tail -n 1)"
}

for topology in pair star routed fattree two_ports chain offload; do
	printf 'file %s\n' "$topology"
	scripts/fabric check "selftests/fabric/topologies/$topology.fabric"
done >/tmp/described
describes pair '2 hosts, 1 cable'
describes star '1 switch, 4 hosts, 4 cables'
describes routed '2 switches, 4 hosts, 1 router, 6 cables'
describes fattree '6 switches, 8 hosts, 16 cables'
describes two_ports '2 switches, 2 hosts, 6 cables'
describes chain '3 switches, 3 hosts, 2 routers, 7 cables'
describes offload '1 switch, 3 hosts, 3 cables'
check "ports are described" grep -qx 'switch  s1:3             h3:1' /tmp/described

# Each file has one mistake, and each is complained of in the order of the files.
complaints=()
number=100
while IFS='|' read -r text complaint; do
	number=$((number + 1))
	printf '%b\n' "$text" >"/tmp/bad$number.fabric"
	complaints+=("$complaint")
done <<'END'
hosts 3|1: there is no statement 'hosts', but host, hca, switch, router, cable, star, routed, fattree
star|1: star needs hosts=
star hosts=x|1: hosts=x: numbers from 1 on are wanted
star hosts=0|1: hosts=0: numbers from 1 on are wanted
star hosts=2,2|1: star takes one number as hosts
star hosts=2 spines=1|1: star has no spines=
star 4|1: star takes only NAME=NUMBER, not '4'
routed hosts=2|1: routed needs the hosts of two subnets, at least: hosts=2,2
star hosts=2\n\n# comment\nhost h2|4: the name h2 is taken by the host of line 1
host|1: host needs a name
host 1st|1: '1st' is no name: take letters, digits and _, beginning with a letter
host far_too_long|1: the name far_too_long is too long: 11 letters, at most
host h1|1: host h1 has no cable
host h1 h2\ncable h1|2: a cable has two ends, not 1
host h1 h2\ncable h1 h1|2: both ends of the cable are in h1
host h1 h2\ncable h1 h3|2: there is no h3: name it before, as a host, hca, switch or router
host h1 h2\ncable h1:x h2|2: 'x' is no port: take a number from 1 on
host h1 h2\ncable h1:3 h2|2: host h1 has no port 3: 2 ports, at most
star hosts=64|1: switch s1 has no port 64: 63 ports, at most
host h1\nrouter r1\ncable r1:64 h1|3: router r1 has no port 64: 63 ports, at most
host h1 h2\ncable h1 h2\ncable h1:1 h2|3: port 1 of h1 has a cable already, that of line 2
host h1 h2\ncable h1 h2:2|1: host h2 has no cable in port 1, but in later ones
cable @eth0 @eth1|1: a cable has to end in the fabric on one side, at least
host h1 mtu|1: host h1 has no cable
host h1 =3|1: '=3' is no option: an option is NAME=VALUE
host h1 a=1 a=2|1: the option a is there twice
host h1 a=1\nhost h1 a=2|2: host h1 has the option a already
host h1 personality=none|1: there is no personality 'none', but connectx3, connectx5, irdma, poor
switch s1 personality=poor|1: switch s1 cannot have a personality: it is no HCA
host h1 personality=poor\nhost h1 personality=irdma|2: host h1 has the option personality already
END
check_refused "files with mistakes are refused" scripts/fabric check /tmp/bad*.fabric
mapfile -t said < <(scripts/fabric check /tmp/bad*.fabric 2>&1)
check_equal "each is complained of once" "${#complaints[@]}" "${#said[@]}"
for ((number = 0; number < ${#complaints[@]}; number++)); do
	check_equal "refused: ${complaints[number]}" "fabric: /tmp/bad$((101 + number)).fabric:${complaints[number]}" "${said[number]}"
done
check "refused: an empty file, and none" matches 'it describes nothing.*/tmp/none: No such file' \
	"$(scripts/fabric check /dev/null /tmp/none 2>&1 | tr '\n' ' ')"
check "refused: nothing is up" matches 'no fabric is up' "$(scripts/fabric down 2>&1)"
check "refused: softib is not loaded" matches 'load softib.ko' "$(scripts/fabric up selftests/fabric/topologies/star.fabric 2>&1)"
finish
