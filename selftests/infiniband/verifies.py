# SPDX-License-Identifier: GPL-2.0-only
"""verifies.py INTERFACE ADDRESS SECONDS: make sure, as RFC 5227 2.1.1 has it, that nobody has the IPv4 address or wants it.

Asks for it from 0.0.0.0 each half second. Prints "ready" when it has begun, then each conflict that it sees."""

import select
import socket
import struct
import sys
import time

_ARP = 0x0806
_HEAD = struct.pack(">HHBB", 32, 0x0800, 20, 4)
_BROADCAST = bytes.fromhex("00ffffffff12401bffff000000000000ffffffff")


def _probe(own, address):
    return struct.pack(">HH", _ARP, 0) + _HEAD + struct.pack(">H", 1) + own + bytes(4) + bytes(20) + address


def _conflict(datagram, own, address):
    """Why an ARP packet is a conflict; nothing if it is none."""
    if len(datagram) < 56 or datagram[:6] != _HEAD:
        return None
    sender, sender_ip, target_ip = datagram[8:28], datagram[28:32], datagram[52:56]
    if sender[4:] == own[4:]:
        return None
    if sender_ip == address:
        return "has it"
    if datagram[6:8] == b"\0\1" and sender_ip == bytes(4) and target_ip == address:
        return "probes for it"
    return None


def main():
    """Look for conflicts."""
    interface, address, seconds = sys.argv[1], socket.inet_aton(sys.argv[2]), float(sys.argv[3])
    with open(f"/sys/class/net/{interface}/address", encoding="ascii") as file:
        own = bytes.fromhex(file.read().strip().replace(":", ""))
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ARP)) as hears,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sends,
    ):
        hears.bind((interface, _ARP))
        sends.bind((interface, 0))
        end, next_probe = time.monotonic() + seconds, 0
        print("ready", flush=True)
        while (now := time.monotonic()) < end:
            if now >= next_probe:
                sends.send(_BROADCAST + _probe(own, address))
                next_probe = now + 0.5
            if select.select([hears], [], [], 0.1)[0]:
                found = _conflict(hears.recv(2000), own, address)
                if found:
                    print(f"conflict: somebody {found}", flush=True)


if __name__ == "__main__":
    main()
