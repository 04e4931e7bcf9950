# SPDX-License-Identifier: GPL-2.0-only
"""What benchmarks in ordinary nodes write: table.txt, bench.json, and a page of Documentation/results/."""

import argparse
import json
import os
from datetime import UTC
from datetime import datetime
from pathlib import Path


def parser():
    """A parser of the command line; the directory has the output of the nodes."""
    made = argparse.ArgumentParser()
    made.add_argument("--publish", nargs=3, metavar=("FILE", "KERNEL", "COMMAND"))
    made.add_argument("directory", type=Path)
    return made


def logs(options, pattern):
    """The text of all logs of nodes whose path fits the pattern."""
    files = sorted(options.directory.glob(pattern))
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def _head(title, kernel, command):
    date = datetime.now(UTC).date()
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    said = f"Written by `{command}` on {date}, kernel {kernel}."
    busy = f"The load of the machine in its last minute, with its own programs, was {load}."
    return [f"# {title}", "", said, busy, ""]


def write(options, name, document, lines, title, text):
    """Print the lines of the tables, and write all. The page has the title, then the text, all as lines."""
    table = "\n".join(lines)
    print(table, end="")
    out = options.directory / f"bench-{name}"
    out.mkdir(exist_ok=True)
    (out / "table.txt").write_text(table, encoding="utf-8")
    (out / "bench.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if options.publish:
        file, kernel, command = options.publish
        page = "\n".join([*_head(title, kernel, command), *text])
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(page.rstrip("\n") + "\n", encoding="utf-8")
