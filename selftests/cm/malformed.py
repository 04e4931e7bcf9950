#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Send messages of the communication manager that no peer would send.

malformed.py OWN PEER strange PORT          one of each kind that is wrong in one thing; PORT is one that a program of the
                                            peer listens on
malformed.py OWN PEER random NUMBER SEED    so many, with as much of a message in each as chance has it
malformed.py OWN PEER requests PORT NUMBER  so many requests, all in order, that nobody goes on with
malformed.py OWN PEER questions PORT NUMBER so many requests for the queue pair behind a port of UDP
malformed.py OWN PEER given-up PORT NUMBER  so many, each of which its sender rejects at once
malformed.py OWN PEER invented PORT NUMBER [TIMES]  so many, each from another address, which nobody has; TIMES each, or once
malformed.py OWN PEER laps NUMBER           so many alternate paths, of connections that are not there
malformed.py OWN PEER greedy PORT NUMBER FIRST  so many, numbered from there on, whose sender asks for the longest time to answer

OWN and PEER are the IPv4 addresses of the Ethernet devices. A PORT that is too large for one is a service ID. Prints how many
were sent.
"""

import argparse
import ipaddress
import random
import sys

import message
from roce import Injector

_KINDS = ("REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR")
_GSI = 1
_GSI_KEY = 0x80010000
_GUID = 0x0200_0000_0000_0001
_TIMEOUT = 4
_UDP_SPACE = 0x0111
# Bytes of private data of a SIDR_REQ.
_SIDR_DATA = 216
_UNKNOWN_SERVICE = 0x0123456789ABCDEF
# The first of the addresses that nobody has.
_NOBODY = ipaddress.IPv4Address("10.78.1.1")
# As many questions for a service that nobody has come from one sender.
_RESOLUTIONS = 200


def _gid(address):
    return 0xFFFF << 32 | int(ipaddress.IPv4Address(address))


def _service(port, space=0x0106):
    """The service ID that rdma_cm makes of a port, of TCP unless another space is named; what is too large for a port is one."""
    return port if port > 0xFFFF else space << 16 | port


def _hello(own, peer, length=92):
    """What rdma_cm expects first in the private data of a REQ: a version, IPv4, ports, addresses."""
    head = bytes([0, 4 << 4]) + (1).to_bytes(2)
    ends = (bytes(12) + ipaddress.IPv4Address(address).packed for address in (own, peer))
    return int.from_bytes((head + b"".join(ends)).ljust(length, b"\0"))


def request(own, peer, port, number, **changes):
    """A REQ as it should be, but for the changes."""
    fields = {
        "tid": 0xABCD0000 + number,
        "local_comm_id": 0x51000000 + number,
        "service_id": _service(port),
        "local_ca_guid": _GUID,
        "qpn": 0x300000 + number,
        "psn": 77,
        "responder_resources": 1,
        "initiator_depth": 1,
        "remote_response_timeout": 20,
        "local_response_timeout": 20,
        "retries": 5,
        "pkey": 0xFFFF,
        "mtu": 5,
        "max_cm_retries": 3,
        "primary_local_lid": 0xFFFF,
        "primary_remote_lid": 0xFFFF,
        "primary_local_gid": _gid(own),
        "primary_remote_gid": _gid(peer),
        "primary_hop_limit": 64,
        "primary_ack_timeout": 17,
        "data": _hello(own, peer),
    }
    return message.build("REQ", **{**fields, **changes})


def _strange_headers(own, peer, port):
    for name, values in (
        ("base_version", (0, 2, 0x80)),
        ("class_version", (0, 1, 3, 255)),
        ("method", (1, 2, 0x81, 0xFF)),
        ("status", (0xFFFF,)),
        ("modifier", (0xFFFFFFFF,)),
        # Other classes: subnet administration, performance, baseboard and device management, SNMP, vendors.
        ("class", (3, 4, 5, 6, 8, 9, 0x30, 0xFF)),
        ("attribute", (0, 0x0F, 0x1B, 0xFFFF)),
    ):
        for value in values:
            yield request(own, peer, port, 1, **{name: value})


def _strange_requests(own, peer, port):
    elsewhere = _gid("192.0.2.1")
    for changes in (
        {"service_id": _UNKNOWN_SERVICE},
        {"service_id": 0},
        {"local_comm_id": 0},
        {"qpn": 0},
        {"qpn": 1},
        {"qpn": 0xFFFFFF},
        {"transport": 1},
        {"transport": 2},
        {"transport": 3},
        {"transport": 3, "extended_transport": 7},
        {"rdc_exists": 1, "local_eecn": 5, "remote_eecn": 6},
        {"pkey": 0},
        {"pkey": 0x1234},
        {"mtu": 0},
        {"mtu": 15},
        {"primary_local_gid": elsewhere},
        {"primary_remote_gid": elsewhere},
        {"primary_local_gid": 0, "primary_remote_gid": 0},
        {"primary_remote_gid": (1 << 128) - 1},
        {"primary_hop_limit": 0},
        {"primary_hop_limit": 1, "primary_subnet_local": 1},
        {"primary_local_lid": 0, "primary_remote_lid": 0},
        {"alternate_local_gid": elsewhere, "alternate_remote_gid": elsewhere, "alternate_local_lid": 3},
        {"alternate_local_gid": _gid(own), "alternate_remote_gid": _gid(peer), "alternate_remote_lid": 0xFFFF},
        {"local_response_timeout": 31, "remote_response_timeout": 31, "primary_ack_timeout": 31},
        {"local_response_timeout": 0, "remote_response_timeout": 0, "max_cm_retries": 0},
        {"data": 0},
        {"data": (1 << 736) - 1},
        {"vendor": 0xFFFFFF, "modifier": 0xFFFFFFFF},
    ):
        yield request(own, peer, port, 2, **changes)


def _strangers():
    """Messages of connections that are not there, and with every bit set."""
    for kind in _KINDS:
        ids = {"request_id": 0x51} if kind.startswith("SIDR") else {"local_comm_id": 0x51}
        yield message.build(kind, **ids)
        if kind not in ("REQ", "SIDR_REQ", "SIDR_REP"):
            yield message.build(kind, remote_comm_id=0x52, **ids)
        yield message.build(kind)[: 24] + b"\xff" * (message.MAD_LENGTH - 24)
    yield message.build("REJ", local_comm_id=0x51, reason=4, information_length=8, information=1 << 575)
    yield message.build("REJ", local_comm_id=0x51, rejects=3, information_length=127, reason=0xFFFF)
    yield message.build("SIDR_REQ", request_id=0x51, service_id=_UNKNOWN_SERVICE, pkey=0xFFFF)
    yield message.build("SIDR_REQ", request_id=0x52, service_id=_service(0), pkey=0x1234)
    for turn in range(_RESOLUTIONS):
        yield message.build("SIDR_REQ", tid=turn, request_id=0x100 + turn, service_id=_UNKNOWN_SERVICE, pkey=0xFFFF)


def _strange(own, peer, port):
    yield from _strange_headers(own, peer, port)
    yield from _strange_requests(own, peer, port)
    yield from _strangers()


def _random(own, peer, number, seed):
    """Half of them all chance behind the header, half requests of which some bytes are."""
    chance = random.Random(seed)
    for _ in range(number):
        if chance.randrange(2):
            yield message.build(chance.choice(_KINDS))[: 24] + chance.randbytes(message.MAD_LENGTH - 24)
            continue
        mad = bytearray(request(own, peer, chance.randrange(1 << 16), chance.randrange(1 << 16)))
        for _ in range(chance.randrange(1, 20)):
            mad[chance.randrange(4, len(mad))] = chance.randrange(256)
        yield bytes(mad)


def _given_up(own, peer, port, number):
    for turn in range(0x1000, 0x1000 + number):
        yield request(own, peer, port, turn)
        yield message.build(
            "REJ",
            local_comm_id=0x51000000 + turn,
            reason=_TIMEOUT,
            information_length=8,
            information=_GUID << 8 * (72 - 8),
        )


def _questions(own, peer, port, number):
    for turn in range(number):
        yield message.build(
            "SIDR_REQ",
            tid=0xABCE0000 + turn,
            request_id=0x61000000 + turn,
            pkey=0xFFFF,
            service_id=_service(port, _UDP_SPACE),
            data=_hello(own, peer, _SIDR_DATA),
        )


def _laps(number):
    return (message.build("LAP", local_comm_id=0x51, remote_comm_id=0x1000 + turn) for turn in range(number))


def _greedy(own, peer, port, number, first):
    longest = {"local_response_timeout": 31, "max_cm_retries": 15}
    return (request(own, peer, port, first + turn, **longest) for turn in range(number))


def _send_invented(peer, port, number, times=1):
    for turn in range(number):
        nobody = str(ipaddress.IPv4Address(_NOBODY + turn))
        to_peer = injector(nobody, peer)
        for _ in range(times):
            to_peer.send(request(nobody, peer, port, 0x2000 + turn))


def _mads(options):
    own, peer, words = options.own, options.peer, [int(word, 0) for word in options.numbers]
    if options.what == "questions":
        return _questions(own, peer, *words)
    if options.what == "laps":
        return _laps(*words)
    if options.what == "greedy":
        return _greedy(own, peer, *words)
    if options.what == "strange":
        return _strange(own, peer, words[0])
    if options.what == "random":
        return _random(own, peer, *words)
    if options.what == "given-up":
        return _given_up(own, peer, *words)
    return (request(own, peer, words[0], 0x100 + number) for number in range(words[1]))


def injector(own, peer):
    """Sends messages to the peer's connection manager, from that address."""
    way = argparse.Namespace(source=own, destination=peer, qpn=_GSI, qkey=_GSI_KEY, ip_options=False)
    return Injector(way)


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("own")
    parser.add_argument("peer")
    kinds = ("strange", "random", "requests", "questions", "given-up", "laps", "greedy", "invented")
    parser.add_argument("what", choices=kinds)
    parser.add_argument("numbers", nargs="+")
    options = parser.parse_args()
    if options.what == "invented":
        words = [int(word) for word in options.numbers]
        _send_invented(options.peer, *words)
        print(words[1])
        return 0
    to_peer = injector(options.own, options.peer)
    count = 0
    for mad in _mads(options):
        to_peer.send(mad)
        count += 1
    print(count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
