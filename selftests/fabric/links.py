#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a topology file and a subnet consist of; a cable is 'NODE:PORT NODE:PORT', and all is sorted.

links.py expected FILE HOST    cables as a topology file has them, in the subnet of a host
links.py discovered            cables as `ibnetdiscover --ports` has them, on standard input
links.py subnets FILE          the hosts of each subnet, a subnet in each line
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from fabric_builder import file  # noqa: E402
from fabric_builder.topology import HOST  # noqa: E402
from fabric_builder.topology import ROUTER  # noqa: E402

# SW     3  1 0x... 4x SDR - CA     5  1 0x... ( 's1' - 'h1' )
_LINE = re.compile(r"^\w+ +\d+ +(\d+) 0x[0-9a-f]+ .* - +\w+ +\d+ +(\d+) 0x[0-9a-f]+ \( '(.*)' - '(.*)' \)$")


def _subnet(topology, host):
    """(cables, nodes)"""
    found, reached, ahead = set(), {host}, [host]
    while ahead:
        node = topology.nodes[ahead.pop()]
        for cable in node.ports.values():
            found.add(tuple(sorted(map(str, cable.ends))))
            # A router is the subnet's end.
            news = {end.node.name for end in cable.ends if end.node.kind != ROUTER} - reached
            reached |= news
            ahead += news
    return found, reached


def _expected(path, host):
    return sorted(_subnet(file.read(path), host)[0])


def _subnets(path):
    topology = file.read(path)
    # In the order of the file.
    hosts = [node.name for node in topology.of_kind(HOST)]
    subnets = []
    while hosts:
        reached = _subnet(topology, hosts[0])[1]
        subnets.append([host for host in hosts if host in reached])
        hosts = [host for host in hosts if host not in reached]
    return subnets


def _discovered(lines):
    matches = (_LINE.match(line.rstrip()) for line in lines)
    return sorted({tuple(sorted((f"{found[3]}:{found[1]}", f"{found[4]}:{found[2]}"))) for found in matches if found})


_COMMANDS = {"expected": _expected, "discovered": lambda: _discovered(sys.stdin), "subnets": _subnets}


def main():
    """Print what the command line asks for."""
    command, *arguments = sys.argv[1:]
    for words in _COMMANDS[command](*arguments):
        print(*words)


if __name__ == "__main__":
    main()
