#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Say what no neighbour says: answers of ARP and of neighbour discovery with addresses that are none.

neighbour.py INTERFACE DLID SLID QPN KIND IPV4 IPV6 PEER_IPV4 PEER_IPV6 ADDRESS

They go by the cable of INTERFACE to a queue pair of IP over InfiniBand, from a neighbour with those IP addresses, of which
ADDRESS is the hardware address. KIND: lengths, zero, group, key. It prints how many it sent.
"""

import ipaddress
import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fabric"))
import packets  # noqa: E402 # pylint: disable=wrong-import-position

_QKEY = 0x0B1B
_ARP, _IPV6 = 0x0806, 0x86DD
_HARDWARE, _IPV4, _REPLY = 32, 0x0800, 2
_ICMPV6, _ADVERTISEMENT, _TARGET_OPTION = 58, 136, 2
# Router no, solicited, override.
_FLAGS = 0x60000000


def _arp(sender, sender_ip, target, target_ip, length=None):
    """A reply (RFC 826), with the addresses as they are and the length that it says."""
    head = struct.pack(">HHBBH", _HARDWARE, _IPV4, len(sender) if length is None else length, 4, _REPLY)
    return struct.pack(">HH", _ARP, 0) + head + sender + sender_ip + target + target_ip


def _checksum(data):
    words = struct.unpack(f">{len(data) // 2}H", data)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _advertisement(sender_ip, target_ip, option):
    """A neighbour advertisement (RFC 4861 4.4) with an option as it is."""
    body = struct.pack(">I", _FLAGS) + sender_ip + option
    pseudo = sender_ip + target_ip + struct.pack(">II", 4 + len(body), _ICMPV6)
    padded = struct.pack(">BBH", _ADVERTISEMENT, 0, 0) + body
    check = _checksum(pseudo + padded + bytes(len(padded) % 2))
    message = struct.pack(">BBH", _ADVERTISEMENT, 0, check) + body
    head = struct.pack(">IHBB", 6 << 28, len(message), _ICMPV6, 255) + sender_ip + target_ip
    return struct.pack(">HH", _IPV6, 0) + head + message


def _option(address, length=None):
    """The target's link-layer address (RFC 4391 9.3), with the length in 8 bytes that it says."""
    data = bytes(2) + address
    data += bytes(-(2 + len(data)) % 8)
    return struct.pack(">BB", _TARGET_OPTION, (2 + len(data)) // 8 if length is None else length) + data


def _datagrams(kind, ends, address):
    ipv4, ipv6, peer_ipv4, peer_ipv6 = ends
    if kind == "lengths":
        for length in (0, 1, 6, 16, 19, 21, 32):
            yield _arp((address * 2)[:length], ipv4, (address * 2)[:length], peer_ipv4)
        for length in (0, 6, 19, 21, 255):
            yield _arp(address, ipv4, address, peer_ipv4, length)
        whole = _arp(address, ipv4, address, peer_ipv4)
        for length in (4, 8, 12, 31, len(whole) - 1):
            yield whole[:length]
        for length in (0, 1, 2, 4, 5, 255):
            yield _advertisement(ipv6, peer_ipv6, _option(address, length))
        # Up to 12: what is a little shorter than an address has the length of one in this option.
        for length in (0, 6, 12, 30):
            yield _advertisement(ipv6, peer_ipv6, _option((address * 2)[:length]))
        whole = _advertisement(ipv6, peer_ipv6, _option(address))
        for length in (5, 43, 44, 60, 68, 70, len(whole) - 1):
            yield whole[:length]
    else:
        yield _arp(address, ipv4, address, peer_ipv4)
        yield _advertisement(ipv6, peer_ipv6, _option(address))


def _addresses(kind, address):
    """What the neighbour says to have."""
    if kind == "zero":
        return bytes(20), address[:4] + bytes(16), bytes(4) + address[4:]
    if kind == "group":
        return (bytes.fromhex("00ffffffff12401bffff000000000000ffffffff"), address[:4] + bytes.fromhex("ff15601b8123") + bytes(10),
                b"\0\xff\xff\xff" + address[4:])
    return (address,)


def main():
    """Say it all."""
    interface, dlid, slid, qpn, kind = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    ends = [ipaddress.ip_address(word).packed for word in sys.argv[6:10]]
    address = bytes.fromhex(sys.argv[10].replace(":", ""))
    pkey = 0x8123 if kind == "key" else packets.DEFAULT_PKEY
    frames = []
    for told in _addresses(kind, address):
        for datagram in _datagrams(kind, ends, told):
            pad = -len(datagram) % 4
            transport = packets.bth(packets.UD_SEND_ONLY, qpn, pkey=pkey, pad=pad)
            frames.append(packets.whole(dlid, slid, transport + packets.deth(_QKEY, 0x99) + datagram + bytes(pad)))
    print(packets.put_on_cable(interface, frames))


if __name__ == "__main__":
    main()
