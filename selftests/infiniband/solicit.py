# SPDX-License-Identifier: GPL-2.0-only
"""solicit.py INTERFACE ASKER TARGET: ask by neighbour discovery who has the IPv6 address TARGET, as the stack does on behalf of
ASKER, but by a packet socket: that needs no IPv6 in the kernel."""

import ipaddress
import struct
import sys

import raw_arp

_IPV6 = 0x86DD
_ICMPV6, _SOLICITATION, _HOPS = 58, 135, 255
# The link-layer address of all nodes (RFC 4391 4), in the default partition.
_ALL_NODES = bytes.fromhex("00ffffff ff12601bffff0000 0000000000000001")


def _solicitation(asker, target):
    """A neighbour solicitation (RFC 4861 4.3) without options. Its checksum is left out: only the driver reads it."""
    message = struct.pack(">BBHI", _SOLICITATION, 0, 0, 0) + target
    return struct.pack(">IHBB", 6 << 28, len(message), _ICMPV6, _HOPS) + asker + target + message


def main():
    """Send one."""
    interface, *ends = sys.argv[1:]
    packet = _solicitation(*(ipaddress.IPv6Address(end).packed for end in ends))
    raw_arp.send(interface, _ALL_NODES, packet, _IPV6)


if __name__ == "__main__":
    main()
