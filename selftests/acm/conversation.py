#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""One TCP connection that is talked on, a line at a time, until killed.

conversation.py listen PORT          answer each line with itself
conversation.py talk ADDRESS PORT    say a number, wait for the answer, print it; then the next one
"""

import socket
import sys
import time

_PAUSE = 0.2


def _listen(port):
    with socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        print("listening", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(4096):
                    connection.sendall(data)


def _talk(address, port):
    number = 0
    with socket.create_connection((address, port)) as connection, connection.makefile("rw") as lines:
        while True:
            number += 1
            lines.write(f"{number}\n")
            lines.flush()
            answer = lines.readline()
            if answer != f"{number}\n":
                sys.exit(f"{number} was answered with {answer!r}")
            print(number, flush=True)
            time.sleep(_PAUSE)


def main():
    """What the first word says."""
    what, *words = sys.argv[1:]
    if what == "listen":
        _listen(int(words[0]))
    else:
        _talk(words[0], int(words[1]))


if __name__ == "__main__":
    main()
