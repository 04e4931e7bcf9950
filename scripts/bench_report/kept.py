# SPDX-License-Identifier: GPL-2.0-only
"""Compares what a connection costs with the figures that the repository keeps, or keeps new ones.

bench_report.kept compare|keep FILE KERNEL CONNECTIONS DIRECTORY: FILE has the kept figures, KERNEL is the ID of the kernel on
which the runs in DIRECTORY were taken, with so many connections at once. Only instructions in modules are kept: two boots of
one commit repeat them to less than a hundredth, while the whole system differs by as much.
"""

import json
import sys
from pathlib import Path

from bench_report.profile import Symbols
from bench_report.profile import count

# A difference beyond this part is a change.
_SPREAD = 0.02

# The runs, and how often cmtime does in each what is counted: it opens its connections twice, with and without queue pairs.
_RUNS = {"connection": ("bench-kept-counts", 2), "disconnection": ("bench-kept-disconnect", 1)}


def _of_modules(directory):
    """(instructions in all modules, those in oxib) of a round, both ends of all connections."""
    with (directory / "node1/kallsyms").open(encoding="ascii") as kallsyms:
        symbols = Symbols(kallsyms)
    with (directory / "counts").open(encoding="ascii") as counts:
        rounds, instructions, _ = count(counts, symbols)
    if not rounds:
        raise SystemExit(f"oxib: the profiler saw no mark ({directory.name})")
    modules = sum(number for name, number in instructions.items() if name.endswith("]"))
    oxib = sum(number for name, number in instructions.items() if name.endswith("[oxib]"))
    return modules / rounds, oxib / rounds


def read(directory, connections):
    """The figures of the runs in a directory, for each connection."""
    figures = {}
    for what, (run, times) in _RUNS.items():
        modules, oxib = _of_modules(directory / run)
        figures[f"{what}, modules"] = round(modules / (connections * times))
        figures[f"{what}, oxib"] = round(oxib / (connections * times))
    return figures


def differences(kept, found):
    """A line for each figure that is not as it was."""
    for name, before in kept.items():
        now = found.get(name)
        if now is None or not before:
            yield f"{name}: {before} instructions are kept, {now} were found"
        elif abs(now - before) > _SPREAD * before:
            change = 100 * (now - before) / before
            yield f"{name}: {now} instructions, {before} are kept: {change:+.1f} %"


def main():
    """Compare or keep."""
    verb, file, kernel, connections, directory = sys.argv[1:]
    found = read(Path(directory), int(connections))
    if verb == "keep":
        document = {"kernel": kernel, "connections": int(connections), "instructions": found}
        Path(file).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        return
    document = json.loads(Path(file).read_text(encoding="utf-8"))
    for name, value in found.items():
        print(f"{name}: {value} instructions ({document['instructions'].get(name)} are kept)")
    lines = list(differences(document["instructions"], found))
    if document["connections"] != int(connections):
        lines.append(f"the kept figures are of {document['connections']} connections at once, these of {connections}")
    if lines and document["kernel"] != kernel:
        lines.append(f"the kept figures are of kernel {document['kernel']}, these of {kernel}: that may be why")
    for line in lines:
        print(f"oxib: {line}", file=sys.stderr)
    if lines:
        raise SystemExit("oxib: a connection does not cost what it did; if that is meant, `scripts/bench keep` keeps these figures")


if __name__ == "__main__":
    main()
