# SPDX-License-Identifier: GPL-2.0-only
"""What the two kinds of machine have in common. Each is a class with

name: what a node finds in its variable MACHINE
cable_type: the type of socket that a cable is
launch(): the process that is a node
"""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Shape:
    """The shape of every node of a run."""

    smp: int = 2
    # In MiB.
    memory: int = 1024
    # Time is the count of instructions.
    icount: bool = False
    # A TCG plugin with its arguments, as QEMU's option -plugin takes them.
    plugin: str = ""


@dataclass(frozen=True)
class Seat:
    """A node's place in a run."""

    node: int
    nodes: int
    # (tag, path, read_only) of each directory that the node may mount.
    directories: list
    # The descriptors of its cables, in the order eth0, eth1.
    plugs: list
    # The file that becomes the console's log; none: the console is this process's terminal.
    console: Path | None


@dataclass(frozen=True)
class Launch:
    """A process to start."""

    words: list
    # Of the process; none: this process's own.
    environment: dict | None = None
    # The file that takes its standard output; none: the file for its errors.
    output: Path | None = None
    # Directories of its own, to remove when it has ended.
    leavings: list = field(default_factory=list)
    # The socket of its management console, if it has one.
    console: Path | None = None
