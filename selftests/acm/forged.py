#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Ask a port for the queue pair of one of its addresses, and say to be somebody else.

forged.py CABLE DLID SLID ASKED ADDRESS GID QPN [HOW]    HOW: what else is wrong: version, family, short, qpn, gid;
                                                         outside=PKEY (it names that partition, and its packet is not in it).
                                                         inside=PKEY: its packet is in it, too. header=GID,GID: it has a
                                                         global route header, from that GID to that one. many: 200 requests,
                                                         each from a GID and an address of its own, by and by
"""

import ipaddress
import struct
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fabric"))
import packets  # noqa: E402 # pylint: disable=wrong-import-position

_CM, _SIDR_REQ, _SEND = 0x07, 0x17, 3
_SERVICE = 0x106F786962000001
_MANY = 200


def _bytes_of(address):
    address = ipaddress.ip_address(address)
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def _question(asked, address, gid, qpn, how="", pkey=packets.DEFAULT_PKEY):
    family = 4 if ipaddress.ip_address(asked).version == 4 else 6
    version = 9 if how == "version" else 1
    family = 7 if how == "family" else family
    qpn = 1 if how == "qpn" else qpn
    gid = b"\xff" + bytes(15) if how == "gid" else ipaddress.IPv6Address(gid).packed
    data = struct.pack(">BBHI", version, family, pkey, qpn) + _bytes_of(address) + gid + _bytes_of(asked)
    return data[:20] if how == "short" else data


def _request(data, number, pkey=packets.DEFAULT_PKEY):
    body = struct.pack(">IHHQ", number, pkey, 0, _SERVICE) + data
    return packets.mad(_CM, version=2, method=_SEND, attribute=_SIDR_REQ, rest=body)


def _send_many(cable, dlid, slid, asked, address, gid, qpn):
    for number in range(_MANY):
        other, port = ipaddress.ip_address(address) + number, ipaddress.IPv6Address(gid) + number
        datagram = _request(_question(asked, str(other), str(port), qpn), 0x22220000 + number)
        packets.put_on_cable(cable, [packets.gmp(dlid, slid, datagram)])
        # The one before has been answered.
        time.sleep(0.02)


def main():
    """Send it."""
    cable, dlid, slid, asked, address, gid, qpn, *how = sys.argv[1:]
    how = how[0] if how else ""
    dlid, slid, qpn = int(dlid, 0), int(slid, 0), int(qpn, 0)
    if how == "many":
        _send_many(cable, dlid, slid, asked, address, gid, qpn)
        return
    how, _, value = how.partition("=")
    pkey = int(value, 0) if how in ("inside", "outside") else packets.DEFAULT_PKEY
    datagram = _request(_question(asked, address, gid, qpn, how, pkey), 0x12345678, pkey)
    if how == "header":
        rest = packets.bth(packets.UD_SEND_ONLY, 1) + packets.deth() + datagram
        sgid, dgid = (ipaddress.IPv6Address(end).packed for end in value.split(","))
        header = packets.grh(len(rest) + 4, sgid=sgid, dgid=dgid)
        frame = packets.whole(dlid, slid, header + rest, lnh=packets.GLOBAL)
    else:
        own = packets.DEFAULT_PKEY if how == "outside" else pkey
        frame = packets.gmp(dlid, slid, datagram, pkey=own)
    packets.put_on_cable(cable, [frame])


if __name__ == "__main__":
    main()
