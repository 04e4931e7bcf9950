# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.connections DIRECTORY CONNECTIONS: report on the runs of bench/cm.sh whose results are in DIRECTORY."""

import json
import sys
from collections import defaultdict
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from statistics import median

import pygal
from pygal.style import CleanStyle

_MANAGERS = ("kernel", "oxib")


def _read(directory):
    """The values of each (connection manager, measurement), as often as they were taken."""
    values = defaultdict(list)
    for log in sorted(directory.glob("bench-cm-*-*-*/node1.log")):
        manager = log.parent.name.split("-")[3]
        for line in log.read_text(encoding="utf-8").splitlines():
            word, *words = line.split() or [""]
            if word == "cm":
                for key, _, value in (each.partition("=") for each in words[1:]):
                    values[manager, f"{words[0]} {key}"].append(int(value))
        counts = log.parent / "counts"
        if counts.exists():
            values[manager, "counts instructions"].append(instructions(counts))
    return values


def instructions(counts, first=0):
    """What the profiler counted between two marks, on average, from an address on: the file is bench/profile.c's."""
    with counts.open(encoding="ascii") as lines:
        rounds = int(next(lines))
        if not rounds:
            raise SystemExit(f"oxib: the profiler saw no mark ({counts})")
        blocks = map(str.split, lines)
        return sum(int(length) * int(runs) for address, length, runs in blocks if int(address, 16) >= first) / rounds


@dataclass(frozen=True)
class Figure:
    """A figure of both connection managers: medians or the worst, and the quartiles where they were taken often enough."""

    name: str
    unit: str
    aim: str
    kernel: float
    oxib: float
    kernel_quartiles: list
    oxib_quartiles: list
    met: bool

    @property
    def ratio(self):
        """oxib's part of the kernel's."""
        return self.oxib / self.kernel if self.kernel else float("inf")


def _quartiles(values):
    return [each for number, each in enumerate(quantiles(values, n=4)) if number != 1] if len(values) > 2 else []


def _figure(values, name, unit, key, convert, aim, is_met, of_all=median):
    taken = [[convert(value) for value in values[manager, key]] for manager in _MANAGERS]
    if not all(taken):
        raise SystemExit(f"oxib: the nodes' logs have no results for: {name}")
    kernel, oxib = map(of_all, taken)
    return Figure(name, unit, aim, kernel, oxib, *map(_quartiles, taken), is_met(kernel, oxib))


def figures(values, connections):
    """All of them. cmtime opens its connections twice, with and without queue pairs; each has two ends."""
    both = 2 * connections

    def of(*arguments):
        return _figure(values, *arguments)

    def rate(microseconds):
        return connections / microseconds * 1e6

    return [
        of("instructions, whole system", "a connection", "counts instructions", lambda v: v / both,
           "at most 0.9 of the kernel's", lambda kernel, oxib: oxib <= 0.9 * kernel),
        of("instructions, connect step alone", "a connection", "counts connect", lambda v: v * 1000 / connections,
           "", lambda kernel, oxib: True),
        of("instructions, disconnect step alone", "a connection", "counts disconnect", lambda v: v * 1000 / connections,
           "", lambda kernel, oxib: True),
        of("connections a second, one CPU", "1e9 instr/s", "counts connect", rate,
           "at least the kernel's", lambda kernel, oxib: oxib >= kernel),
        of("connections a second, two CPUs", "this host", "rate connect", rate,
           "above the kernel's", lambda kernel, oxib: oxib > kernel),
        of(f"time for {connections} at 1 % loss", "s", "loss connect", lambda v: v / 1e6,
           "at most a quarter of the kernel's", lambda kernel, oxib: oxib <= kernel / 4),
        of(f"time for {connections} at 1 % loss, worst", "s", "loss connect", lambda v: v / 1e6,
           "at most a quarter of the kernel's", lambda kernel, oxib: oxib <= kernel / 4, max),
        of("memory, established", "bytes an end", "memory bytes", lambda v: v / both,
           "at most 1024", lambda _, oxib: oxib <= 1024),
        of("messages", "a connection", "counts messages", lambda v: v / both,
           "equal", lambda kernel, oxib: round(oxib, 2) == round(kernel, 2)),
        of("messages at 1 % loss", "a connection", "loss messages", lambda v: v / both,
           "", lambda kernel, oxib: True),
    ]  # fmt: skip


def _spread(quartiles):
    return "-".join(f"{value:.4g}" for value in quartiles)


def table(found):
    """The lines of the table."""
    rows = [("", "", "kernel's", "quartiles", "oxib's", "quartiles", "ratio", "aim", "")]
    for each in found:
        rows.append((
            each.name, each.unit, f"{each.kernel:.5g}", _spread(each.kernel_quartiles), f"{each.oxib:.5g}",
            _spread(each.oxib_quartiles), f"{each.ratio:.2f}", each.aim,
            "" if not each.aim else "met" if each.met else "NOT MET",
        ))  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _write_chart(found, path):
    chart = pygal.HorizontalBar(
        style=CleanStyle,
        title="Connection manager: oxib's part of the kernel's",
        js=[],
        print_values=True,
        formatter=lambda value: f"{value:.2f}",
        show_legend=False,
    )
    shown = list(reversed(found))
    chart.x_labels = [each.name for each in shown]
    chart.add("oxib / kernel", [each.ratio for each in shown])
    chart.render_to_file(str(path))


def main():
    """Read the nodes' logs; print the table, write all three."""
    directory, connections = Path(sys.argv[1]), int(sys.argv[2])
    values = _read(directory)
    found = figures(values, connections)
    out = directory / "bench-cm"
    out.mkdir(exist_ok=True)
    text = "\n".join(table(found)) + "\n"
    print(text, end="")
    (out / "table.txt").write_text(text, encoding="utf-8")
    document = {
        "connections": connections,
        "seeds": {manager: len(values[manager, "loss connect"]) for manager in _MANAGERS},
        "figures": [{**asdict(each), "ratio": each.ratio} for each in found],
        "results": {" ".join(key): value for key, value in sorted(values.items())},
    }
    (out / "bench.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    _write_chart(found, out / "bench.svg")


if __name__ == "__main__":
    main()
