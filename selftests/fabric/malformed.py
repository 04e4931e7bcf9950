#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Put frames on a cable that no InfiniBand port would send: each of a list, and then many that are random.

malformed.py INTERFACE DLID SLID RANDOM          to the port with that LID at the other end, as if from the port SLID
malformed.py INTERFACE DLID SLID groups          only those of which either the LID or the queue pair is a group's
malformed.py INTERFACE DLID SLID payload BYTES   only datagrams of so many bytes, for a queue pair that is not there
malformed.py INTERFACE DLID SLID connection QPN  only to a queue pair of RC of that port, as if from another port than SLID

It prints how many frames it sent that have to be dropped; the random ones are not among these.
"""

import random
import struct
import sys

import packets
from packets import GLOBAL, IP, RAW, RC_ACK, RC_READ_REQUEST, RC_SEND_ONLY, UD_SEND_ONLY
from packets import bth, deth, directed, gmp, grh, invariant_crc, lrh, mad, smp, whole


def _wrong(dlid, slid):
    """(what is wrong, frame): of headers that lie."""
    good = gmp(dlid, slid, mad(0x04))
    yield "nothing at all", b""
    yield "half an LRH", good[:4]
    yield "an LRH alone", good[:8]
    yield "half a BTH", good[:14]
    yield "no CRC", good[:-4]
    yield "a wrong CRC", good[:-1] + bytes([good[-1] ^ 1])
    yield "a byte more in the payload", good[:100] + bytes([good[100] ^ 0x40]) + good[101:]
    for length in (0, 1, 2, 5, 7, len(good) // 4 + 1, 0x7FF):
        yield f"an LRH that says {length} words", good[:4] + struct.pack(">H", length) + good[6:]
    yield "link version 1", whole(dlid, slid, good[8:-4], version=1)
    yield "a raw packet", whole(dlid, slid, good[8:-4], lnh=RAW)
    yield "a raw IP packet", whole(dlid, slid, good[8:-4], lnh=IP)
    yield "transport version 1", gmp(dlid, slid, mad(0x04), version=1)
    yield "P_Key 0", gmp(dlid, slid, mad(0x04), pkey=0)
    yield "another partition", gmp(dlid, slid, mad(0x04), pkey=0x9234)
    for opcode in (0x18, 0x1F, 0x3F, 0x40, 0x66, 0x7F, 0xC0, 0xFF):
        yield f"opcode {opcode:#x}", whole(dlid, slid, bth(opcode, 1) + deth() + mad(0x04))
    yield "a reliable packet for QP 1", whole(dlid, slid, bth(RC_SEND_ONLY, 1) + bytes(64))
    yield "a READ request for QP 0", whole(dlid, slid, bth(RC_READ_REQUEST, 0) + bytes(16))
    yield "a queue pair that is not there", whole(dlid, slid, bth(UD_SEND_ONLY, 0xFFFFFD) + deth() + bytes(64))
    yield "an acknowledgement for nobody", whole(dlid, slid, bth(RC_ACK, 0xFFFFFD) + bytes(4))
    yield "a datagram without DETH", whole(dlid, slid, bth(UD_SEND_ONLY, 1))
    yield "half a DETH", whole(dlid, slid, bth(UD_SEND_ONLY, 1) + bytes(4))
    yield "a READ request without RETH", whole(dlid, slid, bth(RC_READ_REQUEST, 100))
    yield "more padding than payload", whole(dlid, slid, bth(UD_SEND_ONLY, 1, pad=3) + deth())
    yield "a wrong Q_Key for QP 1", whole(dlid, slid, bth(UD_SEND_ONLY, 1) + deth(0x1234) + mad(0x04))
    yield "a MAD of 255 bytes", whole(dlid, slid, bth(UD_SEND_ONLY, 1, pad=1) + deth() + bytes(256))
    yield "a MAD of 64 bytes", gmp(dlid, slid, mad(0x04)[:64])


def _wrong_global(dlid, slid):
    body = bth(UD_SEND_ONLY, 1) + deth() + mad(0x04)
    for what, header in (
        ("IP version 4", grh(len(body) + 4, version=4)),
        ("next header 17", grh(len(body) + 4, next_header=17)),
        ("a payload length of 0", grh(0)),
        ("a payload length beyond the packet", grh(0xFFFF)),
        ("somebody else's GID", grh(len(body) + 4, dgid=bytes.fromhex("fe80000000000000") + b"\xaa" * 8)),
    ):
        yield f"a GRH with {what}", whole(dlid, slid, header + body, lnh=GLOBAL)
    yield "half a GRH", lrh(dlid, slid, 28, lnh=GLOBAL) + bytes(20)
    yield "a GRH alone", lrh(dlid, slid, 52, lnh=GLOBAL) + grh(4) + bytes(4)


def _wrong_management(dlid, slid):
    yield "an SMP on VL 0", smp(dlid, slid, mad(0x01), vl=0)
    yield "an SMP for QP 1", whole(dlid, slid, bth(UD_SEND_ONLY, 1) + deth() + mad(0x01), vl=15)
    yield "an SMP with base version 9", smp(dlid, slid, mad(0x01, base=9))
    yield "a directed SMP to a LID that is not permissive", smp(0x1234, slid, directed(1, 1))
    for pointer, count in ((0, 64), (63, 64), (64, 63), (0, 255), (255, 255), (9, 3), (255, 1)):
        yield f"a directed SMP at hop {pointer} of {count}", smp(0xFFFF, 0xFFFF, directed(pointer, count))
        yield f"one that returns, at hop {pointer} of {count}", smp(0xFFFF, 0xFFFF, directed(pointer, count, returning=True))


def _of_strangers(dlid, slid, qpn):
    """Packets for a connection that do not come from its peer."""
    for what, opcode, rest in (("a SEND", RC_SEND_ONLY, 64), ("an acknowledgement", RC_ACK, 4), ("a READ request", RC_READ_REQUEST, 16)):
        yield f"{what} from elsewhere", whole(dlid, slid ^ 0x2000, bth(opcode, qpn) + bytes(rest))


# In each way as many as no counter shows by chance.
_SOME = 20
_GROUP_LID, _GROUP_GID, _GROUP_QUEUE_PAIR = 0xC123, b"\xff\x12" + bytes(14), 0xFFFFFF


def _half_of_groups(dlid, slid):
    """Datagrams to a group's LID and the queue pair of a port, and the reverse."""
    body = bth(UD_SEND_ONLY, _GROUP_QUEUE_PAIR) + deth() + mad(0x04)
    header = grh(len(body) + 4, dgid=_GROUP_GID)
    for _ in range(_SOME):
        yield gmp(_GROUP_LID, slid, mad(0x04))
        yield whole(dlid, slid, header + body, lnh=GLOBAL)


