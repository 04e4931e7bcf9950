#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many ask one that is slow.

slow.py serve OWN PORT MILLISECONDS     grant connections, one after the other, each after so long
slow.py call OWN PEER PORT NUMBER       ask for so many at once, and print how many came to what: a word and a number a line

OWN and PEER are IPv4 addresses.
"""

import collections
import sys
import time

from rdmacm import Channel
from rdmacm import Event

# The kernel keeps no more for a program.
_BACKLOG = 1024
# For one that waits behind thousands of others. Nothing takes as long.
_PATIENCE = 250
_OUTCOMES = (Event.CONNECT_RESPONSE, Event.UNREACHABLE, Event.REJECTED, Event.CONNECT_ERROR, Event.ADDR_ERROR, Event.ROUTE_ERROR)


def _serve(own, port, milliseconds):
    channel = Channel()
    channel.create().listen(own, port, _BACKLOG)
    qpn = 0x2000
    while True:
        event, _, _, connection = channel.next(None)
        if event == Event.CONNECT_REQUEST:
            time.sleep(milliseconds / 1000)
            qpn += 1
            try:
                connection.accept(qpn)
            except OSError:
                # The asker has gone meanwhile.
                connection.destroy()
        elif event == Event.DISCONNECTED:
            connection.disconnect()
            connection.destroy()
        elif event in (Event.UNREACHABLE, Event.REJECTED):
            connection.destroy()


def _call(own, peer, port, number):
    channel = Channel()
    # Their identifiers are given back only when the object goes.
    kept = []
    for _ in range(number):
        connection = channel.create()
        kept.append(connection)
        connection.resolve((own, 0), (peer, port), 120_000)
    outcomes, qpn = collections.Counter(), 0x1000
    while outcomes.total() < number:
        found = channel.next(_PATIENCE)
        if found is None:
            break
        event, _, _, connection = found
        if event == Event.ADDR_RESOLVED:
            connection.resolve_route(120_000)
        elif event == Event.ROUTE_RESOLVED:
            qpn += 1
            connection.connect(qpn)
        elif event in _OUTCOMES:
            outcomes[event.name] += 1
            if event == Event.CONNECT_RESPONSE:
                connection.establish()
    outcomes["NOTHING"] = number - outcomes.total()
    for name, count in sorted(outcomes.items()):
        print(name, count)


def main():
    """Serve or call."""
    match sys.argv[1:]:
        case ["serve", own, port, milliseconds]:
            _serve(own, int(port), float(milliseconds))
        case ["call", own, peer, port, number]:
            _call(own, peer, int(port), int(number))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
