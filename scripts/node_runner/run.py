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
_FAST_BOOT = 90
_BOOT = 240
BOOTED_AGAIN = "all nodes are booted again"


def _noting_in(names):
    """A handler that notes signals. It raises nothing: nodes that are being started, or ended, would be left behind."""
    return lambda number, _frame: names.append(signal.Signals(number).name)


class Run:
    """N nodes and the directory their results are in."""

    def __init__(self, results, places, kernel, machine, nodes):
        self.directory = results.path
        self._results = results
        self._places = places
        self._kernel = kernel
        self._machine = machine
        self._boot = _FAST_BOOT if kernel.kind == "fast" else _BOOT
        self._shared = self.directory / "shared"
        self._shared.mkdir()
        self._signals = []
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
            signal.signal(number, _noting_in(self._signals))
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

    @property
    def interruption(self):
        """The signal that asked the run to end; nothing if none did."""
        return self._signals[0] if self._signals else ""

    def _boot_failures(self, late):
        """Returns why nodes did not get to their command, a line each; `late`: the time for that is over.

        Such a failure says nothing of what is tested, unless a module of ours was at work or another node has a report already.
        QEMU loses an interrupt of a second virtual processor now and then, as the kernel takes the time stamp counter for its
        clock: its local APIC has the timer's interrupt in service for ever, and the boot stands still. It ends itself
        (an assertion of iotlb_to_section) where one virtual processor uses a device's registers while another changes the map
        of all such registers. Another of its machines died of "Oops: int3" seconds into the boot, before any module was loaded.
        """
        if any(node.has_begun and node.mistakes() for node in self.nodes):
            return []
        failures = []
        for node in self.nodes:
            if node.died_in_boot and not node.names_our_modules():
                failures.append(f"{node.name}: its machine ended while it booted")
            elif late and node.boots:
                failures.append(f"{node.name}: it did not boot in {self._boot} s")
        return failures

    def _start_again(self, failures):
        for failure in failures:
            print(f"{failure}: {BOOTED_AGAIN}", file=sys.stderr)
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
        may_boot_again = True
        why = f"stopped: the run's time limit of {timeout} s was over"
        failed = False
        running = True
        while running and not self.interruption:
            time.sleep(_POLL)
            self._stream(show)
            if may_boot_again:
                late = time.monotonic() > to_boot
                failures = self._boot_failures(late)
                may_boot_again = not late and not failures
                if failures:
                    self._start_again(failures)
                    deadline = time.monotonic() + timeout
            if not failed and any(not node.running and node.troubles() for node in self.nodes):
                failed = True
                if time.monotonic() + _GRACE < deadline:
                    deadline = time.monotonic() + _GRACE
                    why = "stopped: another node had failed"
            if time.monotonic() > deadline:
                self._stop_late(why)
            running = any(node.running for node in self.nodes)
        if self.interruption:
            self.stop(f"stopped: the run was interrupted ({self.interruption})")
        self.stop("")
        self._stream(show)
        return time.monotonic() - began

    def wait_for(self, node):
        """Wait until one node has ended, however long that takes, and stop the others."""
        while node.running and not self.interruption:
            time.sleep(_POLL)
        self.stop("stopped: the prompt was left")

    def _stream(self, show):
        if show is None:
            return
        for node in self.nodes:
            for line in node.new_output():
                show(node, line)

    def _stop_late(self, why):
        for node in self.nodes:
            node.stop_late(why)

    def stop(self, why):
        """End every node that still runs."""
        for node in self.nodes:
            node.stop(why)
