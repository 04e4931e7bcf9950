#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Connections in every state in which a program can have them, all at once.

states.py hold OWN PEER      have them, say "held", and wait for whatever happens
states.py watch OWN PEER     be their other end; when the holder's go, fail unless each end is told what it has to be

OWN and PEER are the IPv4 addresses of the nodes. ReqRcvd and RepRcvd last no longer than rdma_cm needs to be told.
"""

import re
import sys
import time
from collections import Counter
from pathlib import Path

from party import PATIENCE
from party import Deafness
from party import Party
from party import control
from rdmacm import Event
from rdmacm import Space

# 4.096 us << 25: an end that waits for an answer does so, and a closed connection rests, for longer than the test takes.
_LONG = 25


class _End(Party):
    """This node's end of one connection."""

    def __init__(self, line, own, peer, step, number, calls, holds, deafness):
        super().__init__(line, own, peer, step, number, calls)
        self.holds = holds
        self.deafness = deafness


# --- how both ends come there. Each is run by both nodes --------------------------------------------------------------------


def _listening(end):
    end.listen()


def _unheard(end, space):
    end.ack_timeout = _LONG
    if not end.calls:
        end.deafness.to_requests(space, end.number)
    end.listen(space)
    if end.calls:
        end.ask(space)


def _unheard_request(end):
    _unheard(end, Space.TCP)


def _unheard_resolution(end):
    _unheard(end, Space.UDP)


def _unanswered(end, space):
    end.ack_timeout = _LONG
    end.listen(space)
    if end.calls:
        end.ask(space)
    else:
        end.expect(Event.CONNECT_REQUEST)


def _unanswered_request(end):
    _unanswered(end, Space.TCP)


def _unanswered_resolution(end):
    _unanswered(end, Space.UDP)


def _replied(end):
    end.listen()
    if end.calls:
        end.ask()
    else:
        end.grant(end.expect(Event.CONNECT_REQUEST))


def _unheard_reply(end):
    if end.calls:
        end.deafness.to_replies(end.number)
    _replied(end)


def _unanswered_reply(end):
    end.ack_timeout = _LONG
    _replied(end)
    if end.calls:
        end.expect(Event.CONNECT_RESPONSE)


def _connected(end):
    end.connected()


def _unheard_disconnecting(end):
    end.ack_timeout = _LONG
    if not end.holds:
        end.deafness.to_disconnecting(end.number, end.calls)
    connection = end.connected()
    if end.holds:
        connection.disconnect()


def _unanswered_disconnecting(end):
    connection = end.connected()
    if end.holds:
        end.expect(Event.DISCONNECTED)
    else:
        connection.disconnect()


def _disconnected(end):
    end.ack_timeout = _LONG
    connection = end.connected()
    if end.holds:
        connection.disconnect()
    end.expect(Event.DISCONNECTED)
    if not end.holds:
        connection.disconnect()


_CALLING, _SERVING = True, False

# The end that holds, how, in which state that is; and what the other end is told when the holder's goes. The one that has not heard
# a reply cannot know that it is taken back: it asks again and finds nobody. Those that last for a minute come last.
_STATES = [
    (_SERVING, _listening, "LISTEN", []),
    (_SERVING, _unanswered_request, "MRA_REQ_SENT", [Event.REJECTED]),
    (_CALLING, _unanswered_request, "MRA_REQ_RCVD", []),
    (_SERVING, _unanswered_reply, "MRA_REP_RCVD", [Event.REJECTED]),
    (_CALLING, _unanswered_reply, "MRA_REP_SENT", [Event.REJECTED]),
    (_CALLING, _connected, "ESTABLISHED", [Event.DISCONNECTED]),
    (_SERVING, _connected, "ESTABLISHED", [Event.DISCONNECTED]),
    (_CALLING, _unanswered_disconnecting, "DREQ_RCVD", [Event.DISCONNECTED]),
    (_SERVING, _unanswered_disconnecting, "DREQ_RCVD", [Event.DISCONNECTED]),
    (_CALLING, _disconnected, "TIMEWAIT", []),
    (_SERVING, _disconnected, "TIMEWAIT", []),
    (_CALLING, _unheard_request, "REQ_SENT", []),
    (_CALLING, _unheard_disconnecting, "DREQ_SENT", []),
    (_SERVING, _unheard_disconnecting, "DREQ_SENT", []),
    (_SERVING, _unheard_reply, "REP_SENT", [Event.REJECTED, Event.UNREACHABLE]),
    (_CALLING, _unheard_resolution, "SIDR_REQ_SENT", []),
    (_SERVING, _unanswered_resolution, "SIDR_REQ_RCVD", [Event.UNREACHABLE]),
]
# An identifier begins in this one, so that no tracepoint tells of it.
_UNTOLD = ["SIDR_REQ_RCVD"]


# --- whether they are there -------------------------------------------------------------------------------------------------


class _Tracepoint:
    """The states as the connection manager itself tells them."""

    _TRACING = Path("/sys/kernel/tracing")
    _SWITCH = _TRACING / "events/oxib_cm/oxib_cm_state/enable"
    _STEP = re.compile(r"oxib_cm_state: local_id=(\w+) .* -> (\w+)$", re.MULTILINE)

    def __init__(self):
        # Processors take turns: a clock of time may be too coarse to tell the order of their steps.
        (self._TRACING / "trace_clock").write_text("counter")
        (self._TRACING / "trace").write_text("")
        self._SWITCH.write_text("1")

    def wait(self, wanted):
        """Wait until at least so many connections are in each state."""
        deadline = time.monotonic() + PATIENCE
        while missing := Counter(wanted) - self._states():
            if time.monotonic() > deadline:
                raise SystemExit(f"states: nothing came to be in {', '.join(missing)}")
            time.sleep(0.1)
        self._SWITCH.write_text("0")

    def _states(self):
        """How many connections are in each state."""
        last = dict(self._STEP.findall((self._TRACING / "trace").read_text()))
        return Counter(last.values())


# --- both nodes -------------------------------------------------------------------------------------------------------------


def _ends(line, own, peer, holds, deafness):
    """This node's ends, in those states."""
    ends = []
    for number, (holder_calls, come, state, _) in enumerate(_STATES):
        calls = holder_calls == holds
        ends.append(_End(line, own, peer, state, number, calls, holds, deafness))
        come(ends[-1])
        ends[-1].meet()
    return ends


def _hold(own, peer):
    tracepoint = _Tracepoint()
    ends = _ends(control(True, own, peer), own, peer, True, None)
    tracepoint.wait([state for _, _, state, _ in _STATES if state not in _UNTOLD])
    print("held", flush=True)
    # A device that goes waits for all programs that have it open.
    while not any(end.has_lost_its_device() for end in ends):
        time.sleep(0.1)


def _watch(own, peer):
    deafness = Deafness()
    ends = _ends(control(False, own, peer), own, peer, False, deafness)
    for end, (_, _, _, told) in zip(ends, _STATES):
        if told:
            end.expect(*told)
    for end in ends:
        end.expect_nothing_more()
        end.destroy()
    deafness.end()


def main():
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["hold", own, peer]:
            _hold(own, peer)
        case ["watch", own, peer]:
            _watch(own, peer)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
