# SPDX-License-Identifier: GPL-2.0-only
"""Messages of the communication manager out of a capture of RoCE v2 over IPv4 on Ethernet (as tcpdump writes it)."""

import socket
import struct

import message

_ROCE = 4791
_GSI = 1
_UD_SEND_ONLY = 0x64
_IP, _UDP, _BTH, _DETH = 20, 8, 12, 8


def _frames(file):
    with open(file, "rb") as capture:
        header = capture.read(24)
        order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}[header[:4]]
        while record := capture.read(16):
            length = struct.unpack(f"{order}8xI4x", record)[0]
            yield capture.read(length)


def _transport(bth, deth):
    opcode, flags, pkey = struct.unpack_from("!BBH", bth)
    destination, = struct.unpack_from("!I", bth, 4)
    qkey, source = struct.unpack("!II", deth)
    return {
        "opcode": opcode,
        "transport_flags": flags,
        "transport_pkey": pkey,
        "destination_qp": destination & 0xFFFFFF,
        "datagram_qkey": qkey,
        "source_qp": source & 0xFFFFFF,
    }


def of_frame(frame):
    """The message in an Ethernet frame; None if there is none."""
    if frame[12:14] != b"\x08\x00" or frame[14] != 0x45 or frame[14 + 9] != socket.IPPROTO_UDP:
        return None
    ip, rest = frame[14 : 14 + _IP], frame[14 + _IP :]
    source_port, port = struct.unpack_from("!HH", rest)
    transport = _transport(rest[_UDP : _UDP + _BTH], rest[_UDP + _BTH : _UDP + _BTH + _DETH])
    mad = rest[_UDP + _BTH + _DETH :][: message.MAD_LENGTH]
    if port != _ROCE or (transport["opcode"], transport["destination_qp"]) != (_UD_SEND_ONLY, _GSI):
        return None
    if len(mad) != message.MAD_LENGTH:
        return None
    packet = {"ip_tos": ip[1], "ip_ttl": ip[8], "udp_source": source_port, **transport}
    return message.parse(mad, socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20]), packet)


def messages(file):
    """All of them, in their order."""
    return [found for found in map(of_frame, _frames(file)) if found]
