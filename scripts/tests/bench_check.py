# SPDX-License-Identifier: GPL-2.0-only
"""Tests of bench_report.check and kept: results that can be are taken, all others are refused, and so are changed figures."""

import copy
import io
import json
import math
import sys
import tempfile
import unittest
from contextlib import redirect_stderr
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from bench_report import check
from bench_report import floods
from bench_report import kept

_BURSTS = (1, 8, 32)
_ROWS = [
    ("TX queue", 1),
    ("TX queue", 8),
    ("TX queue", 32),
    ("TX socket", 32),
    ("RX", 1),
    ("RX", 8),
    ("RX", 32),
]
_DRIVERS = ("ib_ipoib", "oxib")


def _packets():
    return {
        "costs": [
            {
                "path": path,
                "bytes": size,
                "burst": burst,
                "total": 5300.0,
                "stack": 300.0,
                "device": 4600.0,
                "own": 400.0,
                "own_spread": 15.0,
                "notice": None if path == "RX" else 20.0,
            }
            for size in (64, 4064)
            for path, burst in _ROWS
        ],
        "events_per_packet": [
            {
                "direction": way,
                "burst": burst,
                "posts": 1 / burst,
                "completions": 1 / 64 if way == "TX" else 1.0,
            }
            for way in ("TX", "RX")
            for burst in _BURSTS
        ],
        "memory_bytes": {"memory_buffers": 2097152, "memory_rings": 82560},
        "aims": [{"name": "an aim", "limit": 400, "measured": 374.0, "met": True}],
    }


def _pair(name):
    return {"name": name, "kernel": 2.0, "oxib": 1.0, "kernel_values": [2.0], "oxib_values": [1.0]}


def _ipoib():
    ways = ("datagrams", "datagrams, checksum=1 tso=1", "connected mode")
    return {
        "packets": {
            "peer": [
                {
                    "path": path,
                    "bytes": size,
                    "burst": burst,
                    "stack": 300.0,
                    "device": 2000.0,
                    "kernel": 3400.0,
                    "oxib": 2500.0,
                }
                for size in (64, 2016)
                for path, burst in _ROWS
            ]
        },
        "traffic": [_pair(f"{what}, {way}, peer") for way in ways for what in ("stream", "echo")],
        "rates": [
            _pair(f"{what}, {flows}, peer")
            for what in ("stream", "flood")
            for flows in ("1 flow", "4 flows")
        ],
        "memory": [_pair("an interface that is up"), _pair("a destination")],
        "events_per_packet": {
            **{
                name: {"ib_ipoib": 1.0, "oxib": 0.03}
                for name in ("posts (doorbells), TX", "posts, RX")
            },
            **{
                f"{what}, {way}": {"ib_ipoib": 1.0, "oxib": 0.0}
                for way in ("TX", "RX")
                for what in ("allocations", "events of completion queues")
            },
            "completions, TX": {"ib_ipoib": 1.0, "oxib": 0.016},
        },
    }


def _cm():
    names = {
        "instructions, whole system": 340000.0,
        "instructions, connect step alone": 120000.0,
        "instructions, disconnect step alone": 26000.0,
        "connections a second, one CPU": 8000.0,
        "connections a second, two CPUs": 3000.0,
        "time for 20 at 1 % loss": 0.2,
        "time for 20 at 1 % loss, worst": 0.3,
        "memory, established": 800.0,
        "messages": 5.0,
        "messages at 1 % loss": 5.1,
    }
    return {
        "connections": 20,
        "seeds": {"kernel": 20, "oxib": 20},
        "figures": [
            {"name": name, "kernel": value, "oxib": value} for name, value in names.items()
        ],
    }


def _scheduling():
    rows = {
        "wake-ups": 12.0,
        "wake-ups of programs": 6.0,
        "context switches": 20.0,
        "context switches to the idle thread": 8.0,
        "migrations": 0.2,
        "migrations of programs": 0.0,
        "waits for spin locks": 0.5,
        "waits for mutexes": 0.0,
    }
    return {
        "connections": 20,
        "repetitions": {"kernel": [3, 3], "oxib": [3, 3]},
        "rows": [
            {"row": name, "values": {"kernel": [value, value], "oxib": [value, value]}}
            for name, value in rows.items()
        ],
        "waits": [],
    }


