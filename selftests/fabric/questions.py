#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""questions.py DEVICE LID PAUSE: ask the performance management agent (PMA) of a port for its counters until killed.

DEVICE is ib_umad's. No answer is awaited, so that the port always has a question to answer.
"""

import struct
import sys
import time

import umad
from packets import QP1_QKEY

# IBTA 16.1: the class, its version, Get(), PortCounters.
_CLASS, _VERSION, _GET, _PORT_COUNTERS = 0x04, 1, 0x01, 0x12
# The header of a MAD, 40 reserved bytes, the port that is asked about, and the rest.
_MAD = struct.Struct(">BBBBHHQHHI40xBB190x")


def main():
    """Ask."""
    port = umad.Address(int(sys.argv[2], 0), 1, QP1_QKEY)
    pause = float(sys.argv[3])
    with open(sys.argv[1], "r+b", buffering=0) as device:
        agent = umad.Agent(device, umad.GENERAL_SERVICES, _CLASS, _VERSION)
        number = 0
        while True:
            number += 1
            agent.send(_MAD.pack(1, _CLASS, _VERSION, _GET, 0, 0, number, _PORT_COUNTERS, 0, 0, 0, 1), port)
            time.sleep(pause)


if __name__ == "__main__":
    main()
