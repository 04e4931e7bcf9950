# SPDX-License-Identifier: GPL-2.0-only
"""Copies of the checkout that mutants are made of, in the cache."""

import os
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

CHECKOUT = Path("/oxib")
# What is built or written there is no part of it.
_LEFT_OUT = (".git", "target", "build", "__pycache__")
# Where make finds the copy, the makefiles of a build directory expect it: at the place of the checkout.
_UNSHARE = ("unshare", "--mount", "--propagation", "unchanged", "--")
_ENTER = 'mount --bind "$1" /oxib && cd /oxib && shift && exec "$@"'


# Commands that run now, so that an interruption can end them; the lock is kept for good once no more may be started.
_running = set()
_starting = threading.Lock()
_is_over = threading.Event()
# A shell's status is as much and the number of the signal that ended a command.
_SIGNALS = 128


class Interrupted(Exception):
    """This process was asked to end: what commands say from then on shows nothing."""


class Killed(Exception):
    """A signal of somebody else's ended a command, for example for want of memory: that shows nothing, either."""


def check_not_interrupted():
    """Refuse to go on once the commands are ended."""
    if _is_over.is_set():
        raise Interrupted


def check_status(status):
    """Refuse the status of a command that a signal ended. None: this thread did so."""
    check_not_interrupted()
    if status is not None and (status < 0 or status > _SIGNALS):
        raise Killed(f"a signal ended it (status {status}), which shows nothing")


def end_all():
    """End the commands that run, and let no other start."""
    # Before any of them ends.
    _is_over.set()
    _starting.acquire(timeout=5)
    commands = list(_running)
    for process in commands:
        _ask_to_end(process)
    for process in commands:
        # Not by `wait()`: the thread that a signal has interrupted may be in it, and has its lock.
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


class Tree:
    """A copy of the checkout with a build directory of its own for each kernel. Copies are numbered from 1. What is built
    incrementally takes longer at first, and far less with each mutant that follows (scripts/module_builder/incremental-rustc).
    """

    def __init__(self, cache, number=1, incremental=False):
        name = f"mutants-{number}"
        self.root = Path(cache) / "mutants" / str(number)
        self.root.mkdir(parents=True, exist_ok=True)
        self.incremental = incremental
        # Neither the modules of the checkout nor its command may be taken for those of a mutant.
        own = {"OXIB_BUILD": f"build-{name}", "OXIB_CHECKOUT_ID": name, "OXIB_INCREMENTAL": "1" if incremental else ""}
        self._environment = os.environ | own

    def restore(self):
        """Make the copy as the checkout is. What differs gets a new time, so that make builds it again; nothing else does."""
        command = ["rsync", "--recursive", "--links", "--perms", "--checksum", "--delete"]
        command += [f"--exclude={name}" for name in _LEFT_OUT]
        subprocess.run([*command, f"{CHECKOUT}/", f"{self.root}/"], check=True)

    def start(self, command, log, **environment):
        """Start a command that finds the copy in the place of the checkout; its output is in the log."""
        with open(log, "wb") as output, _starting:
            process = subprocess.Popen(
                [*_UNSHARE, "/bin/bash", "-c", _ENTER, "mutant", self.root, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environment | environment,
            )
            _running.add(process)
            return process

    def run(self, command, log, **environment):
        """Run it to its end; returns its status."""
        process = self.start(command, log, **environment)
        try:
            return process.wait()
        finally:
            end(process)


def _ask_to_end(process):
    if process.poll() is None:
        # Another thread may have waited for it since.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)


def end(process):
    """End a command that was started, and wait for all that it waits for itself."""
    _ask_to_end(process)
    process.wait()
    _running.discard(process)
