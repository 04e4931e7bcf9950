#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""unconfirmed.py: says of which IPv4 neighbours nothing has shown for almost a second that they receive, ten times a second.

For each one a line: its address, and the seconds since it was confirmed. Runs until it is killed.
"""

import os
import socket
import struct
import time
from collections.abc import Iterator

RTM_GETNEIGH = 30
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_DONE = 3
NDA_DST, NDA_CACHEINFO = 1, 3

# A path of which nothing is seen for a second may be asked for.
SILENCE = 0.8


def attributes(rest: bytes) -> dict[int, bytes]:
    found = {}
    while len(rest) >= 4:
        length, kind = struct.unpack_from("HH", rest)
        found[kind] = rest[4:length]
        rest = rest[(length + 3) & ~3 :]
    return found


def messages(link: socket.socket) -> Iterator[bytes]:
    """The neighbours that one question for all of them brings, without their headers."""
    link.send(struct.pack("IHHIIBBHiHBB", 28, RTM_GETNEIGH, NLM_F_REQUEST | NLM_F_DUMP, 1, 0, socket.AF_INET, 0, 0, 0, 0, 0, 0))
    while True:
        rest = link.recv(65536)
        while rest:
            length, kind = struct.unpack_from("IH", rest)
            if kind == NLMSG_DONE:
                return
            yield rest[16:length]
            rest = rest[(length + 3) & ~3 :]


def main() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        while True:
            for message in messages(link):
                about = attributes(message[12:])
                (confirmed,) = struct.unpack_from("I", about[NDA_CACHEINFO])
                if confirmed >= SILENCE * ticks:
                    print(socket.inet_ntoa(about[NDA_DST]), confirmed / ticks, flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
