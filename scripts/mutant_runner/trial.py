# SPDX-License-Identifier: GPL-2.0-only
"""A run of a test on a kernel, which ends as soon as it is clear that the test fails."""

import re
import time
from dataclasses import dataclass

from mutant_runner.tree import check_status
from mutant_runner.tree import end
from test_runner.job import Selftest
from test_runner.tap import read
from test_runner.tap import read_cargo

_POLL = 1
_FAILED = re.compile(r"^(not ok .*|Bail out!.*)$", re.MULTILINE)
_LAST_LINES = 4
# The status of `timeout` where the command was ended.
_TIMED_OUT = 124


@dataclass(frozen=True)
class Verdict:
    """Whether the test failed, and what shows it."""

    failed: bool
    why: str
    seconds: float


class HostTrial:
    """The tests of a crate, which need no kernel."""

    def __init__(self, tree, out, command):
        self._tree = tree
        self._out = out
        self._command = command

    def run(self, name, _report, limit):
        """Run them for so many seconds at most; those that hang have failed. Raises Interrupted and Killed."""
        log = self._out / f"{name}.run"
        began = time.monotonic()
        status = self._tree.run(["timeout", str(int(limit)), *self._command], log)
        check_status(status)
        why = self._sign(log, status, limit)
        return Verdict(bool(why), why or "they pass", time.monotonic() - began)

    @staticmethod
    def _sign(log, status, limit):
        if status == _TIMED_OUT:
            return f"they hang: after {limit:.0f} s they had not ended"
        failures = read_cargo(log.read_text(encoding="utf-8", errors="replace")).failures
        return failures[0] if failures else f"cargo ended with status {status}" if status else ""


class Trial:
    """A test with its arguments on a kernel, whose identifier is as fast-7.3."""

    def __init__(self, tree, out, test, kernel):
        self._tree = tree
        self._out = out
        self._script, *self._arguments = test
        self._kernel = kernel

    def run(self, name, report, limit):
        """Run it for so many seconds at most; one that hangs has failed. With a report only what matches that in a kernel's log
        counts. Raises Interrupted and Killed."""
        directory = self._out / name
        log = self._out / f"{name}.run"
        began = time.monotonic()
        process = self._tree.start(self._command(f"{self._out.name}/{name}"), log)
        why = ""
        try:
            while process.poll() is None and not why:
                time.sleep(_POLL)
                why = self._sign(directory, report)
                if not why and time.monotonic() - began > limit:
                    why = "" if report else f"it hangs: after {limit:.0f} s it had not ended"
                    break
        finally:
            status = process.poll()
            end(process)
        # Nodes that are ended with their runner say "not ok", too.
        check_status(status)
        why = why or self._sign(directory, report)
        if not why and not report:
            why = self._complaint(process, directory, log)
        return Verdict(bool(why), why or "it passes", time.monotonic() - began)

    def _command(self, name):
        selftest = Selftest(self._tree.root / "selftests" / f"{self._script}.sh", self._tree.root)
        options = ["--timeout", str(selftest.timeout(self._kernel)), *selftest.options(self._kernel)]
        command = ["python3", "-m", "node_runner", "run", "--name", name, "--tail", "0", "--kernel", self._kernel]
        return [*command, *options, str(selftest.path), *self._arguments]

    @staticmethod
    def _sign(directory, report):
        """What a log says by now that decides it."""
        for log in sorted(directory.glob("node*.console" if report else "node*.log")):
            found = (report or _FAILED).search(log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return f"{log.stem}: {found[0]}"
        return ""

    @staticmethod
    def _complaint(process, directory, log):
        """What is wrong with a run that has ended without a failed check."""
        if process.returncode:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[:_LAST_LINES]
            return "; ".join(lines) or f"the node runner ended with status {process.returncode}"
        for node in sorted(directory.glob("node*.log")):
            failures = read(node.read_text(encoding="utf-8", errors="replace")).failures
            if failures and failures != ["it printed no plan"]:
                return failures[0]
        return ""
