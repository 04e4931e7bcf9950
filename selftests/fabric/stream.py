#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Bytes by TCP, looked at one by one where they arrive.

stream.py listen PORT                   for each connection: `good COUNT`, or where the first wrong byte is
stream.py send ADDRESS PORT COUNT       that many bytes, in pieces of all sizes
"""

import random
import socket
import sys

_PATTERN = random.Random(1).randbytes(65521)
_LARGEST = 200000


def sequence(start, count):
    """A part of an endless sequence that repeats itself at no power of two."""
    start %= len(_PATTERN)
    return (_PATTERN * (count // len(_PATTERN) + 2))[start : start + count]


def _receive(connection):
    count = 0
    while data := connection.recv(1 << 20):
        if data != sequence(count, len(data)):
            wrong = next(place for place, byte in enumerate(sequence(count, len(data))) if byte != data[place])
            return f"wrong at {count + wrong}"
        count += len(data)
    return f"good {count}"


def listen(port, family=socket.AF_INET):
    """Take connections, for IPv4 too where the family is IPv6."""
    with socket.create_server(("", port), family=family, dualstack_ipv6=family == socket.AF_INET6) as server:
        print("listening", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                print(_receive(connection), flush=True)


def _send(address, port, count):
    chance = random.Random(2)
    sent = 0
    with socket.create_connection((address, port)) as connection:
        while sent < count:
            size = min(chance.choice((1, 100, 1449, 5000, _LARGEST)), count - sent)
            connection.sendall(sequence(sent, size))
            sent += size
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)


def main():
    """What the first word says."""
    what, *words = sys.argv[1:]
    if what == "listen":
        listen(int(words[0]))
    else:
        _send(words[0], int(words[1]), int(words[2]))


if __name__ == "__main__":
    main()
