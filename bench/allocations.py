#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""allocations.py [MODULE]: how many bytes of slab memory a module holds, on a kernel booted with slab_debug=U.

Without a name it is the connection manager's. An allocation is that one's if the first module on the way from the allocator
to the caller that is one of ours to tell apart is ib_cm or oxib, not one that stands on it.
"""

import re
import sys
from pathlib import Path

_SLABS = Path("/sys/kernel/debug/slab")
_OURS = ("ib_cm", "oxib")
# A frame of the fabric is its own, whichever driver had a packet sent.
_OTHERS = ("rdma_cm", "rdma_ucm", "softib")
# Packets come and go, and the stack keeps some of them for the next ones, whichever driver polled.
_PACKETS = "__alloc_skb"
_COUNT = re.compile(r"^ *(\d+) ")


def _allocations(text, modules):
    """(number, first of the modules or None) of each place that allocated."""
    for block in re.split(r"\n(?= *\d+ )", text):
        count, module = _COUNT.match(block), modules.search(block)
        if count and _PACKETS not in block:
            yield int(count[1]), module and module[1]


def main():
    """Print the sum."""
    ours = sys.argv[1:] or _OURS
    modules = re.compile(r"\[(%s)\]" % "|".join((*ours, *_OTHERS)))
    total = 0
    for traces in _SLABS.glob("*/alloc_traces"):
        # A cache that others were merged into is there once, under its own name, and by links.
        if traces.parent.is_symlink():
            continue
        size = int((Path("/sys/kernel/slab") / traces.parent.name / "object_size").read_text(encoding="ascii"))
        total += sum(size * count for count, module in _allocations(traces.read_text(), modules) if module in ours)
    print(total)


if __name__ == "__main__":
    main()
