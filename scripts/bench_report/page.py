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


def _origin(kernel, command):
    date = datetime.now(UTC).date()
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    said = f"Written by `{command}` on {date}, kernel {kernel}."
    busy = f"The load of the machine in its last minute, with its own programs, was {load}."
    return [said, busy, ""]


def _write_tables(options, name, document, lines):
    table = "\n".join(lines)
    print(table, end="")
    out = options.directory / f"bench-{name}"
    out.mkdir(exist_ok=True)
    (out / "table.txt").write_text(table, encoding="utf-8")
    (out / "bench.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def write(options, name, document, lines, title, text):
    """Print the lines of the tables, and write all. The page has the title, then the text, all as lines."""
    _write_tables(options, name, document, lines)
    if options.publish:
        file, kernel, command = options.publish
        page = "\n".join([f"# {title}", "", *_origin(kernel, command), *text])
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(page.rstrip("\n") + "\n", encoding="utf-8")


def write_section(options, name, document, lines, title, text):
    """Do as `write`, but replace the section of that title in a page that has other text too."""
    _write_tables(options, name, document, lines)
    if options.publish:
        file, kernel, command = options.publish
        page = Path(file).read_text(encoding="utf-8")
        section = [f"## {title}", "", *_origin(kernel, command), *text]
        Path(file).write_text(with_section(page, section), encoding="utf-8")


def with_section(page, section):
    """The page with the section in place of the one that has its heading, which ends at the next heading.

    A page without that heading has the section at its end.
    """
    lines = page.splitlines()
    start = lines.index(section[0]) if section[0] in lines else len(lines)
    end = next((at for at in range(start + 1, len(lines)) if lines[at].startswith("#")), len(lines))
    parts = ("\n".join(part).strip("\n") for part in (lines[:start], section, lines[end:]))
    return "\n\n".join(part for part in parts if part) + "\n"