def _fabric():
    rows = [(kind, 64, burst) for kind in ("chain", "chain-events") for burst in _BURSTS] + [
        ("single", 64, 32),
        ("chain", 4096, 32),
    ]
    return {
        "packets": [
            {
                "measurement": f"{where}-fabric-{kind}",
                "bytes": size,
                "burst": burst,
                "instructions": [value],
            }
            for where, value in (("hop", 3100.0), ("peer", 800.0))
            for kind, size, burst in rows
        ],
        "tcp_instructions_per_byte": {
            "veth": 2.7,
            "datagram": 6.5,
            "offloads": 6.0,
            "connected": 5.4,
        },
        "memory": {
            "hcas": {"hcas": 64, "kib": 52000},
            "switches": {"switches": 8, "kib": 1456},
            "fabric": {"kib": 64020},
        },
    }


def _acm():
    return {
        "look_up_instructions": {
            f"{table}-{end}": {"1000": 280.0, "1000000": None if table == "neighbours" else 290.0}
            for table in ("cache", "table", "neighbours")
            for end in ("hit", "miss")
        },
        "bytes_of_an_entry": {"1000": 72.4, "1000000": 72.8},
        "ib_acme_instructions": 45591.0,
        "resolution": [
            {
                "fabric": where,
                "driver": driver,
                "state": state,
                "microseconds": [] if (where, driver) == ("router", "ib_ipoib") else [23],
                "mads": None if (where, driver) == ("router", "ib_ipoib") else 0,
            }
            for where in ("subnet", "router")
            for driver in _DRIVERS
            for state in ("neighbour", "cached", "asked")
        ],
        "path_queries": {
            f"{driver} tcp": {"peers": 10, "connections": 1000, "queries": 10}
            for driver in _DRIVERS
        },
    }


def _row_of_programs(name, first, second):
    return {"row": name, "columns": {first: [40.0, 50.0], second: [100.0]}, "ratio": 0.45}


def _programs():
    return {
        "pingpong": [_row_of_programs(f"row {number}", "softib", "rxe") for number in range(4)],
        "perftest": [_row_of_programs(f"row {number}", "softib", "rxe") for number in range(6)],
        "connect": [_row_of_programs("connecting", "oxib", "ib_ipoib")],
    }


def _routes():
    values = {
        "each": (2000.0, 300.0, 150.0),
        "awake": (400.0, 150.0, 30.0),
        "all": (90000.0, 60000.0, 50000.0),
        "mads": (2.0, 0.0, 0.0),
    }
    rows = [
        {"key": key, "row": key, "columns": {who: [value] for who, value in zip(("sa", "ibacm", "oxib"), each)}}
        for key, each in values.items()
    ]
    return {"together": 1000, "rows": rows, "ratio": {"each": {"sa": 0.075, "ibacm": 0.5}, "awake": {"sa": 0.075, "ibacm": 0.2}}}


def _floods():
    return floods.document_of(floods.read(_lines_of_floods(oxib="100 9.1 30.5 100 2.5 64")))


def _lines_of_floods(oxib):
    rows = floods.read("")
    theirs = "100 9.0 30.0 100 2.0 8000"
    lines = (
        f"flood {row} {driver} 998 99 {values}\n"
        for row in rows
        for driver, values in (("oxib", oxib), ("ib_ipoib", theirs))
        for _ in range(2)
    )
    return "".join(lines)


_DOCUMENTS = {
    "packets": _packets,
    "ipoib": _ipoib,
    "cm": _cm,
    "scheduling": _scheduling,
    "fabric": _fabric,
    "acm": _acm,
    "programs": _programs,
    "routes": _routes,
    "floods": _floods,
}


