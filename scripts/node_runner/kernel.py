# SPDX-License-Identifier: GPL-2.0-only
"""A test kernel in the cache: its image and the directories that a node mounts."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

# Unit tests run as modules are loaded, which takes its time: only where asked for.
_COMMAND_LINE = "ro loglevel=7 panic=-1 oops=panic kunit.enable=0 random.trust_cpu=on"
_PATIENCE = Path(__file__).with_name("patience.sh")
_STALLS = re.compile(r'^STALLS="(.*)"$', re.MULTILINE)

# The names of the kernels that are processes, by their kind, which is what tests ask for.
PROCESS_KERNELS = {"fast": "uml", "debug": "umldebug"}
_KINDS = {name: kind for kind, name in PROCESS_KERNELS.items()}


def _name_of(kernel):
    return kernel.partition("-")[0]


def is_process(kernel):
    """Whether the kernel of that name, or of that identifier, is a process of the host."""
    return _name_of(kernel) in _KINDS


def kind_of(kernel):
    """The kind that tests ask for: fast, debug or stock."""
    return _KINDS.get(_name_of(kernel), _name_of(kernel))


def _stalls():
    """The words of the command line that say when the kernel reports a stall."""
    return _STALLS.search(_PATIENCE.read_text(encoding="utf-8"))[1]


@dataclass(frozen=True)
class Kernel:
    """One of the kernels that scripts/kernel makes."""

    # The name and version, as in fast-7.3.
    id: str
    cache: Path
    more_options: str = ""
    # The run's time limit, in seconds; none where somebody is at a prompt.
    limit: int | None = None

    @property
    def name(self):
        """The name without the version: fast, debug, stock, uml or umldebug."""
        return _name_of(self.id)

    @property
    def is_uml(self):
        """Whether it is a process of the host."""
        return is_process(self.id)

    @property
    def kind(self):
        """The kind that tests ask for: fast, debug or stock."""
        return kind_of(self.id)

    @property
    def tree(self):
        """The directory with the image and its modules."""
        return self.cache / "kernel" / self.id

    @property
    def source(self):
        """The directory with the source it was built from."""
        return self.cache / f"source-{self.id.partition('-')[2]}"

    @property
    def build(self):
        """The directory with oxib's modules for it."""
        return self.cache / os.environ.get("OXIB_BUILD", "build") / self.id

    @property
    def modules(self):
        """The directory that becomes /lib/modules."""
        return self.tree / "modroot/lib/modules"

    def command_line(self, machine, seat):
        """The kernel's command line; the assignments in capitals reach the node's first process."""
        words = f"NODE={seat.node} NODES={seat.nodes} KERNEL={self.kind} MACHINE={machine}"
        words += f" LIMIT={self.limit}" if self.limit else ""
        return f"{_COMMAND_LINE} {_stalls()} {self.more_options} {words}"
