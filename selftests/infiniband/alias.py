#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Have the subnet administrator (SA) give a port one more GUID, as a hypervisor does for a virtual function.

alias.py DEVICE SA LID GUID    DEVICE is ib_umad's of the port that asks, SA the SA's LID, LID that of the port which gets GUID
"""

import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fabric"))
import umad  # noqa: E402 # pylint: disable=wrong-import-position
from packets import QP1_QKEY  # noqa: E402 # pylint: disable=wrong-import-position

# IBTA 15.2.1: the class and its version; Set(), GUIDInfoRecord.
_CLASS, _VERSION, _SET, _GUID_INFO = 0x03, 2, 0x02, 0x30
# A MAD of that class: the header, RMPP, SM_Key, offset, component mask, and the record (15.2.5.18): LID, block, eight GUIDs.
_MAD = struct.Struct(">BBBBHHQHHI12x8xHHQHB5x8Q128x")
# In the component mask: LID, block, and the second GUID. The first is the port's own.
_MASK = 1 << 0 | 1 << 1 | 1 << 5
_TIMEOUT_MS, _RETRIES = 2000, 5


def main():
    """Ask for it, in the second place of the port's table."""
    administrator, lid, guid = (int(word, 0) for word in sys.argv[2:5])
    mad = _MAD.pack(1, _CLASS, _VERSION, _SET, 0, 0, 1, _GUID_INFO, 0, 0, 0, 0, _MASK, lid, 0, 0, guid, 0, 0, 0, 0, 0, 0)
    with open(sys.argv[1], "r+b", buffering=0) as device:
        agent = umad.Agent(device, umad.GENERAL_SERVICES, _CLASS, _VERSION)
        agent.ask(mad, umad.Address(administrator, 1, QP1_QKEY), _TIMEOUT_MS, _RETRIES)


if __name__ == "__main__":
    main()
