# SPDX-License-Identifier: GPL-2.0-only
"""Tests of node_runner.run: boots that end or stand still, with shells in place of machines."""

import contextlib
import io
import os
import signal
import socket
import struct
import tempfile
import threading
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

from node_runner import run, standstill
from node_runner.machine import Launch, Seat
from node_runner.node import Node
from node_runner.results import Results

_WORKS = "touch begun; echo 0 >status"
_ABORTS = "kill -ABRT $$"
_HANGS = "exec sleep 1000"
_ABORTS_LATER = f"touch begun; {_ABORTS}"


class _Machine:
    """A machine whose nodes are shells; each boot of a node runs the next of its scripts."""

    cable_type = socket.SOCK_STREAM

    def __init__(self, scripts, interrupted_at=None):
        self.scripts = {number: list(each) for number, each in enumerate(scripts, 1)}
        self.interrupted_at = interrupted_at

    def launch(self, seat):
        """The process that is the node with that seat."""
        if seat.node == self.interrupted_at:
            os.kill(os.getpid(), signal.SIGTERM)
        out = next(path for tag, path, _ in seat.directories if tag == "out")
        return Launch(["/bin/sh", "-c", f"cd {out}; {self.scripts[seat.node].pop(0)}"])


class Boots(unittest.TestCase):
    """The outcome of nodes whose first boots go as given."""

    def _boots(self, *scripts, interrupted_at=None):
        """The troubles of all nodes, and what was said meanwhile. A signal may come as a node is started."""
        with tempfile.TemporaryDirectory() as place:
            where = SimpleNamespace(guest=place, checkout=place)
            kernel = SimpleNamespace(kind="fast", modules=place, build=place, source=place)
            nodes = run.Run(Results(Path(place) / "out"), where, kernel, _Machine(scripts, interrupted_at), len(scripts))
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

    def test_a_signal_as_nodes_are_started_ends_them(self):
        handler = signal.getsignal(signal.SIGTERM)
        self.addCleanup(signal.signal, signal.SIGTERM, handler)
        for interrupted_at in (1, 2):
            troubles, said = self._boots([_HANGS], [_HANGS], interrupted_at=interrupted_at)
            self.assertEqual((troubles, said), (["stopped: the run was interrupted (SIGTERM)"] * 2, ""))


class _Console:
    """A management console, which answers each question in two parts, and on the console of the node."""

    def __init__(self, path, console):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._console = console
        self.questions = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            request, asker = self._socket.recvfrom(1024)
            self.questions.append(request[12:].decode())
            with open(self._console, "ab") as console:
                console.write(f"answer {len(self.questions)}\n".encode())
            for more in (1, 0):
                self._socket.sendto(struct.pack("=iII", 0, more, 2) + b"x\0", asker)


class Late(unittest.TestCase):
    """A node that does not come to its end."""

    def setUp(self):
        self._place = tempfile.TemporaryDirectory()
        self.addCleanup(self._place.cleanup)
        self._directory = Path(self._place.name)
        self._node = Node(1, self._directory)

    def _start(self, console):
        self._node.start(Launch(["/bin/sh", "-c", "echo booted; exec sleep 1000"], None, self._node.console, [], console), self._seat())
        while not (self._node.console.exists() and self._node.console.read_text() == "booted\n"):
            time.sleep(0.01)

    def _seat(self):
        return Seat(node=1, nodes=1, directories=[], plugs=[], console=self._node.console)

    def _tasks(self):
        return (self._directory / "node1.tasks").read_text()

    def test_what_its_tasks_did_is_kept_apart_from_its_console(self):
        path = self._directory / "mconsole"
        console = _Console(path, self._node.console)
        self._start(path)
        self._node.stop_late("its time is over")
        self.assertEqual(console.questions, ["sysrq 9", "sysrq t"])
        self.assertRegex(self._tasks(), r"\Athread \d+ (sh|sleep): [SRD], \d+ ticks, in \w+\nanswer 1\nanswer 2\n\Z")
        self.assertEqual(self._node.console.read_text(), "booted\n")
        self.assertEqual(self._node.troubles(), ["its time is over; what its tasks did is in node1.tasks"])

    def test_a_kernel_that_does_not_answer_is_ended_all_the_same(self):
        patience, standstill._PATIENCE = standstill._PATIENCE, 0.1
        self.addCleanup(setattr, standstill, "_PATIENCE", patience)
        path = self._directory / "mconsole"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
            deaf.bind(str(path))
            self._start(path)
            self._node.stop_late("its time is over")
        self.assertFalse(self._node.running)
        self.assertRegex(self._tasks(), r"\Athread \d+ (sh|sleep): .*\n\Z")

    def test_a_machine_without_such_a_console_is_ended_at_once(self):
        self._start(None)
        self._node.stop_late("its time is over")
        self.assertEqual(self._node.troubles(), ["its time is over"])


if __name__ == "__main__":
    unittest.main()
