# SPDX-License-Identifier: GPL-2.0-only
"""The jobs that have ended in a run of tests, and what is said of them at the end."""

import itertools
import json
import re
from dataclasses import dataclass

from test_runner.job import Outcome
from test_runner.tap import Result

_SLOWEST = 10
# What the report repeats of a failed job: failed checks, and lines of its logs that say why (of a node within it, too).
_REPEATED = 6
# Lines of what the command of a failed check printed that are repeated with it; see `check` of selftests/lib/tap.sh.
_PRINTED = 5
_SAYS_WHY = re.compile(r"Bail out!|^oxib: |^n\d+\| not ok|^error")


@dataclass
class Entry:
    """A job that has ended, or was to run and did not."""

    job: object
    outcome: Outcome
    # The outcome of its first run, where it was run again.
    first: Outcome | None = None
    ran: bool = True
    # The reason why it was not run again, where it failed and was not.
    not_again: str = ""

    @property
    def flaky(self):
        """Whether it failed once and then passed."""
        return self.first is not None and not self.outcome.failed


def _with_output(failure):
    """The first line of a failure, and what the command of the check printed."""
    check, *said = failure.splitlines()
    after = itertools.dropwhile(lambda line: not line.endswith(" failed:"), said)
    printed = itertools.takewhile(lambda line: line.startswith("#   "), itertools.islice(after, 1, None))
    return [check, *(line.removeprefix("#") for line in itertools.islice(printed, _PRINTED))]


def _reasons(outcome):
    """A few lines that say why a job failed."""
    reasons = [line for failure in outcome.result.failures[:_REPEATED] for line in _with_output(failure)]
    for log in outcome.logs:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        reasons += [line for line in lines if _SAYS_WHY.search(line)][-_REPEATED:]
    return list(dict.fromkeys(reasons))[: 4 * _REPEATED]


def _second_run(entry):
    """What became of the second run of a job that failed, for the line that names it."""
    if entry.first:
        return ", and again when it ran alone"
    return f", not run again: {entry.not_again}" if entry.ran and entry.not_again else ""


def _counts(result):
    return {"passed": result.passed, "failed": len(result.failures), "skipped": result.skipped}


def _record(entry):
    """What results.json says of a job."""
    outcome = entry.outcome
    record = {
        "test": entry.job.name,
        "seconds": round(outcome.seconds, 1),
        "processor_seconds": round(outcome.busy, 1),
        **_counts(outcome.result),
        "ran": entry.ran,
        "mistakes": outcome.mistakes,
        "flaky": entry.flaky,
    }
    if entry.first:
        record["first"] = {**_counts(entry.first.result), "failures": entry.first.result.failures}
    return record


class Session:
    """The entries of a run, by the names of the jobs."""

    def __init__(self, measured):
        self._measured = measured
        self._entries = {}
        # Why the run was ended before its jobs had, if it was.
        self.interruption = ""

    def add(self, job, outcome):
        """Enter a job that has ended."""
        self._entries[job.name] = Entry(job, outcome)
        if not outcome.failed and job.turn is None:
            self._measured.add(job.test, outcome.seconds, outcome.busy)

    def add_second(self, job, outcome):
        """Enter what a job that had failed came to when it was run again."""
        entry = self._entries[job.name]
        entry.first = entry.first or entry.outcome
        entry.outcome = outcome

    def add_not_run(self, job, why):
        """Enter a job that could not run."""
        self._entries[job.name] = Entry(job, Outcome.of_failure(why), ran=False)

    def add_not_again(self, job, why):
        """Enter the reason why a job that failed was not run again."""
        self._entries[job.name].not_again = why

    def entry(self, job):
        """The entry of a job that was entered."""
        return self._entries[job.name]

    @property
    def failed(self):
        """The entries of jobs that failed, or did not run."""
        return [entry for entry in self._entries.values() if entry.outcome.failed]

    @property
    def passed(self):
        """Whether there were checks, and none failed."""
        return self._total().passed > 0 and not self.failed

    def _total(self):
        total = Result()
        for entry in self._entries.values():
            total.add(entry.outcome.result)
        return total

    def write(self, path):
        """Write what each took and came to."""
        records = [_record(entry) for entry in self._entries.values()]
        path.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")

    def report_slowest(self):
        """Print the slowest."""
        slowest = sorted(self._entries.values(), key=lambda entry: -entry.outcome.seconds)[:_SLOWEST]
        print(f"The slowest {len(slowest)}, in seconds and processor seconds:")
        for entry in slowest:
            print(f"{entry.outcome.seconds:6.0f} {entry.outcome.busy:6.0f}  {entry.job.name}")

    def report_repetitions(self):
        """Print how often each test failed."""
        turns = {}
        for entry in self._entries.values():
            turns.setdefault(entry.job.test, []).append(entry.outcome.failed)
        for test, failures in turns.items():
            print(f"{test}: {sum(failures)} of {len(failures)} failed")

    def report(self):
        """Print the jobs that failed, did not run, or were flaky, and in the last line the counts."""
        if self.interruption:
            print(f"ended before all jobs had run: {self.interruption}")
        for entry in self.failed:
            print(f"{'failed' if entry.ran else 'did not run'}: {entry.job.name}{_second_run(entry)}")
            # The lines about it may be far above, or cut away.
            for line in _reasons(entry.outcome) if entry.ran or not self.interruption else ():
                print(f"  {line}")
        flaky = sorted(entry.job.name for entry in self._entries.values() if entry.flaky)
        if flaky:
            print(f"{len(flaky)} flaky: {', '.join(flaky)}")
        total = self._total()
        skipped = f", {total.skipped} skipped" if total.skipped else ""
        print(f"{total.passed} passed, {len(total.failures)} failed{skipped}", flush=True)
