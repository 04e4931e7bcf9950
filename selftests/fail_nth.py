# SPDX-License-Identifier: GPL-2.0-only
"""One memory allocation that fails, of those that a system call of this thread makes. See
Documentation/fault-injection/fault-injection.rst of the kernel, fail-nth.
"""

import os

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
