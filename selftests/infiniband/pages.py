#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""As ../fabric/stream.py, for IPv4 and IPv6, and out of the pages of a file.

pages.py listen PORT                   for each connection: `good COUNT`, or where the first wrong byte is
pages.py ADDRESS PORT COUNT            that many bytes by sendfile(2), from places that are no page's beginning
"""

import socket
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fabric"))
import stream  # noqa: E402 # pylint: disable=wrong-import-position


def _send(address, port, count):
    with tempfile.TemporaryFile() as file, socket.create_connection((address, port)) as connection:
        # Each piece starts at an odd place of a page of its own.
        file.write(b"\0" * 101 + stream.sequence(0, count))
        file.flush()
        connection.sendfile(file, 101, count)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)


def main():
    """What the first word says."""
    what, *words = sys.argv[1:]
    if what == "listen":
        stream.listen(int(words[0]), socket.AF_INET6)
    else:
        _send(what, int(words[0]), int(words[1]))


if __name__ == "__main__":
    main()
