#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reach many IPv4 addresses once each.

reach.py SECONDS < ADDRESSES    an echo request to all of them, one after the other; again after a while to those that have not
                                answered. Says how many answered in how many milliseconds; fails if not all do in that time
"""

import socket
import struct
import sys
import time

_REQUEST, _REPLY = 8, 0
_AGAIN = 5.0


def _checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _request(sequence):
    header = struct.pack(">BBHHH", _REQUEST, 0, 0, 0x6F78, sequence)
    return struct.pack(">BBHHH", _REQUEST, 0, _checksum(header), 0x6F78, sequence)


def _hear(raw, left):
    """Take addresses that answer out of what is left, until none comes for a moment."""
    while left:
        try:
            packet, (address, _) = raw.recvfrom(2048)
        except TimeoutError:
            return
        if packet[(packet[0] & 15) * 4] == _REPLY:
            left.discard(address)


def main():
    """Reach them all."""
    addresses = sys.stdin.read().split()
    begin = time.monotonic()
    left = set(addresses)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        raw.settimeout(0.5)
        while left and time.monotonic() - begin < float(sys.argv[1]):
            for sequence, address in enumerate(sorted(left)):
                raw.sendto(_request(sequence & 0xFFFF), (address, 0))
            again = time.monotonic() + _AGAIN
            while left and time.monotonic() < again:
                _hear(raw, left)
    print(f"{len(addresses) - len(left)} in {(time.monotonic() - begin) * 1000:.0f} ms")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
