#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Messages of the communication manager out of a capture of RoCE v2 over IPv4 on Ethernet, or of a cable of softib.

capture.py FILE KIND [FIELD=VALUE...]    prints how many messages of that kind tcpdump has written to the file; with fields,
                                         how many of those have these values
"""

import socket
import struct
import sys

import message

_ROCE = 4791
_GSI = 1
_UD_SEND_ONLY = 0x64
_IP, _UDP, _BTH, _DETH = 20, 8, 12, 8
_LRH, _GRH, _GLOBAL = 8, 40, 3
_SOFTIB = b"\x88\xb5"


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


def _parse(rest, source, destination, packet):
    """The message in a datagram from its BTH on, with the fields of the headers before that."""
    transport = _transport(rest[:_BTH], rest[_BTH : _BTH + _DETH])
    mad = rest[_BTH + _DETH :][: message.MAD_LENGTH]
    if (transport["opcode"], transport["destination_qp"]) != (_UD_SEND_ONLY, _GSI) or len(mad) != message.MAD_LENGTH:
        return None
    return message.parse(mad, source, destination, {**packet, **transport})


def _global_route(grh):
    """The fields of a GRH."""
    version_class_flow, _, _, hop_limit = struct.unpack_from("!IHBB", grh)
    return {
        "grh_traffic_class": version_class_flow >> 20 & 0xFF,
        "grh_flow_label": version_class_flow & 0xFFFFF,
        "grh_hop_limit": hop_limit,
        "grh_sgid": grh[8:24].hex(),
        "grh_dgid": grh[24:40].hex(),
    }


def _of_packet(packet):
    """The message in an InfiniBand packet; None if there is none."""
    if len(packet) < _LRH + _GRH + _BTH + _DETH:
        return None
    lanes, level, destination, _, source = struct.unpack_from("!BBHHH", packet)
    fields = {"lrh_vl": lanes >> 4, "lrh_sl": level >> 4, "lrh_slid": source, "lrh_dlid": destination}
    rest = packet[_LRH:]
    if level & 3 == _GLOBAL:
        fields |= _global_route(rest[:_GRH])
        rest = rest[_GRH:]
    return _parse(rest, f"LID {source}", f"LID {destination}", fields)


def of_frame(frame):
    """The message in an Ethernet frame; None if there is none."""
    if frame[12:14] == _SOFTIB:
        return _of_packet(frame[14:])
    if frame[12:14] != b"\x08\x00" or frame[14] != 0x45 or frame[14 + 9] != socket.IPPROTO_UDP:
        return None
    ip, rest = frame[14 : 14 + _IP], frame[14 + _IP :]
    source_port, port = struct.unpack_from("!HH", rest)
    if port != _ROCE:
        return None
    fields = {"ip_tos": ip[1], "ip_ttl": ip[8], "udp_source": source_port}
    return _parse(rest[_UDP:], socket.inet_ntoa(ip[12:16]), socket.inet_ntoa(ip[16:20]), fields)


def messages(file):
    """All of them, in their order."""
    return [found for found in map(of_frame, _frames(file)) if found]


def main():
    """Do what the command line says."""
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    wanted = {name: int(value, 0) for name, value in (word.split("=") for word in sys.argv[3:])}
    of_kind = [found.fields for found in messages(sys.argv[1]) if found.kind == sys.argv[2]]
    print(sum(fields == fields | wanted for fields in of_kind))


if __name__ == "__main__":
    main()
