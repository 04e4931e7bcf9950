# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel says on the console when it has found a mistake."""

import re

_REPORTS = re.compile(
    "|".join(
        (
            r"BUG: ",
            r"\bBUG at ",
            r"WARNING: ",
            r"Oops: ",
            r"Kernel panic",
            r"general protection fault",
            r"KASAN: ",
            r"UBSAN: ",
            r"kmemleak: \d+ new suspected",
            r"unreferenced object 0x",
            r"ODEBUG: (?!Out of memory)",
            r"DMA-API: (?!preallocated|debugging)",
            r"refcount_t: ",
            # Where memory fails on purpose the tracker, too, says that it found none.
            r"ref_tracker: (?!memory allocation failure)",
            r"possible (circular|recursive|irq lock|deadlock)",
            r"inconsistent lock state",
            r"suspicious RCU usage",
            r"DEBUG_LOCKS_WARN_ON",
            r"sleeping function called",
            r"scheduling while atomic",
            r"INFO: task .* blocked",
            r"soft lockup",
            r"hard LOCKUP",
            r"workqueue lockup",
            r"self-detected stall",
            r"detected stalls",
            r"list_(add|del) corruption",
            r"unregister_netdevice: waiting",
            r"rust_kernel: panicked",
            r"Out of memory: ",
            r"node-init: ",
        )
    )
)


def find(console):
    """Return the lines of a console log (a path) that report a mistake."""
    if not console.exists():
        return []
    with open(console, encoding="utf-8", errors="replace") as lines:
        return [line.rstrip() for line in lines if _REPORTS.search(line)]
