# SPDX-License-Identifier: GPL-2.0-only
"""A run: nodes that are started together, watched together and ended together."""

import shutil
import signal
import sys
import time

from node_runner.cable import Chain
from node_runner.machine import Seat
from node_runner.node import Node

_POLL = 0.05
# How long the other nodes may go on once one has failed: enough to notice it themselves and say so.
_GRACE = 5
# Seconds in which a node gets to its command, with the fast kernel and with another: several times what it takes on a busy host.
# Where a boot that stands still says nothing of what is tested, the nodes are then booted once more.
_FAST_BOOT = 90
_BOOT = 240
BOOTED_AGAIN = "all nodes are booted again"


class Interrupted(Exception):
    """A signal asked the run to end."""


def _interrupt(number, _frame):
    raise Interrupted(signal.Signals(number).name)


class Run:
    """N nodes and the directory their results are in."""

    def __init__(self, results, places, kernel, machine, nodes):
        self.directory = results.path
        self._results = results
        self._places = places
        self._kernel = kernel
        self._machine = machine
        self._boot = float("inf")
        if machine.boots_again:
            self._boot = _FAST_BOOT if kernel.kind == "fast" else _BOOT
        self._shared = self.directory / "shared"
        self._shared.mkdir()
        self.nodes = [Node(number, self.directory) for number in range(1, nodes + 1)]

    def _directories(self, node):
        return [
            ("guest", self._places.guest, True),
            ("oxib", self._places.checkout, True),
            ("modules", self._kernel.modules, True),
            ("build", self._kernel.build, True),
            # Not mounted by itself: for tests that are in the kernel's source.
            ("source", self._kernel.source, True),
            ("out", node.out, False),
            ("shared", self._shared, False),
        ]

    def start(self, terminal_node=None):
        """Boot every node; `terminal_node` gets this process's terminal as its console."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        chain = Chain(len(self.nodes), self._machine.cable_type)
        for node in self.nodes:
            seat = Seat(
                node=node.number,
                nodes=len(self.nodes),
                directories=self._directories(node),
                plugs=chain.plugs(node.number),
                console=None if node.number == terminal_node else node.console,
            )
            node.start(self._machine.launch(seat), seat)
        chain.close()

    def _start_again(self):
        for node in self.nodes:
            if node.boots:
                print(f"{node.name}: it did not boot in {self._boot} s: {BOOTED_AGAIN}", file=sys.stderr)
        for node in self.nodes:
            node.reset()
        shutil.rmtree(self._shared)
        self._shared.mkdir()
        self.start()

    def watch(self, timeout, show=None):
        """Wait until every node has ended, or one has failed, or the time is over. Returns the seconds it took."""
        began = time.monotonic()
        deadline = began + timeout
        to_boot = began + self._boot
        why = f"stopped: the run's time limit of {timeout} s was over"
        failed = False
        try:
            while any(node.running for node in self.nodes):
                time.sleep(_POLL)
                self._stream(show)
                if time.monotonic() > to_boot:
                    to_boot = float("inf")
                    if any(node.boots for node in self.nodes):
                        self._start_again()
                        deadline = time.monotonic() + timeout
                if not failed and any(not node.running and node.troubles() for node in self.nodes):
                    failed = True
                    if time.monotonic() + _GRACE < deadline:
                        deadline = time.monotonic() + _GRACE
                        why = "stopped: another node had failed"
                if time.monotonic() > deadline:
                    self.stop(why)
        except Interrupted as interrupt:
            self.stop(f"stopped: the run was interrupted ({interrupt})")
        self.stop("")
        self._stream(show)
        return time.monotonic() - began

    def wait_for(self, node):
        """Wait until one node has ended, however long that takes, and stop the others."""
        try:
            while node.running:
                time.sleep(_POLL)
        except Interrupted:
            pass
        self.stop("stopped: the prompt was left")

    def _stream(self, show):
        if show is None:
            return
        for node in self.nodes:
            for line in node.new_output():
                show(node, line)

    def stop(self, why):
        """End every node that still runs."""
        for node in self.nodes:
            node.stop(why)
