# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.routes [--publish FILE KERNEL COMMAND] DIRECTORY ALL: report on the run bench-routes in DIRECTORY.

ALL is how many routes were resolved at once. With --publish the table is written to FILE as Markdown, too, with the date,
KERNEL and COMMAND.
"""

import re
from statistics import median

from bench_report import page

# "route WHO each|awake|all USEC", "mads WHO NUMBER".
_LINE = re.compile(r"^(route|mads) (sa|ibacm|oxib) (?:(each|awake|all) )?([\d.]+)$", re.MULTILINE)
# The most of each one's time that oxib is to take.
_AIMS = {"sa": 0.1, "ibacm": 1.0}
# The rows that are compared, by the processors' state.
_COMPARED = {"each": "as they come", "awake": "kept awake"}
_WHO = {"sa": "subnet administrator", "ibacm": "daemon ibacm", "oxib": "oxib"}
_EXPLANATION = """\
A program has `rdma_cm` resolve the route to a peer on the same switch, whose address is resolved
before: from `rdma_resolve_route()` to its event, in microseconds of real time on the machine that
took them, as a program in Python sees them. Medians, with the least and the most. The kernel asks
one of three for the path:

*subnet administrator*: OpenSM, in the same node; nobody listens to the kernel
(`acm_programs=off`).

*ibacm*: the daemon, which has been asked for the path before and keeps it (`route_prot sa`).

*oxib*: the module, which has been asked for the path before (`acm_programs=exact`).

The service that answers has to be woken, and so have `rdma_cm` and the program. A processor that
sleeps takes longer to wake than a look-up takes, so the first row says more of the machine than of
the drivers. In the second one no processor sleeps: on each runs a program that gives way to all
others (`chrt --idle`).

The last row has the management datagrams of the class SubnAdm that anybody sends for a resolution,
questions and answers.
"""


def read(text):
    """All values, by row and by who was asked."""
    found = {}
    for kind, who, way, value in _LINE.findall(text):
        found.setdefault(way or kind, {}).setdefault(who, []).append(float(value))
    return found


def document_of(found, together):
    """The rows, and how oxib compares with the others."""
    names = {
        "each": "one after the other, µs",
        "awake": "one after the other, processors kept awake, µs",
        "all": f"{together} at once, until the last event, µs",
        "mads": "MADs",
    }
    rows = []
    for key, name in names.items():
        columns = {who: found.get(key, {}).get(who, []) for who in _WHO}
        rows.append({"key": key, "row": name, "columns": columns})
    ratio = {row["key"]: _ratios(row["columns"]) for row in rows if row["key"] in _COMPARED}
    return {"together": together, "rows": rows, "ratio": ratio}


def _ratios(columns):
    """The part of the others' time that oxib takes."""
    medians = {who: median(values) for who, values in columns.items() if values}
    return {who: medians["oxib"] / medians[who] for who in _AIMS if "oxib" in medians and medians.get(who)}


def _values(values):
    if not values:
        return "-"
    if min(values) == max(values):
        return f"{median(values):.0f}"
    return f"{median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def lines_of(document):
    """The lines of the table, as Markdown has them."""
    yield f"| rdma_resolve_route | {' | '.join(_WHO.values())} |"
    yield "| --- | --- | --- | --- |"
    for row in document["rows"]:
        yield f"| {row['row']} | {' | '.join(map(_values, row['columns'].values()))} |"
    yield ""
    for key, ratios in document["ratio"].items():
        for who, ratio in ratios.items():
            verdict = "met" if ratio <= _AIMS[who] else "not met"
            yield f"Processors {_COMPARED[key]}, oxib takes {ratio:.3f} of the time of the {_WHO[who]}:"
            yield f"the aim, at most {_AIMS[who]}, is {verdict}."
            yield ""


def main():
    """Read the node's log; print the table, write all."""
    parser = page.parser()
    parser.add_argument("together", type=int)
    options = parser.parse_args()
    document = document_of(read(page.logs(options, "bench-routes/node1.log")), options.together)
    lines = list(lines_of(document))
    title = "What it takes until a program has its route"
    page.write(options, "routes", document, lines, title, [_EXPLANATION, *lines])


if __name__ == "__main__":
    main()
