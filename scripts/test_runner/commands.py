# SPDX-License-Identifier: GPL-2.0-only
"""Runs the commands of jobs, each in a process group of its own, and ends them."""

import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

# Seconds that a command has to end itself and what it started before its group is killed.
_GRACE = 20


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    # The exit status; negative: the number of the signal that ended it.
    status: int
    # The seconds of processors used by the command and by what it waited for.
    busy: float
    # Whether its time limit ended it.
    late: bool


class Closed(Exception):
    """No command may start any more."""


# The commands that run now, so that an interruption can end them. The lock is held while a command is started.
_running = set()
_starting = threading.Lock()
_closed = threading.Event()


def call(command, log, limit=None):
    """Run a command with its output in a log, for `limit` seconds at most."""
    with open(log, "wb") as output:
        process = _start(command, output)
        watch = _Limit(process, limit)
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        _running.discard(process)
        watch.cancel()
        return Ended(process.returncode, usage.ru_utime + usage.ru_stime, watch.over)


def _start(command, output):
    with _starting:
        if _closed.is_set():
            raise Closed
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        _running.add(process)
        return process


class _Limit:
    """Ends a command when its seconds are over."""

    def __init__(self, process, seconds):
        self.over = False
        self._process = process
        self._timer = None
        if seconds is not None:
            self._timer = threading.Timer(seconds, self._end)
            self._timer.daemon = True
            self._timer.start()

    def _end(self):
        self.over = True
        _end([self._process])

    def cancel(self):
        """Forget the limit: the command has ended."""
        if self._timer:
            self._timer.cancel()


def _signal(processes, number):
    for process in processes:
        if process in _running:
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass


def _end(processes):
    """Ask commands to end, and kill those that do not. Their callers wait for them."""
    _signal(processes, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while any(process in _running for process in processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    _signal(processes, signal.SIGKILL)


def end_all():
    """End all commands, each with what it started; none starts afterwards. Returns when all have ended."""
    _closed.set()
    # A command that is being started is either in `_running` once the lock is free, or does not start.
    with _starting:
        processes = list(_running)
    _end(processes)
    while _running:
        time.sleep(0.1)
