#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Be a stranger among the kernel's local services for paths (RDMA netlink, group LS).

local_service.py [as UID] refused      nothing may be asked of the group, nor answered
local_service.py heard                 what root asks of the group is taken by nobody
local_service.py malformed             the same with what is no question, or a part of one
local_service.py decline               be another service, which knows nothing and says so, until killed; prints what it was asked
"""

import os
import random
import socket
import struct
import sys

_RDMA, _GROUP = 20, 3
_RESOLVE, _IP_RESOLVE = 4 << 10, 4 << 10 | 2
_REQUEST, _REFUSED = 1, 0x100


def _message(kind, flags, body, sequence=1):
    return struct.pack("=IHHII", 16 + len(body), kind, flags, sequence, 0) + body


def _attribute(number, value):
    data = struct.pack("=HH", 4 + len(value), number | 1 << 13) + value
    return data + bytes(-len(data) % 4)


def _question():
    """As the kernel asks for a path."""
    gids = _attribute(4, bytes(15) + b"\2") + _attribute(5, bytes(15) + b"\1")
    service = _attribute(3, struct.pack("=Q", 0x1061D2F)) + _attribute(7, struct.pack("=H", 0xFFFF))
    return _message(_RESOLVE, _REQUEST, b"h1".ljust(64, b"\0") + bytes([1, 0, 0, 0]) + service + gids)


def _refused(sender):
    """Whether nothing can be sent."""
    for address, data in (((0, 1 << (_GROUP - 1)), _question()), ((0, 0), _message(_RESOLVE, 0, b""))):
        try:
            sender.sendto(data, address)
            # The kernel answers what it does not allow.
            error = -struct.unpack_from("=i", sender.recv(4096), 16)[0]
        except PermissionError:
            error = 1
        if error != 1:
            sys.exit(f"{address} took it: {error}")


def _send(sender, data):
    sender.sendto(data, (0, 1 << (_GROUP - 1)))


def _malformed(sender):
    """Parts of a question, and noise."""
    whole, noise = _question(), random.Random(20)
    for length in range(1, len(whole), 3):
        _send(sender, whole[:length])
    for _ in range(500):
        place = noise.randrange(16, len(whole))
        _send(sender, whole[:place] + noise.randbytes(noise.randrange(1, 200)))
    _send(sender, _message(_IP_RESOLVE, _REFUSED, noise.randbytes(4000)))


def _decline(service):
    """As ibacm does for ports that it does not know."""
    service.settimeout(None)
    service.bind((0, 1 << (_GROUP - 1)))
    print("listening", flush=True)
    while True:
        length, kind, _, sequence, _ = struct.unpack_from("=IHHII", service.recv(4096))
        print("asked", kind, length, flush=True)
        service.sendto(_message(kind, _REFUSED, b"", sequence), (0, 0))


def main():
    """Do one of these."""
    words = sys.argv[1:]
    if words[0] == "as":
        os.setuid(int(words[1]))
        words = words[2:]
    sender = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _RDMA)
    sender.settimeout(10)
    if words[0] == "refused":
        _refused(sender)
    elif words[0] == "heard":
        _send(sender, _question())
    elif words[0] == "decline":
        _decline(sender)
    else:
        _malformed(sender)


if __name__ == "__main__":
    main()
