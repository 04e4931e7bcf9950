# SPDX-License-Identifier: GPL-2.0-only
"""One memory allocation that fails, of those that a system call of this thread makes. See
Documentation/fault-injection/fault-injection.rst of the kernel, fail-nth.
"""

import os
from collections.abc import Callable

# More than any call makes.
NEVER = 1_000_000


class FailNth:
    """This thread's count of allocations until the one that fails."""

    def __init__(self) -> None:
        self._file = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def set(self, number: int) -> None:
        """Fail that one; 0 for none."""
        os.pwrite(self._file, str(number).encode(), 0)

    def left(self) -> int:
        """How many are left until then."""
        return int(os.pread(self._file, 16, 0))


def _spread(total: int, samples: int) -> set[int]:
    """As many of the numbers 1 to `total`, evenly from first to last; 0 for all of them."""
    if not samples or samples >= total:
        return set(range(1, total + 1))
    return {1 + index * (total - 1) // max(1, samples - 1) for index in range(samples)}


def fail_some(total: int, samples: int, fail: Callable[[int], None], noticed: Callable[[], bool]) -> int:
    """Fail `samples` allocations of `total`, one after the other. A call goes on without some of its allocations, so where it has
    not noticed one of these, those between them follow, until it does. Returns how many were tried.
    """
    tried: set[int] = set()
    while len(tried) < total and not (tried and noticed()):
        chosen = _spread(total, samples) - tried
        for number in sorted(chosen):
            fail(number)
        tried |= chosen
        samples *= 2
    return len(tried)
