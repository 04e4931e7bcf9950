#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The cables of a subnet, each as 'NODE:PORT NODE:PORT', sorted.

links.py expected FILE HOST    as a topology file has them, in the subnet of a host
links.py discovered            as `ibnetdiscover --ports` has them, on standard input
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from fabric_builder import file  # noqa: E402
from fabric_builder.topology import ROUTER  # noqa: E402

# SW     3  1 0x... 4x SDR - CA     5  1 0x... ( 's1' - 'h1' )
_LINE = re.compile(r"^\w+ +\d+ +(\d+) 0x[0-9a-f]+ .* - +\w+ +\d+ +(\d+) 0x[0-9a-f]+ \( '(.*)' - '(.*)' \)$")


def _expected(path, host):
    topology = file.read(path)
    found, reached, ahead = set(), {host}, [host]
    while ahead:
        node = topology.nodes[ahead.pop()]
        for cable in node.ports.values():
            found.add(tuple(sorted(map(str, cable.ends))))
            # A router is the subnet's end.
            news = {end.node.name for end in cable.ends if end.node.kind != ROUTER} - reached
            reached |= news
            ahead += news
    return found


def _discovered(lines):
    matches = (_LINE.match(line.rstrip()) for line in lines)
    return {tuple(sorted((f"{found[3]}:{found[1]}", f"{found[4]}:{found[2]}"))) for found in matches if found}


def main():
    """Print what the command line asks for."""
    links = _expected(*sys.argv[2:]) if sys.argv[1] == "expected" else _discovered(sys.stdin)
    print(*(" ".join(link) for link in sorted(links)), sep="\n")


if __name__ == "__main__":
    main()
