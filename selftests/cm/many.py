#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Many connections, from many processes at once.

many.py serve OWN PROCESSES NUMBER          each process serves that many connections
many.py call OWN PEER PROCESSES NUMBER      each process opens that many, all at once. When all processes have all of
                                            theirs, all are closed
many.py hold OWN PEER PROCESSES NUMBER      the same, but they are closed when the standard input ends
many.py cycle OWN PEER PROCESSES NUMBER     each process opens and closes one, so many times

Fails if a connection does not come up or does not end in order.
"""

import os
import select
import sys

from patience import at_least
from rdmacm import Channel
from rdmacm import Event

_FIRST_PORT = 7200
# For a connection that waits behind thousands of others. Nothing takes as long.
_PATIENCE = at_least(300)
# In milliseconds.
_RESOLVE_TIMEOUT = 1000 * at_least(120)
_SERVED = (Event.CONNECT_REQUEST, Event.ESTABLISHED, Event.DISCONNECTED)
# What an accepted connection comes to that the peer knows nothing of.
_NOT_TAKEN_UP = (Event.UNREACHABLE, Event.REJECTED)


class _Failed(Exception):
    """A connection came to something else."""


def _next(channel, *wanted):
    found = channel.next(_PATIENCE)
    if found is None:
        raise _Failed(f"waited for {wanted[0].name} in vain")
    event, status, _data, connection = found
    if event != Event.TIMEWAIT_EXIT and event not in wanted:
        raise _Failed(f"{event.name} {status} came, where {' or '.join(each.name for each in wanted)} may")
    return event, connection


# --- serving -------------------------------------------------------------------------------------------------------------


def _serve(own, process, number):
    """The late copy of a request whose connection has ended is one for a new connection to any connection manager: it is accepted, and
    nobody takes it up. That is no failure of a queue pair that has had its connection; of any other it is."""
    channel = Channel()
    channel.create().listen(own, _FIRST_PORT + process, number)
    # The peers' queue pairs: by connections that are not over, and of those that are.
    open_, over = {}, set()
    qpn, closed = process << 17 | 1 << 23, 0
    while closed < number:
        event, connection = _next(channel, *_SERVED, *_NOT_TAKEN_UP)
        if event == Event.CONNECT_REQUEST:
            qpn += 1
            open_[connection.key] = connection.peer_qpn
            connection.accept(qpn)
        elif event == Event.DISCONNECTED:
            over.add(open_.pop(connection.key))
            connection.disconnect()
            connection.destroy()
            closed += 1
        elif event in _NOT_TAKEN_UP:
            if open_.pop(connection.key) not in over:
                raise _Failed(f"{event.name} came of a connection that was not over")
            connection.destroy()


# --- calling -------------------------------------------------------------------------------------------------------------


class _Caller:
    """The connections of a process, in whatever stage they are."""

    def __init__(self, own, peer, process):
        self._channel = Channel()
        self._own, self._peer = (own, 0), (peer, _FIRST_PORT + process)
        # 0 and 1 are no numbers of a connection's queue pair.
        self._next_qpn = (process << 17) + 1
        self._open = {}

    def begin(self):
        """Set out for a connection."""
        connection = self._channel.create()
        self._open[connection.key] = connection
        connection.resolve(self._own, self._peer, _RESOLVE_TIMEOUT)

    def until_up(self, number):
        """Take each on, until that many are up."""
        while number:
            event, connection = _next(
                self._channel, Event.CONNECT_RESPONSE, Event.ADDR_RESOLVED, Event.ROUTE_RESOLVED
            )
            if event == Event.ADDR_RESOLVED:
                connection.resolve_route(_RESOLVE_TIMEOUT)
            elif event == Event.ROUTE_RESOLVED:
                self._next_qpn += 1
                connection.connect(self._next_qpn)
            elif event == Event.CONNECT_RESPONSE:
                connection.establish()
                number -= 1

    def hold(self, go):
        """Keep them until the pipe `go` ends. Nothing happens to them meanwhile, unless their device goes."""
        while go not in select.select([go, self._channel], [], [])[0]:
            _next(self._channel, Event.TIMEWAIT_EXIT)

    def close_all(self):
        """End all of them, and wait for the server's consent."""
        for connection in self._open.values():
            connection.disconnect()
        while self._open:
            event, connection = _next(self._channel, Event.DISCONNECTED)
            if event == Event.DISCONNECTED:
                self._open.pop(connection.key).destroy()


def _cycle(own, peer, process, number):
    caller = _Caller(own, peer, process)
    for _ in range(number):
        caller.begin()
        caller.until_up(1)
        caller.close_all()


# --- processes -------------------------------------------------------------------------------------------------------------


def _in_processes(processes, work):
    """Run work(process) in each; how many did not end well."""
    children = []
    for process in range(processes):
        child = os.fork()
        if child == 0:
            _exit_with(work, process)
        children.append(child)
    return children


def _exit_with(work, process):
    status = 1
    try:
        work(process)
        status = 0
    except (_Failed, OSError) as error:
        print(f"process {process}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _ended(children):
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    if failed:
        raise SystemExit(f"many: {failed} of {len(children)} processes failed")


def _call(own, peer, processes, number, hold=False):
    up, say_up = os.pipe()
    go, say_go = os.pipe()

    def work(process):
        os.close(say_go)
        caller = _Caller(own, peer, process)
        come = b"-"
        try:
            for _ in range(number):
                caller.begin()
            caller.until_up(number)
            come = b"+"
        finally:
            os.write(say_up, come)
        caller.hold(go)
        caller.close_all()

    children = _in_processes(processes, work)
    os.close(say_up)
    spoken = b""
    while len(spoken) < processes and (word := os.read(up, 1)):
        spoken += word
    print(f"{spoken.count(b'+') * number} connections at once", flush=True)
    if hold:
        sys.stdin.read()
    os.close(say_go)
    _ended(children)


def main():
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["serve", own, processes, number]:
            _ended(_in_processes(int(processes), lambda process: _serve(own, process, int(number))))
        case ["call", own, peer, processes, number]:
            _call(own, peer, int(processes), int(number))
        case ["hold", own, peer, processes, number]:
            _call(own, peer, int(processes), int(number), hold=True)
        case ["cycle", own, peer, processes, number]:
            _ended(_in_processes(int(processes), lambda process: _cycle(own, peer, process, int(number))))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
