#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""One of two nodes that both lose their connections without a word, and ask again as the same queue pairs.

movers.py GID...    the GIDs of the node's ports, to which it listens

Does what each line of its input says, and answers with a line:

connect OWN PEER    ask the peer for a connection, and, if this node has none, for one as the queue pair "caller"; wait until
                    the peer has asked for one, which is granted as the queue pair "server"
lose                give up the connections of the queue pairs "caller" and "server"
return OWN PEER TRIES [QUEUE PAIR...]
                    ask as these queue pairs, so many times at most; answers with the try that was granted, of each
let_go QUEUE PAIR...  give up what this node has of the peer's queue pairs of these names

OWN and PEER are GIDs.
"""

import sys
import threading
import time

from party import PATIENCE
from rdmacm import GID
from rdmacm import Channel
from rdmacm import Event

_PORT = 7400
# The queue pair "caller" is one for all rounds. Of "server", and of the peer's end of it, there is one in each.
_CALLER, _PEER_OF_SERVER, _SERVER, _SERVING = 0x1000, 0x2000, 0x3000, 0x400000


class _Listeners:
    """Grants all requests. Keeps all that was granted, whatever becomes of it."""

    def __init__(self, gids):
        self._channel = Channel()
        self._granted = {}
        self._established = set()
        self._changed = threading.Condition()
        self._ids = []
        for gid in gids:
            listener = self._channel.create()
            listener.listen(GID + gid, _PORT)
            self._ids.append(listener)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        number = 0
        while True:
            event, _, _, connection = self._channel.next(None)
            with self._changed:
                if event == Event.CONNECT_REQUEST:
                    asking = connection.peer_qpn
                    number += 1
                    is_servers = _PEER_OF_SERVER <= asking < _SERVER
                    connection.accept(asking - _PEER_OF_SERVER + _SERVER if is_servers else _SERVING + number)
                    self._granted.setdefault(asking, []).append(connection)
                elif event == Event.ESTABLISHED:
                    self._established.add(connection.key)
                self._changed.notify_all()

    def wait_for(self, qpn):
        """Wait until the peer has a connection with this queue pair."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_established(qpn), PATIENCE):
                raise SystemExit(f"the peer has no connection with queue pair {qpn:#x}")

    def _is_established(self, qpn):
        return any(connection.key in self._established for connection in self._granted.get(qpn, []))

    def give_up(self, qpn):
        """Give up the connections with a queue pair of the peer."""
        with self._changed:
            given_up = self._granted.pop(qpn, [])
            self._established -= {connection.key for connection in given_up}
        for connection in given_up:
            connection.destroy()


def _expect(channel, *wanted):
    found = channel.next(PATIENCE)
    if found is None or found[0] not in wanted:
        raise SystemExit(f"{found[0].name if found else 'nothing'} came, not {wanted[0].name}")
    return found[0]


def _resolved(own, peer):
    """A connection whose path is known, and its channel. A subnet manager that has just begun may not know a path yet."""
    deadline = time.monotonic() + PATIENCE
    while True:
        channel = Channel()
        connection = channel.create()
        connection.resolve((GID + own, 0), (GID + peer, _PORT))
        _expect(channel, Event.ADDR_RESOLVED)
        connection.resolve_route()
        if _expect(channel, Event.ROUTE_RESOLVED, Event.ROUTE_ERROR) == Event.ROUTE_RESOLVED:
            return channel, connection
        connection.destroy()
        if time.monotonic() > deadline:
            raise SystemExit("there is no path")
        time.sleep(0.2)


def _ask(own, peer, qpn, tries):
    """Ask until the connection is granted. Returns the number of tries, one more if none was, and the connection."""
    for attempt in range(1, tries + 1):
        if attempt > 1:
            time.sleep(1)
        channel, connection = _resolved(own, peer)
        connection.connect(qpn)
        if _expect(channel, Event.CONNECT_RESPONSE, Event.REJECTED, Event.UNREACHABLE) == Event.CONNECT_RESPONSE:
            connection.establish()
            return attempt, connection
        connection.destroy()
    return tries + 1, None


class _Mover:
    def __init__(self, gids):
        self._listeners = _Listeners(gids)
        self._round = 0
        self._connections = {}

    def connect(self, own, peer):
        """The connections of a round."""
        self._round += 1
        if "caller" not in self._connections:
            self._connect("caller", own, peer, _CALLER)
        self._connect("peer of server", own, peer, _PEER_OF_SERVER + self._round)
        self._listeners.wait_for(_PEER_OF_SERVER + self._round)

    def _connect(self, name, own, peer, qpn):
        _, self._connections[name] = _ask(own, peer, qpn, 1)
        if not self._connections[name]:
            raise SystemExit(f"{name}: the first connection was not granted")

    def lose(self):
        """This end of a round's connections is no more."""
        self._connections.pop("caller").destroy()
        self._listeners.give_up(_PEER_OF_SERVER + self._round)

    def come_back(self, own, peer, tries, *names):
        """Ask as the same queue pairs."""
        answer = []
        for name in names:
            qpn = _CALLER if name == "caller" else _SERVER + self._round
            attempt, connection = _ask(own, peer, qpn, int(tries))
            if connection:
                self._connections[name] = connection
            answer.append(str(attempt))
        return " ".join(answer)

    def let_go(self, *names):
        """The consumer at this end finds that the connections with these queue pairs are over."""
        for name in names:
            if name == "caller":
                self._listeners.give_up(_CALLER)
            else:
                self._connections.pop("peer of server").destroy()


def main():
    """Do what the input says."""
    mover = _Mover(sys.argv[1:])
    commands = {"connect": mover.connect, "lose": mover.lose, "return": mover.come_back, "let_go": mover.let_go}
    print("ready", flush=True)
    for line in sys.stdin:
        name, *arguments = line.split()
        print("done", commands[name](*arguments) or "", flush=True)


if __name__ == "__main__":
    main()
