# SPDX-License-Identifier: GPL-2.0-only
"""The two nodes of a scenario: what either does with connections, step by step, and where both wait for each other."""

import re
import socket
import subprocess
import time

from patience import at_least
from rdmacm import Channel
from rdmacm import Event
from rdmacm import Space

_CONTROL = 7900
FIRST_PORT, _FIRST_SOURCE_PORT = 7100, 8100
_FIRST_CALLING_QP, _FIRST_SERVING_QP = 0x1000, 0x2000
# An MRA of rdma_cm's, which a busy node sends, puts a request off for 68 s.
PATIENCE = at_least(120)
_ATTRIBUTES = {"REQ": 0x10, "REP": 0x13, "RTU": 0x14, "DREQ": 0x15, "DREP": 0x16, "SIDR_REQ": 0x17}
# Where in an IPv4 packet a message begins, behind the MAD's header.
_MESSAGE = 72


def _tc(words):
    return subprocess.run(["tc", *words.split()], check=True, capture_output=True, text=True).stdout


def _drop(kind, also=""):
    """Messages of this kind are thrown away as they arrive; `also` is what else they have to match."""
    # The 16 bits after IP, UDP, BTH, DETH and those 16 bytes of the MAD that stand before its attribute.
    match = f"match u16 {4791:#x} 0xffff at 22 match u16 {_ATTRIBUTES[kind]:#x} 0xffff at 64 {also}"
    _tc(f"filter add dev eth0 ingress protocol ip prio 1 u32 match ip protocol 17 0xff {match} action drop")


# Of filters and never of the queueing discipline that they are in (cm.sh): when one comes or goes the kernel throws away for
# a moment what the device is to send, and soft-RoCE takes that for an error of the queue pair, which is that of management.
def _hear():
    """Nothing is thrown away any more."""
    _tc("filter del dev eth0 ingress")


class Loss:
    """Messages of a kind are thrown away as they arrive, until one has been."""

    _COUNT = re.compile(r"dropped (\d+)")

    def __init__(self, kind):
        _drop(kind)

    def wait(self):
        """Wait for the one, and let all others through."""
        deadline = time.monotonic() + PATIENCE
        while not self._dropped():
            if time.monotonic() > deadline:
                raise SystemExit("the message that was to be lost never arrived")
            time.sleep(0.01)
        _hear()

    def _dropped(self):
        shown = _tc("-s filter show dev eth0 ingress")
        return sum(int(count) for count in self._COUNT.findall(shown))


class Deafness:
    """Messages of some connections are thrown away as they arrive, for as long as this is there."""

    @staticmethod
    def to_requests(space, number):
        """A REQ or SIDR_REQ for that step's port."""
        kind = "REQ" if space == Space.TCP else "SIDR_REQ"
        _drop(kind, f"match u32 {space << 16 | FIRST_PORT + number:#x} 0xffffffff at {_MESSAGE + 12}")

    @staticmethod
    def to_replies(number):
        """A REP from the server's queue pair."""
        _drop("REP", f"match u32 {_FIRST_SERVING_QP + number << 8:#x} 0xffffff00 at {_MESSAGE + 12}")

    @staticmethod
    def to_disconnecting(number, calls):
        """A DREQ for the queue pair of the caller or the server."""
        qpn = (_FIRST_CALLING_QP if calls else _FIRST_SERVING_QP) + number
        _drop("DREQ", f"match u32 {qpn << 8:#x} 0xffffff00 at {_MESSAGE + 8}")

    @staticmethod
    def end():
        """All are heard again."""
        _hear()