class Documents(unittest.TestCase):
    """Documents of each kind, whole and spoilt."""

    def refused(self, kind, spoil, expected):
        """A document that `spoil` changes is refused, with these words."""
        document = copy.deepcopy(_DOCUMENTS[kind]())
        spoil(document)
        found = check.complaints(kind, document)
        self.assertTrue(any(expected in line for line in found), f"{expected!r} is not in {found}")

    def test_whole_documents_are_taken(self):
        for kind, make in _DOCUMENTS.items():
            self.assertEqual(check.complaints(kind, make()), [], kind)

    def test_the_smallest_counts_have_fewer_ways_of_tcp(self):
        document = _ipoib()
        document["traffic"] = [row for row in document["traffic"] if "connected" in row["name"]]
        document["events_per_packet"].clear()
        self.assertEqual(check.complaints("ipoib", document, smoke=True), [])
        self.assertNotEqual(check.complaints("ipoib", document), [])
        document["traffic"].clear()
        self.assertNotEqual(check.complaints("ipoib", document, smoke=True), [])

    def test_with_the_smallest_counts_steps_are_timed_by_the_clock(self):
        document = _cm()
        document["figures"][1].update(kernel=1e9)
        self.assertEqual(check.complaints("cm", document, smoke=True), [])
        self.assertNotEqual(check.complaints("cm", document), [])

    def test_infinity_and_nan_are_refused_wherever_they_are(self):
        for value in (math.inf, -math.inf, math.nan):
            self.refused(
                "packets",
                lambda d, v=value: d["aims"][0].update(measured=v),
                f"aims[0].measured is {value}",
            )
            self.refused(
                "cm",
                lambda d, v=value: d["figures"][2].update(ratio=v),
                f"figures[2].ratio is {value}",
            )

    def test_a_total_below_its_floors_is_refused(self):
        self.refused(
            "packets",
            lambda d: d["costs"][0].update(total=1543.0),
            "TX queue, 64 bytes, bursts of 1: the own share is negative",
        )
        self.refused(
            "packets",
            lambda d: d["costs"][0].update(total=4899.0),
            "total is 4899.0 instructions, below its floors 300.0",
        )
        self.refused(
            "ipoib",
            lambda d: d["packets"]["peer"][4].update(kernel=2299.0),
            "peer: RX, 64 bytes, bursts of 1: the own share",
        )
        self.refused(
            "ipoib",
            lambda d: d["packets"]["peer"][4].update(oxib=2299.0),
            "oxib is 2299.0 instructions",
        )

    def test_a_part_of_nothing_is_refused(self):
        self.refused(
            "packets",
            lambda d: d["costs"][3].update(device=0.0),
            "TX socket, 64 bytes, bursts of 32: device is 0.0",
        )
        self.refused(
            "ipoib", lambda d: d["packets"]["peer"][0].update(stack=-1.0), "stack is -1.0"
        )

    def test_missing_rows_are_refused(self):
        self.refused("packets", lambda d: d["costs"].pop(), "no row RX, 4064 bytes, bursts of 32")
        self.refused("packets", lambda d: d["costs"].clear(), "the sizes are []")
        self.refused("packets", lambda d: d["events_per_packet"].pop(0), "no row ('TX', 1)")
        self.refused(
            "packets", lambda d: d.pop("memory_bytes"), "not complete: KeyError 'memory_bytes'"
        )
        self.refused("ipoib", lambda d: d["traffic"].pop(), "no row echo, connected mode, peer")
        self.refused("ipoib", lambda d: d["rates"].pop(0), "no row stream, 1 flow, peer")
        self.refused("ipoib", lambda d: d["memory"].clear(), "no row a destination")
        self.refused("ipoib", lambda d: d["events_per_packet"].clear(), "no row posts, RX")
        self.refused("ipoib", lambda d: d["packets"].clear(), "there is no fabric")
        self.refused("cm", lambda d: d["figures"].pop(), "no row messages at 1 % loss")
        self.refused("scheduling", lambda d: d["rows"].pop(), "no row waits for mutexes")
        self.refused("scheduling", lambda d: d["repetitions"]["oxib"].pop(), "'oxib': [3]} repetitions")
        self.refused("fabric", lambda d: d["packets"].pop(0), "no row ('hop-fabric-chain', 64, 1)")
        self.refused("fabric", lambda d: d["tcp_instructions_per_byte"].pop("veth"), "no row veth")
        self.refused("fabric", lambda d: d["memory"].pop("switches"), "no row switches")
        self.refused(
            "acm", lambda d: d["look_up_instructions"].pop("cache-hit"), "no row cache-hit"
        )
        self.refused("acm", lambda d: d["path_queries"].clear(), "path queries: oxib: None")
        self.refused("floods", lambda d: d["rows"].pop("REP"), "there are 9 rows, not 10")
        self.refused("floods", lambda d: d["rows"]["REQ"]["kib"]["oxib"].pop(), "REQ: the drivers have [1, 2] runs")
        self.refused("floods", lambda d: d["rows"]["ND"]["answered"]["oxib"].append(101), "of 100")
        self.refused("programs", lambda d: d["perftest"].pop(), "there are 5 rows, not 6")
        self.refused("programs", lambda d: d["pingpong"][0]["columns"]["rxe"].clear(), "rxe took []")
        self.refused("routes", lambda d: d["rows"].pop(0), "there is no row each")
        self.refused("routes", lambda d: d["rows"][1]["columns"]["ibacm"].clear(), "ibacm took []")

    def test_management_datagrams_that_cannot_be_are_refused(self):
        self.refused("routes", lambda d: d["rows"][3]["columns"]["sa"].append(1.0), "sa took [2.0, 1.0]")
        self.refused("routes", lambda d: d["rows"][3]["columns"]["oxib"].append(2.0), "took MADs: [0.0, 2.0]")

    def test_a_flood_that_harms_oxib_more_is_named(self):
        self.assertEqual(_floods()["worse"], [])
        for values, field in (
            ("99 9.1 30.5 100 2.5 64", "connected"),
            ("100 14.1 30.5 100 2.5 64", "median"),
            ("100 9.1 30.5 100 2.5 8300", "kib"),
        ):
            worse = floods.document_of(floods.read(_lines_of_floods(values)))["worse"]
            self.assertEqual({each["figure"] for each in worse}, {field})
            self.assertIn("REJ", {each["row"] for each in worse})

    def test_events_that_cannot_be_are_refused(self):
        self.refused(
            "packets", lambda d: d["events_per_packet"][0].update(posts=0), "0 posts per packet"
        )
        self.refused(
            "packets",
            lambda d: d["events_per_packet"][0].update(completions=1.2),
            "1.2 completions per packet",
        )
        self.refused(
            "ipoib",
            lambda d: d["events_per_packet"]["posts, RX"].update(oxib=0.0),
            "posts, RX: oxib has 0.0",
        )

    def test_figures_that_are_not_above_zero_are_refused(self):
        self.refused(
            "ipoib",
            lambda d: d["rates"][0].update(oxib_values=[0.0]),
            "stream, 1 flow, peer: oxib's values are [0.0]",
        )
        self.refused(
            "cm",
            lambda d: d["figures"][7].update(kernel=-5.0),
            "memory, established: kernel's is -5.0",
        )
        self.refused("fabric", lambda d: d["memory"]["hcas"].update(kib=0), "hcas: 0 KiB")
        self.refused(
            "acm",
            lambda d: d["look_up_instructions"]["table-hit"].update({"1000": -3.0}),
            "table-hit among 1000 is -3.0",
        )
        self.refused(
            "acm",
            lambda d: d["resolution"][0].update(microseconds=[]),
            "ib_ipoib, subnet, neighbour: the times are []",
        )

    def test_what_contradicts_other_figures_is_refused(self):
        self.refused(
            "cm", lambda d: d["figures"][0].update(oxib=1000.0), "oxib's whole system has 1000"
        )
        self.refused(
            "cm", lambda d: d["figures"][8].update(oxib=2.0), "oxib sends 2.0 for a connection"
        )
        self.refused(
            "cm",
            lambda d: d["figures"][6].update(oxib=0.1),
            "oxib's median is 0.2, above the worst, 0.1",
        )
        self.refused(
            "cm",
            lambda d: d["seeds"].update(oxib=3),
            "the numbers of seeds are {'kernel': 20, 'oxib': 3}",
        )
        self.refused(
            "scheduling",
            lambda d: d["rows"][1]["values"].update(oxib=[6.0, 12.5]),
            "wake-ups of programs: oxib has [6.0, 12.5], but [12.0, 12.0] wake-ups",
        )
        self.refused(
            "scheduling",
            lambda d: d["rows"][2]["values"].update(kernel=[20.0, 0.0]),
            "context switches: kernel has [20.0, 0.0] for a connection",
        )
        self.refused(
            "fabric",
            lambda d: d["packets"][0].update(instructions=[700.0]),
            "700 instructions with a switch between, 800 without",
        )
        self.refused(
            "acm",
            lambda d: d["bytes_of_an_entry"].update({"1000": 20.0}),
            "an entry of 1000 takes 20.0 bytes",
        )


