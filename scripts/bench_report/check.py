# SPDX-License-Identifier: GPL-2.0-only
"""Refuses results that cannot be.

bench_report.check [--smoke] KIND FILE...: KIND is packets, cm, scheduling, fabric, ipoib, acm, programs,
routes or floods, FILE the bench.json of such a run. Prints a line for each complaint, and fails if there is one.
A run with the smallest counts (--smoke) has not all ways of TCP, does not count calls, and does not
count the instructions of single steps.
"""

import itertools
import json
import math
import operator
import sys
from pathlib import Path

_BURSTS = (1, 8, 32)
_PATHS = {"TX queue": _BURSTS, "TX socket": (32,), "RX": _BURSTS}
_DRIVERS = ("ib_ipoib", "oxib")
# An entry of the address cache holds two addresses of 16 bytes.
_LEAST_ENTRY = 32
# One of each kind, and none.
_FLOODS = 10
# What no connection does without.
_AT_LEAST_ONCE = ("wake-ups", "context switches")
# Rows that cannot be without others, nor above them.
_PARTS = {
    "wake-ups of programs": "wake-ups",
    "context switches to the idle thread": "context switches",
    "migrations of programs": "migrations",
}
_SCHEDULING = (*_PARTS, *_PARTS.values(), "waits for mutexes")


