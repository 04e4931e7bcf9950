#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A scenario for two nodes: each step is one way in which a connection comes, goes, or does not come.

scenario.py list                             the steps
scenario.py run watched|other OWN PEER       play them all: both nodes at once, with their IPv4 addresses. Each step is
                                             played twice, called by either node. Prints what each was told.
"""

import re
import socket
import subprocess
import sys
import time

from rdmacm import Channel
from rdmacm import Event
from rdmacm import Space

_CONTROL = 7900
_FIRST_PORT, _FIRST_SOURCE_PORT = 7100, 8100
_FIRST_CALLING_QP, _FIRST_SERVING_QP = 0x1000, 0x2000
_PATIENCE = 60
# Longer than the time after which a caller asks again: 4.096 us << 20, and what the path takes.
_SLOW = 7
# What has been sent has arrived after that.
_UNDER_WAY = 1
_ATTRIBUTES = {"REQ": 0x10, "REP": 0x13, "RTU": 0x14, "DREQ": 0x15, "DREP": 0x16, "SIDR_REQ": 0x17}


class Loss:
    """Messages of a kind are thrown away as they arrive, until one has been."""

    _COUNT = re.compile(r"dropped (\d+)")

    def __init__(self, kind):
        # The 16 bits after IP, UDP, BTH, DETH and those 16 bytes of the MAD that stand before its attribute.
        match = f"match u16 {4791:#x} 0xffff at 22 match u16 {_ATTRIBUTES[kind]:#x} 0xffff at 64"
        self._tc("qdisc replace dev eth0 clsact")
        self._tc(f"filter add dev eth0 ingress protocol ip prio 1 u32 match ip protocol 17 0xff {match} action drop")

    def wait(self):
        """Wait for the one, and let all others through."""
        deadline = time.monotonic() + _PATIENCE
        while not self._dropped():
            if time.monotonic() > deadline:
                raise SystemExit("scenario: the message that was to be lost never arrived")
            time.sleep(0.01)
        self._tc("qdisc del dev eth0 clsact")

    def _dropped(self):
        shown = self._tc("-s filter show dev eth0 ingress")
        return sum(int(count) for count in self._COUNT.findall(shown))

    @staticmethod
    def _tc(words):
        return subprocess.run(["tc", *words.split()], check=True, capture_output=True, text=True).stdout


class Party:
    """This node in one step."""

    def __init__(self, control, own, peer, step, number, calls):
        self.calls = calls
        self._control = control
        self._own, self._peer = own, peer
        self._step = step
        self._number = number
        self._channel = Channel()
        self._ids = []
        self._conversations = 0
        self._loss = None

    # --- the two nodes ---

    def meet(self):
        """Wait for the other node to come here too."""
        here = f"{self._step} {self._number}"
        self._control.write(here + "\n")
        self._control.flush()
        there = self._control.readline().rstrip()
        if there != here:
            raise SystemExit(f"scenario: at {here} the other node said {there or 'nothing more'}")

    def say(self, text):
        """A line of what this node saw."""
        print(f"{self._step}, {'calling' if self.calls else 'serving'}: {text}", flush=True)

    # --- events ---

    def expect(self, *wanted):
        """The next event, which has to be one of those; returns the connection it came with."""
        while True:
            found = self._channel.next(_PATIENCE)
            if found is None:
                raise SystemExit(f"scenario: step {self._step}: waited for {wanted[0].name} in vain")
            event, status, data, connection = found
            if event != Event.TIMEWAIT_EXIT:
                break
        self.say(f"{event.name} {status} {data.rstrip(bytes(1))!r}")
        if event not in wanted:
            raise SystemExit(f"scenario: step {self._step}: {event.name} {status} came, not {wanted[0].name}")
        if event == Event.CONNECT_REQUEST:
            self._ids.append(connection)
        return connection

    def lose(self, kind):
        """Lose messages that arrive here."""
        self._loss = Loss(kind)

    def lost(self):
        """One has been."""
        self._loss.wait()
        self._loss = None

    # --- connections ---

    def listen(self, space=Space.TCP):
        """Serve. The step begins for the caller."""
        if not self.calls:
            listener = self._channel.create(space)
            self._ids.append(listener)
            listener.listen(self._own, _FIRST_PORT + self._number)
        self.meet()

    def resolved(self, space=Space.TCP):
        """A connection that only has to be asked for."""
        connection = self._channel.create(space)
        self._ids.append(connection)
        source_port = _FIRST_SOURCE_PORT + 2 * self._number + self._conversations
        self._conversations += 1
        connection.resolve((self._own, source_port), (self._peer, _FIRST_PORT + self._number))
        self.expect(Event.ADDR_RESOLVED)
        connection.resolve_route()
        self.expect(Event.ROUTE_RESOLVED)
        return connection

    def ask(self, space=Space.TCP):
        """Ask for a connection."""
        connection = self.resolved(space)
        connection.connect(_FIRST_CALLING_QP + self._number, b"the caller's word")
        return connection

    def grant(self, connection):
        """Grant it."""
        connection.accept(_FIRST_SERVING_QP + self._number, b"the server's word")

    def refused(self, call, *arguments):
        """That call is refused."""
        try:
            call(*arguments)
        except OSError as error:
            self.say(f"refused: {error.strerror}")
        else:
            raise SystemExit(f"scenario: step {self._step}: {call.__name__} was not refused")

    def connected(self, lost=None):
        """A connection that both nodes have; a message that is lost on the way is lost where it arrives."""
        loses = lost in (("REP",) if self.calls else ("REQ", "RTU"))
        if loses:
            self.lose(lost)
        self.listen()
        connection = self._called(loses) if self.calls else self._served(lost if loses else None)
        self.meet()
        return connection

    def _called(self, loses):
        connection = self.ask()
        if loses:
            self.lost()
        self.expect(Event.CONNECT_RESPONSE)
        connection.establish()
        return connection

    def _served(self, lost):
        if lost == "REQ":
            self.lost()
        connection = self.expect(Event.CONNECT_REQUEST)
        self.grant(connection)
        if lost == "RTU":
            self.lost()
        self.expect(Event.ESTABLISHED)
        return connection

    def close(self):
        """The end of the step: everything is given back, on both nodes."""
        for connection in reversed(self._ids):
            connection.destroy()
        self.meet()


# --- the steps. Each is run by both nodes -----------------------------------------------------------------------------------


def _end(party, connection, begins, lost=None):
    """One node begins to disconnect, the other one agrees. A DREQ is lost at the other, a DREP at the one."""
    loses = lost == ("DREP" if begins else "DREQ")
    if loses:
        party.lose(lost)
    party.meet()
    if begins:
        connection.disconnect()
    if loses and not begins:
        party.lost()
    if not begins:
        party.expect(Event.DISCONNECTED)
        connection.disconnect()
    else:
        if loses:
            party.lost()
        party.expect(Event.DISCONNECTED)


def caller_disconnects(party):
    _end(party, party.connected(), party.calls)


def server_disconnects(party):
    _end(party, party.connected(), not party.calls)


def _forgets(party, forgets):
    connection = party.connected()
    if forgets:
        connection.destroy()
    else:
        party.expect(Event.DISCONNECTED)
        connection.disconnect()


def caller_forgets(party):
    _forgets(party, party.calls)


def server_forgets(party):
    _forgets(party, not party.calls)


def server_rejects(party):
    party.listen()
    if party.calls:
        party.ask()
        party.expect(Event.REJECTED)
    else:
        party.expect(Event.CONNECT_REQUEST).reject(b"no, thank you")


def caller_rejects(party):
    party.listen()
    if party.calls:
        connection = party.ask()
        party.expect(Event.CONNECT_RESPONSE)
        connection.reject(b"too late")
    else:
        party.grant(party.expect(Event.CONNECT_REQUEST))
        party.expect(Event.REJECTED)


def nobody_listens(party):
    party.meet()
    if party.calls:
        party.ask()
        party.expect(Event.REJECTED)


def caller_gives_up(party):
    party.listen()
    if party.calls:
        connection = party.ask()
        party.meet()
        connection.destroy()
        party.meet()
    else:
        connection = party.expect(Event.CONNECT_REQUEST)
        party.meet()
        party.meet()
        # rdma_cm says nothing of it before the connection is accepted.
        time.sleep(_UNDER_WAY)
        party.refused(party.grant, connection)


def server_gives_up(party):
    party.listen()
    if party.calls:
        party.ask()
        party.expect(Event.REJECTED)
    else:
        party.expect(Event.CONNECT_REQUEST).destroy()


def slow_server(party):
    party.listen()
    if party.calls:
        connection = party.ask()
        party.expect(Event.CONNECT_RESPONSE)
        connection.establish()
    else:
        connection = party.expect(Event.CONNECT_REQUEST)
        time.sleep(_SLOW)
        party.grant(connection)
        party.expect(Event.ESTABLISHED)
    _end(party, connection, party.calls)


def queue_pair_again(party):
    """A second connection by the same queue pair: the first one has gone, for all the server can know."""
    first = party.connected()
    if party.calls:
        party.ask()
        party.expect(Event.REJECTED, Event.DISCONNECTED)
        party.expect(Event.REJECTED, Event.DISCONNECTED)
        first.disconnect()
    else:
        party.expect(Event.DISCONNECTED)


def lost_req(party):
    _end(party, party.connected("REQ"), party.calls)


def lost_rep(party):
    _end(party, party.connected("REP"), party.calls)


def lost_rtu(party):
    _end(party, party.connected("RTU"), party.calls)


def lost_dreq(party):
    _end(party, party.connected(), party.calls, "DREQ")


def lost_drep(party):
    _end(party, party.connected(), party.calls, "DREP")


def _datagrams(party, answer, told, loses=False):
    if loses and not party.calls:
        party.lose("SIDR_REQ")
    party.listen(Space.UDP)
    if party.calls:
        party.ask(Space.UDP)
        party.expect(told)
    else:
        if loses:
            party.lost()
        answer(party.expect(Event.CONNECT_REQUEST))


def datagrams_granted(party):
    _datagrams(party, party.grant, Event.ESTABLISHED)


def datagrams_rejected(party):
    _datagrams(party, lambda request: request.reject(b"not now"), Event.UNREACHABLE)


def lost_sidr_req(party):
    _datagrams(party, party.grant, Event.ESTABLISHED, loses=True)


def datagrams_unknown(party):
    party.meet()
    if party.calls:
        party.ask(Space.UDP)
        party.expect(Event.UNREACHABLE)


STEPS = [
    caller_disconnects,
    server_disconnects,
    caller_forgets,
    server_forgets,
    server_rejects,
    caller_rejects,
    nobody_listens,
    caller_gives_up,
    server_gives_up,
    queue_pair_again,
    slow_server,
    lost_req,
    lost_rep,
    lost_rtu,
    lost_dreq,
    lost_drep,
    datagrams_granted,
    datagrams_rejected,
    datagrams_unknown,
    lost_sidr_req,
]
STEPS = [(step.__name__.replace("_", " "), step) for step in STEPS]


def port_of(step, watched_calls):
    """The port of a step, by which its messages are known."""
    return _FIRST_PORT + _number(step, watched_calls)


def _number(step, watched_calls):
    return 2 * [name for name, _ in STEPS].index(step) + (not watched_calls)


def _control(watched, own, peer):
    """The line between the nodes, beside what is under test."""
    if not watched:
        with socket.create_server((own, _CONTROL)) as server:
            server.settimeout(_PATIENCE)
            return server.accept()[0].makefile("rw")
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection((peer, _CONTROL)).makefile("rw")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _run(role, own, peer):
    watched = role == "watched"
    control = _control(watched, own, peer)
    for name, step in STEPS:
        for watched_calls in (True, False):
            party = Party(control, own, peer, name, _number(name, watched_calls), watched == watched_calls)
            step(party)
            party.close()
            party.say("done")


def main():
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["list"]:
            print("\n".join(name for name, _ in STEPS))
        case ["run", "watched" | "other" as role, own, peer]:
            _run(role, own, peer)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
