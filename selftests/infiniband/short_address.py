# SPDX-License-Identifier: GPL-2.0-only
"""short_address.py INTERFACE [CASE...]: send by packet sockets with too little of a link-layer header. Prints what became of each.

CASE: address, with fewer bytes of address than an interface of InfiniBand has; frame, whole frames that are shorter than a
header; none, by a bound socket without any address."""

import ctypes
import errno
import socket
import struct
import sys

_ARP = 0x0806
_ADDRESS = 20
_HEADER = 24
_LIBRARY = ctypes.CDLL(None, use_errno=True)


def _link_layer(index, address, length):
    """A struct sockaddr_ll that says it has an address of that length, and has these bytes of it."""
    return struct.pack("=H2sIHBB", socket.AF_PACKET, struct.pack(">H", _ARP), index, 0, 0, length) + address


def _send(sender, packet, to):
    if _LIBRARY.sendto(sender.fileno(), packet, len(packet), 0, to, len(to)) < 0:
        return errno.errorcode[ctypes.get_errno()]
    return "sent"


def _of_addresses(index):
    """A datagram to the broadcast address, of which the last bytes are missing. Whole, it is sent."""
    whole = bytes.fromhex("00ffffffff12401b") + bytes(8) + b"\xff" * 4
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as sender:
        for length in range(_ADDRESS + 1):
            for said in {length, 0, _ADDRESS}:
                yield f"{length} bytes of address, said to be {said}", _send(sender, bytes(56), _link_layer(index, whole[:length], said))


def _of_frames(index):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        for length in range(1, _HEADER + 1):
            yield f"{length} bytes of frame", _send(sender, bytes(length), _link_layer(index, bytes(8), 0))


def _of_none(interface):
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ARP)) as sender:
        sender.bind((interface, _ARP))
        try:
            sender.send(bytes(56))
        except OSError as error:
            yield "no address", errno.errorcode[error.errno]
        else:
            yield "no address", "sent"


def main():
    """Send it all."""
    interface, cases = sys.argv[1], sys.argv[2:]
    index = socket.if_nametoindex(interface)
    for case in cases:
        found = {"address": lambda: _of_addresses(index), "frame": lambda: _of_frames(index), "none": lambda: _of_none(interface)}[case]()
        for what, outcome in found:
            print(f"{what}: {outcome}")


if __name__ == "__main__":
    main()
