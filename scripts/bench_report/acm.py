# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.acm DIRECTORY: report on the runs of bench/acm.sh and bench/resolve.sh whose results are in DIRECTORY."""

import json
import sys
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench_report.acm_results import DRIVERS
from bench_report.acm_results import Results

_TABLES = (("cache", "oxib's cache"), ("table", "bare rhashtable"), ("neighbours", "neigh_lookup"))
_FABRICS = (("subnet", "in a subnet"), ("router", "across a router"))
_STATES = (("neighbour", "neighbour entry there"), ("cached", "no neighbour entry"), ("asked", "path and queue pair asked for"))
_KINDS = (("tcp", "TCP"), ("rdma_cm", "rdma_cm"))


@dataclass(frozen=True)
class Aim:
    """What was to be reached, and what is."""

    name: str
    limit: float
    measured: float

    @property
    def met(self):
        """Whether it is."""
        return self.measured <= self.limit


def _columns(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()


def _look_up_rows(results):
    yield ("look-up among so many entries, instructions", *(f"{entries:,}" for entries in results.sizes))
    for kind, title in _TABLES:
        for found in ("hit", "miss"):
            values = [results.look_up(f"{kind}-{found}", entries) for entries in results.sizes]
            yield (f"{title}, {found}", *("-" if value is None else f"{value:.0f}" for value in values))
    if results.ibacm():
        yield ("ib_acme, of ibacm's cache of one entry", f"{results.ibacm():.0f}", *("-" for _ in results.sizes[1:]))
    yield ("bytes of an entry, all included", *(f"{results.memory[entries]:.1f}" for entries in results.sizes))


def _cells(results, fabric, driver, state):
    times = results.times(fabric, driver, state)
    if not times:
        return ("-", "-", "-")
    mads = results.mads(fabric, driver, state)
    return (f"{median(times):.0f}", f"{times[0]}-{times[-1]}", "-" if mads is None else f"{mads:g}")


def _resolution_rows(results):
    yield ("first packet to its reply, 1000 instructions", "ib_ipoib", "spread", "MADs", "oxib", "spread", "MADs")
    for fabric, where in _FABRICS:
        for state, known in _STATES:
            cells = [cell for driver in DRIVERS for cell in _cells(results, fabric, driver, state)]
            if any(cell != "-" for cell in cells):
                yield (f"{where}, {known}", *cells)


def _query_rows(results):
    yield ("path queries for connections", "peers", "connections", *DRIVERS)
    for kind, title in _KINDS:
        found = [results.queries(driver, kind) for driver in DRIVERS]
        counts = [str(each["queries"]) if each else "-" for each in found]
        measured = [each for each in found if each]
        if measured:
            yield (title, str(measured[0]["peers"]), str(measured[0]["connections"]), *counts)


def aims(results):
    """Those of the project; of what was measured."""
    few, many = results.sizes[0], results.sizes[-1]
    hit = {entries: results.look_up("cache-hit", entries) for entries in results.sizes}
    worst = {
        found: max(results.look_up(f"cache-{found}", n) / results.look_up(f"table-{found}", n) for n in results.sizes)
        for found in ("hit", "miss")
    }
    found = [
        Aim("a hit, of a bare table's, at worst", 2, worst["hit"]),
        Aim("a miss, of a bare table's, at worst", 2, worst["miss"]),
        Aim(f"a hit among {many:,}, of one among {few:,}", 1.2, hit[many] / hit[few]),
        Aim(f"bytes of an entry of {many:,}", 96, results.memory[many]),
    ]
    if results.ibacm():
        found.append(Aim("a hit, at worst, of ib_acme's asking ibacm", 0.01, max(hit.values()) / results.ibacm()))
    own, kernel = results.times("subnet", "oxib", "cached"), results.times("subnet", "ib_ipoib", "asked")
    if own and kernel:
        found.append(Aim("in a subnet, all cached: MADs", 0, results.mads("subnet", "oxib", "cached")))
        found.append(Aim("in a subnet, all cached: time, of ib_ipoib's ARP and SA query", 0.25, median(own) / median(kernel)))
    queries = results.queries("oxib", "tcp")
    if queries:
        found.append(Aim(f"path queries for {queries['connections']} connections of TCP", 10, queries["queries"]))
    return found


def _aim_rows(found):
    yield ("aim", "at most", "measured", "")
    for aim in found:
        yield (aim.name, f"{aim.limit:g}", f"{aim.measured:.3g}", "met" if aim.met else "NOT MET")


def table(results):
    """The lines of the table."""
    for rows in (_look_up_rows(results), _resolution_rows(results), _query_rows(results), _aim_rows(aims(results))):
        lines = list(rows)
        if len(lines) > 1:
            yield from _columns(lines)
            yield ""


def _document(results):
    return {
        "aims": [{**asdict(aim), "met": aim.met} for aim in aims(results)],
        "look_up_instructions": {
            f"{kind}-{found}": {entries: results.look_up(f"{kind}-{found}", entries) for entries in results.sizes}
            for kind, _ in _TABLES
            for found in ("hit", "miss")
        },
        "ib_acme_instructions": results.ibacm(),
        "bytes_of_an_entry": results.memory,
        "resolution": [
            {
                "fabric": fabric,
                "driver": driver,
                "state": state,
                "microseconds": results.times(fabric, driver, state),
                "mads": results.mads(fabric, driver, state),
            }
            for fabric, _ in _FABRICS
            for driver in DRIVERS
            for state, _ in _STATES
        ],
        "path_queries": {f"{driver} {kind}": results.queries(driver, kind) for driver in DRIVERS for kind, _ in _KINDS},
    }


def main():
    """Read the nodes' logs; print the table, write both."""
    directory = Path(sys.argv[1])
    results = Results(directory)
    out = directory / "bench-acm"
    out.mkdir(exist_ok=True)
    text = "\n".join(table(results)).rstrip() + "\n"
    print(text, end="")
    (out / "table.txt").write_text(text, encoding="utf-8")
    (out / "bench.json").write_text(json.dumps(_document(results), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
