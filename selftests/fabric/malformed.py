#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Put frames on a cable that no InfiniBand port would send: each of a list, and then many that are random.

malformed.py INTERFACE DLID SLID RANDOM    to the port with that LID at the other end, as if from the port SLID

It prints how many frames it sent that have to be dropped; the random ones are not among these.
"""

import random
import socket
import struct
import sys
import zlib

_ETHERTYPE = 0x88B5
_RAW, _IP, _LOCAL, _GLOBAL = range(4)
_RC_SEND_ONLY, _RC_READ_REQUEST, _RC_ACK, _UD_SEND_ONLY = 0x04, 0x0C, 0x11, 0x64
_QP1_QKEY = 0x80010000
_DEFAULT_PKEY = 0xFFFF


def _lrh(dlid, slid, length, *, vl=0, version=0, sl=0, lnh=_LOCAL):
    """The local route header; the length in bytes is told in words."""
    return struct.pack(">BBHHH", vl << 4 | version, sl << 4 | lnh, dlid, length // 4, slid)


def _grh(payload_length, *, version=6, next_header=0x1B, hops=64, dgid=bytes(16)):
    sgid = bytes.fromhex("fe80000000000000") + bytes(7) + b"\1"
    return struct.pack(">IHBB", version << 28, payload_length, next_header, hops) + sgid + dgid


def _bth(opcode, qpn, *, pkey=_DEFAULT_PKEY, pad=0, version=0, psn=0):
    return struct.pack(">BBHII", opcode, pad << 4 | version, pkey, qpn, psn)


def _deth(qkey=_QP1_QKEY, qpn=1):
    return struct.pack(">II", qkey, qpn)


def _mad(management_class, *, base=1, version=1, method=1, status=0, attribute=0x11, rest=b""):
    head = struct.pack(">BBBBHHQHHI", base, management_class, version, method, status, 0, 7, attribute, 0, 0)
    return (head + rest).ljust(256, b"\0")


def _directed(hop_pointer, hop_count, *, returning=False):
    """A directed-route SMP that asks for NodeInfo: the hops stand where others have the class's own bytes."""
    status = 0x8000 if returning else 0
    head = struct.pack(">BBBBHBBQHHI", 1, 0x81, 1, 1, status, hop_pointer, hop_count, 7, 0x11, 0, 0)
    return (head + bytes(8) + struct.pack(">HH", 0xFFFF, 0xFFFF)).ljust(128, b"\0") + bytes([1] * 128)


def _invariant_crc(packet):
    masked = bytearray(packet)
    transport = 8
    if packet[1] & 3 == _GLOBAL:
        masked[0:8] = b"\xff" * 8
        masked[8] |= 0x0F
        masked[9:12] = b"\xff" * 3
        masked[15] = 0xFF
        transport = 48
    else:
        masked[0] |= 0xF0
    masked[transport + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(masked))


def _whole(dlid, slid, body, **lrh):
    """A packet: LRH, what it is given, and the CRC."""
    packet = _lrh(dlid, slid, 8 + len(body) + 4, **lrh) + body
    return packet + _invariant_crc(packet)


def _smp(dlid, slid, mad, **lrh):
    return _whole(dlid, slid, _bth(_UD_SEND_ONLY, 0) + _deth(0, 0) + mad, **({"vl": 15} | lrh))


def _gmp(dlid, slid, mad, **bth):
    return _whole(dlid, slid, _bth(_UD_SEND_ONLY, 1, **bth) + _deth() + mad)


