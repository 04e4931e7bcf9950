#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Traffic of every kind, as much as goes, whatever happens to the interface below, until killed.

storm.py PEER4 PEER6 PAUSE    UDP in several sizes to both addresses, to a group, and TCP; and the other end of that TCP

PAUSE, in seconds, is what each sender waits after a shower, so that a slow node gets something else done as well.
"""

import itertools
import socket
import sys
import threading
import time

_PORT = 7200
_GROUP = "239.1.2.9"
# One packet copied on arrival, one that is not, one of the MTU, one in fragments.
_SIZES = (18, 1000, 4064, 9000)
# Seconds after which a TCP connection is given up and the next one tried. Not the node's patience: a connection that died with
# the interface would leave a minute without TCP.
_GIVE_UP_AFTER = 5


def _for_ever(action, *arguments):
    """Do it again and again; when the network is away, less often."""
    while True:
        try:
            action(*arguments)
        except OSError:
            time.sleep(0.05)


def _shower(peer4, peer6, pause):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as v4, socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as v6:
        for size, (sock, address) in itertools.product(_SIZES, ((v4, peer4), (v6, peer6), (v4, peer4), (v4, _GROUP))):
            for _ in range(8):
                sock.sendto(bytes(size), (address, _PORT))
    time.sleep(pause)


def _pour(peer, pause):
    with socket.create_connection((peer, _PORT), timeout=_GIVE_UP_AFTER) as connection:
        while True:
            connection.sendall(bytes(1 << 16))
            time.sleep(pause)


def _drain(connection):
    connection.settimeout(_GIVE_UP_AFTER)
    try:
        with connection:
            while connection.recv(1 << 18):
                pass
    except OSError:
        pass


def _serve():
    with socket.create_server(("::", _PORT), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_drain, args=(connection,), daemon=True).start()


def main():
    """Start all of it."""
    peer4, peer6, pause = sys.argv[1:]
    pause = float(pause)
    for action, *arguments in ((_serve,), (_pour, peer4, pause), (_shower, peer4, peer6, pause)):
        threading.Thread(target=_for_ever, args=(action, *arguments), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
