# SPDX-License-Identifier: GPL-2.0-only
"""Decides which failed jobs are run again, and records those that then pass.

A node without processor time fails as one with a mistake in it does: a limit runs out, or the kernel reports a lockup. A second
run, alone, tells the two apart. Reports that starvation does not explain need no second run.
"""

import datetime
import json
import os

# The runs, alone, that a job has to pass after one that failed.
RUNS = 2
# With more failures than these the fault is not one job's bad luck.
_MOST = 4
# The seconds that have to be left for each of them. A job may take longer, but without these runs it has failed in any case.
LEAST_LEFT = 60
# The limit of such a run: so many times the seconds that the job takes, between these.
_TIMES = 3
_LEAST_SECONDS, _MOST_SECONDS = 300, 900
# Lines of a log that a record keeps.
_KEPT = 60


def why_not(entry, failed):
    """Returns why a failed job is not run again, or an empty string; `failed` is the number of failed jobs."""
    if not entry.ran:
        return "it could not run"
    if failed > _MOST:
        return f"more than {_MOST} jobs failed"
    if not entry.job.may_run_again:
        return "it boots no nodes"
    if entry.outcome.mistakes:
        return f"the kernel reported a mistake ({entry.outcome.mistakes[0]})"
    return ""


def limit(seconds):
    """The time limit, in seconds, of another run of a job that takes so many seconds alone."""
    return int(min(_MOST_SECONDS, max(_LEAST_SECONDS, _TIMES * seconds)))


def _excerpt(logs):
    """The first failed check of the scripts' logs and the lines after it, or else the last lines of the last log."""
    texts = [log.read_text(encoding="utf-8", errors="replace").splitlines() for log in logs if log.suffix == ".log"]
    for lines in texts:
        failed = next((number for number, line in enumerate(lines) if line.startswith("not ok")), None)
        if failed is not None:
            return lines[failed : failed + _KEPT]
    return texts[-1][-_KEPT:] if texts else []


class Record:
    """What the first run of a job that may be flaky came to, read before its logs are put aside."""

    def __init__(self, job, outcome):
        self._fields = {
            "commit": os.environ.get("OXIB_COMMIT", "unknown"),
            "job": job.test,
            "kernel": job.kernel,
            "checks": outcome.result.failures,
            "log": _excerpt(outcome.logs),
        }

    def append_to(self, path):
        """Add it to the records of flaky jobs, a line of JSON each."""
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        with open(path, "a", encoding="utf-8") as records:
            records.write(json.dumps({"date": now, **self._fields}) + "\n")
