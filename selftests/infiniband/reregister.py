#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Ask a port to have its clients register again (IBTA 14.2.5.6, ClientReregister), as a subnet manager that comes does.

reregister.py DEVICE LID    DEVICE is ib_umad's of the port that asks, LID the other's
"""

import fcntl
import struct
import sys

# struct ib_user_mad_hdr and struct ib_user_mad_reg_req2 of the kernel.
_HEADER = struct.Struct("=IIIII4s4s2sBBBBBB16s4sH6x")
_REQUEST = struct.Struct("=IIBB2xI16sIB3x")
_REGISTER_AGENT = 3 << 30 | _REQUEST.size << 16 | 0x1B << 8 | 4
_CLASS, _VERSION = 0x01, 1
_GET, _SET = 1, 2
_PORT_INFO = 0x15
# A MAD, with the attribute of an SMP (14.2.1.1).
_SMP = struct.Struct(">BBBBHHQHHIQ32x64s128x")
# In PortInfo: the states, of which 0 is no change, and the bit.
_STATES, _REREGISTER = (32, 33), 51


def main():
    """Read what the port has, and set that with the bit."""
    device, lid = sys.argv[1], int(sys.argv[2])
    with open(device, "r+b", buffering=0) as file:
        agent = _REQUEST.unpack(fcntl.ioctl(file, _REGISTER_AGENT, _REQUEST.pack(0, 0, _CLASS, _VERSION, 0, bytes(16), 0, 0)))[0]
        info = bytearray(64)
        for method in (_GET, _SET):
            header = _HEADER.pack(agent, 0, 2000, 5, 0, bytes(4), bytes(4), struct.pack(">H", lid), 0, 0, 0, 0, 0, 0, bytes(16),
                                  bytes(4), 0)
            file.write(header + _SMP.pack(1, _CLASS, _VERSION, method, 0, 0, method, _PORT_INFO, 0, 1, 0, bytes(info)))
            answer = file.read(_HEADER.size + _SMP.size)
            fields = _SMP.unpack(answer[_HEADER.size :])
            if _HEADER.unpack(answer[: _HEADER.size])[1] or fields[4]:
                sys.exit("the port does not answer, or refuses")
            info = bytearray(fields[-1])
            info[_STATES[0]] &= 0xF0
            info[_STATES[1]] &= 0x0F
            info[_REREGISTER] |= 0x80


if __name__ == "__main__":
    main()
