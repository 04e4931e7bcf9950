# SPDX-License-Identifier: GPL-2.0-only
"""What jobs that run side by side may take together, those of other runs on this machine included."""

import fcntl
import json
import os
import time

# Of the memory that would be free if no run went on.
_OF_MEMORY = 0.9
# A job's processors are busy by turns, so that more of them than there are keep those that there are busy.
_OF_PROCESSORS = 1.2
# Of one processor, idle since the last look, so that one more job starts.
_IDLE = 0.4
# The share of the time since the last look in which something waited for a processor, from which on no more jobs start. What a
# job keeps busy is measured beside others, where it is given less than it could use: of jobs that share all processors the sum
# is never more than there are, however many they are.
_PRESSURE = 0.6
# What a job that has just started adds to that, until the next look.
_PRESSURE_OF_START = 0.25
# Seconds between two looks.
_BETWEEN_LOOKS = 4
_TICKS = os.sysconf("SC_CLK_TCK")
# However little each takes: waiting for an answer should not become waiting for a processor.
_JOBS_PER_PROCESSOR = 3
# Where nodes that are processes have their memory; see node_runner/uml.py.
_NODE_MEMORY = "/tmp"


def _memory():
    """MiB of memory that are free, in all and for nodes that are processes, and that there are."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        fields = dict(line.split(":") for line in lines)
    free, total = (int(fields[name].split()[0]) >> 10 for name in ("MemAvailable", "MemTotal"))
    place = os.statvfs(_NODE_MEMORY)
    return min(free, place.f_bavail * place.f_frsize >> 20), min(total, place.f_blocks * place.f_frsize >> 20)


def _idle_ticks():
    """What all processors together have been idle, in ticks."""
    with open("/proc/stat", encoding="ascii") as lines:
        return int(lines.readline().split()[4])


def _waited():
    """The seconds in which something waited for a processor (the kernel's Documentation/accounting/psi.rst); 0 if it does not tell."""
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as lines:
            return int(lines.readline().rsplit("total=", 1)[1]) / 1e6
    except OSError:
        return 0.0


class _Ledger:
    """The jobs of all runs on this machine: a file for each run in one directory, locked as long as the run lives."""

    def __init__(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._path = directory / f"{os.getpid()}-{time.time_ns()}"
        # Nobody should find it before it is locked.
        hidden = directory / f".{self._path.name}"
        self._file = open(hidden, "w+", encoding="utf-8")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self.write([])
        hidden.rename(self._path)

    def write(self, jobs):
        """Say what this run's jobs take: (MiB of memory, processors) of each."""
        self._file.seek(0)
        self._file.truncate()
        json.dump(jobs, self._file)
        self._file.flush()

    def others(self):
        """The same of all other runs. A run's file without its lock is what is left of one that ended."""
        jobs = []
        for path in self._directory.iterdir():
            if path != self._path and not path.name.startswith("."):
                jobs += _read(path)
        return jobs

    def tells_of_build(self):
        """Whether a kernel is built; see scripts/test."""
        return any(self._directory.glob("build-*"))

    def close(self):
        """This run takes nothing any more."""
        self._path.unlink(missing_ok=True)
        self._file.close()


def _read(path):
    try:
        with open(path, encoding="utf-8") as entry:
            try:
                fcntl.flock(entry, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return [tuple(job) for job in json.load(entry)]
            path.unlink(missing_ok=True)
    except (OSError, ValueError):
        # It ended, or is being written, this very moment.
        pass
    return []


class Room:
    """The processors and the memory of this machine. `directory` is where runs tell each other what they take."""

    def __init__(self, processors, measured, directory):
        self._looked = (time.monotonic(), _idle_ticks(), _waited())
        self._idle = 0.0
        self._pressure = 0.0
        self._jobs = processors * _JOBS_PER_PROCESSOR
        self._processors = processors * _OF_PROCESSORS
        self._measured = measured
        self._ledger = _Ledger(directory)
        free, total = _memory()
        # Jobs of other runs may not have taken yet what they will take.
        self._memory = min(free + sum(memory for memory, _ in self._ledger.others()), total) * _OF_MEMORY

    def _taken_by(self, jobs):
        return [(job.memory, self._measured.share(job)) for job in jobs]

    def fits(self, job, running):
        """Whether a job may start beside those that run. Alone in its run, any job may that there is memory for."""
        own = list(running)
        together = self._taken_by([*own, job])
        others = self._ledger.others()
        if not own and not others:
            return True
        if sum(memory for memory, _ in together + others) > self._memory:
            return False
        if not own:
            return True
        if len(together) > self._jobs or self._pressure >= _PRESSURE:
            return False
        if sum(share for _, share in together + others) <= self._processors:
            return True
        # What they take together may be less than each took when it was measured, or than was guessed.
        if self._idle < _IDLE:
            return False
        self._idle = 0.0
        return True

    def started(self, running):
        """Note that one more job runs now, and tell other runs."""
        self._pressure += _PRESSURE_OF_START
        self.take(running)

    def take(self, running):
        """Tell other runs which jobs run now."""
        self._ledger.write(self._taken_by(running))

    def look(self):
        """See how busy the processors were since the last look, unless that was just now."""
        (then, idle_then, waited_then), now = self._looked, (time.monotonic(), _idle_ticks(), _waited())
        seconds = now[0] - then
        if seconds < _BETWEEN_LOOKS:
            return
        self._looked = now
        self._idle = (now[1] - idle_then) / _TICKS / seconds
        # A compiler waits for jobs, not they for it.
        self._pressure = 0.0 if self._ledger.tells_of_build() else (now[2] - waited_then) / seconds

    def close(self):
        """No job of this run takes anything any more."""
        self._ledger.close()
