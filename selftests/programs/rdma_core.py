# SPDX-License-Identifier: GPL-2.0-only
"""Run one module of rdma-core's tests, which are in the working directory, and print what came of each test, a line each.

rdma_core.py DEVICE MODULE [GID INDEX]

A line is an outcome (passed, skipped, failed), the test, and why it was skipped or how it failed, with tabs between.
"""

import gc
import os
import random
import sys
import unittest


# A test that resizes a completion queue just after posting, and presumes that the completions are in it. soft-RoCE's come later,
# from a work queue: on a busy machine they find the queue too small, and are lost.
_LEFT_OUT = "tests.test_cq.CQTest.test_resize_cq"


def _chosen(tests):
    """The tests of a suite and of those in it, without the one that is left out."""
    for test in tests:
        if isinstance(test, unittest.TestSuite):
            yield from _chosen(test)
        elif test.id() != _LEFT_OUT:
            yield test


class _Lines(unittest.TestResult):
    """Prints outcomes."""

    def _say(self, outcome, test, why=""):
        name = test.id().removeprefix("tests.")
        print(outcome, name, " ".join(str(why).split()), sep="\t", flush=True)

    def startTest(self, test):
        """Make what a test chooses at random the same in every run."""
        super().startTest(test)
        random.seed(test.id())

    def addSuccess(self, test):
        """Say so."""
        self._say("passed", test)

    def addSkip(self, test, reason):
        """Say so."""
        self._say("skipped", test, reason)

    def _failed(self, test, error):
        self._say("failed", test, f"{error[0].__name__}: {error[1]}")

    def addFailure(self, test, err):
        """Say so."""
        self._failed(test, err)

    def addError(self, test, err):
        """Say so."""
        self._failed(test, err)


def main():
    """Do what the command line says."""
    device, module, *gid = sys.argv[1:]
    sys.argv[1:] = ["--dev", device, "--port", "1", *(["--gid", *gid] if gid else [])]
    sys.path.insert(0, ".")
    # The tests find both there, and the one before the other.
    from args_parser import parser

    parser.parse_args()
    tests = unittest.defaultTestLoader.loadTestsFromName(f"tests.{module}")
    # What a test leaves that is skipped half way ends in any order when it is collected: a protection domain after its device,
    # which is a fault of the Python bindings and ends the process.
    gc.disable()
    unittest.TestSuite(_chosen(tests)).run(_Lines())
    os._exit(0)


if __name__ == "__main__":
    main()
