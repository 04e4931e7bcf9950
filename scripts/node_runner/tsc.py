# SPDX-License-Identifier: GPL-2.0-only
"""The rate of a node's time stamp counter.

A kernel measures it as it boots, against a timer that QEMU emulates. On a busy host that goes wrong now and then, and
the node's clock then runs several times too fast, time-outs included. So the kernel is told.
"""

import ctypes
import mmap
import time

# Emulated, a node reads this host's counter; with instructions for a clock, one a nanosecond.
ICOUNT_KHZ = 1_000_000

_READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret
_APART = 0.1
_TRIES = 20


def _counter():
    code = mmap.mmap(-1, len(_READ_COUNTER), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_READ_COUNTER)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return code, ctypes.CFUNCTYPE(ctypes.c_uint64)(address)


def _reading(counter):
    """(nanoseconds, count) at one moment: of several tries the one that was least interrupted."""
    tries = []
    for _ in range(_TRIES):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        count = counter()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        tries.append((after - before, (before + after) // 2, count))
    return min(tries)[1:]


def host_khz():
    """The rate of this host's counter."""
    _code, counter = _counter()
    start, first = _reading(counter)
    time.sleep(_APART)
    end, last = _reading(counter)
    return round((last - first) * 1_000_000 / (end - start))
