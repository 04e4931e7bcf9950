# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.programs [--publish FILE COMMAND] DIRECTORY: report on the run of bench/pingpong.sh in DIRECTORY.

With --publish the table is written to FILE as Markdown, too, with the date, the kernel and COMMAND.
"""

import argparse
import json
import os
import re
from datetime import UTC
from datetime import datetime
from pathlib import Path
from statistics import median

_LINE = re.compile(r"^pingpong (softib|rxe) (polled|events) (\d+) ([\d.]+)$", re.MULTILINE)
_WAYS = ("polled", "events")
_SIZES = (64, 1 << 20)
_EXPLANATION = """\
Microseconds of an exchange (a message there and one back), medians of all repetitions, with the
least and the most; real time on the machine that took them. The ratio is softib's median by that of
soft-RoCE (rxe): below 1 softib is faster. Both have the same pair of net devices between two
network namespaces of one node, and are measured by turns. *polled*: the programs poll without a
pause, so they compete with soft-RoCE's tasks for the processors; *events*: `-e`, they sleep. Where
the least and the most are far apart, the machine was busy, and the ratio says little.
"""


def read(text):
    """Microseconds of all repetitions, by device, way and bytes."""
    found = {}
    for device, way, size, value in _LINE.findall(text):
        found.setdefault((device, way, int(size)), []).append(float(value))
    return found


def rows(found):
    """A dictionary for each row of the table."""
    for size in _SIZES:
        for way in _WAYS:
            softib, rxe = (found.get((device, way, size), []) for device in ("softib", "rxe"))
            ratio = median(softib) / median(rxe) if softib and rxe else None
            yield {"bytes": size, "way": way, "softib": softib, "rxe": rxe, "ratio": ratio}


def _times(values):
    if not values:
        return "-"
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def table(document):
    """The lines of the table, as Markdown has them."""
    yield "| ibv_rc_pingpong | softib, µs | soft-RoCE, µs | ratio |"
    yield "| --- | --- | --- | --- |"
    for row in document["exchanges"]:
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        yield f"| {row['bytes']} bytes, {row['way']} | {_times(row['softib'])} | {_times(row['rxe'])} | {ratio} |"


def _page(lines, kernel, command):
    date = datetime.now(UTC).date()
    load = f"{os.getloadavg()[2]:.1f} on {os.cpu_count()} processors"
    said = f"Written by `{command}` on {date}, kernel {kernel}."
    busy = f"The machine's load in the last 15 minutes was {load}."
    head = ["# Programs on softib and on soft-RoCE", "", said, busy, ""]
    return "\n".join([*head, _EXPLANATION, *lines, ""])


def main():
    """Read the node's log; print the table, write all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--publish", nargs=3, metavar=("FILE", "KERNEL", "COMMAND"))
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    log = options.directory / "bench-programs-pingpong" / "node1.log"
    document = {"exchanges": list(rows(read(log.read_text(encoding="utf-8", errors="replace"))))}
    lines = list(table(document))
    text = "\n".join(lines) + "\n"
    print(text, end="")
    out = options.directory / "bench-programs"
    out.mkdir(exist_ok=True)
    (out / "table.txt").write_text(text, encoding="utf-8")
    (out / "bench.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if options.publish:
        name, kernel, command = options.publish
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(_page(lines, kernel, command), encoding="utf-8")


if __name__ == "__main__":
    main()
