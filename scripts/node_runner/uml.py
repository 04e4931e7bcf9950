# SPDX-License-Identifier: GPL-2.0-only
"""Nodes that are processes of the host: user-mode Linux."""

import os
import socket
import tempfile
from pathlib import Path

from node_runner import tsc
from node_runner.machine import Launch

# A file system in memory, of the toolchain root's own (scripts/in-toolchain), that allows programs to be executed: the
# kernel maps a node's memory from a file there, and runs its user space in it.
_MEMORY = "/tmp"

# The name that it gives the directory of its management console.
_NAME = "node"

_COMMAND_LINE = "root=none rootfstype=hostfs con=null con0=fd:0,fd:1 seccomp=on init=/bin/sh"

# The arguments of the first process, which is a shell: the node's root has no directory of the host in it yet.
_FIRST = "mount -t hostfs -o ro,hostfs={oxib} none /oxib && exec /bin/sh /oxib/scripts/node_runner/node-init.sh"


def _named(directories, place):
    """Give each directory its tag for a name, in a directory below `place`."""
    names = place / "directories"
    names.mkdir()
    for tag, path, _read_only in directories:
        (names / tag).symlink_to(path)
    return names


class Machine:
    """Launches the nodes of one run."""

    name = "uml"
    cable_type = socket.SOCK_SEQPACKET

    def __init__(self, shape, kernel):
        if shape.icount or shape.plugin:
            raise SystemExit("oxib: instructions are counted on QEMU only: give --kernel fast")
        self._shape = shape
        self._kernel = kernel
        self._guest = None
        self._mhz = tsc.host_khz() / 1000

    def launch(self, seat):
        """The process that is the node with that seat."""
        place = Path(tempfile.mkdtemp(prefix="node-", dir=_MEMORY))
        names = _named(seat.directories, place)
        cables = ",".join(str(plug) for plug in seat.plugs)
        words = [str(self._kernel.tree / "linux"), f"mem={self._shape.memory}M", f"ncpus={self._shape.smp}"]
        words += [f"uml_dir={place}/", f"umid={_NAME}", f"rootflags={names / 'guest'}", *_COMMAND_LINE.split()]
        words += self._kernel.command_line(self.name, seat).split()
        words += [f"DIRECTORIES={names}", f"MHZ={self._mhz:.3f}"]
        words += [f"CABLES={cables}"] if cables else []
        words += ["--", "-c", '"' + _FIRST.format(oxib=names / "oxib") + '"']
        environment = {"HOME": str(place), "TMPDIR": _MEMORY, "PATH": os.environ["PATH"]}
        return Launch(words, environment, seat.console, [place], place / _NAME / "mconsole")
