# SPDX-License-Identifier: GPL-2.0-only
"""The table of Documentation/testing.md: what each test took in the runs whose results are given.

python3 -m test_runner.table RESULTS...: files results.json of `make test`, with MACHINE=uml, MACHINE=qemu or neither.
"""

import json
import re
import sys
from pathlib import Path

_NAME = re.compile(r"^(?P<test>\S+) \((?P<kernel>[a-z]+)-[0-9.]+\)$")
# The kernels of each column.
_COLUMNS = {"UML": ("uml", "umldebug"), "QEMU": ("fast", "debug", "stock")}
_DEBUG = ("umldebug", "debug")


def _row(test, kernel):
    """Tests on the debug kernels have rows of their own."""
    return f"{test}, debug kernel" if kernel in _DEBUG else test


def _times(records):
    """(row, column): (seconds, processor seconds), of what passed; a later record replaces an earlier one."""
    times = {}
    for record in records:
        name = _NAME.match(record["test"])
        kernel = name["kernel"] if name else ""
        column = next((column for column, kernels in _COLUMNS.items() if kernel in kernels), None)
        if column and not record["failed"]:
            times[_row(name["test"], kernel), column] = record["seconds"], record["processor_seconds"]
    return times


def table(records):
    """The lines of the table."""
    times = _times(records)
    yield "| test | " + " | ".join(f"{column}, seconds | {column}, processor seconds" for column in _COLUMNS) + " |"
    yield "| --- |" + " --- | --- |" * len(_COLUMNS)
    for row in sorted({row for row, _ in times}):
        cells = [f"{value:.0f}" if value else "" for column in _COLUMNS for value in times.get((row, column), (None, None))]
        yield f"| {row} | " + " | ".join(cells) + " |"


def main():
    """Print it."""
    records = [record for path in sys.argv[1:] for record in json.loads(Path(path).read_text(encoding="utf-8"))]
    print("\n".join(table(records)))


if __name__ == "__main__":
    main()
