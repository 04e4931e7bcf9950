#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Bytes by TCP out of the pages of a file that is written meanwhile.

changing.py listen PORT                takes all that comes
changing.py ADDRESS PORT COUNT         at least so many bytes by sendfile(2), while another process writes the file
"""

import multiprocessing
import os
import random
import socket
import sys
import tempfile

_SIZE = 1 << 18
# What is written at once: its sum is another each time.
_PIECE = 4096


def _listen(port):
    with socket.create_server(("", port)) as server:
        print("listening", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                while connection.recv(1 << 20):
                    pass


def _write_on(number):
    chance = random.Random(1)
    pieces = [chance.randbytes(_PIECE) for _ in range(16)]
    while True:
        for place in range(0, _SIZE, _PIECE):
            os.pwrite(number, chance.choice(pieces), place)


def _send(address, port, count):
    with tempfile.TemporaryFile() as file, socket.create_connection((address, port)) as connection:
        file.write(bytes(_SIZE))
        file.flush()
        writer = multiprocessing.Process(target=_write_on, args=(file.fileno(),), daemon=True)
        writer.start()
        for _ in range(0, count, _SIZE):
            connection.sendfile(file, 0, _SIZE)
        writer.kill()
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)


def main():
    """What the first word says."""
    what, *words = sys.argv[1:]
    if what == "listen":
        _listen(int(words[0]))
    else:
        _send(what, int(words[0]), int(words[1]))


if __name__ == "__main__":
    main()
