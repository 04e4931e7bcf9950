#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Peers that lose a connection without a word, and ask again as the same queue pair.

moved.py stays OWN PEER          the node under test
moved.py moves OWN PEER OTHER    its peer, which comes back with its own address, and with OTHER

The end that moves prints a line for each case: its name, and at which try the connection came up.
"""

import sys
import time

from party import PATIENCE
from party import Party
from party import control
from rdmacm import Channel
from rdmacm import Event

_TRIES = 8
_PORT = 7300
_SERVING_QP = 0x3000


def _loses_a_connection(party, moves):
    """The node that moves gives a connection up, and its last word is lost. Returns its queue pair."""
    party.connected()
    if not moves:
        party.lose("DREQ")
    party.meet()
    if moves:
        party.destroy()
    else:
        party.lost()
    party.meet()
    return party.calling_qp if party.calls else party.serving_qp


def _serve(party, own, port):
    """Grant all that is asked for until a connection is up."""
    channel = Channel()
    listener = channel.create()
    listener.listen(own, port)
    party.meet()
    ids = [listener]
    while True:
        found = channel.next(PATIENCE)
        if found is None:
            raise SystemExit("nobody came back")
        event, _, _, connection = found
        if event == Event.CONNECT_REQUEST:
            connection.accept(_SERVING_QP)
            ids.append(connection)
        if event == Event.ESTABLISHED:
            return ids


def _expect(channel, *wanted):
    found = channel.next(PATIENCE)
    if found is None or found[0] not in wanted:
        raise SystemExit(f"{found[0].name if found else 'nothing'} came, not {wanted[0].name}")
    return found[0]


def _come_back(own, peer, port, qpn):
    """Ask until the connection is granted. Returns the number of tries, and the connection."""
    for attempt in range(1, _TRIES + 1):
        channel = Channel()
        connection = channel.create()
        connection.resolve((own, 0), (peer, port))
        _expect(channel, Event.ADDR_RESOLVED)
        connection.resolve_route()
        _expect(channel, Event.ROUTE_RESOLVED)
        connection.connect(qpn)
        if _expect(channel, Event.CONNECT_RESPONSE, Event.REJECTED) == Event.CONNECT_RESPONSE:
            connection.establish()
            return attempt, connection
        connection.destroy()
        time.sleep(1)
    return _TRIES + 1, None


def main():
    """Do what the command line says."""
    role, own, peer, *other = sys.argv[1:]
    moves = role == "moves"
    line = control(not moves, own, peer)
    cases = [(called, moved) for called in ("caller", "server") for moved in ("same", "other")]
    for number, (first, address) in enumerate(cases):
        calls = (first == "caller") == moves
        party = Party(line, own, peer, f"{first}, {address} address", number, calls)
        qpn = _loses_a_connection(party, moves)
        if moves:
            back = own if address == "same" else other[0]
            # The other node listens.
            party.meet()
            tries, connection = _come_back(back, peer, _PORT + number, qpn)
            print(f"result: {first}-{address} {tries}", flush=True)
            if connection:
                connection.destroy()
            party.meet()
        else:
            ids = _serve(party, own, _PORT + number)
            party.meet()
            for connection in reversed(ids):
                connection.destroy()
            party.destroy()


if __name__ == "__main__":
    main()