def _numbers(value, place=""):
    """(place, number) of all numbers in a document."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _numbers(each, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _numbers(each, f"{place}[{index}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place, value


def _infinite(document):
    for place, number in _numbers(document):
        if not math.isfinite(number):
            yield f"{place} is {number}"


def _missing(what, expected, found):
    for each in expected:
        if each not in found:
            yield f"{what}: there is no row {each}"


def _row(cost):
    return f"{cost['path']}, {cost['bytes']} bytes, bursts of {cost['burst']}"


def _cost_rows(what, costs):
    """Each path has its bursts, at 64 bytes and at one size more."""
    sizes = sorted({cost["bytes"] for cost in costs})
    if len(sizes) != 2 or sizes[0] != 64:
        yield f"{what}: the sizes are {sizes} instead of 64 bytes and what the MTU takes"
        return
    rows = [
        _row({"path": path, "bytes": size, "burst": burst})
        for path, all_ in _PATHS.items()
        for size in sizes
        for burst in all_
    ]
    yield from _missing(what, rows, [_row(cost) for cost in costs])


def _floors(what, cost, totals):
    """The parts are above zero, and none of the totals is below their sum."""
    for part in ("stack", "device"):
        if not cost[part] > 0:
            yield f"{what}{_row(cost)}: {part} is {cost[part]:.1f} instructions"
    floor = cost["stack"] + cost["device"]
    for name in totals:
        if cost[name] < floor:
            yield (
                f"{what}{_row(cost)}: the own share is negative: "
                f"{name} is {cost[name]:.1f} instructions, below its floors "
                f"{cost['stack']:.1f} (stack) + {cost['device']:.1f} (device) = {floor:.1f}"
            )


def packets(document, _smoke=False):
    """Complaints about a document of bench_report."""
    yield from _cost_rows("costs", document["costs"])
    for cost in document["costs"]:
        yield from _floors("", cost, ("total",))
        if (cost["notice"] is None) != (cost["path"] == "RX"):
            yield f"{_row(cost)}: notice is {cost['notice']}"
    events = [(event["direction"], event["burst"]) for event in document["events_per_packet"]]
    yield from _missing(
        "events", [(way, burst) for way in ("TX", "RX") for burst in _BURSTS], events
    )
    for event in document["events_per_packet"]:
        for what in ("posts", "completions"):
            if not 0 < event[what] <= 1:
                row = f"{event['direction']}, bursts of {event['burst']}"
                yield f"{row}: {event[what]} {what} per packet"
    for name in ("memory_buffers", "memory_rings"):
        if not document["memory_bytes"].get(name):
            yield f"memory: {name} is {document['memory_bytes'].get(name, 'missing')}"


def _pairs(what, rows, expected):
    """Figures of both drivers."""
    yield from _missing(what, expected, [row["name"] for row in rows])
    for row in rows:
        for driver, values in (("ib_ipoib", row["kernel_values"]), ("oxib", row["oxib_values"])):
            if not values or not min(values) > 0:
                yield f"{what}: {row['name']}: {driver}'s values are {values}"


def ipoib(document, smoke=False):
    """Complaints about a document of bench_report.ipoib."""
    fabrics = list(document["packets"])
    if not fabrics:
        yield "packets: there is no fabric"
    for fabric, costs in document["packets"].items():
        yield from _cost_rows(f"packets, {fabric}", costs)
        for cost in costs:
            yield from _floors(f"{fabric}: ", cost, ("kernel", "oxib"))
    ways = ("datagrams", "datagrams, checksum=1 tso=1", "connected mode")
    ways = ways[-1:] if smoke else ways
    traffic = [
        f"{what}, {way}, {fabric}"
        for way in ways
        for fabric in fabrics
        for what in ("stream", "echo")
    ]
    yield from _pairs("traffic", document["traffic"], traffic)
    loads = [(what, flows) for what in ("stream", "flood") for flows in ("1 flow", "4 flows")]
    yield from _pairs(
        "rates",
        document["rates"],
        [f"{what}, {flows}, {fabric}" for fabric in fabrics for what, flows in loads],
    )
    yield from _pairs("memory", document["memory"], ["an interface that is up", "a destination"])
    events = document["events_per_packet"]
    expected = [
        f"{what}, {way}"
        for way in ("TX", "RX")
        for what in ("allocations", "events of completion queues")
    ]
    expected += ["posts (doorbells), TX", "posts, RX", "completions, TX"]
    yield from _missing("events", () if smoke else expected, events)
    for name in ("posts (doorbells), TX", "posts, RX"):
        for driver, value in events.get(name, {}).items():
            if not 0 < value < 2:
                yield f"events: {name}: {driver} has {value}"


def cm(document, smoke=False):
    """Complaints about a document of bench_report.connections."""
    count = document["connections"]
    names = [
        "instructions, whole system",
        "instructions, connect step alone",
        "instructions, disconnect step alone",
    ]
    names += [
        "connections a second, one CPU",
        "connections a second, two CPUs",
        f"time for {count} at 1 % loss",
        f"time for {count} at 1 % loss, worst",
    ]
    names += ["memory, established", "messages", "messages at 1 % loss"]
    yield from _missing("figures", names, [figure["name"] for figure in document["figures"]])
    if len(set(document["seeds"].values())) != 1:
        yield f"time at 1 % loss: the numbers of seeds are {document['seeds']}"
    parts = {"kernel": [], "oxib": []}
    for figure in document["figures"]:
        for manager, steps in parts.items():
            if not figure[manager] > 0:
                yield f"{figure['name']}: {manager}'s is {figure[manager]}"
            if figure["name"].startswith("messages") and figure[manager] < 3:
                sent = f"{manager} sends {figure[manager]} for a connection"
                yield f"{figure['name']}: {sent}, which takes three at least"
            if figure["name"].startswith("instructions"):
                steps.append(figure[manager])
    lossy = [figure for figure in document["figures"] if figure["name"].startswith("time for")]
    for usual, worst in itertools.pairwise(lossy):
        for manager in parts:
            if usual[manager] > worst[manager]:
                found = f"median is {usual[manager]}, above the worst, {worst[manager]}"
                yield f"{usual['name']}: {manager}'s {found}"
    # With --smoke a step is timed by the clock, which other programs of the host share.
    for manager, (whole, *steps) in ((name, found) for name, found in parts.items() if found):
        if not smoke and whole < max(steps, default=0):
            step = f"one step alone {max(steps):.0f}"
            yield f"instructions: {manager}'s whole system has {whole:.0f}, {step}"


def scheduling(document, _smoke=False):
    """Complaints about a document of bench_report.scheduling. A connection waits for its messages, at both ends."""
    repetitions = document["repetitions"]
    if repetitions["kernel"] != repetitions["oxib"] or not repetitions["oxib"]:
        yield f"the boots have {repetitions} repetitions"
    rows = {row["row"]: row for row in document["rows"]}
    yield from _missing("scheduling", _SCHEDULING, rows)
    for name, row in rows.items():
        for manager, values in row["values"].items():
            least = 1 if name in _AT_LEAST_ONCE else 0
            if not values or min(values) < least:
                yield f"{name}: {manager} has {values} for a connection"
            for part, whole in _PARTS.items():
                if name == part and any(map(operator.gt, values, rows[whole]["values"][manager])):
                    yield f"{name}: {manager} has {values}, but {rows[whole]['values'][manager]} {whole}"


def fabric(document, smoke=False):
    """Complaints about a document of bench_report.fabric."""
    rows = [(kind, 64, burst) for kind in ("chain", "chain-events") for burst in _BURSTS] + [
        ("single", 64, 32),
        ("chain", 4096, 32),
    ]
    expected = [
        (f"{where}-fabric-{kind}", size, burst)
        for where in ("hop", "peer")
        for kind, size, burst in rows
    ]
    values = {
        (row["measurement"], row["bytes"], row["burst"]): row["instructions"]
        for row in document["packets"]
    }
    yield from _missing("packets", expected, values)
    for row, found in values.items():
        if not found or not min(found) > 0:
            yield f"packets: {row}: the instructions are {found}"
        other = (
            values.get(("peer" + row[0].removeprefix("hop"), *row[1:]))
            if row[0].startswith("hop")
            else None
        )
        if found and other and max(found) < min(other):
            without = f"{min(other):.0f} without"
            yield f"packets: {row}: {max(found):.0f} instructions with a switch between, {without}"
    ways = ("veth", "connected") if smoke else ("veth", "datagram", "offloads", "connected")
    yield from _missing("TCP", ways, document["tcp_instructions_per_byte"])
    for way, value in document["tcp_instructions_per_byte"].items():
        if not value > 0:
            yield f"TCP: {way}: {value} instructions a byte"
    yield from _missing("memory", ("hcas", "switches", "fabric"), document["memory"])
    for what, value in document["memory"].items():
        if not value["kib"] > 0:
            yield f"memory: {what}: {value['kib']} KiB"


def acm(document, _smoke=False):
    """Complaints about a document of bench_report.acm."""
    found = document["look_up_instructions"]
    kinds = [
        f"{table}-{end}" for table in ("cache", "table", "neighbours") for end in ("hit", "miss")
    ]
    yield from _missing("look-ups", kinds, found)
    for kind, sizes in found.items():
        for entries, value in sizes.items():
            # The kernel's neighbours are left out where there are too many.
            if value is None and kind.startswith("neighbours"):
                continue
            if value is None or not value > 0:
                floor = "the loop without a look-up is its floor"
                yield f"look-ups: {kind} among {entries} is {value}: {floor}"
    for entries, value in document["bytes_of_an_entry"].items():
        if value < _LEAST_ENTRY:
            taken = f"takes {value:.1f} bytes"
            yield f"memory: an entry of {entries} {taken}, but holds {_LEAST_ENTRY}"
    for row in document["resolution"]:
        name = f"{row['driver']}, {row['fabric']}, {row['state']}"
        # An ARP request does not cross a router.
        if (row["fabric"], row["driver"]) == ("router", "ib_ipoib"):
            continue
        if not row["microseconds"] or not min(row["microseconds"]) > 0:
            yield f"first packet: {name}: the times are {row['microseconds']}"
        if row["mads"] is None:
            yield f"first packet: {name}: management datagrams were not counted"
    states = [
        (where, driver, state)
        for where in ("subnet", "router")
        for driver in _DRIVERS
        for state in ("neighbour", "cached", "asked")
    ]
    yield from _missing(
        "first packet",
        states,
        [(row["fabric"], row["driver"], row["state"]) for row in document["resolution"]],
    )
    for driver in _DRIVERS:
        queries = document["path_queries"].get(f"{driver} tcp")
        if not queries or not queries["connections"] > 0:
            yield f"path queries: {driver}: {queries}"
    if not document["ib_acme_instructions"] or not document["ib_acme_instructions"] > 0:
        yield f"ib_acme: {document['ib_acme_instructions']} instructions"


def programs(document, smoke=False):
    """Complaints about a document of bench_report.programs. The rate of a few bytes can be 0.00."""
    for table, number in {"pingpong": 4, "perftest": 6, "connect": 1}.items():
        if len(document[table]) != number:
            yield f"{table}: there are {len(document[table])} rows, not {number}"
        for row in document[table]:
            for column, values in row["columns"].items():
                if not values or min(values) < 0 or not (smoke or min(values)):
                    yield f"{table}: {row['row']}: {column} took {values}"


def routes(document, _smoke=False):
    """Complaints about a document of bench_report.routes."""
    yield from _missing("routes", ("each", "awake", "all", "mads"), [row["key"] for row in document["rows"]])
    for row in document["rows"]:
        for who, values in row["columns"].items():
            # A question and its answer, or nothing at all.
            least = {"sa": 2, "ibacm": 0, "oxib": 0}[who] if row["key"] == "mads" else 0.1
            if not values or min(values) < least:
                yield f"routes: {row['row']}: {who} took {values}"
            if (row["key"], who) == ("mads", "oxib") and any(values):
                yield f"routes: a path that oxib knows took MADs: {values}"


def floods(document, _smoke=False):
    """Complaints about a document of bench_report.floods."""
    if len(document["rows"]) != _FLOODS:
        yield f"there are {len(document['rows'])} rows, not {_FLOODS}"
    for row, fields in document["rows"].items():
        runs = {len(values) for columns in fields.values() for values in columns.values()}
        if len(runs) != 1 or runs == {0}:
            yield f"{row}: the drivers have {sorted(runs)} runs"
        for name in ("connected", "answered"):
            for driver, values in fields[name].items():
                if any(not 0 <= value <= 100 for value in values):
                    yield f"{row}: {driver}: {name} is {values}, of 100"


_KINDS = {
    "packets": packets,
    "cm": cm,
    "scheduling": scheduling,
    "fabric": fabric,
    "ipoib": ipoib,
    "acm": acm,
    "programs": programs,
    "routes": routes,
    "floods": floods,
}


def complaints(kind, document, smoke=False):
    """What a document of that kind says that cannot be: lines."""
    try:
        return [*_infinite(document), *_KINDS[kind](document, smoke)]
    except (KeyError, TypeError, AttributeError) as error:
        return [f"the document is not complete: {type(error).__name__} {error}"]


def main():
    """Check the files."""
    smoke = sys.argv[1] == "--smoke"
    kind, *names = sys.argv[2 if smoke else 1 :]
    failed = False
    for name in names:
        found = complaints(kind, json.loads(Path(name).read_text(encoding="utf-8")), smoke)
        for complaint in found:
            print(
                f"oxib: {name.replace('/cache', '$OXIB_CACHE', 1)}: {complaint}", file=sys.stderr
            )
        failed = failed or bool(found)
    if failed:
        raise SystemExit(f"oxib: the results of the benchmark {kind} cannot be right: see above")


if __name__ == "__main__":
    main()
