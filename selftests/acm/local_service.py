#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Be a stranger among the kernel's local services for paths (RDMA netlink, group LS).

local_service.py [as UID] refused      nothing may be asked of the group, nor answered
local_service.py heard GID GID         what root asks of the group, for a path from a port to another, is taken by nobody
local_service.py unicast               what root sends to each listener alone is refused
local_service.py malformed             what root asks of the group is taken by nobody, with what is no question, or a part of one
local_service.py flood                 the same with more than a socket has room for
local_service.py foreign               as root of a user and a network namespace of one's own: nothing may be answered
local_service.py patience MS           have the kernel wait that long for a local service before it asks the administrator
local_service.py decline               be another service, which knows nothing and says so, until killed; prints what it was asked
local_service.py start COMMAND...      become a service that is handed a socket in the group, as systemd hands ibacm one
"""

import errno
import os
import random
import socket
import struct
import sys

_RDMA, _GROUP = 20, 3
_RESOLVE, _SET_TIMEOUT, _IP_RESOLVE = 4 << 10, 4 << 10 | 1, 4 << 10 | 2
_REQUEST, _REFUSED = 1, 0x100
# The first descriptor that a service is handed: see sd_listen_fds(3).
_FIRST_HANDED = 3


def _message(kind, flags, body, sequence=1):
    return struct.pack("=IHHII", 16 + len(body), kind, flags, sequence, 0) + body


def _attribute(number, value):
    data = struct.pack("=HH", 4 + len(value), number | 1 << 13) + value
    return data + bytes(-len(data) % 4)


def _question(source=bytes(15) + b"\1", destination=bytes(15) + b"\2"):
    """As the kernel asks for a path."""
    gids = _attribute(4, destination) + _attribute(5, source)
    service = _attribute(3, struct.pack("=Q", 0x1061D2F)) + _attribute(7, struct.pack("=H", 0xFFFF))
    return _message(_RESOLVE, _REQUEST, b"h1".ljust(64, b"\0") + bytes([1, 0, 0, 0]) + service + gids)


def _is_refused(sender, address, data, errors=(errno.EPERM,)):
    try:
        sender.sendto(data, address)
        # The kernel answers what it does not allow.
        error = -struct.unpack_from("=i", sender.recv(4096), 16)[0]
    except PermissionError:
        error = errno.EPERM
    if error not in errors:
        sys.exit(f"{address} took it: {error}")


def _refused(sender):
    """Whether nothing can be sent."""
    _is_refused(sender, (0, 1 << (_GROUP - 1)), _question())
    _is_refused(sender, (0, 0), _message(_RESOLVE, 0, b""))


def _foreign():
    """Whether root of a namespace of its own cannot answer. What it asks of its group, its namespace alone could hear."""
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
    sender = _socket()
    for kind in (_RESOLVE, _IP_RESOLVE, _SET_TIMEOUT):
        _is_refused(sender, (0, 0), _message(kind, 0, b""), (errno.EPERM, errno.EINVAL))
    try:
        _send(sender, _question())
    except ConnectionRefusedError:
        pass


def _listeners():
    """The ports of the sockets in the group."""
    with open("/proc/net/netlink", encoding="ascii") as table:
        rows = [row.split() for row in table]
    return [int(row[2]) for row in rows if row[1] == str(_RDMA) and row[3] == f"{1 << (_GROUP - 1):08x}"]


def _unicast(sender):
    """Whether none of the listeners can be sent anything but by the group."""
    ports = _listeners()
    if not ports:
        sys.exit("nobody listens")
    for port in ports:
        try:
            sender.sendto(_question(), (port, 0))
        except ConnectionRefusedError:
            continue
        sys.exit(f"{port} took it")


def _flood(sender):
    """More than two mebibytes of questions."""
    data = _question() + bytes(2000)
    for _ in range(5000):
        _send(sender, data)


def _wait_for_services(sender, milliseconds):
    """Have the kernel wait so long."""
    timeout = struct.pack("=HHI", 8, 2, milliseconds)
    sender.sendto(_message(_SET_TIMEOUT, _REQUEST | 4, timeout), (0, 0))
    error = struct.unpack_from("=i", sender.recv(4096), 16)[0]
    if error < 0:
        sys.exit(f"the kernel does not wait: {error}")


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


def _start(service, command):
    """As with ibacm.socket: the program may be in another network namespace than its socket."""
    service.settimeout(None)
    service.bind((0, 1 << (_GROUP - 1)))
    os.dup2(service.fileno(), _FIRST_HANDED)
    os.set_inheritable(_FIRST_HANDED, True)
    os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
    os.execvp(command[0], command)


def _socket():
    sender = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _RDMA)
    sender.settimeout(10)
    return sender


def main():
    """Do one of these."""
    words = sys.argv[1:]
    if words[0] == "as":
        os.setuid(int(words[1]))
        words = words[2:]
    if words[0] == "foreign":
        _foreign()
        return
    sender = _socket()
    if words[0] == "refused":
        _refused(sender)
    elif words[0] == "heard":
        _send(sender, _question(*(socket.inet_pton(socket.AF_INET6, gid) for gid in words[1:])))
    elif words[0] == "unicast":
        _unicast(sender)
    elif words[0] == "flood":
        _flood(sender)
    elif words[0] == "patience":
        _wait_for_services(sender, int(words[1]))
    elif words[0] == "decline":
        _decline(sender)
    elif words[0] == "start":
        _start(sender, words[1:])
    else:
        _malformed(sender)


if __name__ == "__main__":
    main()
