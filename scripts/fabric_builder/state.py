# SPDX-License-Identifier: GPL-2.0-only
"""Which fabric is up on this machine: a copy of its file, kept until it is down.

The copy is made before anything else is, so that what was only partly built can be taken down as well.
"""

import shutil
from pathlib import Path

from fabric_builder import file
from fabric_builder.machine import Failure

_COPY = Path("/run/softib.fabric")


def begin(path):
    """Remember the file: from now on there is a fabric."""
    if _COPY.exists():
        raise Failure("a fabric is up already: take it down first (`fabric down`)")
    shutil.copyfile(path, _COPY)


def end():
    """Forget it: there is none any more."""
    _COPY.unlink()


def current():
    """The topology of the fabric that is up."""
    if not _COPY.exists():
        raise Failure("no fabric is up")
    return file.read(_COPY)
