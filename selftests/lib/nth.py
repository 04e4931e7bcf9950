#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Have the kernel fail one memory allocation of a system call after another, and see that each failure is clean.

nth.py load MODULE [--samples N]       load the module; where that succeeds, unload it
nth.py up INTERFACE [--samples N]      take the interface up; where that succeeds, take it down
nth.py enable FILE [--samples N]       write 1 to the file; where that succeeds, write 0
nth.py child INTERFACE [--samples N]   make a child of the interface in the partition 0x8001; where that succeeds, delete it
nth.py connect INTERFACE [--samples N] put the interface into connected mode; where that succeeds, back into datagram mode

First it counts the allocations, then it fails each of them in turn, or N of them spread evenly. Some calls go on without an
allocation, so where none of the N failed the call, those between them follow, until one does. See
Documentation/fault-injection/fault-injection.rst of the kernel, fail-nth.
"""

import argparse
import collections
import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

from fail_nth import NEVER, FailNth, fail_some

_LIBC = ctypes.CDLL(None, use_errno=True)
_SYS_FINIT_MODULE = 313
_SYS_DELETE_MODULE = 176
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
# What becomes of a call that notices no failure.
_UNNOTICED = {"went on", "went on, nothing failed"}
# And of one that does: the network stack has another word for it where the neighbours' settings find no memory.
_REFUSED = {"ENOMEM", "ENOBUFS"}


def _syscall(*arguments):
    if _LIBC.syscall(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class Load:
    """Loading a module, which is not there before."""

    def __init__(self, path):
        self._file = os.open(path, os.O_RDONLY)
        self._name = Path(path).stem

    def do(self):
        """Load it."""
        _syscall(_SYS_FINIT_MODULE, self._file, b"", 0)

    def undo(self):
        """Unload it."""
        _syscall(_SYS_DELETE_MODULE, self._name.encode(), 0)

    def done(self):
        """Whether it is loaded."""
        return Path("/sys/module", self._name).exists()


class Up:
    """Taking an interface up, which is down before."""

    def __init__(self, interface):
        self._interface = interface.encode()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def _flags(self):
        request = fcntl.ioctl(self._socket, _SIOCGIFFLAGS, struct.pack("16sH14x", self._interface, 0))
        return struct.unpack("16sH14x", request)[1]

    def _set(self, flags):
        fcntl.ioctl(self._socket, _SIOCSIFFLAGS, struct.pack("16sH14x", self._interface, flags))

    def do(self):
        """Take it up."""
        self._set(self._flags() | _IFF_UP)

    def undo(self):
        """Take it down."""
        self._set(self._flags() & ~_IFF_UP)

    def done(self):
        """Whether it is up."""
        return bool(self._flags() & _IFF_UP)


class Enable:
    """Writing 1 to a file of the kernel's, which is 0 before."""

    def __init__(self, path):
        self._path = path

    def _write(self, text):
        # Nothing is buffered, so that the call fails and not the close.
        with open(self._path, "wb", buffering=0) as file:
            file.write(text)

    def do(self):
        """Write 1."""
        self._write(b"1\n")

    def undo(self):
        """Write 0."""
        self._write(b"0\n")

    def done(self):
        """Whether it is 1."""
        return Path(self._path).read_text(encoding="ascii").strip() == "1"


class Attribute:
    """Writing to attributes of a net device's."""

    def __init__(self, interface):
        self._place = Path("/sys/class/net", interface)

    def _write(self, name, text):
        with open(self._place / name, "wb", buffering=0) as file:
            file.write(text)


class Child(Attribute):
    """Making a child, which is not there before."""

    _PKEY = "8001"

    def do(self):
        """Make it."""
        self._write("create_child", f"0x{self._PKEY}\n".encode())

    def undo(self):
        """Delete it."""
        self._write("delete_child", f"0x{self._PKEY}\n".encode())

    def done(self):
        """Whether it is there."""
        return self._place.with_name(f"{self._place.name}.{self._PKEY}").exists()


class Connect(Attribute):
    """Going to connected mode."""

    def do(self):
        """Go there."""
        self._write("mode", b"connected\n")

    def undo(self):
        """Go back."""
        self._write("mode", b"datagram\n")

    def done(self):
        """Whether it is in connected mode."""
        return (self._place / "mode").read_text(encoding="ascii").strip() == "connected"


_CALLS = {"load": Load, "up": Up, "enable": Enable, "child": Child, "connect": Connect}


def _count(call, nth):
    nth.set(NEVER)
    call.do()
    left = nth.left()
    nth.set(0)
    call.undo()
    return NEVER - left


def _fail(call, nth, number):
    """Fail allocation `number`. Returns what became of the call; raises if it left something behind."""
    nth.set(number)
    try:
        call.do()
        outcome = "went on"
    except OSError as error:
        outcome = errno.errorcode.get(error.errno, str(error.errno))
    finally:
        injected = nth.left() == 0
        nth.set(0)
    if outcome == "went on":
        call.undo()
    if call.done():
        raise SystemExit(f"allocation {number}: {outcome}, but it is done")
    return outcome if injected else f"{outcome}, nothing failed"


def main():
    """Do what the command line says, and sum it up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("call", choices=_CALLS)
    parser.add_argument("what")
    parser.add_argument("--samples", type=int, default=0)
    options = parser.parse_args()
    call = _CALLS[options.call](options.what)
    nth = FailNth()
    total = _count(call, nth)
    outcomes = collections.Counter()
    fail_some(
        total,
        options.samples,
        lambda number: outcomes.update([_fail(call, nth, number)]),
        lambda: not outcomes.keys() <= _UNNOTICED,
    )
    print(f"{outcomes.total()} of {total} allocations failed, one after the other:")
    for outcome, times in outcomes.most_common():
        print(f"  {times:5d} times: {outcome}")
    unclean = outcomes.keys() - _UNNOTICED - _REFUSED
    if total == 0 or unclean or not outcomes["ENOMEM"]:
        sys.exit(f"expected ENOMEM or going on, found {dict(outcomes)}")


if __name__ == "__main__":
    main()
