#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Send packets of one kind to a port at a steady rate, until a signal ends it.

flood.py KIND RATE OWN PEER

KIND is one of those that `flood.py kinds` prints, RATE packets in a second. OWN is LID,GUID,IPv4 of the
sender, PEER is LID,GUID,IPv4,IPv6,QPN,PORT of the receiver: the QPN is that of its interface, the PORT
one of TCP and of UDP on which it serves rdma_cm. The packets go by the cable port1, past the sender's HCA,
and each names another connection, or another neighbour. Prints how many were sent in how many seconds.
"""

import ipaddress
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import malformed
import message
import packets

_CABLE = "port1"
_LINK_LOCAL = 0xFE80 << 112
# A GUID that no port has, and a multiplier that spreads numbers over 32 bits.
_NOBODY, _SPREAD = 0x0BAD_BEEF_0000_0000, 2654435761
_ACCESS_LAYER, _TCP, _UDP = 0x1000_0000_0000_0000, 0x0106_0000, 0x0111_0000
_TIMEOUT, _INVALID_SERVICE = 4, 8
_RC_PAYLOAD = 65524
_SIDR_DATA, _REQ_DATA = 216, 92
_QKEY = 0x0B1B
_ARP, _IPV6, _HARDWARE, _IPV4 = 0x0806, 0x86DD, 32, 0x0800
_REQUEST, _REPLY = 1, 2
_ICMPV6, _SOLICITATION, _SOURCE_OPTION = 58, 135, 1
# Class and method: subnet administration, performance, baseboard and device management, SNMP, vendors.
_OTHER_CLASSES = ((3, 1), (3, 0x81), (4, 1), (4, 0x81), (5, 1), (6, 1), (8, 1), (9, 1), (0x30, 1))
# Seconds between turns, and the most that is caught up with at once.
_TURN, _LATE = 0.002, 0.1


@dataclass
class _End:
    lid: int
    guid: int
    ipv4: str
    ipv6: str = "::"
    qpn: int = 0
    port: int = 0

    @classmethod
    def of(cls, text):
        """The end that an argument describes."""
        lid, guid, ipv4, *rest = text.split(",")
        ipv6, qpn, port = rest or ("::", "0", "0")
        return cls(int(lid, 0), int(guid, 0), ipv4, ipv6, int(qpn, 0), int(port))


class _Stranger:
    """Makes the packets, each out of its number."""

    def __init__(self, own, peer):
        self._own, self._peer = own, peer
        self.kinds = {
            "REQ": self._req,
            "REP": self._rep,
            "REJ": self._rej,
            "SIDR_REQ": self._sidr_req,
            "ARP-request": lambda number: self._arp(number, _REQUEST),
            "ARP-reply": lambda number: self._arp(number, _REPLY),
            "ND": self._solicitation,
            "other-classes": self._other,
            "connected-REQ": self._connected,
        }

    @cached_property
    def _hello(self):
        """The private data that rdma_cm expects."""
        request = malformed.request(self._own.ipv4, self._peer.ipv4, 0, 0)
        return message.parse(request, "", "", {}).fields["data"]

    def _mad(self, mad):
        return packets.gmp(self._peer.lid, self._own.lid, mad)

    def _request(self, number, **changes):
        own, peer = self._own, self._peer
        path = {
            "primary_local_lid": own.lid,
            "primary_remote_lid": peer.lid,
            "primary_local_gid": _LINK_LOCAL | own.guid,
            "primary_remote_gid": _LINK_LOCAL | peer.guid,
            "primary_hop_limit": 0,
            "primary_subnet_local": 1,
            "local_ca_guid": own.guid,
        }
        return self._mad(malformed.request(own.ipv4, peer.ipv4, peer.port, number, **path, **changes))

    def _req(self, number):
        return self._request(number)

    def _connected(self, number):
        """RFC 4755: the service ID has the queue pair of the interface, the private data the sender's and its MTU."""
        data = struct.pack(">II", 0x300000 + number, _RC_PAYLOAD).ljust(_REQ_DATA, b"\0")
        return self._request(number, service_id=_ACCESS_LAYER | self._peer.qpn, data=int.from_bytes(data), srq=1)

    def _rep(self, number):
        names = {"local_comm_id": number, "remote_comm_id": number * _SPREAD}
        return self._mad(message.build("REP", tid=number, qpn=number, local_ca_guid=self._own.guid, **names))

    def _rej(self, number):
        """Every other one is that of a sender who has waited too long."""
        if number % 2:
            rest = {"remote_comm_id": number * _SPREAD, "reason": _INVALID_SERVICE}
        else:
            guid = self._own.guid << 8 * (72 - 8)
            rest = {"reason": _TIMEOUT, "information_length": 8, "information": guid}
        return self._mad(message.build("REJ", tid=number, local_comm_id=number, **rest))

    def _sidr_req(self, number):
        data = self._hello << 8 * (_SIDR_DATA - _REQ_DATA)
        service = _UDP | self._peer.port
        return self._mad(message.build("SIDR_REQ", tid=number, request_id=number, pkey=0xFFFF, service_id=service, data=data))

    def _other(self, number):
        management_class, method = _OTHER_CLASSES[number % len(_OTHER_CLASSES)]
        return self._mad(packets.mad(management_class, method=method, attribute=1))

    def _datagram(self, ethertype, payload):
        """A packet of IP over InfiniBand."""
        payload = struct.pack(">HH", ethertype, 0) + payload
        pad = -len(payload) % 4
        transport = packets.bth(packets.UD_SEND_ONLY, self._peer.qpn, pad=pad) + packets.deth(_QKEY, 0x99)
        return packets.whole(self._peer.lid, self._own.lid, transport + payload + bytes(pad))

    @staticmethod
    def _invented(number):
        """A hardware address, of a GID that no port has."""
        return struct.pack(">I", 0x99) + (_LINK_LOCAL | _NOBODY | number).to_bytes(16)

    def _arp(self, number, operation):
        peer = ipaddress.IPv4Address(self._peer.ipv4)
        sender = (int(peer) & 0xFFFF0000 | 0x8000 | number & 0x7FFF).to_bytes(4)
        head = struct.pack(">HHBBH", _HARDWARE, _IPV4, 20, 4, operation)
        return self._datagram(_ARP, head + self._invented(number) + sender + bytes(20) + peer.packed)

    def _solicitation(self, number):
        """RFC 4861 4.3, with the sender's address (RFC 4391 9.3)."""
        target = ipaddress.IPv6Address(self._peer.ipv6)
        source = (int(target) >> 64 << 64 | _NOBODY | number).to_bytes(16)
        option = struct.pack(">BBH", _SOURCE_OPTION, 3, 0) + self._invented(number)
        body = bytes(4) + target.packed + option
        pseudo = source + target.packed + struct.pack(">II", 4 + len(body), _ICMPV6)
        words = struct.unpack(f">{(40 + 4 + len(body)) // 2}H", pseudo + struct.pack(">BBH", _SOLICITATION, 0, 0) + body)
        total = sum(words)
        total = (total & 0xFFFF) + (total >> 16)
        check = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
        icmp = struct.pack(">BBH", _SOLICITATION, 0, check) + body
        head = struct.pack(">IHBB", 6 << 28, len(icmp), _ICMPV6, 255) + source + target.packed
        return self._datagram(_IPV6, head + icmp)


def _flood(make, rate):
    """Send until a signal comes. The packets and the seconds."""
    stop = []
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.append(True))
    # Numbers that no earlier flood had.
    first = int(time.time()) % 4096 << 20
    sent = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as cable:
        cable.bind((_CABLE, 0))
        began = due_since = time.monotonic()
        due = 0
        while not stop:
            now = time.monotonic()
            due += min(now - due_since, _LATE) * rate
            due_since = now
            while due >= 1:
                due -= 1
                # A cable that is full loses it.
                with suppress(OSError):
                    cable.send(packets.ethernet(make(first + sent & 0x7FFFFF)))
                    sent += 1
            time.sleep(_TURN)
        return sent, time.monotonic() - began


def main():
    """Do what the command line says."""
    if sys.argv[1:] == ["kinds"]:
        print(*_Stranger(None, None).kinds)
        return
    kind, rate, own, peer = sys.argv[1:]
    stranger = _Stranger(_End.of(own), _End.of(peer))
    sent, seconds = _flood(stranger.kinds[kind], int(rate))
    print(f"{sent} {seconds:.1f}")


if __name__ == "__main__":
    main()
