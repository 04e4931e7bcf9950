#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Set a port as a subnet manager does, by the subnet management agent (SMA) of the port itself.

port.py DEVICE PORT disable|enable    its link. `ibportstate` does this, but opens no port whose link is disabled
port.py DEVICE PORT LID               its LID

DEVICE is ib_umad's of the port.
"""

import fcntl
import struct
import sys

# IBTA 14.2: the class of directed routes, its version; Get(), Set(), PortInfo.
_CLASS, _VERSION, _GET, _SET, _PORT_INFO = 0x81, 1, 0x01, 0x02, 0x0015
_SUBNET_MANAGEMENT = 0
_PERMISSIVE_LID = 0xFFFF
_PATIENCE_MS = 1000
# struct ib_user_mad_hdr and struct ib_user_mad_reg_req2 of the kernel.
_HEADER = struct.Struct("=IIIII4s4s2sBBBBBB16s4sH6x")
_REQUEST = struct.Struct("=IIBB2xI16sIB3x")
_REGISTER_AGENT = 3 << 30 | _REQUEST.size << 16 | 0x1B << 8 | 4
# Of a MAD of that class: the header with the hop pointer and the hops, M_Key, both LIDs of the route, PortInfo, both paths.
_MAD = struct.Struct(">BBBBHBBQHHI8xHH28x64s64x64x")
# In PortInfo (14.2.5.6): the LID, the port's state in the low four bits of a byte, the link's in the high four of the next.
_LID, _PORT_STATE, _LINK_STATE = 16, 32, 33
_LINK_STATES = {"disable": 3, "enable": 2}


class Port:
    """A port whose agent is asked over no cable."""

    def __init__(self, device, number):
        self.device, self.number = device, number
        request = bytearray(_REQUEST.pack(0, _SUBNET_MANAGEMENT, _CLASS, _VERSION, 0, bytes(16), 0, 0))
        fcntl.ioctl(device, _REGISTER_AGENT, request)
        self.agent = _REQUEST.unpack(request)[0]

    def ask(self, method, information=bytes(64)):
        """Have that done with PortInfo; what it is then."""
        lid = _PERMISSIVE_LID.to_bytes(2, "big")
        header = _HEADER.pack(self.agent, 0, _PATIENCE_MS, 3, 0, bytes(4), bytes(4), lid, 0, 0, 0, 0, 0, 0, bytes(16), bytes(4), 0)
        mad = _MAD.pack(1, _CLASS, _VERSION, method, 0, 0, 0, 1, _PORT_INFO, 0, self.number, _PERMISSIVE_LID, _PERMISSIVE_LID,
                        information)
        self.device.write(header + mad)
        answer = self.device.read(_HEADER.size + _MAD.size)
        not_sent = _HEADER.unpack(answer[: _HEADER.size])[1]
        _, _, _, _, status, *_, information = _MAD.unpack(answer[_HEADER.size:])
        # The bit above the status says that it is an answer.
        if not_sent or status & 0x7FFF:
            sys.exit(f"port {self.number}: error {not_sent}, status {status:#x}")
        return information


def main():
    """Set it."""
    with open(sys.argv[1], "r+b", buffering=0) as device:
        port = Port(device, int(sys.argv[2]))
        information = bytearray(port.ask(_GET))
        # No change of the port's state.
        information[_PORT_STATE] &= 0xF0
        # Of the link's state neither, unless that is wished for.
        link = _LINK_STATES.get(sys.argv[3], 0)
        information[_LINK_STATE] = link << 4 | information[_LINK_STATE] & 0x0F
        if not link:
            information[_LID:_LID + 2] = int(sys.argv[3]).to_bytes(2, "big")
        port.ask(_SET, bytes(information))


if __name__ == "__main__":
    main()
