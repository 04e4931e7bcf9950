# SPDX-License-Identifier: GPL-2.0-only
"""Tests of node_runner.run: boots that end or stand still, with shells in place of machines."""

import contextlib
import io
import socket
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from node_runner import run
from node_runner.machine import Launch
from node_runner.results import Results

_WORKS = "touch begun; echo 0 >status"
_ABORTS = "kill -ABRT $$"
_HANGS = "exec sleep 1000"
_ABORTS_LATER = f"touch begun; {_ABORTS}"


class _Machine:
    """A machine whose nodes are shells; each boot of a node runs the next of its scripts."""

    cable_type = socket.SOCK_STREAM

    def __init__(self, scripts):
        self.scripts = {number: list(each) for number, each in enumerate(scripts, 1)}

    def launch(self, seat):
        """The process that is the node with that seat."""
        out = next(path for tag, path, _ in seat.directories if tag == "out")
        return Launch(["/bin/sh", "-c", f"cd {out}; {self.scripts[seat.node].pop(0)}"])


class Boots(unittest.TestCase):
    """The outcome of nodes whose first boots go as given."""

    def _boots(self, *scripts):
        """The troubles of all nodes, and what was said meanwhile."""
        with tempfile.TemporaryDirectory() as place:
            where = SimpleNamespace(guest=place, checkout=place)
            kernel = SimpleNamespace(kind="fast", modules=place, build=place, source=place)
            nodes = run.Run(Results(Path(place) / "out"), where, kernel, _Machine(scripts), len(scripts))
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                nodes.start()
                nodes.watch(30)
            return [trouble for node in nodes.nodes for trouble in node.troubles()], said.getvalue()

    def test_a_machine_that_aborts_as_it_boots_is_booted_again_with_the_others(self):
        self.assertEqual(
            self._boots([_ABORTS, _WORKS], [_HANGS, _WORKS]),
            ([], f"n1: its machine ended while it booted: {run.BOOTED_AGAIN}\n"),
        )

    def test_one_that_aborts_again_has_failed(self):
        troubles, _ = self._boots([_ABORTS, _ABORTS])
        self.assertEqual(troubles, ["the node ended before its script did"])

    def test_one_that_aborts_under_its_script_has_failed(self):
        troubles, said = self._boots([_ABORTS_LATER, _WORKS])
        self.assertEqual((troubles, said), (["the node ended before its script did"], ""))

    def test_a_boot_that_stands_still_is_tried_once_more(self):
        patience, run._FAST_BOOT = run._FAST_BOOT, 1
        self.addCleanup(setattr, run, "_FAST_BOOT", patience)
        self.assertEqual(
            self._boots([_HANGS, _WORKS]), ([], f"n1: it did not boot in 1 s: {run.BOOTED_AGAIN}\n")
        )


if __name__ == "__main__":
    unittest.main()
