#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say what a host sends by its cable, one line for each packet, until killed.

cable.py DEVICE    `arp|nd group|one`: a question for a neighbour, to all or to one; `sa`, `sidr`, `cm`: management
"""

import socket
import struct
import sys

_PACKET_OUTGOING = 4
_ETHERNET, _LRH, _GRH, _BTH, _DETH = 14, 8, 40, 12, 8
_GLOBAL, _UD = 3, (0x64, 0x65)
_ARP, _IPV6, _ICMPV6, _SOLICITATION = 0x0806, 0x86DD, 58, 135
_SA, _CM, _SIDR_REQ = 0x03, 0x07, 0x17


def _management(mad):
    (attribute,) = struct.unpack_from(">H", mad, 16)
    if mad[1] == _SA:
        return "sa"
    if mad[1] == _CM:
        return "sidr" if attribute == _SIDR_REQ else "cm"
    return None


def _question(message, is_group):
    (ethertype,) = struct.unpack_from(">H", message)
    datagram, whom = message[4:], "group" if is_group else "one"
    if ethertype == _ARP:
        return f"arp {whom}"
    if ethertype == _IPV6 and datagram[6] == _ICMPV6 and datagram[40] == _SOLICITATION:
        return f"nd {whom}"
    return None


def _kind(packet):
    """What a packet is, if it is one of those."""
    is_global = packet[1] & 3 == _GLOBAL
    (dlid,) = struct.unpack_from(">H", packet, 2)
    transport = _LRH + (_GRH if is_global else 0)
    message = packet[transport + _BTH + _DETH :]
    if packet[transport] not in _UD:
        return None
    qpn = int.from_bytes(packet[transport + 5 : transport + 8], "big")
    return _management(message) if qpn == 1 else _question(message, dlid >= 0xC000)


def main():
    """Read the cable."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as cable:
        cable.bind((sys.argv[1], 3))
        print("listening", flush=True)
        while True:
            frame, address = cable.recvfrom(1 << 16)
            try:
                kind = _kind(frame[_ETHERNET:])
            except (IndexError, struct.error):
                continue
            if kind and address[2] == _PACKET_OUTGOING:
                print(kind, flush=True)


if __name__ == "__main__":
    main()
