#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A program that serves, and one that connects to it again and again.

callers.py serve OWN PORT           accept all that asks at that port of TCP and of UDP
callers.py call OWN PEER PORT NUMBER SECONDS
                                    ask for so many connections, spread over so many seconds;
                                    prints how many came up, and the median and the greatest of
                                    their milliseconds

OWN and PEER are IPv4 addresses.
"""

import random
import select
import sys
import time
from dataclasses import dataclass
from statistics import median

from rdmacm import Channel
from rdmacm import Event
from rdmacm import Space

# More than anybody asks for: what limits them is to be the connection manager.
_BACKLOG = 1 << 20
_FIRST_QP, _LAST_QP = 0x1000, 0x7FFFFF
# Seconds in which a connection is to come up.
_PATIENCE = 10
_OVER = (Event.DISCONNECTED, Event.UNREACHABLE, Event.REJECTED, Event.CONNECT_ERROR)


def _serve(own, port):
    connections, datagrams = Channel(), Channel()
    listeners = []
    for channel, space in ((connections, Space.TCP), (datagrams, Space.UDP)):
        listener = channel.create(space)
        listener.listen(own, port, _BACKLOG)
        listeners.append(listener)
    qpn = _FIRST_QP
    while True:
        for channel in select.select([connections, datagrams], [], [])[0]:
            event, _, _, connection = channel.next(None)
            if event == Event.CONNECT_REQUEST:
                qpn = qpn + 1 if qpn < _LAST_QP else _FIRST_QP
                _accept(connection, qpn, channel is datagrams)
            elif event in _OVER:
                connection.destroy()


def _accept(connection, qpn, is_answer):
    """An answer about a service is all there is to it."""
    try:
        connection.accept(qpn)
    except OSError:
        is_answer = True
    if is_answer:
        connection.destroy()


@dataclass
class _Call:
    connection: object
    began: float


class _Caller:
    def __init__(self, own, peer, port):
        self._way = (own, 0), (peer, port)
        self._channel = Channel()
        # By the key of the connection.
        self._calls = {}
        self._qpn = random.randrange(_FIRST_QP, 1 << 22)
        self.took = []

    def ask(self):
        """Begin with another connection."""
        connection = self._channel.create()
        self._calls[connection.key] = _Call(connection, time.monotonic())
        connection.resolve(*self._way, 1000 * _PATIENCE)

    def listen(self, seconds):
        """Take the next event, if one comes in that time."""
        found = self._channel.next(max(0, seconds))
        if found is None:
            return
        event, _, _, connection = found
        call = self._calls.get(connection.key)
        if call is None:
            return
        try:
            self._go_on(event, call)
        except OSError:
            self._end(call)

    def _go_on(self, event, call):
        if event == Event.ADDR_RESOLVED:
            call.connection.resolve_route(1000 * _PATIENCE)
        elif event == Event.ROUTE_RESOLVED:
            self._qpn += 1
            call.connection.connect(self._qpn)
        elif event == Event.CONNECT_RESPONSE:
            self.took.append(1000 * (time.monotonic() - call.began))
            call.connection.establish()
            call.connection.disconnect()
        elif event != Event.TIMEWAIT_EXIT:
            self._end(call)

    def _end(self, call):
        self._calls.pop(call.connection.key)
        call.connection.destroy()

    def expire(self):
        """Give up what has waited too long. How many are left."""
        before = time.monotonic() - _PATIENCE
        for call in [call for call in self._calls.values() if call.began < before]:
            self._end(call)
        return len(self._calls)


def _call(own, peer, port, number, seconds):
    caller = _Caller(own, peer, port)
    began, asked = time.monotonic(), 0
    while asked < number or caller.expire():
        due = began + asked * seconds / number - time.monotonic()
        if asked < number and due <= 0:
            asked += 1
            caller.ask()
            continue
        caller.listen(min(due, 0.5) if asked < number else 0.5)
        caller.expire()
    took = caller.took or [1000 * _PATIENCE]
    print(f"{len(caller.took)} {median(took):.1f} {max(took):.1f}")


def main():
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["serve", own, port]:
            _serve(own, int(port))
        case ["call", own, peer, port, number, seconds]:
            _call(own, peer, int(port), int(number), float(seconds))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
