#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many TCP connections, held all at once.

connections.py serve OWN PORT NUMBER         take that many, and wait to be killed
connections.py open PORT NUMBER PEER...      open that many to each peer; a byte from each says that it is there
"""

import socket
import sys
import time


def _serve(own, port, number):
    with socket.create_server((own, port), backlog=number) as server:
        held = []
        for _ in range(number):
            connection, _ = server.accept()
            connection.sendall(b"!")
            held.append(connection)
        time.sleep(3600)


def _open(port, number, peers):
    held = [socket.create_connection((peer, port), timeout=300) for _ in range(number) for peer in peers]
    for connection in held:
        if connection.recv(1) != b"!":
            raise SystemExit("a peer has closed a connection")


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        _open(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
