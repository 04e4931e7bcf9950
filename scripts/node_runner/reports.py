# SPDX-License-Identifier: GPL-2.0-only
"""Finds in a console's log what the kernel reports."""

import re


def _any_of(*patterns):
    return re.compile("|".join(patterns))


_REPORTS = _any_of(
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
    r"list_(add|del) corruption",
    r"unregister_netdevice: waiting",
    r"rust_kernel: panicked",
    r"Out of memory: ",
    r"node-init: ",
)

# Reports that a node without processor time makes as well as one with a mistake in it.
_STARVATION = _any_of(
    r"soft lockup",
    r"hard LOCKUP",
    r"workqueue lockup",
    r"self-detected stall",
    r"detected (expedited )?stalls",
)

# A module outside the kernel's tree in a report: in its list of modules, where such modules have the flag O, or in its trace.
# The cables of user-mode Linux are the node runner's.
_OUR_MODULES = re.compile(r"\b(?!node_cable\b)\w+\([A-Z+-]*O[A-Z+-]*\)|\[(?:oxib|softib|ib_cm)\]")


def _lines(console):
    if not console.exists():
        return []
    with open(console, encoding="utf-8", errors="replace") as lines:
        return [line.rstrip() for line in lines]


def find(console):
    """Return the lines of a console log (a path) that report something, starvation included."""
    return [line for line in _lines(console) if _REPORTS.search(line) or _STARVATION.search(line)]


def mistakes(console):
    """Return the lines of a console log (a path) that report a mistake, which no lack of processor time explains."""
    return [line for line in _lines(console) if _REPORTS.search(line) and not _STARVATION.search(line)]


def names_our_modules(console):
    """Whether a console log (a path) names a module outside the kernel's tree, other than the node runner's."""
    return any(_OUR_MODULES.search(line) for line in _lines(console))
