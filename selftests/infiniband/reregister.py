#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Ask a port to have its clients register again (IBTA 14.2.5.6, ClientReregister), as a subnet manager that comes does.

reregister.py DEVICE LID    DEVICE is ib_umad's of the port that asks, LID the other's
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fabric"))
from port import Port  # noqa: E402 # pylint: disable=wrong-import-position

# The byte of PortInfo with the bit.
_REREGISTER = 51


def main():
    """Read what the port has, and set that with the bit."""
    with open(sys.argv[1], "r+b", buffering=0) as device:
        port = Port(device, 1, int(sys.argv[2]))
        information = port.read()
        information[_REREGISTER] |= 0x80
        port.write(information)


if __name__ == "__main__":
    main()
