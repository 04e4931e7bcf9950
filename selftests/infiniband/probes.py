# SPDX-License-Identifier: GPL-2.0-only
"""probes.py INTERFACE LLADDR ADDRESS COUNT [FIRST [FLAGS]]: probe by ARP for the IPv4 address, as a node does before it uses one
(RFC 5227), COUNT times, each from a GID that no port has, the first with the number FIRST (0). The probes go to the link-layer address
LLADDR alone. FLAGS (00) is the first byte of their own addresses: with 80 they take connections."""

import ctypes
import os
import socket
import sys

import raw_arp


def main():
    """Send the probes, some milliseconds apart."""
    interface, lladdr, target, count, *rest = sys.argv[1:]
    first, flags = rest + ["0", "00"][len(rest) :]
    to = raw_arp.link_layer(socket.if_nametoindex(interface), bytes.fromhex(lladdr.replace(":", "")))
    library = ctypes.CDLL(None, use_errno=True)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(raw_arp.ARP)) as sender:
        for number in range(int(first), int(first) + int(count)):
            own = bytes.fromhex(flags + "000048 fe80000000000000 0badbeef") + number.to_bytes(4, "big")
            packet = raw_arp.request(own, target)
            if library.sendto(sender.fileno(), packet, len(packet), 0, to, len(to)) < 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            # A queue that is full drops them.
            if number % 16 == 15:
                os.sched_yield()


if __name__ == "__main__":
    main()