class Party:
    """This node in one step."""

    def __init__(self, control, own, peer, step, number, calls):
        self.calls = calls
        self._control = control
        self._own, self._peer = own, peer
        self._step = step
        self.number = number
        self._channel = Channel()
        self._ids = []
        self._conversations = 0
        self._loss = None
        # The exponent for connections that are asked for.
        self.ack_timeout = None

    # --- the two nodes ---

    def meet(self):
        """Wait for the other node to come here too."""
        here = f"{self._step} {self.number}"
        self._control.write(here + "\n")
        self._control.flush()
        there = self._control.readline().rstrip()
        if there != here:
            raise SystemExit(f"at {here} the other node said {there or 'nothing more'}")

    def say(self, text):
        """A line of what this node saw."""
        print(f"{self._step}, {'calling' if self.calls else 'serving'}: {text}", flush=True)

    # --- events ---

    def expect(self, *wanted):
        """The next event, which has to be one of those; returns the connection it came with."""
        text, connection = self._next(wanted)
        self.say(text)
        return connection

    def expect_both(self, one, other):
        """The next two events, which are of two connections: they come in any order, and are told in one."""
        first, _ = self._next([one, other])
        second, _ = self._next([one, other])
        for text in sorted([first, second]):
            self.say(text)

    def _next(self, wanted):
        """The next event, as text, and the connection it came with."""
        while True:
            found = self._channel.next(PATIENCE)
            if found is None:
                raise SystemExit(f"step {self._step}: waited for {wanted[0].name} in vain")
            event, status, data, connection = found
            if event != Event.TIMEWAIT_EXIT:
                break
        text = f"{event.name} {status} {data.rstrip(bytes(1))!r}"
        if event not in wanted:
            raise SystemExit(f"step {self._step}: {text} came, not {wanted[0].name}")
        if event == Event.CONNECT_REQUEST:
            self._ids.append(connection)
        return text, connection

    def expect_nothing_more(self):
        """Nothing has happened that is not expected."""
        while (found := self._channel.next(0)) is not None:
            if found[0] != Event.TIMEWAIT_EXIT:
                raise SystemExit(f"step {self._step}: {found[0].name} {found[1]} came, which nothing is to be told")

    def has_lost_its_device(self):
        """Whether the next of the events that have come, if one has, says so."""
        found = self._channel.next(0)
        return found is not None and found[0] == Event.DEVICE_REMOVAL

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
            listener.listen(self._own, FIRST_PORT + self.number)
        self.meet()

    def resolved(self, space=Space.TCP):
        """A connection that only has to be asked for."""
        connection = self._channel.create(space)
        self._ids.append(connection)
        if self.ack_timeout is not None and space == Space.TCP:
            connection.set_ack_timeout(self.ack_timeout)
        source_port = _FIRST_SOURCE_PORT + 2 * self.number + self._conversations
        self._conversations += 1
        connection.resolve((self._own, source_port), (self._peer, FIRST_PORT + self.number))
        self.expect(Event.ADDR_RESOLVED)
        connection.resolve_route()
        self.expect(Event.ROUTE_RESOLVED)
        return connection

    @property
    def calling_qp(self):
        """The caller's queue pair."""
        return _FIRST_CALLING_QP + self.number

    @property
    def serving_qp(self):
        """The server's."""
        return _FIRST_SERVING_QP + self.number

    def ask(self, space=Space.TCP):
        """Ask for a connection."""
        connection = self.resolved(space)
        connection.connect(self.calling_qp, b"the caller's word")
        return connection

    def grant(self, connection):
        """Grant it."""
        connection.accept(self.serving_qp, b"the server's word")

    def refused(self, call, *arguments):
        """That call is refused."""
        try:
            call(*arguments)
        except OSError as error:
            self.say(f"refused: {error.strerror}")
        else:
            raise SystemExit(f"step {self._step}: {call.__name__} was not refused")

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
        self.say(f"offered depths {connection.depths}")
        self.grant(connection)
        if lost == "RTU":
            self.lost()
        self.expect(Event.ESTABLISHED)
        return connection

    def close(self):
        """The end of the step: everything is given back, on both nodes."""
        self.destroy()
        self.meet()

    def destroy(self):
        """Everything is given back."""
        for connection in reversed(self._ids):
            connection.destroy()


def control(watched, own, peer):
    """The line between the nodes, beside what is under test."""
    if not watched:
        with socket.create_server((own, _CONTROL)) as server:
            server.settimeout(PATIENCE)
            return server.accept()[0].makefile("rw")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((peer, _CONTROL)).makefile("rw")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
