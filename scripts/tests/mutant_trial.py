# SPDX-License-Identifier: GPL-2.0-only
"""Tests of mutant_runner.trial: a run that fails, one that passes, one that hangs, and the command that runs it."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest.mock import Mock
from unittest.mock import patch

from mutant_runner.tree import Killed
from mutant_runner.trial import HostTrial
from mutant_runner.trial import Trial
from node_runner import __main__ as node_runner

_TEST = ("infiniband/events", "oxib", "lids")
_KERNEL = "uml-7.3"
_CHECKOUT = Path(__file__).resolve().parents[2]


class _Tree:
    """Where a command's place is taken by one that writes what a node would."""

    root = _CHECKOUT

    def __init__(self, out, output, then):
        self._output, self._then = output, then
        self._node = out / "run"
        self.command = None

    def start(self, command, log):
        """Start it."""
        self.command = command
        self._node.mkdir(exist_ok=True)
        (self._node / "node1.log").write_text(self._output, encoding="utf-8")
        (self._node / "node1.console").write_text("BUG: KASAN: slab-use-after-free in line_send\n", encoding="utf-8")
        with open(log, "wb") as output:
            return subprocess.Popen(["/bin/sh", "-c", self._then], stdout=output, start_new_session=True)


class Verdicts(unittest.TestCase):
    """What comes of a run."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self._out = Path(directory.name)

    def _run(self, output, then="true", report=None, limit=60):
        self._tree = _Tree(self._out, output, then)
        with patch("mutant_runner.trial._POLL", 0.05):
            return Trial(self._tree, self._out, _TEST, _KERNEL).run("run", report, limit)

    def test_a_failed_check_ends_the_run(self):
        verdict = self._run("not ok 1 - h1 is reached\n", "sleep 100")
        self.assertTrue(verdict.failed)
        self.assertIn("h1 is reached", verdict.why)

    def test_a_run_that_passes_has_not_failed(self):
        self.assertFalse(self._run("ok 1 - h1 is reached\n1..1\n").failed)

    def test_a_run_that_hangs_has_failed(self):
        self.assertTrue(self._run("ok 1 - h1 is reached\n", "sleep 100", limit=0).failed)

    def test_a_runner_that_complains_has_failed(self):
        self.assertTrue(self._run("ok 1 - h1 is reached\n1..1\n", "echo 'n1: WARNING'; exit 1").failed)

    def test_a_run_that_a_signal_ended_shows_nothing(self):
        for then in ("kill -KILL $$", "exit 130"):
            with self.subTest(then), self.assertRaises(Killed):
                self._run("ok 1 - h1 is reached\n", then)

    def test_tests_of_a_crate_that_a_signal_ended_show_nothing(self):
        for status in (-9, 143):
            tree = Mock(run=Mock(return_value=status))
            with self.subTest(status), self.assertRaises(Killed):
                HostTrial(tree, self._out, ["cargo"]).run("run", None, 60)

    def test_where_a_report_is_asked_for_a_failed_check_shows_nothing(self):
        self.assertFalse(self._run("not ok 1 - h1 is reached\n1..1\n", report=re.compile("kmemleak")).failed)

    def test_the_report_that_is_asked_for_is_found(self):
        self.assertTrue(self._run("ok 1 - h1 is reached\n", "sleep 100", re.compile("KASAN: .*use-after-free")).failed)

    def test_the_node_runner_takes_the_command(self):
        self._run("ok 1 - h1 is reached\n1..1\n")
        self.assertEqual(self._tree.command[:3], ["python3", "-m", "node_runner"])
        options = node_runner.parse(self._tree.command[3:])
        self.assertEqual(options.script, "selftests/infiniband/events.sh")
        self.assertEqual(options.arguments, ["oxib", "lids"])


if __name__ == "__main__":
    unittest.main()
