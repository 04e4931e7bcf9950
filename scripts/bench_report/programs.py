# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.programs [--publish FILE KERNEL COMMAND] DIRECTORY: report on the runs bench-programs-* in DIRECTORY.

With --publish the tables are written to FILE as Markdown, too, with the date, KERNEL and COMMAND.
"""

import re
from statistics import median

from bench_report import page

# "pingpong DEVICE WAY BYTES VALUE", "perftest DEVICE PROGRAM BYTES VALUE", "connect DRIVER VALUE".
_LINE = re.compile(r"^(pingpong|perftest|connect) (\w+)(?: (\w+) (\d+))? ([\d.]+)$", re.MULTILINE)
_EXPLANATION = """\
Medians of all repetitions, with the least and the most; real time on the machine that took them.
The ratio is the first column's median by the second's. Where the least and the most are far apart,
the machine was busy, and the ratio says little.

*ibv_rc_pingpong*: microseconds of an exchange (a message there and one back) on softib and on
soft-RoCE (rxe), over the same pair of net devices between two network namespaces of one node, by
turns. *polled*: the programs poll without a pause, so they compete with soft-RoCE's tasks for the
processors; *events*: `-e`, they sleep.

*ib_send_lat* (microseconds of a message one way) and *ib_write_bw* (MiB/s), which poll: softib over
one switch, soft-RoCE over a pair of net devices of its own.

*Connecting across a router*: microseconds of rdma_resolve_addr(), rdma_resolve_route() and
rdma_connect() until their events, by `cmtime`, one connection after another. oxib answers the first
two out of its address cache; ib_ipoib has a neighbour entry for the peer, as it cannot look up an
address across a router.
"""


class _Table:
    """Rows of two columns, whose first medians are divided by the second's."""

    def __init__(self, kind, title, columns, rows):
        self.kind = kind
        self.title = title
        self.columns = columns
        # By what a line says between its column and its value: the name of the row.
        self.rows = rows

    def measured(self, found):
        """A dictionary for each row."""
        for key, name in self.rows.items():
            values = {column: found.get((self.kind, column, *key), []) for column in self.columns}
            first, second = values.values()
            ratio = median(first) / median(second) if first and second and median(second) else None
            yield {"row": name, "columns": values, "ratio": ratio}


_TABLES = (
    _Table("pingpong", "ibv_rc_pingpong, µs", {"softib": "softib", "rxe": "soft-RoCE"},
           {(way, size): f"{size} bytes, {way}" for size in ("64", "1048576") for way in ("polled", "events")}),
    _Table("perftest", "perftest", {"softib": "softib", "rxe": "soft-RoCE"},
           {(name, size): f"{name}, {size} bytes, {unit}" for name, unit in (("ib_send_lat", "µs"), ("ib_write_bw", "MiB/s"))
            for size in ("64", "4096", "1048576")}),
    _Table("connect", "across a router", {"oxib": "oxib", "ib_ipoib": "the kernel's drivers"}, {("", ""): "connecting, µs"}),
)


def read(text):
    """The values of all repetitions, by kind, column and row."""
    found = {}
    for kind, column, word, size, value in _LINE.findall(text):
        found.setdefault((kind, column, word, size), []).append(float(value))
    return found


def document_of(found):
    """The rows of each table, by its kind."""
    return {table.kind: list(table.measured(found)) for table in _TABLES}


def _values(values):
    if not values:
        return "-"
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def lines_of(document):
    """The lines of the tables, as Markdown has them."""
    for table in _TABLES:
        yield f"| {table.title} | {' | '.join(table.columns.values())} | ratio |"
        yield "| --- | --- | --- | --- |"
        for row in document[table.kind]:
            ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
            yield f"| {row['row']} | {' | '.join(map(_values, row['columns'].values()))} | {ratio} |"
        yield ""


def main():
    """Read the nodes' logs; print the tables, write all."""
    options = page.parser().parse_args()
    document = document_of(read(page.logs(options, "bench-programs-*/node1.log")))
    lines = list(lines_of(document))
    title = "What programs take on softib and with oxib"
    page.write(options, "programs", document, lines, title, [_EXPLANATION, *lines])


if __name__ == "__main__":
    main()
