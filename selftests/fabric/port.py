#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Set a port as a subnet manager does, by the subnet management agent (SMA) of the port itself.

port.py DEVICE PORT disable|enable         its link. `ibportstate` does this, but opens no port whose link is disabled
port.py DEVICE PORT reset                  its link: disables and enables it at once
port.py DEVICE PORT disable|enable LID     that of the port with that LID, which is number PORT of its node
port.py DEVICE PORT LID                    its LID

DEVICE is ib_umad's of the port, or of the one that asks.
"""

import struct
import sys

import umad

# IBTA 14.2: the classes of routes by LID and of directed ones, their version; Get(), Set(), PortInfo.
_BY_LID, _DIRECTED, _VERSION = 0x01, 0x81, 1
_GET, _SET, _PORT_INFO = 0x01, 0x02, 0x0015
_TIMEOUT_MS, _RETRIES = 2000, 5
# A MAD of these classes: the header with the hop pointer and the hops, M_Key, both LIDs of the route, PortInfo, both paths.
_MAD = struct.Struct(">BBBBHBBQHHI8xHH28x64s64x64x")
# In PortInfo (14.2.5.6): the LID, the port's state in the low four bits of a byte, the link's in the high four of the next.
_LID, _PORT_STATE, _LINK_STATE = 16, 32, 33
_LINK_STATES = {"disable": 3, "enable": 2}


class Port:
    """A port whose agent is asked: by its LID, or the one of the device itself over no cable."""

    def __init__(self, device, number, lid=umad.PERMISSIVE_LID):
        self._number, self._to = number, umad.Address(lid)
        self._class = _DIRECTED if lid == umad.PERMISSIVE_LID else _BY_LID
        self._agent = umad.Agent(device, umad.SUBNET_MANAGEMENT, self._class, _VERSION)

    def _ask(self, method, information):
        end = umad.PERMISSIVE_LID if self._class == _DIRECTED else 0
        mad = _MAD.pack(1, self._class, _VERSION, method, 0, 0, 0, method, _PORT_INFO, 0, self._number, end, end, information)
        return _MAD.unpack(self._agent.ask(mad, self._to, _TIMEOUT_MS, _RETRIES))[-1]

    def read(self):
        """Its PortInfo, so that setting this changes the state neither of the port nor of its link."""
        information = bytearray(self._ask(_GET, bytes(64)))
        information[_PORT_STATE] &= 0xF0
        information[_LINK_STATE] &= 0x0F
        return information

    def write(self, information):
        """Set its PortInfo."""
        self._ask(_SET, bytes(information))


def main():
    """Set it."""
    what, lid = sys.argv[3], int((sys.argv[4:] or [umad.PERMISSIVE_LID])[0])
    with open(sys.argv[1], "r+b", buffering=0) as device:
        port = Port(device, int(sys.argv[2]), lid)
        information = port.read()
        for step in ("disable", "enable") if what == "reset" else (what,):
            if step in _LINK_STATES:
                information[_LINK_STATE] = information[_LINK_STATE] & 0x0F | _LINK_STATES[step] << 4
            else:
                information[_LID : _LID + 2] = int(step).to_bytes(2, "big")
            port.write(information)


if __name__ == "__main__":
    main()
