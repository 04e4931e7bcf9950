# SPDX-License-Identifier: GPL-2.0-only
"""Tests of bench_report.scheduling: what it reads of the nodes' logs, its tables, and their place in a page."""

import io
import json
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

from bench_report import page
from bench_report import scheduling

_CONNECTIONS = 10
# Both passes of cmtime.
_ALL = 2 * _CONNECTIONS
_REPETITION = """\
ok 1 - what else a node says
scheduling interrupts={interrupts} wakeups_program={programs} wakeups_unbound_worker=20 wakeups_bound_worker=40 \
wakeups_other=1 migrations_program=2 migrations_unbound_worker=4 waits_spin=0 switches_program=100 switches_idle=60
wait spin _raw_function 10
wait rwlock another 5
wait mutex ucma_get_event 20
wait mutex_sleep ucma_get_event 4
"""
_PAGE = """\
# Connections

Before.

## What two CPUs do while connections are made

An earlier table.

### What follows

This stays.
"""


def _repetition(programs, interrupts=0):
    return _REPETITION.format(programs=programs, interrupts=interrupts)


class Scheduling(unittest.TestCase):
    """Logs of nodes, and what is made of them."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)

    def boot(self, manager, number, *repetitions):
        """Writes the log of a boot."""
        run = self.place / f"bench-cm-scheduling-{manager}-{number}"
        run.mkdir()
        (run / "node1.log").write_text("".join(repetitions), encoding="utf-8")

    def document(self, *publish):
        """The document, and what is printed."""
        words = ["scheduling", *publish, str(self.place), str(_CONNECTIONS)]
        output = io.StringIO()
        with patch.object(sys, "argv", words), redirect_stdout(output):
            scheduling.main()
        text = (self.place / "bench-scheduling/bench.json").read_text(encoding="utf-8")
        return json.loads(text), output.getvalue()

    def row(self, name):
        """A row of the document."""
        return next(row for row in self.document()[0]["rows"] if row["row"] == name)

    def test_a_boot_is_the_median_of_its_repetitions(self):
        self.boot("kernel", 1, _repetition(100), _repetition(120), _repetition(1000))
        self.boot("kernel", 2, _repetition(140))
        self.boot("oxib", 1, _repetition(240))
        row = self.row("wake-ups of programs")
        self.assertEqual(row["values"], {"kernel": [120 / _ALL, 140 / _ALL], "oxib": [240 / _ALL]})
        self.assertEqual(row["medians"]["kernel"], 130 / _ALL)
        self.assertEqual(row["ratio"], 240 / 130)

    def test_sums_have_all_of_their_counts_and_no_others(self):
        self.boot("kernel", 1, _repetition(100, interrupts=7))
        self.boot("oxib", 1, _repetition(100, interrupts=9))
        expected = {
            "wake-ups": 161,
            "wake-ups of workers, unbound": 20,
            "wake-ups of workers of a CPU": 40,
            "context switches": 160,
            "context switches to the idle thread": 60,
            "migrations": 6,
            "interrupts from the other CPU": 9,
            "waits for spin locks": 15,
            "waits for mutexes": 20,
            "waits for mutexes, asleep": 4,
            "waits for semaphores": 0,
        }
        for name, number in expected.items():
            self.assertEqual(self.row(name)["values"]["oxib"], [number / _ALL], name)

    def test_waits_are_means_of_all_repetitions_the_most_first(self):
        self.boot("kernel", 1, _repetition(100))
        self.boot("oxib", 1, _repetition(100), _repetition(100) + "wait spin only_here 60\n")
        waits = self.document()[0]["waits"]
        self.assertEqual(waits[0], {"lock": "spin lock", "function": "only_here", "kernel": 0.0, "oxib": 30 / _ALL})
        self.assertEqual(waits[1]["oxib"], 20 / _ALL)
        self.assertEqual(len(waits), 5)

    def test_without_stacks_no_function_is_listed(self):
        for manager in ("kernel", "oxib"):
            self.boot(manager, 1, "scheduling wakeups_program=40\nwait mutex ? 20\n")
        document, text = self.document()
        self.assertEqual(document["waits"], [])
        self.assertNotIn("function", text)
        self.assertIn("| waits for mutexes | 1.00 | 1.00 | 1.00 |", text)

    def test_without_probes_there_is_no_row_of_spin_locks(self):
        for manager in ("kernel", "oxib"):
            self.boot(manager, 1, "scheduling wakeups_program=40\nwait rwlock ? 20\n")
        self.assertNotIn("spin locks", self.document()[1])
        self.boot("oxib", 2, "scheduling wakeups_program=40 waits_spin=0\n")
        self.assertIn("| waits for spin locks |", self.document()[1])

    def test_logs_of_other_measurements_are_left_out(self):
        self.boot("kernel", 1, "cm rate connect=1\n")
        self.boot("kernel", 2, _repetition(100))
        self.boot("oxib", 1, _repetition(100))
        self.assertEqual(self.document()[0]["repetitions"], {"kernel": [1], "oxib": [1]})

    def test_the_table_has_medians_and_quartiles_of_boots(self):
        for number, programs in enumerate((100, 120, 200), 1):
            self.boot("kernel", number, _repetition(programs))
            self.boot("oxib", number, _repetition(2 * programs))
        text = self.document()[1]
        self.assertIn("| a connection, boots: 3 | kernel's | oxib's | ratio |", text)
        self.assertIn("| wake-ups of programs | 6.00 (5.00 to 10.00) | 12.00 (10.00 to 20.00) | 2.00 |", text)
        self.assertIn("| waits for semaphores | 0.000 (0.000 to 0.000) | 0.000 (0.000 to 0.000) | - |", text)
        self.assertIn("| `ucma_get_event` | mutex, asleep | 0.20 | 0.20 |", text)

    def test_a_section_of_the_page_is_replaced(self):
        self.boot("kernel", 1, _repetition(100))
        self.boot("oxib", 1, _repetition(100))
        file = self.place / "page.md"
        file.write_text(_PAGE, encoding="utf-8")
        for _ in range(2):
            self.document("--publish", str(file), "fast-7.3", "scripts/bench scheduling")
            text = file.read_text(encoding="utf-8")
            self.assertTrue(text.startswith("# Connections\n\nBefore.\n\n## What two CPUs do while"))
            self.assertTrue(text.endswith("|\n\n### What follows\n\nThis stays.\n"))
            self.assertIn("Written by `scripts/bench scheduling` on ", text)
            self.assertEqual(text.count("## What two CPUs do"), 1)
            self.assertNotIn("An earlier table.", text)

    def test_a_page_without_the_section_has_it_at_its_end(self):
        self.assertEqual(page.with_section("# A\n\ntext\n", ["## B", "", "more", ""]), "# A\n\ntext\n\n## B\n\nmore\n")


if __name__ == "__main__":
    unittest.main()
