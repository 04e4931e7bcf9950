#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""questions.py DEVICE LID PAUSE: ask the performance management agent (PMA) of a port for its counters until killed.

DEVICE is ib_umad's. No answer is awaited, so that the port always has a question to answer.
"""

import fcntl
import struct
import sys
import time

# IBTA 16.1: the class, its version, Get(), PortCounters.
_CLASS, _VERSION, _GET, _PORT_COUNTERS = 0x04, 1, 0x01, 0x12
_GENERAL_SERVICES = 1
_QKEY = 0x80010000
# struct ib_user_mad_hdr and struct ib_user_mad_reg_req2 of the kernel.
_HEADER = struct.Struct("=IIIII4s4s2sBBBBBB16s4sH6x")
_REQUEST = struct.Struct("=IIBB2xI16sIB3x")
_REGISTER_AGENT = 3 << 30 | _REQUEST.size << 16 | 0x1B << 8 | 4
# The header of a MAD, 40 reserved bytes, the port that is asked about, and the rest.
_MAD = struct.Struct(">BBBBHHQHHI40xBB190x")


def main():
    """Ask."""
    lid, pause = int(sys.argv[2], 0), float(sys.argv[3])
    with open(sys.argv[1], "r+b", buffering=0) as device:
        request = bytearray(_REQUEST.pack(0, _GENERAL_SERVICES, _CLASS, _VERSION, 0, bytes(16), 0, 0))
        fcntl.ioctl(device, _REGISTER_AGENT, request)
        agent = _REQUEST.unpack(request)[0]
        header = _HEADER.pack(agent, 0, 0, 0, 0, _GENERAL_SERVICES.to_bytes(4, "big"), _QKEY.to_bytes(4, "big"),
                              lid.to_bytes(2, "big"), 0, 0, 0, 0, 0, 0, bytes(16), bytes(4), 0)
        number = 0
        while True:
            number += 1
            mad = _MAD.pack(1, _CLASS, _VERSION, _GET, 0, 0, number, _PORT_COUNTERS, 0, 0, 0, 1)
            device.write(header + mad)
            time.sleep(pause)


if __name__ == "__main__":
    main()
