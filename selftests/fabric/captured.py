#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Read what tcpdump captured on a cable: each frame has to be a packet with a right invariant CRC, or a signal.

captured.py FILE SLID...    prints how many packets with data came from each of these ports
"""

import struct
import sys
from pathlib import Path

from packets import ETHERTYPE, invariant_crc

_FILE_HEADER, _RECORD_HEADER, _ETHERNET = 24, 16, 14
_MANAGEMENT = 15
# The first byte of what the ends of a cable tell each other of their links.
_SIGNAL = 0x0F


def _frames(capture):
    """The frames of a capture in the classic format of this machine's byte order."""
    (magic,) = struct.unpack_from("=I", capture)
    if magic != 0xA1B2C3D4:
        raise SystemExit(f"not a capture: it begins with {magic:#x}")
    place = _FILE_HEADER
    while place + _RECORD_HEADER <= len(capture):
        _, _, kept, length = struct.unpack_from("=IIII", capture, place)
        place += _RECORD_HEADER
        if place + kept > len(capture):
            # It is being written.
            return
        if kept != length:
            raise SystemExit(f"a frame of {length} bytes is cut off after {kept}")
        yield capture[place : place + kept]
        place += kept


def _packet(frame):
    """The InfiniBand packet in it, without what fills up a short frame; None if it is a signal."""
    (ethertype,) = struct.unpack_from(">H", frame, _ETHERNET - 2)
    if ethertype != ETHERTYPE:
        raise SystemExit(f"a frame of type {ethertype:#06x}")
    if frame[_ETHERNET] == _SIGNAL:
        return None
    (words,) = struct.unpack_from(">H", frame, _ETHERNET + 4)
    packet = frame[_ETHERNET : _ETHERNET + 4 * (words & 0x7FF)]
    if invariant_crc(packet[:-4]) != packet[-4:]:
        raise SystemExit(f"a packet with a wrong CRC: {packet.hex()}")
    return packet


def main():
    """Check all of them and count."""
    senders = [int(slid) for slid in sys.argv[2:]]
    found = dict.fromkeys(senders, 0)
    for frame in _frames(Path(sys.argv[1]).read_bytes()):
        packet = _packet(frame)
        if packet is None:
            continue
        (slid,) = struct.unpack_from(">H", packet, 6)
        if packet[0] >> 4 != _MANAGEMENT and slid in found:
            found[slid] += 1
    print(*found.values())


if __name__ == "__main__":
    main()
