# SPDX-License-Identifier: GPL-2.0-only
"""Asks a node that does not come to its end what its tasks do. A kernel of user-mode Linux is asked at its management console
(arch/um/drivers/mconsole.h), and answers on its console as well."""

import socket
import struct
import tempfile
from pathlib import Path

_MAGIC, _VERSION = 0xCAFEBABE, 2
_REQUEST = struct.Struct("=III")
# Whether it is an error, whether more follows, and the length of the text behind.
_REPLY = struct.Struct("=iII")
_LONGEST = 1024
# Seconds without a part of an answer after which no more is expected: parts that find no room are lost, the last one too.
_PATIENCE = 2
# The kernel shows all that it says; then its tasks with their stacks.
_QUESTIONS = ("sysrq 9", "sysrq t")


def _ask(control, console, question):
    words = question.encode("ascii")
    control.sendto(_REQUEST.pack(_MAGIC, _VERSION, len(words)) + words, str(console))
    while _REPLY.unpack_from(control.recv(_LONGEST))[1]:
        pass


def ask(console):
    """Ask the kernel at its management console (the path of a socket), and wait until it has said all."""
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as control:
        control.bind(f"{place}/control")
        control.settimeout(_PATIENCE)
        for question in _QUESTIONS:
            try:
                _ask(control, console, question)
            except OSError:
                # A kernel that serves no interrupts says nothing, which its console shows.
                continue


def _thread(directory):
    name, _, rest = (directory / "stat").read_text(encoding="utf-8").rpartition(")")
    fields = rest.split()
    wait = (directory / "wchan").read_text(encoding="ascii")
    return f"thread {name.replace('(', '')}: {fields[0]}, {int(fields[11]) + int(fields[12])} ticks, in {wait}"


def threads(process):
    """The threads of a process of the host, a line each: state, processor time, and the host's function that it waits in."""
    found = []
    for directory in sorted(Path(f"/proc/{process}/task").glob("*")):
        try:
            found.append(f"{_thread(directory)}\n")
        except OSError:
            # It has ended meanwhile.
            continue
    return "".join(found)
