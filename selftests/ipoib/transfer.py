#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Move bytes over TCP and say their SHA-256, so that two ends can be compared.

transfer.py receive PORT               take one connection, read it to its end
transfer.py send ADDRESS PORT BYTES    connect and send that many random bytes
"""

import hashlib
import os
import socket
import sys
import time

_CHUNK = 1 << 16
_CONNECT_FOR = 60


def _receive(port):
    digest = hashlib.sha256()
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        connection, _ = server.accept()
        with connection:
            while chunk := connection.recv(_CHUNK):
                digest.update(chunk)
    return digest


def _connect(address, port):
    """The other end may not listen yet."""
    deadline = time.monotonic() + _CONNECT_FOR
    while True:
        try:
            return socket.create_connection((address, port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _send(address, port, count):
    digest = hashlib.sha256()
    with _connect(address, port) as connection:
        while count:
            chunk = os.urandom(min(count, _CHUNK))
            connection.sendall(chunk)
            digest.update(chunk)
            count -= len(chunk)
    return digest


def main():
    """Do one end's part and print the digest."""
    match sys.argv[1:]:
        case ["receive", port]:
            digest = _receive(int(port))
        case ["send", address, port, count]:
            digest = _send(address, int(port), int(count))
        case _:
            raise SystemExit(__doc__)
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
