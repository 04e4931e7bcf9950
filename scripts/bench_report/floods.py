# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.floods [--publish FILE KERNEL COMMAND] DIRECTORY: report on the runs bench-floods-* in DIRECTORY.

With --publish the tables are written to FILE as Markdown, too, with the date, KERNEL and COMMAND.
"""

import re
from dataclasses import dataclass
from statistics import median

from bench_report import page

# The lines of selftests/soak/floods.sh.
_LINE = re.compile(r"^flood (\S+) (oxib|ib_ipoib) ([-\d. ]+)$", re.MULTILINE)
_FIELDS = ("rate", "taken", "connected", "median", "greatest", "answered", "rtt", "kib")
_COLUMNS = {"oxib": "oxib", "ib_ipoib": "`ib_ipoib`, `ib_cm`"}
# In this order, with the names that they have in the tables.
_ROWS = {
    "none": "none",
    "REQ": "REQ",
    "REP": "REP",
    "REJ": "REJ",
    "SIDR_REQ": "SIDR_REQ",
    "ARP-request": "ARP request",
    "ARP-reply": "ARP reply",
    "ND": "neighbour solicitation",
    "other-classes": "MADs of other classes",
    "connected-REQ": "REQ of connected mode",
}
_EXPLANATION = """\
A stranger floods a host with packets of one kind, each of which names another connection or
another neighbour. Meanwhile a peer asks for 100 connections, spread evenly over the time of the
flood, and sends 100 pings. The host runs oxib, or the kernel's `ib_ipoib` and `ib_cm`; peer and
stranger are in another node and run the kernel's drivers in both cases. Nodes are processes
(user-mode Linux) on two processors, joined by softib.

The flood is sent past the stranger's HCA, at the same rate for both drivers: at the highest of
1000, 2000 and 4000 a second of which the hosts of both took 90 % in, in a run before these. The
sender falls behind that where the machine is busy; the first table has the rates that it reached.
REQ and SIDR_REQ are for a service on which a program listens and accepts all, without a limit of
its own (`max_backlog`). REP and REJ name connections that do not exist. ARP and neighbour
discovery come from invented neighbours; the host answers the requests. The other MADs are those
of subnet administration, performance, baseboard and device management, SNMP, and vendors. For
REQs of connected mode the host's interface is in that mode.

The tables have medians, with the least and the most of the runs. The drivers take turns. *Worse*
marks a row in which oxib's best run is worse than the other's worst. Times are real times of a
machine that does other work besides, so a time is marked only if it is 5 ms longer, too; memory,
if it is 256 KiB more.

What is lost of ARP requests, and of pings among them, is lost while all 256 receive buffers of
the host's interface are taken (`no_receive` of softib's HCA). With `ethtool -G ib0 rx 2048` oxib
lost none of either. The kernel's table of neighbours is full in both cases.
"""


# The tests of each kind in every run.
_TESTS = {
    "REQ": "`storm` and `backlog` of `rust/oxib/cm/machine`; `cm/storm`, `cm/abuse`",
    "REP": "`sequences` of `rust/oxib/cm/machine`; `cm/abuse` (strange messages)",
    "REJ": "`sequences` of `rust/oxib/cm/machine`; `cm/hammer`",
    "SIDR_REQ": "`cm/abuse` (strange messages), `acm/peers`",
    "ARP-request": "`oxib_address_bounds` in `kunit/modules`; `infiniband/strangers`",
    "ARP-reply": "`oxib_address_bounds` in `kunit/modules`",
    "ND": "`oxib_address_bounds` in `kunit/modules`, as with ARP; `infiniband/sequences`",
    "other-classes": "`cm/abuse` (strange messages)",
    "connected-REQ": "`oxib_connected_slots` in `kunit/modules`",
}


@dataclass(frozen=True)
class _Figure:
    title: str
    field: str
    # Whether more is better, and differences that say nothing.
    is_gain: bool = False
    least: float = 0


_FIGURES = (
    _Figure("connections that came up within 10 s, of 100", "connected", is_gain=True),
    _Figure("pings answered, of 100", "answered", is_gain=True),
    _Figure("connecting, the median of 100, ms", "median", least=5),
    _Figure("connecting, the slowest of 100, ms", "greatest", least=5),
    _Figure("a ping, the mean of 100, ms", "rtt", least=5),
    _Figure("memory that the host's kernel took meanwhile, KiB", "kib", least=256),
)


def read(text):
    """The values of all runs: by row, by field, by driver."""
    found = {row: {field: {driver: [] for driver in _COLUMNS} for field in _FIELDS} for row in _ROWS}
    for row, driver, values in _LINE.findall(text):
        for field, value in zip(_FIELDS, values.split(), strict=True):
            found[row][field][driver].append(float(value))
    return found


def is_worse(figure, ours, theirs):
    """Whether the best of ours is worse than the worst of theirs."""
    if not ours or not theirs:
        return False
    if figure.is_gain:
        return max(ours) < min(theirs) - figure.least
    return min(ours) > max(theirs) + figure.least


def document_of(found):
    """All values, and the rows of each figure in which oxib is worse."""
    worse = [
        {"row": row, "figure": figure.field}
        for figure in _FIGURES
        for row, fields in found.items()
        if is_worse(figure, fields[figure.field]["oxib"], fields[figure.field]["ib_ipoib"])
    ]
    return {"rows": found, "worse": worse}


def _number(value):
    return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.1f}"


def _values(values):
    if not values:
        return "-"
    return f"{_number(median(values))} ({_number(min(values))} to {_number(max(values))})"


def _table(title, rows, columns, of_row):
    yield f"| {title} | {' | '.join(columns)} |"
    yield f"| --- |{' --- |' * len(columns)}"
    for row in rows:
        yield f"| {_ROWS[row]} | {' | '.join(of_row(row))} |"
    yield ""


def lines_of(document):
    """The lines of the tables, as Markdown has them."""
    rows = document["rows"]
    floods = [row for row in rows if row != "none"]
    sides = [name for side in ("packets a second", "% taken in") for name in (f"{side}, oxib", f"{side}, {_COLUMNS['ib_ipoib']}")]
    yield from _table(
        "flood",
        floods,
        sides,
        lambda row: [_values(rows[row][field][driver]) for field in ("rate", "taken") for driver in _COLUMNS],
    )
    for figure in _FIGURES:
        worse = {each["row"] for each in document["worse"] if each["figure"] == figure.field}

        def of_row(row, figure=figure, worse=worse):
            values = [_values(rows[row][figure.field][driver]) for driver in _COLUMNS]
            return [*values, "worse" if row in worse else ""]

        yield from _table(figure.title, rows, [*_COLUMNS.values(), ""], of_row)


def _tests():
    """The lines of the last table."""
    yield "What has a test in every run, too:"
    yield ""
    yield from _table("flood", _TESTS, ["tests in `make test`"], lambda row: [_TESTS[row]])


def main():
    """Read the nodes' logs; print the tables, write all."""
    options = page.parser().parse_args()
    document = document_of(read(page.logs(options, "bench-floods-*/node2.log")))
    lines = list(lines_of(document))
    page.write(options, "floods", document, lines, "A stranger's floods", [_EXPLANATION, *lines, *_tests()])


if __name__ == "__main__":
    main()
