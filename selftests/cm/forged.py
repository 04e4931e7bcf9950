#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Messages that are forged by a third node, about connections of two others.

forged.py call OWN PEER STRANGER     ask for connections, and for a service
forged.py serve OWN PEER STRANGER    be asked

Both forge messages about the other's connections, from STRANGER, which is another IPv4 address of their own. Fails unless
the connections come up and stay, and each forged answer is counted as one of the wrong peer.
"""

import argparse
import socket
import sys
import time
from pathlib import Path

import capture
import malformed
import message
from party import FIRST_PORT
from party import PATIENCE
from party import Party
from party import control
from rdmacm import Event
from rdmacm import Space

_DEVICE = Path("/sys/class/infiniband/rxe0")
_WRONG_PEER = _DEVICE / "ports/1/cm_rx_drops/wrong_peer"
_DUPLICATES = _DEVICE / "ports/1/cm_rx_duplicates/req"
_ETHERTYPE_IPV4 = 0x0800
_CONSUMER_REJECT = 28


def _dropped():
    return int(_WRONG_PEER.read_text())


def _wait_for_drops(number):
    deadline = time.monotonic() + PATIENCE
    while _dropped() < number:
        if time.monotonic() > deadline:
            raise SystemExit(f"{_dropped()} messages were of the wrong peer, not {number}")
        time.sleep(0.1)


def _duplicates():
    return int(_DUPLICATES.read_text())


def _wait_for_duplicate(before):
    """Wait for the one that there should be."""
    deadline = time.monotonic() + PATIENCE
    while _duplicates() == before:
        if time.monotonic() > deadline:
            raise SystemExit("a REQ from the same address is no duplicate")
        time.sleep(0.1)
    if _duplicates() != before + 1:
        raise SystemExit(f"{_duplicates() - before} requests were duplicates, not 1")


class _Cable:
    """What arrives on the Ethernet device from now on."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE_IPV4))
        self._socket.bind(("eth0", 0))
        self._socket.settimeout(PATIENCE)

    def next(self, kind):
        """The fields of the next message of that kind."""
        while True:
            found = capture.of_frame(self._socket.recv(65536))
            if found and found.kind == kind:
                return found.fields


def _unmoved(party, injector, space, kind, forge, number):
    """The caller asks; before it is answered, the server forges that many answers. Returns the connection."""
    cable = None if party.calls else _Cable()
    before = _dropped()
    party.listen(space)
    connection = party.ask(space) if party.calls else party.expect(Event.CONNECT_REQUEST)
    if party.calls:
        _wait_for_drops(before + number)
        party.expect_nothing_more()
    else:
        for mad in forge(cable.next(kind)):
            injector.send(mad)
    party.meet()
    if not party.calls:
        party.grant(connection)
    return connection


def _answers(request):
    """What a stranger would answer to a REQ."""
    name = request["local_comm_id"]
    yield message.build("REJ", remote_comm_id=name, reason=_CONSUMER_REJECT)
    yield message.build("MRA", remote_comm_id=name, local_comm_id=0x51, service_timeout=31)
    yield message.build("REP", remote_comm_id=name, local_comm_id=0x51, qpn=0x4321, local_ca_guid=1)


def _resolution(request):
    """And to a SIDR_REQ: that the service is not there."""
    yield message.build("SIDR_REP", request_id=request["request_id"], sidr_status=1, service_id=request["service_id"])


def _claim(party, injector, own, peer):
    """A stranger asks as the caller's queue pair. The server takes that for a connection of the stranger's."""
    party.meet()
    if party.calls:
        guid = int((_DEVICE / "node_guid").read_text().replace(":", ""), 16)
        port = FIRST_PORT + party.number
        injector.send(malformed.request(own, peer, port, party.number, local_ca_guid=guid, qpn=party.calling_qp))
    else:
        party.expect(Event.CONNECT_REQUEST)
    party.meet()


def _stays(party, injector, own, peer):
    """A stranger says that the caller's queue pair is his now: the server ends no connection for that."""
    _claim(party, injector, own, peer)
    party.expect_nothing_more()
    # Nobody goes on, and disconnects, before both have looked.
    party.meet()


def _connection(party, injector, own, peer):
    connection = _unmoved(party, injector, Space.TCP, "REQ", _answers, 3)
    if party.calls:
        party.expect(Event.CONNECT_RESPONSE)
        connection.establish()
    else:
        party.expect(Event.ESTABLISHED)
    _stays(party, injector, own, peer)
    if party.calls:
        connection.disconnect()
    party.expect(Event.DISCONNECTED)
    if not party.calls:
        connection.disconnect()
    party.close()


def _claimed(party, injector, own, peer):
    """A stranger has been faster: the caller has its connection all the same."""
    party.listen()
    _claim(party, injector, own, peer)
    if party.calls:
        connection = party.ask()
        party.expect(Event.CONNECT_RESPONSE)
        connection.establish()
    else:
        party.grant(party.expect(Event.CONNECT_REQUEST))
        party.expect(Event.ESTABLISHED)
    party.meet()
    party.expect_nothing_more()
    party.meet()
    party.close()


def _repeated(party, from_own, from_stranger, own, stranger, peer):
    """A stranger repeats a REQ: that is a request of the stranger's, and no answer to the first one tells our name."""
    party.listen()
    guid = int((_DEVICE / "node_guid").read_text().replace(":", ""), 16)
    port, before = FIRST_PORT + party.number, _duplicates()
    for injector, source in ((from_own, own), (from_stranger, stranger)):
        if party.calls:
            injector.send(malformed.request(source, peer, port, party.number, local_ca_guid=guid, qpn=party.calling_qp))
        else:
            party.expect(Event.CONNECT_REQUEST)
        party.meet()
    if party.calls:
        from_own.send(malformed.request(own, peer, port, party.number, local_ca_guid=guid, qpn=party.calling_qp))
    else:
        _wait_for_duplicate(before)
        party.expect_nothing_more()
    party.close()


def _service(party, injector):
    _unmoved(party, injector, Space.UDP, "SIDR_REQ", _resolution, 1)
    if party.calls:
        party.expect(Event.ESTABLISHED)
    party.close()


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("call", "serve"))
    parser.add_argument("own")
    parser.add_argument("peer")
    parser.add_argument("stranger")
    options = parser.parse_args()
    own, peer, calls = options.own, options.peer, options.what == "call"
    injector = malformed.injector(options.stranger, peer)
    line = control(not calls, own, peer)
    _connection(Party(line, own, peer, "connection", 0, calls), injector, options.stranger, peer)
    _service(Party(line, own, peer, "service", 1, calls), injector)
    _claimed(Party(line, own, peer, "claimed", 2, calls), injector, options.stranger, peer)
    repeated = Party(line, own, peer, "repeated", 3, calls)
    _repeated(repeated, malformed.injector(own, peer), injector, own, options.stranger, peer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
