#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Connections that nobody goes on with, and one that somebody does.

hold.py listen OWN PORT     listen for connections and for questions for a queue pair, and let askers wait
hold.py accept OWN PORT     listen for connections, and grant each
hold.py call OWN PEER PORT  ask for a connection, and say when it was granted; fails unless it is
hold.py behind OWN PEER PORT SILENT NUMBER
                            the same after so many were asked for at the port SILENT, which need not be answered

OWN and PEER are IPv4 addresses.
"""

import itertools
import signal
import sys
import time

from party import PATIENCE
from rdmacm import Channel
from rdmacm import Event
from rdmacm import Space

_CALLING_QP, _FIRST_SERVING_QP = 0x1000, 0x2000
# How many the kernel keeps for a program.
_BACKLOG = 1000


def _listen(own, port, *spaces):
    channel = Channel()
    listeners = [channel.create(space) for space in spaces]
    for listener in listeners:
        listener.listen(own, int(port), _BACKLOG)
    return channel, listeners


def _accept(channel):
    for qpn in itertools.count(_FIRST_SERVING_QP):
        event, _, _, connection = channel.next(None)
        print(event.name, flush=True)
        if event == Event.CONNECT_REQUEST:
            connection.accept(qpn)
        elif event == Event.DISCONNECTED:
            connection.disconnect()


def _expect(channel, wanted):
    found = channel.next(PATIENCE)
    if found is None or found[0] != wanted:
        raise SystemExit(f"{found[0].name if found else 'nothing'} came, not {wanted.name}")


def _resolved(channel, own, peer, port):
    connection = channel.create()
    connection.resolve((own, 0), (peer, int(port)))
    _expect(channel, Event.ADDR_RESOLVED)
    connection.resolve_route()
    _expect(channel, Event.ROUTE_RESOLVED)
    return connection


def _call(own, peer, port):
    channel = Channel()
    _granted(channel, _resolved(channel, own, peer, port))


def _behind(own, peer, port, silent, number):
    others, channel = Channel(), Channel()
    waiting = [_resolved(others, own, peer, silent) for _ in range(int(number))]
    connection = _resolved(channel, own, peer, port)
    for qpn, other in enumerate(waiting, _FIRST_SERVING_QP):
        other.connect(qpn)
    _granted(channel, connection)


def _granted(channel, connection):
    before = time.monotonic()
    connection.connect(_CALLING_QP)
    _expect(channel, Event.CONNECT_RESPONSE)
    print(f"granted after {(time.monotonic() - before) * 1000:.0f} ms", flush=True)
    connection.establish()
    connection.disconnect()
    _expect(channel, Event.DISCONNECTED)
    connection.destroy()


def main():
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["listen", own, port]:
            _ = _listen(own, port, Space.TCP, Space.UDP)
            signal.pause()
        case ["accept", own, port]:
            channel, _ = _listen(own, port, Space.TCP)
            _accept(channel)
        case ["call", own, peer, port]:
            _call(own, peer, port)
        case ["behind", own, peer, port, silent, number]:
            _behind(own, peer, port, silent, number)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
