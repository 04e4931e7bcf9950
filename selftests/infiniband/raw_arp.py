# SPDX-License-Identifier: GPL-2.0-only
"""raw_arp.py INTERFACE PKEY ADDRESS: ask by ARP who has the IPv4 address, as programs do that make link-layer addresses themselves: by
a packet socket, to the broadcast address with these four hexadecimal digits in the place of the P_Key."""

import ctypes
import os
import socket
import struct
import sys

ARP = 0x0806
_INFINIBAND = 32
_IPV4 = 0x0800
_ADDRESS = 20


def _broadcast(pkey):
    return bytes.fromhex(f"00ffffff ff12401b {pkey} 000000000000 ffffffff")


def request(own, target):
    """An ARP request from 0.0.0.0."""
    header = struct.pack(">HHBBH", _INFINIBAND, _IPV4, _ADDRESS, 4, 1)
    return header + own + bytes(4) + bytes(_ADDRESS) + socket.inet_aton(target)


def link_layer(index, address, protocol=ARP):
    """A struct sockaddr_ll with room for the whole address, for which Python's has none."""
    return struct.pack("=H2sIHBB", socket.AF_PACKET, struct.pack(">H", protocol), index, 0, 0, len(address)) + address


def send(interface, address, packet, protocol=ARP):
    """Send a packet without its link-layer header to a link-layer address."""
    to = link_layer(socket.if_nametoindex(interface), address, protocol)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(protocol)) as sender:
        library = ctypes.CDLL(None, use_errno=True)
        if library.sendto(sender.fileno(), packet, len(packet), 0, to, len(to)) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def main():
    """Send one request."""
    interface, pkey, target = sys.argv[1:]
    with open(f"/sys/class/net/{interface}/address", encoding="ascii") as address:
        own = bytes.fromhex(address.read().strip().replace(":", ""))
    send(interface, _broadcast(pkey), request(own, target))


if __name__ == "__main__":
    main()
