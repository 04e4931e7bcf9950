# SPDX-License-Identifier: GPL-2.0-only
"""What jobs that run side by side may take together."""

import os

# Of the memory that is free at the start.
_OF_MEMORY = 0.9
# A job's processors are busy by turns, so that more of them than there are keep those that there are busy.
_OF_PROCESSORS = 1.2
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


class Room:
    """The processors and the memory of this machine."""

    def __init__(self, processors, measured):
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
        return (
            len(together) <= self._jobs
            and sum(self._measured.share(each) for each in together) <= self._processors
            and sum(each.memory for each in together) <= self._memory
        )
