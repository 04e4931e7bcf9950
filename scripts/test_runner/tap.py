# SPDX-License-Identifier: GPL-2.0-only
"""Reading TAP, the output of every selftest, and what cargo's test harness prints."""

import itertools
import re
from dataclasses import dataclass, field

_LINE = re.compile(r"^(not )?ok\b *\d* *-? *(.*)$")
_PLAN = re.compile(r"^1\.\.(\d+)")
_SKIP = re.compile(r"# *SKIP\b", re.IGNORECASE)
# How many lines of what a failed check says are kept.
_TOLD = 24
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")


@dataclass
class Result:
    """What a test came to. `failures` describes each failed check, so there are as many as failed; the lines after the first
    are what it said itself."""

    passed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)

    def add(self, other):
        """Count another result in."""
        self.passed += other.passed
        self.skipped += other.skipped
        self.failures += other.failures


def read(text):
    """The result of one TAP document. A plan that was not kept is a failure; so is a document without a check."""
    result = Result()
    planned = None
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        plan = _PLAN.match(line)
        if plan:
            planned = int(plan[1])
        if line.startswith("Bail out!"):
            result.failures.append(line)
            return result
        check = _LINE.match(line)
        if check is None:
            continue
        if check[1]:
            result.failures.append("\n".join([check[2], *_comments(lines[number : number + _TOLD])]))
        elif _SKIP.search(line):
            result.skipped += 1
        else:
            result.passed += 1
    seen = result.passed + result.skipped + len(result.failures)
    if planned is None:
        result.failures.append("it printed no plan")
    elif planned != seen:
        result.failures.append(f"it planned {planned} checks and made {seen}")
    elif planned == 0:
        result.skipped += 1
    return result


def _comments(lines):
    """Those before the first that is none."""
    return itertools.takewhile(lambda line: line.startswith("#"), lines)


def read_cargo(text):
    """The result of a `cargo test`."""
    result = Result()
    for line in text.splitlines():
        summary = _CARGO.match(line)
        if summary:
            result.passed += int(summary[1])
            result.skipped += int(summary[3])
        elif re.match(r"^test .* \.\.\. FAILED$", line):
            result.failures.append(line.split()[1])
    return result
