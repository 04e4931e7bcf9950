#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Listen to a conversation, and take part in it with forged packets.

sequences.py SEED SECONDS SPARED OWN HOST...    OWN is the host whose cable the packets go by; each HOST is listened to; the port
                                                with the LID SPARED gets none

Every packet of communication management, of subnet administration, of ARP and of neighbour discovery that is heard may come
back: at once, later, often, in another order, to another host, from another port, with bytes changed, cut, or with the end
of another packet. Its CRC is right. What is heard decides what is forged, and the seed how. Prints how many of each kind
were sent.
"""

import heapq
import os
import random
import select
import socket
import struct
import sys
import time
from collections import Counter
from collections import defaultdict
from collections import deque
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fabric"))
import packets  # noqa: E402 # pylint: disable=wrong-import-position

_ETHERNET, _LRH, _GRH, _BTH, _DETH, _CRC = 14, 8, 40, 12, 8, 4
_MANAGEMENT_VL = 15
_CLASSES = {0x03: "SA", 0x07: "CM"}
_ARP, _IPV6 = 0x0806, 0x86DD
_ICMPV6, _DISCOVERY = 58, range(133, 138)
# Of the header that comes first in a datagram of IP over InfiniBand, and of the one of IPv6.
_TYPE, _IPV6_HEADER = 4, 40
# Attributes of communication management (IBTA 12.6.4), and of subnet administration that these drivers ask for.
_ATTRIBUTES = {"CM": range(0x10, 0x1B), "SA": (0x02, 0x35, 0x38)}
_METHODS = {"CM": (3,), "SA": (0x01, 0x02, 0x06, 0x12, 0x15, 0x81, 0x86, 0x92, 0x95)}
# How many of each kind are remembered, and how late they may come, in seconds.
_REMEMBERED, _LATEST = 64, 4.0
# More than a subnet's ports could send would only show that a queue is full.
_A_SECOND, _TURN = 400, 0.005
_CARRIES = struct.pack(">H", packets.ETHERTYPE)


# All that goes by a cable, both ways (ETH_P_ALL); nothing.
_ALL, _NOTHING = socket.htons(3), 0


def _cable_of(host, what):
    """A socket on the cable of a host, whose network namespace has its name."""
    with open("/proc/self/ns/net", "rb") as own, open(f"/run/netns/{host}", "rb") as there:
        os.setns(there.fileno(), os.CLONE_NEWNET)
        try:
            cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, what)
            cable.bind(("port1", 0))
        finally:
            os.setns(own.fileno(), os.CLONE_NEWNET)
    return cable


class Packet:
    """A packet as it was heard, in two parts: the route headers, and the datagram from its transport header on."""

    def __init__(self, frame):
        (words,) = struct.unpack_from(">H", frame, _ETHERNET + 4)
        whole = frame[_ETHERNET : _ETHERNET + 4 * (words & 0x7FF)]
        route = _LRH + (_GRH if whole[1] & 3 == packets.GLOBAL else 0)
        self.route = bytearray(whole[:route])
        self.datagram = bytearray(whole[route:-_CRC])
        self.kind = self._kind(whole[0] >> 4)

    def _kind(self, lane):
        """SA, CM or ND; nothing of the others. A node that reaches subnet management agents needs no forged packets."""
        data = self.datagram[_BTH + _DETH :]
        if lane == _MANAGEMENT_VL or self.datagram[:1] != bytes([packets.UD_SEND_ONLY]) or len(data) < 24:
            return None
        if int.from_bytes(self.datagram[5:8]) == 1:
            return _CLASSES.get(data[1])
        (ethertype,) = struct.unpack_from(">H", data)
        place = _TYPE + _IPV6_HEADER
        if ethertype == _ARP or (ethertype == _IPV6 and len(data) > place and data[10] == _ICMPV6 and data[place] in _DISCOVERY):
            return "ND"
        return None

    def frame(self):
        """As it goes by a cable, with the length and the CRC that it has to have."""
        self.datagram += bytes(-len(self.datagram) % 4)
        length = (len(self.route) + len(self.datagram) + _CRC) // 4
        struct.pack_into(">H", self.route, 4, length)
        if len(self.route) > _LRH:
            struct.pack_into(">H", self.route, _LRH + 4, len(self.datagram) + _CRC)
        whole = bytes(self.route + self.datagram)
        return whole + packets.invariant_crc(whole)


class Forger:
    """What was heard, and what is to be sent when."""

    def __init__(self, seed):
        self._chance = random.Random(seed)
        self._heard = defaultdict(list)
        self._waiting = []
        self._number = 0

    def hear(self, frame, now):
        """Remember a packet, and decide what is made of it."""
        kind = Packet(frame).kind
        if kind is None:
            return
        heard = self._heard[kind]
        heard.append(frame)
        del heard[:-_REMEMBERED]
        for _ in range(self._chance.choice((0, 1, 1, 2, 5))):
            self._plan(self._chance.choice(heard[-8:]), kind, now)
        if self._chance.randrange(4) == 0:
            self._plan(self._chance.choice(heard), kind, now)

    def _plan(self, frame, kind, now):
        delay = self._chance.choice((0, 0, 0.001, 0.02, 0.2, _LATEST)) * self._chance.random()
        packet = Packet(frame)
        for _ in range(self._chance.choice((0, 1, 1, 2, 3))):
            self._chance.choice((self._bytes, self._bytes, self._cut, self._other_end, self._elsewhere, self._header))(packet, kind)
        self._number += 1
        heapq.heappush(self._waiting, (now + delay, self._number, kind, packet.frame()))

    def due(self, now):
        """The next packet whose time has come, with its kind."""
        if self._waiting and self._waiting[0][0] <= now:
            return heapq.heappop(self._waiting)[2:]
        return None, None

    def _bytes(self, packet, _kind):
        """Some bytes of the datagram are others."""
        first = _BTH + _DETH
        for _ in range(self._chance.choice((1, 1, 2, 4, 16))):
            if first < len(packet.datagram):
                place = self._chance.randrange(first, len(packet.datagram))
                packet.datagram[place] = self._chance.choice((0, 1, 0x7F, 0x80, 0xFF, packet.datagram[place] ^ 1, self._chance.randrange(256)))

    def _cut(self, packet, _kind):
        """It is shorter, or longer."""
        if self._chance.randrange(3):
            del packet.datagram[self._chance.randrange(_BTH + _DETH, len(packet.datagram) + 1) :]
        else:
            packet.datagram += self._chance.randbytes(self._chance.choice((1, 4, 40, 400)))

    def _other_end(self, packet, kind):
        """From somewhere on it is another one of its kind."""
        other = Packet(self._chance.choice(self._heard[kind])).datagram
        place = self._chance.randrange(_BTH + _DETH, max(_BTH + _DETH + 1, min(len(other), len(packet.datagram))))
        packet.datagram[place:] = other[place:]

    def _elsewhere(self, packet, kind):
        """To another port, or from another one, or both the other way."""
        other = Packet(self._chance.choice(self._heard[kind])).route
        way = self._chance.randrange(4)
        if way == 0:
            packet.route[2:4] = other[2:4]
        elif way == 1:
            packet.route[6:8] = other[6:8]
        elif way == 2:
            packet.route[2:4], packet.route[6:8] = packet.route[6:8], packet.route[2:4]
        elif len(packet.route) > _LRH:
            packet.route[_LRH + 8 + self._chance.randrange(32)] ^= 1 << self._chance.randrange(8)

    def _header(self, packet, kind):
        """It is another message with the same content."""
        if kind in _ATTRIBUTES and len(packet.datagram) >= _BTH + _DETH + 24:
            start = _BTH + _DETH
            if self._chance.randrange(2):
                packet.datagram[start + 3] = self._chance.choice(_METHODS[kind])
            else:
                struct.pack_into(">H", packet.datagram, start + 16, self._chance.choice(_ATTRIBUTES[kind]))


class Part:
    """The part that it takes: what it hears by some cables, and sends by one."""

    def __init__(self, forger, hosts, own, spared):
        self._forger = forger
        self._cables = [_cable_of(host, _ALL) for host in hosts]
        self._own = _cable_of(own, _NOTHING)
        self._spared = struct.pack(">H", spared)
        # What was sent comes back from the hosts' cables, and is not to be heard.
        self._lately = deque(maxlen=_A_SECOND)
        self._turns = 0
        self.sent = Counter()

    def take(self, seconds):
        """Listen and send for so long."""
        began = time.monotonic()
        deadline = began + seconds
        while (now := time.monotonic()) < deadline:
            self._listen(now)
            # Not more than was due by now.
            while self._turns < (now - began) * _A_SECOND:
                self._turns += 1
                self._send(now)

    def _listen(self, now):
        ready, _, _ = select.select(self._cables, [], [], _TURN)
        for cable in ready:
            frame = cable.recv(65536)
            if frame[12:14] == _CARRIES and frame not in self._lately:
                self._forger.hear(frame, now)

    def _send(self, now):
        kind, packet = self._forger.due(now)
        if packet and packet[2:4] != self._spared:
            frame = packets.ethernet(packet)
            self._lately.append(frame)
            self._own.send(frame)
            self.sent[kind] += 1


def main():
    """Do what the command line says."""
    seed, seconds, spared, own, *hosts = sys.argv[1:]
    part = Part(Forger(seed), hosts, own, int(spared, 0))
    part.take(float(seconds))
    print(" ".join(f"{kind}={part.sent[kind]}" for kind in ("CM", "SA", "ND")))


if __name__ == "__main__":
    main()