def _of_length(dlid, slid, length):
    """Datagrams with so many bytes of payload."""
    for _ in range(_SOME):
        yield whole(dlid, slid, bth(UD_SEND_ONLY, 0xFFFFFD) + deth() + bytes(length))


# More than the kernel keeps receives posted for management (512): one that ends in an error is not posted again.
_MANY = 600


def _too_long(dlid, slid):
    """Management datagrams of more than 256 bytes."""
    for _ in range(_MANY):
        yield "a long MAD", gmp(dlid, slid, mad(0x04) + bytes(64))


def _random(dlid, slid, count):
    """Of good packets some bits and the length are changed; half of them have a right CRC all the same."""
    chance = random.Random(4711)
    good = [gmp(dlid, slid, mad(0x04)), smp(dlid, slid, mad(0x01)), smp(0xFFFF, 0xFFFF, directed(1, 1)),
            whole(dlid, slid, bth(RC_SEND_ONLY, 20) + bytes(64))]
    for _ in range(count):
        packet = bytearray(chance.choice(good))
        for _ in range(chance.randint(1, 8)):
            packet[chance.randrange(min(len(packet), 96))] = chance.randrange(256)
        packet = packet[: chance.choice((len(packet), len(packet), chance.randrange(len(packet))))]
        if chance.random() < 0.5 and len(packet) > 64:
            packet[-4:] = invariant_crc(bytes(packet[:-4]))
        yield bytes(packet)


def main():
    """Send them all."""
    interface, dlid, slid = sys.argv[1], *map(int, sys.argv[2:4])
    if sys.argv[4] == "connection":
        print(packets.put_on_cable(interface, (frame for _, frame in _of_strangers(dlid, slid, int(sys.argv[5])))))
        return
    if sys.argv[4] == "payload":
        print(packets.put_on_cable(interface, _of_length(dlid, slid, int(sys.argv[5]))))
        return
    if sys.argv[4] == "groups":
        print(packets.put_on_cable(interface, _half_of_groups(dlid, slid)))
        return
    count = int(sys.argv[4])
    wrong = [*_wrong(dlid, slid), *_wrong_global(dlid, slid), *_wrong_management(dlid, slid), *_too_long(dlid, slid)]
    print(packets.put_on_cable(interface, (frame for _, frame in wrong)))
    packets.put_on_cable(interface, _random(dlid, slid, count))


if __name__ == "__main__":
    main()