def _wrong(dlid, slid):
    """(what is wrong, frame): of headers that lie."""
    good = _gmp(dlid, slid, _mad(0x04))
    yield "nothing at all", b""
    yield "half an LRH", good[:4]
    yield "an LRH alone", good[:8]
    yield "half a BTH", good[:14]
    yield "no CRC", good[:-4]
    yield "a wrong CRC", good[:-1] + bytes([good[-1] ^ 1])
    yield "a byte more in the payload", good[:100] + bytes([good[100] ^ 0x40]) + good[101:]
    for length in (0, 1, 2, 5, 7, len(good) // 4 + 1, 0x7FF):
        yield f"an LRH that says {length} words", good[:4] + struct.pack(">H", length) + good[6:]
    yield "link version 1", _whole(dlid, slid, good[8:-4], version=1)
    yield "a raw packet", _whole(dlid, slid, good[8:-4], lnh=_RAW)
    yield "a raw IP packet", _whole(dlid, slid, good[8:-4], lnh=_IP)
    yield "transport version 1", _gmp(dlid, slid, _mad(0x04), version=1)
    yield "P_Key 0", _gmp(dlid, slid, _mad(0x04), pkey=0)
    yield "another partition", _gmp(dlid, slid, _mad(0x04), pkey=0x9234)
    for opcode in (0x18, 0x1F, 0x3F, 0x40, 0x66, 0x7F, 0xC0, 0xFF):
        yield f"opcode {opcode:#x}", _whole(dlid, slid, _bth(opcode, 1) + _deth() + _mad(0x04))
    yield "a reliable packet for QP 1", _whole(dlid, slid, _bth(_RC_SEND_ONLY, 1) + bytes(64))
    yield "a READ request for QP 0", _whole(dlid, slid, _bth(_RC_READ_REQUEST, 0) + bytes(16))
    yield "a queue pair that is not there", _whole(dlid, slid, _bth(_UD_SEND_ONLY, 0xFFFFFD) + _deth() + bytes(64))
    yield "an acknowledgement for nobody", _whole(dlid, slid, _bth(_RC_ACK, 0xFFFFFD) + bytes(4))
    yield "a datagram without DETH", _whole(dlid, slid, _bth(_UD_SEND_ONLY, 1))
    yield "half a DETH", _whole(dlid, slid, _bth(_UD_SEND_ONLY, 1) + bytes(4))
    yield "a READ request without RETH", _whole(dlid, slid, _bth(_RC_READ_REQUEST, 100))
    yield "more padding than payload", _whole(dlid, slid, _bth(_UD_SEND_ONLY, 1, pad=3) + _deth())
    yield "a wrong Q_Key for QP 1", _whole(dlid, slid, _bth(_UD_SEND_ONLY, 1) + _deth(0x1234) + _mad(0x04))
    yield "a MAD of 255 bytes", _whole(dlid, slid, _bth(_UD_SEND_ONLY, 1, pad=1) + _deth() + bytes(256))
    yield "a MAD of 64 bytes", _gmp(dlid, slid, _mad(0x04)[:64])


def _wrong_global(dlid, slid):
    body = _bth(_UD_SEND_ONLY, 1) + _deth() + _mad(0x04)
    for what, grh in (
        ("IP version 4", _grh(len(body) + 4, version=4)),
        ("next header 17", _grh(len(body) + 4, next_header=17)),
        ("a payload length of 0", _grh(0)),
        ("a payload length beyond the packet", _grh(0xFFFF)),
        ("somebody else's GID", _grh(len(body) + 4, dgid=bytes.fromhex("fe80000000000000") + b"\xaa" * 8)),
    ):
        yield f"a GRH with {what}", _whole(dlid, slid, grh + body, lnh=_GLOBAL)
    yield "half a GRH", _lrh(dlid, slid, 28, lnh=_GLOBAL) + bytes(20)
    yield "a GRH alone", _lrh(dlid, slid, 52, lnh=_GLOBAL) + _grh(4) + bytes(4)


def _wrong_management(dlid, slid):
    yield "an SMP on VL 0", _smp(dlid, slid, _mad(0x01), vl=0)
    yield "an SMP for QP 1", _whole(dlid, slid, _bth(_UD_SEND_ONLY, 1) + _deth() + _mad(0x01), vl=15)
    yield "an SMP with base version 9", _smp(dlid, slid, _mad(0x01, base=9))
    yield "a directed SMP to a LID that is not permissive", _smp(0x1234, slid, _directed(1, 1))
    for pointer, count in ((0, 64), (63, 64), (64, 63), (0, 255), (255, 255), (9, 3), (255, 1)):
        yield f"a directed SMP at hop {pointer} of {count}", _smp(0xFFFF, 0xFFFF, _directed(pointer, count))
        yield f"one that returns, at hop {pointer} of {count}", _smp(0xFFFF, 0xFFFF, _directed(pointer, count, returning=True))


def _random(dlid, slid, count):
    """Of good packets some bits and the length are changed; half of them have a right CRC all the same."""
    chance = random.Random(4711)
    good = [_gmp(dlid, slid, _mad(0x04)), _smp(dlid, slid, _mad(0x01)), _smp(0xFFFF, 0xFFFF, _directed(1, 1)),
            _whole(dlid, slid, _bth(_RC_SEND_ONLY, 20) + bytes(64))]
    for _ in range(count):
        packet = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 8)):
            packet[chance.randrange(min(len(packet), 96))] = chance.randrange(256)
        packet = packet[: chance.choice((len(packet), len(packet), chance.randrange(len(packet))))]
        if chance.random() < 0.5 and len(packet) > 64:
            packet[-4:] = _invariant_crc(bytes(packet[:-4]))
        yield bytes(packet)


def main():
    """Send them all."""
    interface, dlid, slid, count = sys.argv[1], *map(int, sys.argv[2:5])
    # An Ethernet frame has 46 bytes of payload, at least; what is shorter is filled up, as any card would.
    head = b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack(">H", _ETHERTYPE)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as cable:
        cable.bind((interface, 0))
        sent = 0
        for _, frame in [*_wrong(dlid, slid), *_wrong_global(dlid, slid), *_wrong_management(dlid, slid)]:
            cable.send((head + frame).ljust(60, b"\0"))
            sent += 1
        for frame in _random(dlid, slid, count):
            cable.send((head + frame).ljust(60, b"\0"))
    print(sent)


if __name__ == "__main__":
    main()
