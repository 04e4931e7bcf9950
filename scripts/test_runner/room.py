# SPDX-License-Identifier: GPL-2.0-only
"""What jobs that run side by side may take together."""

import os
import time

# Of the memory that is free at the start.
_OF_MEMORY = 0.9
# A job's processors are busy by turns, so that more of them than there are keep those that there are busy.
_OF_PROCESSORS = 1.2
# Of one processor, idle since the last look, so that one more job starts.
_IDLE = 0.4
_TICKS = os.sysconf("SC_CLK_TCK")
# However little each takes: waiting for an answer should not become waiting for a processor.
_JOBS_PER_PROCESSOR = 3
# Where nodes that are processes have their memory; see node_runner/uml.py.
_NODE_MEMORY = "/tmp"


def _available():
    """MiB of memory that is free, in all and for nodes that are processes."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        fields = dict(line.split(":") for line in lines)
    place = os.statvfs(_NODE_MEMORY)
    return min(int(fields["MemAvailable"].split()[0]) >> 10, place.f_bavail * place.f_frsize >> 20)


def _idle_ticks():
    """What all processors together have been idle, in ticks."""
    with open("/proc/stat", encoding="ascii") as lines:
        return int(lines.readline().split()[4])


class Room:
    """The processors and the memory of this machine."""

    def __init__(self, processors, measured):
        self._looked = (time.monotonic(), _idle_ticks())
        self._idle = 0.0
        self._jobs = processors * _JOBS_PER_PROCESSOR
        self._processors = processors * _OF_PROCESSORS
        self._memory = _available() * _OF_MEMORY
        self._measured = measured

    def fits(self, job, running):
        """Whether a job may start beside those that run. Alone, any job may."""
        others = list(running)
        if not others:
            return True
        together = [*others, job]
        if len(together) > self._jobs or sum(each.memory for each in together) > self._memory:
            return False
        if sum(self._measured.share(each) for each in together) <= self._processors:
            return True
        # What they take together may be less than each took when it was measured, or than was guessed.
        if self._idle < _IDLE:
            return False
        self._idle = 0.0
        return True

    def look(self):
        """See how many processors were idle since the last time; one more job may start for that."""
        (then, idle_then), now = self._looked, (time.monotonic(), _idle_ticks())
        self._looked = now
        self._idle = (now[1] - idle_then) / _TICKS / max(1.0, now[0] - then)
