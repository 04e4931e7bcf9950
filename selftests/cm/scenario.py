#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A scenario for two nodes: each step is one way in which a connection comes, goes, or does not come.

scenario.py list                             the steps
scenario.py run watched|other OWN PEER       play them all: both nodes at once, with their IPv4 addresses. Each step is
                                             played twice, called by either node. Prints what each was told.
"""

import sys
import time

from party import FIRST_PORT
from party import Party
from party import control
from rdmacm import Event
from rdmacm import Space

# Longer than the time after which a caller asks again: 4.096 us << 20, and what the path takes.
_SLOW = 7
# What has been sent has arrived after that.
_UNDER_WAY = 1


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
        party.expect_both(Event.DISCONNECTED, Event.REJECTED)
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
    return FIRST_PORT + _number(step, watched_calls)


def _number(step, watched_calls):
    return 2 * [name for name, _ in STEPS].index(step) + (not watched_calls)


def _run(role, own, peer):
    watched = role == "watched"
    line = control(watched, own, peer)
    for name, step in STEPS:
        for watched_calls in (True, False):
            party = Party(line, own, peer, name, _number(name, watched_calls), watched == watched_calls)
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
