#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How many bytes of slab memory the connection manager holds, on a kernel booted with slab_debug=U.

An allocation is the connection manager's if the first module on the way from the allocator to the caller that is one of
ours to tell apart is ib_cm or oxib, not one that stands on it.
"""

import re
from pathlib import Path

_SLABS = Path("/sys/kernel/debug/slab")
_OURS = ("ib_cm", "oxib")
_OTHERS = ("rdma_cm", "rdma_ucm")
_COUNT = re.compile(r"^ *(\d+) ")
_MODULE = re.compile(r"\[(%s)\]" % "|".join(_OURS + _OTHERS))


def _allocations(text):
    """(number, first of the modules or None) of each place that allocated."""
    for block in re.split(r"\n(?= *\d+ )", text):
        count, module = _COUNT.match(block), _MODULE.search(block)
        if count:
            yield int(count[1]), module and module[1]


def main():
    """Print the sum."""
    total = 0
    for traces in _SLABS.glob("*/alloc_traces"):
        # A cache that others were merged into is there once, under its own name, and by links.
        if traces.parent.is_symlink():
            continue
        size = int((Path("/sys/kernel/slab") / traces.parent.name / "object_size").read_text(encoding="ascii"))
        total += sum(size * count for count, module in _allocations(traces.read_text()) if module in _OURS)
    print(total)


if __name__ == "__main__":
    main()
