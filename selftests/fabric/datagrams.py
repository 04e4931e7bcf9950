#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Put datagrams for QP 1 on a cable, of any partition.

datagrams.py INTERFACE DLID SLID PKEY COUNT    to the port with that LID, as if from the port SLID
"""

import sys

import packets

_PERFORMANCE = 0x04


def main():
    """Send them."""
    interface, dlid, slid, pkey, count = sys.argv[1], *(int(word, 0) for word in sys.argv[2:])
    datagram = packets.gmp(dlid, slid, packets.mad(_PERFORMANCE), pkey=pkey)
    packets.put_on_cable(interface, [datagram] * count)


if __name__ == "__main__":
    main()
