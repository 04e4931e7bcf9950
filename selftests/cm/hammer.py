#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Send requests of many senders that reject them before they are answered.

hammer.py OWN PEER SERVICE NUMBER [DATA]

Sends NUMBER requests for SERVICE with DATA (hexadecimal) as their private data; without it, with what rdma_cm puts there.
Each is followed by its sender's rejection: by one in every other group of requests, by a dozen in the rest. OWN and PEER are
the IPv4 addresses of the Ethernet devices, or LID,GUID of the InfiniBand ports that eth0 joins. After each group the peer has
to reject a request for a service that nobody has: so it never has more messages than its management queue pair takes.
Prints how many requests were sent.
"""

import argparse
import socket
import sys
import time

import capture
import malformed
import message
import packets
from patience import at_least

# Requests in a group. With a dozen rejections each, and one more, they fit into a management queue pair of 512.
_GROUP = 32
_REJECTIONS = 12
# Of these the requests come first, so that rejections come while all of them are handled.
_TOGETHER = 4
_ETHERTYPE_IPV4 = 0x0800
# softib takes its frames before sockets that ask for them by their type.
_ALL_FRAMES = 0x0003
_PATIENCE = at_least(60)
# Seconds after which the peer is asked once more: the answer may be lost among many other frames.
_TURN = 0.5
_TIMEOUT = 4
_NOBODYS_SERVICE = 0x6F786962FFFFFFFF
_FIRST, _FIRST_QUESTION = 0x100000, 0x51
_GUIDS = 0x0200_0000_0100_0000
_DATA_LENGTH = 92
_LINK_LOCAL = 0xFE80 << 112
# The Ethernet header and LRH; BTH and DETH.
_BEFORE_BTH = 14 + 8
_BEFORE_MAD = _BEFORE_BTH + 12 + 8


class _Cable:
    """What is on the Ethernet device from now on."""

    def __init__(self, ethertype):
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ethertype))
        self._socket.bind(("eth0", 0))
        self._socket.settimeout(_TURN)

    def next(self):
        """The next frame, or nothing if there is none for a while."""
        try:
            return self._socket.recv(65536)
        except TimeoutError:
            return b""


class _Roce:
    """The way to a peer by RoCE v2."""

    def __init__(self, own, peer):
        self._own, self._peer = own, peer
        self._injector = malformed.injector(own, peer)
        self._cable = _Cable(_ETHERTYPE_IPV4)

    def send(self, mad):
        """Send one message."""
        self._injector.send(mad)

    def request(self, number, **changes):
        """A request as rdma_cm makes it, but for the changes."""
        return malformed.request(self._own, self._peer, 0, number, **changes)

    def receive(self):
        """The message in the next frame, if there is one."""
        return capture.of_frame(self._cable.next())


class _Infiniband:
    """The way to a peer on the same cable of softib."""

    def __init__(self, own, peer):
        self._own, self._peer = self._end(own), self._end(peer)
        self._cable = _Cable(_ALL_FRAMES)

    @staticmethod
    def _end(text):
        lid, guid = text.split(",")
        return int(lid, 0), int(guid, 0)

    def send(self, mad):
        """Send one message."""
        packets.put_on_cable("eth0", [packets.gmp(self._peer[0], self._own[0], mad)])

    def request(self, number, **changes):
        """A request of the port next to the peer's, but for the changes."""
        (slid, sguid), (dlid, dguid) = self._own, self._peer
        path = {
            "primary_local_lid": slid,
            "primary_remote_lid": dlid,
            "primary_local_gid": _LINK_LOCAL | sguid,
            "primary_remote_gid": _LINK_LOCAL | dguid,
            "primary_hop_limit": 0,
            "primary_subnet_local": 1,
        }
        return malformed.request("0.0.0.0", "0.0.0.0", 0, number, **path, **changes)

    def receive(self):
        """The message in the next frame, if there is one."""
        frame = self._cable.next()
        mad = frame[_BEFORE_MAD : _BEFORE_MAD + message.MAD_LENGTH]
        if len(mad) != message.MAD_LENGTH or frame[12:14] != packets.ETHERTYPE.to_bytes(2):
            return None
        opcode, destination = frame[_BEFORE_BTH], int.from_bytes(frame[_BEFORE_BTH + 5 : _BEFORE_BTH + 8])
        if (opcode, destination) != (packets.UD_SEND_ONLY, 1):
            return None
        return message.parse(mad, "", "", {})


def _name(mad):
    return message.parse(mad, "", "", {}).fields["local_comm_id"]


def _exchange(way, number, service, data):
    """A request, and the rejection by its sender, who has not heard of a name for it."""
    guid = _GUIDS + number
    asked = way.request(number, service_id=service, local_ca_guid=guid, **data)
    rejected = message.build(
        "REJ", local_comm_id=_name(asked), reason=_TIMEOUT, information_length=8, information=guid << 8 * (72 - 8)
    )
    return asked, rejected


def _wait(way, number):
    """Wait until the peer has taken in all that it was sent."""
    asked = way.request(number, service_id=_NOBODYS_SERVICE)
    now = time.monotonic()
    deadline, again = now + _PATIENCE, now
    while now < deadline:
        if now >= again:
            way.send(asked)
            again = now + _TURN
        found = way.receive()
        if found and found.kind == "REJ" and found.fields["remote_comm_id"] == _name(asked):
            return
        now = time.monotonic()
    raise SystemExit("the peer does not answer")


def _groups(number):
    """The numbers of the requests, in groups."""
    for first in range(0, number, _GROUP):
        yield range(_FIRST + first, _FIRST + min(first + _GROUP, number))


def _hammer(way, service, number, data):
    for turn, group in enumerate(_groups(number)):
        exchanges = [_exchange(way, each, service, data) for each in group]
        for first in range(0, len(exchanges), _TOGETHER):
            few = exchanges[first : first + _TOGETHER]
            for asked, _ in few:
                way.send(asked)
            for _ in range(_REJECTIONS if turn % 2 else 1):
                for _, rejected in few:
                    way.send(rejected)
        _wait(way, _FIRST_QUESTION + turn)


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("own")
    parser.add_argument("peer")
    parser.add_argument("service", type=lambda text: int(text, 0))
    parser.add_argument("number", type=int)
    parser.add_argument("data", nargs="?")
    options = parser.parse_args()
    way = (_Infiniband if "," in options.own else _Roce)(options.own, options.peer)
    data = {}
    if options.data is not None:
        data["data"] = int.from_bytes(bytes.fromhex(options.data).ljust(_DATA_LENGTH, b"\0"))
    _hammer(way, options.service, options.number, data)
    print(options.number)
    return 0


if __name__ == "__main__":
    sys.exit(main())
