# SPDX-License-Identifier: GPL-2.0-only
"""The seconds and processor seconds of each job, from run to run and from checkout to checkout."""

import fcntl
import json

from test_runner import usual

# A job takes longer beside others. The least that it took is kept, and may grow by as much from one run to the next.
_GROWTH = 1.25


class Measured:
    """What is known of jobs, by their names."""

    def __init__(self, path, elsewhere):
        """`path` is the file of what was measured on this machine; `elsewhere` is what is usual on another one."""
        self._path = path
        self._elsewhere = elsewhere
        self._known = self._read()

    def _read(self):
        try:
            return json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}

    def known(self, name):
        """The seconds and processor seconds (`busy`) of a job of that name; None if it has not been measured here."""
        return self._known.get(name)

    def expected(self, name):
        """The same, of another machine where it has not been measured here; None if nobody has."""
        return self.known(name) or usual.of(self._elsewhere, name)

    def seconds(self, job):
        """The seconds that a job takes alone."""
        took = self.expected(job.test)
        return took["seconds"] if took else job.guess[0]

    def share(self, job):
        """The processors that a job keeps busy."""
        took = self.expected(job.test)
        return took["busy"] / max(1.0, took["seconds"]) if took else job.guess[1]

    def add(self, name, seconds, busy):
        """Enter what a job that passed took. Other runs may have entered theirs meanwhile."""
        with open(self._path.with_suffix(".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._known = self._read()
            known = self._known.get(name)
            if known:
                seconds = min(seconds, known["seconds"] * _GROWTH)
            self._known[name] = {"seconds": round(seconds, 1), "busy": round(busy, 1)}
            self._save()

    def _save(self):
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        temporary.rename(self._path)