class Command(unittest.TestCase):
    """The command's status, and what it prints."""

    def run_check(self, document):
        """The text of the exit, or nothing; and the standard error."""
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "bench.json"
            path.write_text(json.dumps(document), encoding="utf-8")
            error = io.StringIO()
            with patch.object(sys, "argv", ["check", "packets", str(path)]), redirect_stderr(
                error
            ):
                try:
                    check.main()
                except SystemExit as status:
                    return str(status), error.getvalue()
        return None, error.getvalue()

    def test_a_whole_file_passes_in_silence(self):
        self.assertEqual(self.run_check(_packets()), (None, ""))

    def test_a_spoilt_file_fails_and_says_why(self):
        document = _packets()
        document["costs"][0].update(total=1543.0, own=-math.inf)
        status, error = self.run_check(document)
        self.assertIn("packets cannot be right", status)
        self.assertIn("own is -inf", error)
        self.assertIn(
            "total is 1543.0 instructions, "
            "below its floors 300.0 (stack) + 4600.0 (device) = 4900.0",
            error,
        )


class Kept(unittest.TestCase):
    """The figures of connections that the repository keeps."""

    def run_kept(self, verb, instructions, connections=10):
        """The text of the exit, or nothing; the standard error. As many instructions were found in oxib as in ib_core."""
        runs = {"bench-kept-counts": 2 * 10, "bench-kept-disconnect": 10}
        for run, times in runs.items():
            node = self.place / run / "node1"
            node.mkdir(parents=True, exist_ok=True)
            symbols = "10 T memcpy\n20 t step\t[oxib]\n30 t post\t[ib_core]\n"
            (node / "kallsyms").write_text(symbols, encoding="ascii")
            counts = f"1\n10 1000 1000\n20 {instructions} {times}\n34 {instructions} {times}\n"
            (self.place / run / "counts").write_text(counts, encoding="ascii")
        file = self.place / "kept.json"
        words = ["kept", verb, str(file), "fast-7.3", str(connections), str(self.place)]
        error = io.StringIO()
        with patch.object(sys, "argv", words), redirect_stderr(error), redirect_stdout(io.StringIO()):
            try:
                kept.main()
            except SystemExit as status:
                return str(status), error.getvalue()
        return None, error.getvalue()

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)

    def test_what_is_kept_is_found_again(self):
        self.assertEqual(self.run_kept("keep", 1000), (None, ""))
        document = json.loads((self.place / "kept.json").read_text(encoding="utf-8"))
        self.assertEqual(
            document["instructions"],
            {
                "connection, modules": 2000,
                "connection, oxib": 1000,
                "disconnection, modules": 2000,
                "disconnection, oxib": 1000,
            },
        )
        self.assertEqual(self.run_kept("compare", 1020), (None, ""))
        self.assertEqual(self.run_kept("compare", 980), (None, ""))

    def test_a_change_is_told(self):
        self.run_kept("keep", 1000)
        status, error = self.run_kept("compare", 1021)
        self.assertIn("does not cost what it did", status)
        self.assertIn("disconnection, oxib: 1021 instructions, 1000 are kept: +2.1 %", error)
        status, error = self.run_kept("compare", 900)
        self.assertIn("connection, modules: 1800 instructions, 2000 are kept: -10.0 %", error)

    def test_other_connections_are_no_comparison(self):
        self.run_kept("keep", 1000)
        status, error = self.run_kept("compare", 2000, connections=20)
        self.assertIn("of 10 connections at once, these of 20", error)


if __name__ == "__main__":
    unittest.main()
