# SPDX-License-Identifier: GPL-2.0-only
"""bench_report DIRECTORY ROUNDS: report on the run whose results are in DIRECTORY."""

import json
import sys
from pathlib import Path

from bench_report import chart
from bench_report import figures
from bench_report import table
from bench_report.measurements import Measurements


def main():
    """Read the node's log; print the table, write all three."""
    directory, rounds = Path(sys.argv[1]), int(sys.argv[2])
    measurements = Measurements((directory / "node1.log").read_text(encoding="utf-8").splitlines())
    costs = figures.costs(measurements)
    lines = table.lines(costs, figures.events(measurements), figures.aims(measurements), measurements.memory, rounds)
    text = "\n".join(lines) + "\n"
    print(text, end="")
    (directory / "table.txt").write_text(text, encoding="utf-8")
    document = json.dumps(figures.document(measurements, rounds), indent=2)
    (directory / "bench.json").write_text(document + "\n", encoding="utf-8")
    chart.write(costs, directory / "bench.svg")


if __name__ == "__main__":
    main()
