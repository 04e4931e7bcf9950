# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.ipoib DIRECTORY: report on the runs of bench/ipoib.sh whose results are in DIRECTORY."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pygal
from pygal.style import CleanStyle

from bench_report.ipoib_results import DRIVERS
from bench_report.ipoib_results import Results
from bench_report.ipoib_figures import aims
from bench_report.ipoib_figures import costs
from bench_report.ipoib_figures import events
from bench_report.ipoib_figures import memory
from bench_report.ipoib_figures import rates
from bench_report.ipoib_figures import traffic

_FABRICS = {"peer": "joined in memory", "hop": "a switch between"}


def _columns(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()


def _spread(values):
    return f"{min(values):.4g}-{max(values):.4g}"


def _cost_rows(found):
    yield ("path", "bytes", "burst", "stack", "device", "ib_ipoib", "own", "oxib", "own", "total", "own")
    for cost in found:
        yield (
            cost.path, str(cost.bytes), str(cost.burst), f"{cost.stack:.0f}", f"{cost.device:.0f}",
            f"{cost.kernel:.0f}", f"{cost.kernel_own:.0f}", f"{cost.oxib:.0f}", f"{cost.oxib_own:.0f}",
            f"{cost.oxib / cost.kernel:.2f}", f"{cost.own_ratio:.2f}",
        )  # fmt: skip


def _pair_rows(heading, found):
    yield (heading, "", "ib_ipoib", "spread", "oxib", "spread", "ratio")
    for pair in found:
        yield (
            pair.name, pair.unit, f"{pair.kernel:.5g}", _spread(pair.kernel_values),
            f"{pair.oxib:.5g}", _spread(pair.oxib_values), f"{pair.ratio:.2f}",
        )  # fmt: skip


def _event_rows(found):
    yield ("events per packet, 64 B, bursts of 32", "ib_ipoib", "oxib")
    for name, values in found:
        yield (name, *(f"{value:.3f}" for value in values))


def _aim_rows(found):
    yield ("aim", "", "measured", "")
    for aim in found:
        yield (aim.name, aim.limit, aim.measured, "met" if aim.met else "NOT MET")


def table(results):
    """The lines of the table."""
    yield "IP over InfiniBand: the kernel's ib_ipoib and oxib on softib (own = total - stack - device; the last two columns: oxib's part)"
    for fabric in results.fabrics("packets"):
        yield ""
        yield f"Instructions per packet, the HCAs {_FABRICS[fabric]}, MTU {results.mtu(fabric)}"
        yield from _columns(list(_cost_rows(costs(results, fabric))))
    for heading, found in (
        ("TCP, in instructions of both ends", traffic(results)),
        ("two processors, in real time on this host", rates(results)),
        ("memory, in bytes", memory(results)),
    ):
        if found:
            yield ""
            yield from _columns(list(_pair_rows(heading, found)))
    if events(results):
        yield ""
        yield from _columns(list(_event_rows(events(results))))
    yield ""
    yield from _columns(list(_aim_rows(aims(results))))


def _write_chart(results, path):
    """What of a packet of 64 bytes is whose."""
    shown = [cost for cost in costs(results, "peer") if cost.burst == 32 and cost.bytes == 64]
    chart = pygal.HorizontalStackedBar(
        style=CleanStyle,
        title="IP over InfiniBand: instructions per packet of 64 B, bursts of 32",
        js=[],
        print_values=True,
        formatter=lambda value: f"{value:.0f}",
        legend_at_bottom=True,
    )
    bars = [(cost, driver) for cost in reversed(shown) for driver in reversed(DRIVERS)]
    chart.x_labels = [f"{cost.path}, {driver}" for cost, driver in bars]
    chart.add("stack", [round(cost.stack) for cost, _ in bars])
    chart.add("device", [round(cost.device) for cost, _ in bars])
    chart.add("driver's own", [round(cost.oxib_own if driver == "oxib" else cost.kernel_own) for cost, driver in bars])
    chart.render_to_file(str(path))


def main():
    """Read the nodes' logs; print the table, write all three."""
    directory = Path(sys.argv[1])
    results = Results(directory)
    out = directory / "bench-ipoib"
    out.mkdir(exist_ok=True)
    text = "\n".join(table(results)) + "\n"
    print(text, end="")
    (out / "table.txt").write_text(text, encoding="utf-8")
    document = {
        "aims": [asdict(aim) for aim in aims(results)],
        "packets": {
            fabric: [
                {
                    **asdict(cost),
                    "kernel_own": cost.kernel_own,
                    "oxib_own": cost.oxib_own,
                    "own_ratio": cost.own_ratio,
                }
                for cost in costs(results, fabric)
            ]
            for fabric in results.fabrics("packets")
        },
        "traffic": [asdict(pair) for pair in traffic(results)],
        "rates": [asdict(pair) for pair in rates(results)],
        "memory": [asdict(pair) for pair in memory(results)],
        "events_per_packet": {name: dict(zip(DRIVERS, values, strict=True)) for name, values in events(results)},
    }
    (out / "bench.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    _write_chart(results, out / "bench.svg")


if __name__ == "__main__":
    main()
