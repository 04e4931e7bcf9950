#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""wrong_checksum.py ADDRESS LENGTH: send a UDP datagram of that many bytes whose checksum is wrong."""

import socket
import struct
import sys

_PORT = 5999
_HEADER = 8


def main():
    """Do what the command line says. The checksum of zeros and small numbers is never this one."""
    address, length = sys.argv[1], int(sys.argv[2])
    header = struct.pack("!HHHH", _PORT, _PORT, _HEADER + length, 0x1234)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as raw:
        raw.sendto(header + bytes(length), (address, 0))


if __name__ == "__main__":
    main()
