# SPDX-License-Identifier: GPL-2.0-only
"""Directories for results, each with one owner at a time."""

import fcntl
import itertools
import os
import shutil


def shown(path):
    """A path below /cache as it is outside of the toolchain root, where each checkout has a directory of its own in the cache."""
    return str(path).replace("/cache", f"$OXIB_CACHE/checkouts/{os.environ['OXIB_CHECKOUT_ID']}", 1)


class Taken(Exception):
    """Somebody else's results are being written there."""


class Results:
    """An empty directory that is this process's until it ends."""

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = open(path.parent / f".{path.name}.lock", "w", encoding="ascii")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise Taken(path.name) from error
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()

    @classmethod
    def first_free(cls, path):
        """The directory of that name, or NAME-2 and so on while others have it."""
        for number in itertools.count(1):
            try:
                return cls(path if number == 1 else path.with_name(f"{path.name}-{number}"))
            except Taken:
                continue
