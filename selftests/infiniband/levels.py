#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say with what service level, flow label and traffic class a host sends its datagrams by its cable, until killed.

levels.py DEVICE    `P_KEY one|group LEVEL FLOW_LABEL TRAFFIC_CLASS`, of each datagram that is no management; `-` twice at the
                    end where it has no global route header
"""

import socket
import struct
import sys

_PACKET_OUTGOING = 4
_ETHERNET, _LRH, _GRH = 14, 8, 40
_GLOBAL, _UD, _GSI = 3, (0x64, 0x65), 1
_FIRST_GROUP = 0xC000


def _line(packet):
    """What is said of a packet, if it is one of those."""
    _lanes, level, dlid = struct.unpack_from("!BBH", packet)
    flow, transport = "- -", _LRH
    if level & 3 == _GLOBAL:
        version_class_flow, = struct.unpack_from("!I", packet, _LRH)
        flow = f"{version_class_flow & 0xFFFFF:#x} {version_class_flow >> 20 & 0xFF:#x}"
        transport += _GRH
    opcode, _flags, pkey, queue_pair = struct.unpack_from("!BBHI", packet, transport)
    if opcode not in _UD or queue_pair & 0xFFFFFF <= _GSI:
        return None
    return f"{pkey:#06x} {'group' if dlid >= _FIRST_GROUP else 'one'} {level >> 4} {flow}"


def main():
    """Read the cable."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as cable:
        cable.bind((sys.argv[1], 3))
        print("listening", flush=True)
        while True:
            frame, address = cable.recvfrom(1 << 16)
            try:
                line = _line(frame[_ETHERNET:])
            except struct.error:
                continue
            if line and address[2] == _PACKET_OUTGOING:
                print(line, flush=True)


if __name__ == "__main__":
    main()
