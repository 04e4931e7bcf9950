#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""linkinfo.py INTERFACE ATTRIBUTE VALUE [BYTES]: ask netlink for an attribute of an IPoIB link that iproute2 would not send.

ATTRIBUTE is the number (1 P_Key, 2 mode, 3 umcast), VALUE its value in two bytes, or in BYTES of them. Says what the kernel
says, and fails if that refuses.
"""

import os
import socket
import struct
import sys

RTM_NEWLINK = 16
NLM_F_REQUEST, NLM_F_ACK = 1, 4
IFLA_LINKINFO, IFLA_INFO_KIND, IFLA_INFO_DATA = 18, 1, 2
NLMSG_ERROR, NLM_F_CAPPED, NLM_F_ACK_TLVS = 2, 0x100, 0x200
NLMSGERR_ATTR_MSG = 1
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK = 270, 10, 11


def attribute(number: int, data: bytes) -> bytes:
    length = 4 + len(data)
    return struct.pack("HH", length, number) + data + bytes(-length % 4)


def request(index: int, number: int, value: bytes) -> bytes:
    data = attribute(IFLA_INFO_DATA, attribute(number, value))
    info = attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, b"ipoib\0") + data)
    body = struct.pack("BxHiII", 0, 0, index, 0, 0) + info
    return struct.pack("IHHII", 16 + len(body), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body


def words(rest: bytes) -> str:
    while len(rest) >= 4:
        length, number = struct.unpack_from("HH", rest)
        if number == NLMSGERR_ATTR_MSG:
            return rest[4:length].rstrip(b"\0").decode()
        rest = rest[(length + 3) & ~3 :]
    return ""


def main() -> int:
    interface, number, value, *length = sys.argv[1:]
    data = int(value, 0).to_bytes(int(length[0]) if length else 2, sys.byteorder)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        link.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        link.send(request(socket.if_nametoindex(interface), int(number), data))
        answer = link.recv(65536)
    _, kind, flags = struct.unpack_from("IHH", answer)
    (error,) = struct.unpack_from("i", answer, 16)
    said = words(answer[36:]) if flags & NLM_F_ACK_TLVS else ""
    if kind != NLMSG_ERROR or error == 0:
        print("taken", said)
        return 0
    print(f"{os.strerror(-error)}: {said}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
