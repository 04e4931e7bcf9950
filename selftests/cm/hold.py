#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""hold.py listen OWN PORT: listen for connections, and let whoever asks for one wait."""

import signal
import sys

from rdmacm import Channel


def main():
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["listen", own, port]:
            channel = Channel()
            channel.create().listen(own, int(port), 1000)
            signal.pause()
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
