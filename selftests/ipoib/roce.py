#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Send datagrams of RoCE v2 that no driver would send (IBTA annex A17, and 9.2 to 9.6 for the headers).

roce.py [OPTION...] SOURCE DESTINATION QPN [HEX...]
    Send one datagram to a queue pair for each payload, given in hexadecimal. SOURCE and DESTINATION are addresses of
    the Ethernet devices, both IPv4 or both IPv6 (of the link, with %INTERFACE).
"""

import argparse
import random
import socket
import struct
import zlib

_PORT = 4791
_UD_SEND_ONLY = 0x64
_QKEY = 0x0B1B
_UDP = 17
# An IP option that says nothing, four times: the header is a word longer.
_OPTIONS = b"\x01\x01\x01\x00"
# What the packets of a port may carry: IPv4, ARP, RARP, IPv6, TIPC.
_ETHERTYPES = (0x0800, 0x0806, 0x8035, 0x86DD, 0x88CA)


def _transport(qpn, qkey, payload):
    """The base and the datagram header, and the payload padded to words."""
    pad = -len(payload) % 4
    bth = struct.pack("!BBHII", _UD_SEND_ONLY, pad << 4, 0xFFFF, qpn, 0)
    deth = struct.pack("!II", qkey, 0x00ABCD)
    return bth + deth + payload + bytes(pad)


def _with_icrc(ip, body):
    """The packet with its invariant CRC: over all of it but the fields that routers change, which count as ones.

    soft-RoCE takes the 28 bytes at the start for IP and UDP header, whether there are options or not; so do we.
    """
    ipv4 = ip[0] >> 4 == 4
    udp = struct.pack("!HHHH", 49152, _PORT, 8 + len(body) + 4, 0)
    length = (20 if ipv4 else 40) + len(udp)
    head = bytearray((ip + udp)[:length])
    if ipv4:
        head[1] = head[8] = 0xFF
        head[10:12] = b"\xff\xff"
    else:
        head[0] |= 0x0F
        head[1:4] = b"\xff\xff\xff"
        head[7] = 0xFF
    head[-2:] = b"\xff\xff"
    masked = body[:4] + b"\xff" + body[5:]
    icrc = zlib.crc32(b"\xff" * 8 + bytes(head) + masked)
    return ip + udp + body + struct.pack("<I", icrc)


def _ipv4(source, destination, options, length):
    words = 5 + len(options) // 4
    return (
        struct.pack("!BBHHHBBH", 4 << 4 | words, 0, 4 * words + length, 1, 0, 64, _UDP, 0)
        + socket.inet_aton(source)
        + socket.inet_aton(destination)
        + options
    )


def _ipv6(source, destination, length):
    ends = [socket.inet_pton(socket.AF_INET6, address.split("%")[0]) for address in (source, destination)]
    return struct.pack("!IHBB", 6 << 28, length, _UDP, 64) + b"".join(ends)


class Injector:
    """Sends packets with IP headers of our own making."""

    def __init__(self, options):
        self._options = options
        self._v6 = ":" in options.destination
        family = socket.AF_INET6 if self._v6 else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self._to = socket.getaddrinfo(options.destination, None, family, socket.SOCK_DGRAM)[0][4]

    def send(self, payload):
        """Send one datagram."""
        options = self._options
        body = _transport(options.qpn, options.qkey, payload)
        length = 8 + len(body) + 4
        if self._v6:
            ip = _ipv6(options.source, options.destination, length)
        else:
            ip = _ipv4(options.source, options.destination, _OPTIONS if options.ip_options else b"", length)
        self._socket.sendto(_with_icrc(ip, body), self._to)


def _random_payload(generator, longest):
    ethertype = generator.choice((*_ETHERTYPES, generator.randrange(1 << 16)))
    payload = struct.pack("!HH", ethertype, 0) + generator.randbytes(generator.randrange(longest))
    if generator.randrange(2) and ethertype in (0x0800, 0x86DD):
        # Half of the IP packets get at least as far as their version.
        version = 0x45 if ethertype == 0x0800 else 0x60
        payload = payload[:4] + bytes([version]) + payload[5:]
    return payload[: generator.choice((len(payload), len(payload), generator.randrange(len(payload) + 1)))]


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--qkey", type=lambda text: int(text, 0), default=_QKEY, help="default 0x0b1b")
    parser.add_argument("--ip-options", action="store_true", help="an IPv4 header with options")
    parser.add_argument("--zeros", type=int, default=0, help="that many zero bytes after each payload")
    parser.add_argument("--random", type=int, default=0, help="that many payloads at random besides")
    parser.add_argument("--longest", type=int, default=4000, help="the longest of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("source")
    parser.add_argument("destination")
    parser.add_argument("qpn", type=int)
    parser.add_argument("payloads", nargs="*", metavar="HEX")
    options = parser.parse_args()
    injector = Injector(options)
    for payload in options.payloads:
        injector.send(bytes.fromhex(payload) + bytes(options.zeros))
    generator = random.Random(options.seed)
    for _ in range(options.random):
        injector.send(_random_payload(generator, options.longest))


if __name__ == "__main__":
    main()
