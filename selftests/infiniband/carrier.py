#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""carrier.py HCA: wait until its port is active and until ib0 has its carrier; print the milliseconds between."""

import sys
import time
from pathlib import Path

_STEP = 0.005


def _wait_for(file, what):
    while what not in file.read_text(encoding="ascii"):
        time.sleep(_STEP)
    return time.monotonic()


def main():
    """Do what the command line says."""
    active = _wait_for(Path(f"/sys/class/infiniband/{sys.argv[1]}/ports/1/state"), "ACTIVE")
    carrier = _wait_for(Path("/sys/class/net/ib0/carrier"), "1")
    print(round(1000 * (carrier - active)))


if __name__ == "__main__":
    main()
