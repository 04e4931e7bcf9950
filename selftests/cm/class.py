#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""class.py DEVICE: take the management class of communication management on a port, by its device of ib_umad, until killed."""

import fcntl
import signal
import struct
import sys

# IBTA 13.4.4, 16.7: the class, its version, and the only method that its messages have, Send().
_CLASS, _VERSION, _SEND = 0x07, 2, 0x03
_GENERAL_SERVICES = 1
# struct ib_user_mad_reg_req2 of the kernel: id, qpn, class, version, flags, methods, oui, rmpp_version.
_REQUEST = struct.Struct("=IIBB2xI16sIB3x")
_REGISTER_AGENT = 3 << 30 | _REQUEST.size << 16 | 0x1B << 8 | 4


def main():
    """Take it, and wait."""
    methods = (1 << _SEND).to_bytes(16, "little")
    request = _REQUEST.pack(0, _GENERAL_SERVICES, _CLASS, _VERSION, 0, methods, 0, 0)
    with open(sys.argv[1], "r+b", buffering=0) as device:
        fcntl.ioctl(device, _REGISTER_AGENT, request)
        print("taken", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
