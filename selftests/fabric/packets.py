# SPDX-License-Identifier: GPL-2.0-only
"""InfiniBand packets as bytes, and how they are put on a cable of softib."""

import socket
import struct
import zlib

ETHERTYPE = 0x88B5
RAW, IP, LOCAL, GLOBAL = range(4)
RC_SEND_ONLY, RC_READ_REQUEST, RC_ACK, UD_SEND_ONLY = 0x04, 0x0C, 0x11, 0x64
QP1_QKEY = 0x80010000
DEFAULT_PKEY = 0xFFFF


def lrh(dlid, slid, length, *, vl=0, version=0, sl=0, lnh=LOCAL):
    """The local route header; the length in bytes is told in words."""
    return struct.pack(">BBHHH", vl << 4 | version, sl << 4 | lnh, dlid, length // 4, slid)


def grh(payload_length, *, version=6, next_header=0x1B, hops=64, sgid=None, dgid=bytes(16)):
    """The global route header, by default from the GID fe80::1."""
    sgid = sgid or bytes.fromhex("fe80000000000000") + bytes(7) + b"\1"
    return struct.pack(">IHBB", version << 28, payload_length, next_header, hops) + sgid + dgid


def bth(opcode, qpn, *, pkey=DEFAULT_PKEY, pad=0, version=0, psn=0):
    """The base transport header."""
    return struct.pack(">BBHII", opcode, pad << 4 | version, pkey, qpn, psn)


def deth(qkey=QP1_QKEY, qpn=1):
    """What a datagram has behind that."""
    return struct.pack(">II", qkey, qpn)


def mad(management_class, *, base=1, version=1, method=1, status=0, attribute=0x11, rest=b""):
    """A management datagram."""
    head = struct.pack(">BBBBHHQHHI", base, management_class, version, method, status, 0, 7, attribute, 0, 0)
    return (head + rest).ljust(256, b"\0")


def directed(hop_pointer, hop_count, *, returning=False):
    """A directed-route SMP that asks for NodeInfo: the hops stand where others have the class's own bytes."""
    status = 0x8000 if returning else 0
    head = struct.pack(">BBBBHBBQHHI", 1, 0x81, 1, 1, status, hop_pointer, hop_count, 7, 0x11, 0, 0)
    return (head + bytes(8) + struct.pack(">HH", 0xFFFF, 0xFFFF)).ljust(128, b"\0") + bytes([1] * 128)


def invariant_crc(packet):
    """The CRC of all that does not change on the way."""
    masked = bytearray(packet)
    transport = 8
    if packet[1] & 3 == GLOBAL:
        masked[0:8] = b"\xff" * 8
        masked[8] |= 0x0F
        masked[9:12] = b"\xff" * 3
        masked[15] = 0xFF
        transport = 48
    else:
        masked[0] |= 0xF0
    masked[transport + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(masked))


def whole(dlid, slid, body, **link):
    """A packet: LRH, what it is given, and the CRC."""
    packet = lrh(dlid, slid, 8 + len(body) + 4, **link) + body
    return packet + invariant_crc(packet)


def smp(dlid, slid, datagram, **link):
    """A packet of subnet management."""
    return whole(dlid, slid, bth(UD_SEND_ONLY, 0) + deth(0, 0) + datagram, **({"vl": 15} | link))


def gmp(dlid, slid, datagram, **transport):
    """A packet for the general services."""
    return whole(dlid, slid, bth(UD_SEND_ONLY, 1, **transport) + deth() + datagram)


def ethernet(packet):
    """The Ethernet frame that carries a packet on a cable."""
    # It has 46 bytes of payload, at least; what is shorter is filled up, as any card would.
    return (b"\xff" * 6 + b"\x02" + bytes(5) + struct.pack(">H", ETHERTYPE) + packet).ljust(60, b"\0")


def put_on_cable(interface, frames):
    """Send packets by that net device. How many there were."""
    sent = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as cable:
        cable.bind((interface, 0))
        for frame in frames:
            cable.send(ethernet(frame))
            sent += 1
    return sent
