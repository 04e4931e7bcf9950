# SPDX-License-Identifier: GPL-2.0-only
"""Look whether tests notice what is broken on purpose; see scripts/mutants."""

import argparse
import math
import os
import queue
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from mutant_runner.crates import CRATES
from mutant_runner.crates import Crates
from mutant_runner.mutant import HOST
from mutant_runner.mutant import KERNELS
from mutant_runner.mutant import Mistake
from mutant_runner.mutant import chosen
from mutant_runner.mutant import dozen
from mutant_runner.mutant import mutants_of
from mutant_runner.mutant import one_of_each
from mutant_runner.noticed import FILE
from mutant_runner.noticed import Noticed
from mutant_runner.tree import CHECKOUT
from mutant_runner.tree import Killed
from mutant_runner.tree import Tree
from mutant_runner.tree import check_not_interrupted
from mutant_runner.tree import end_all
from mutant_runner.trial import HostTrial
from mutant_runner.trial import Trial
from node_runner.kernel import kind_of
from node_runner.results import Results
from test_runner.job import cargo_command

_AT_LEAST = 60
# What a run with a mutant may take: several times what the test takes without one, or so long where that is not known.
_PATIENCE, _SHORTEST, _UNKNOWN = 4, 240, 600
_LONGEST = 7200
# The tests of so many mutants for each tree are run as they are before these mutants are tried: with all tests run first, an
# interruption would leave nothing. Each piece costs a build of the modules as they are.
_PIECE = 8


class _Tap:
    """Checks on the standard output, as they are made."""

    def __init__(self):
        self.number = 0
        self.failures = 0
        self._lock = threading.Lock()

    def check(self, good, text, *notes):
        """A check, with lines about it."""
        with self._lock:
            self.number += 1
            self.failures += not good
            print(f"{'ok' if good else 'not ok'} {self.number} - {text}")
            for note in notes:
                print(f"# {note}")
            sys.stdout.flush()

    def finish(self):
        """The plan; returns the exit status."""
        print(f"1..{self.number}", flush=True)
        return 1 if self.failures else 0


def _kernel_ids(mutant):
    """The identifiers of the kernels that a mutant is tried on. Where there are no kernels that are processes, those of machines
    take their place."""
    known = os.environ["OXIB_TEST_KERNELS"].split("|")
    names = dict.fromkeys(name if name in (*known, HOST) else kind_of(name) for name in mutant.kernels)
    return [name if name == HOST else f"{name}-{os.environ['OXIB_KERNEL']}" for name in names]


def _check(mutants, strays):
    """Every patch applies, and the test that it names is there; lines of the record that name no mutant are a failure."""
    tap = _Tap()
    for mutant in mutants:
        notes = []
        try:
            mutant.changed(CHECKOUT)
        except Mistake as mistake:
            notes.append(mistake)
        if not (CHECKOUT / mutant.test_file).is_file():
            notes.append(f"there is no {mutant.test_file}")
        notes += [f"there is no kernel {kernel}" for kernel in mutant.kernels if kernel not in KERNELS]
        tap.check(not notes, f"{mutant.name} applies, and {mutant.test} is there", *notes)
    tap.check(not strays, f"each line of {FILE} names a mutant", *strays)
    tap.check(len(mutants) >= _AT_LEAST, f"there are {len(mutants)} mutants")
    return tap.finish()


def _modules(kernel):
    """The command that builds the modules for a kernel."""
    return ["scripts/modules", kernel]


class _Patches:
    """Trials of patches, one at a time in each tree. With `proves` each test is run without a mutant first. From `end` on, a
    monotonic time, none begins."""

    def __init__(self, trees, out, tap, noticed, proves, end):
        self._out = out
        self._tap = tap
        self._trees = trees
        self._noticed = noticed
        self._proves = proves
        self._end = end
        self._free = queue.SimpleQueue()
        for tree in trees:
            self._free.put(tree)
        # By test and kernel: how long it takes without a mutant, or why it fails.
        self._baselines = {}
        # By kernel: whether it is there.
        self._kernels = {HOST: True}

    @contextmanager
    def _tree(self):
        tree = self._free.get()
        try:
            yield tree
        finally:
            self._free.put(tree)

    def _side_by_side(self, work, items):
        """Work on each item, as many at a time as there are trees. Returns how many there was no time to begin."""

        def begin(item):
            is_late = self._is_late()
            if not is_late:
                work(item)
            return is_late

        with ThreadPoolExecutor(len(self._trees)) as pool:
            return sum(pool.map(begin, items))

    def _is_late(self):
        return time.monotonic() >= self._end

    def _build(self, tree, command, name):
        """Returns the log if that fails."""
        log = self._out / f"{name}.build"
        status = tree.run(command, log)
        check_not_interrupted()
        return log if status else None

    def _trial(self, tree, mutant, kernel):
        if kernel == HOST:
            return HostTrial(tree, self._out, cargo_command(mutant.manifest))
        return Trial(tree, self._out, (mutant.test, *mutant.arguments), kernel)

    def _key(self, mutant, kernel):
        return mutant.test, *mutant.arguments, kernel

    def try_all(self, trials):
        """Look which mutants are noticed, of (mutant, kernel). Returns how many trials there was no time to begin."""
        late, size = 0, _PIECE * len(self._trees)
        # One kernel after the other: what is built for one mutant is of use for the next.
        for kernel, of_kernel in groupby(trials, itemgetter(1)):
            mutants = [mutant for mutant, _ in of_kernel]
            for first in range(0, len(mutants), size):
                late += self._try_on(mutants[first : first + size], kernel)
        return late

    def _try_on(self, mutants, kernel):
        if self._is_late():
            return len(mutants)
        if not self._make_kernel(kernel) or self._proves and not self._prove(mutants, kernel):
            return 0
        return self._side_by_side(lambda mutant: self._attempt(mutant, kernel), mutants)

    def _make_kernel(self, kernel):
        """Make it, if no trial was on it yet: an hour of others may come first, or the end of the time. Returns whether it is
        there."""
        if kernel not in self._kernels:
            with self._tree() as tree:
                tree.restore()
                log = self._build(tree, ["scripts/kernel", kernel], f"kernel-{kernel}")
            self._kernels[kernel] = not log
            if log:
                self._tap.check(False, f"the kernel {kernel} can be made", f"see {log}")
        return self._kernels[kernel]

    def _prove(self, mutants, kernel):
        """Build the modules as they are, and run each test without a mutant, if that was not done yet. Returns whether they
        build."""
        tests = {key: mutant for mutant in mutants if (key := self._key(mutant, kernel)) not in self._baselines}
        if not tests:
            return True
        if log := self._build_as_is(kernel):
            self._tap.check(False, f"the modules for {kernel} build as they are", f"see {log}")
            return False
        self._side_by_side(lambda mutant: self._baseline(mutant, kernel), tests.values())
        return True

    def _build_as_is(self, kernel):
        """Build the modules without a mutant in each tree. Returns the log of one that fails."""

        def build(number, tree):
            tree.restore()
            # The crates of the host are built by the tests without a mutant.
            return None if kernel == HOST else self._build(tree, _modules(kernel), f"baseline-{kernel}-{number}")

        with ThreadPoolExecutor(len(self._trees)) as pool:
            logs = list(pool.map(build, count(1), self._trees))
        return next(filter(None, logs), None)

    def _baseline(self, mutant, kernel):
        """Run its test without a mutant: what fails in any case shows nothing."""
        key = self._key(mutant, kernel)
        flat = "-".join(key).replace("/", "-").replace(":", "-")
        with self._tree() as tree:
            try:
                verdict = self._trial(tree, mutant, kernel).run(f"baseline-{flat}", None, _LONGEST)
            except Killed as killed:
                self._baselines[key] = f"the test as it is: {killed}"
                return
        self._baselines[key] = f"the test fails as it is: {verdict.why}" if verdict.failed else verdict.seconds

    def _attempt(self, mutant, kernel):
        with self._tree() as tree:
            self._attempt_in(tree, mutant, kernel)

    def _attempt_in(self, tree, mutant, kernel):
        """Break it, build it, run the test."""
        title = f"{mutant.name} ({kernel}): {' '.join((mutant.test, *mutant.arguments))}"
        before = self._baselines.get(self._key(mutant, kernel))
        if isinstance(before, str):
            return self._tap.check(False, title, before)
        name = f"{mutant.name.replace('/', '-')}-{kernel}"
        tree.restore()
        if kernel != HOST and not tree.incremental:
            # Then make compiles only what the patch changes. If the checkout has no such build, nothing is copied.
            self._build(tree, ["scripts/modules", "--copy", kernel], f"{name}-copy")
        try:
            mutant.apply(tree.root)
        except Mistake as mistake:
            return self._tap.check(False, title, mistake)
        command = [*cargo_command(mutant.manifest), "--no-run"] if kernel == HOST else _modules(kernel)
        if log := self._build(tree, command, name):
            return self._tap.check(False, title, f"it does not build; see {log}")
        limit = _UNKNOWN if before is None else max(_SHORTEST, _PATIENCE * before)
        try:
            verdict = self._trial(tree, mutant, kernel).run(name, mutant.report, limit)
        except Killed as killed:
            return self._tap.check(False, title, killed)
        if verdict.failed:
            self._noticed.add(mutant, kernel)
            return self._tap.check(True, title, f"in {verdict.seconds:.0f} s: {verdict.why}")
        return self._tap.check(False, title, f"it survives: {mutant.what}", "a test is missing")


def _trials(mutants):
    """(mutant, kernel) of all, the cheap ones first: tests of crates, unit tests in the kernel, selftests; debug kernels last."""
    trials = [(mutant, kernel) for mutant in mutants for kernel in _kernel_ids(mutant)]
    return sorted(trials, key=lambda trial: _cost(*trial))


def _cost(mutant, kernel):
    return kernel != HOST, not mutant.is_for_kunit, "debug" in kernel, kernel, mutant.test


def _try_crates(names, tree, out, tap):
    """Run cargo-mutants, whose survivors are told but fail nothing: many change only what is the same either way."""
    tree.restore()
    crates = Crates(tree, out)
    log = crates.install()
    if log:
        return tap.check(False, "cargo-mutants can be installed", f"see {log}")
    caught_of_all, all_survivors = 0, []
    for crate in names or CRATES:
        caught, survivors, log = crates.run(crate)
        if caught is None:
            tap.check(False, f"rust/{crate}: cargo-mutants", f"its tests fail as they are, or it has none; see {log}")
            continue
        caught_of_all += caught
        all_survivors += survivors
        tap.check(True, f"rust/{crate}: cargo-mutants", _share(caught, survivors), *survivors)
    tap.check(bool(caught_of_all), "all crates", _share(caught_of_all, all_survivors))
    (out / "survivors").write_text("".join(f"{name}\n" for name in all_survivors), encoding="utf-8")
    return None


def _share(caught, survivors):
    number = caught + len(survivors)
    return f"{len(survivors)} of {number} survive: {100 * len(survivors) / max(1, number):.1f} %"


def _parse():
    parser = argparse.ArgumentParser(prog="scripts/mutants", description="Look whether tests notice what is broken on purpose.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants or subjects, and no crates; with --crates: only these")
    parser.add_argument("--list", action="store_true", help="only print the mutants, with the tests that have to fail and whether they were noticed")
    parser.add_argument("--check", action="store_true", help="only look whether every patch applies and its test is there")
    parser.add_argument("--record", action="store_true", help=f"only write into {FILE} which mutants were noticed as they and their tests are")
    parser.add_argument("--turn", type=int, metavar="N", help="a dozen of the patches, others for each number; no crates")
    parser.add_argument("--rest", action="store_true", help="only patches that were not noticed yet as they and their tests are; no crates")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no trial of a patch after so long; no crates")
    parser.add_argument("--each", action="store_true", help="with --turn: one patch of each kind, others for each number, whose tests another job runs as they are")
    parser.add_argument("--crates", action="store_true", help="only cargo-mutants on the crates")
    parser.add_argument("--patches", action="store_true", help="only the patches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="patches to try at a time (default: one a processor)")
    parser.add_argument("--needs", action="store_true", help="only print the kernels that this would need")
    return parser.parse_args()


def _interrupted(number, _frame):
    """End at once, but not before what was started has ended."""
    print(f"oxib: interrupted ({signal.Signals(number).name})", file=sys.stderr)
    end_all()
    os._exit(130)


def main():
    """Do what the command line says; the exit status says whether all were noticed."""
    options = _parse()
    existing = mutants_of(CHECKOUT)
    mutants = [] if options.crates else chosen(existing, options.names)
    unknown = set(options.names) - set(CRATES) if options.crates else ()
    if unknown:
        raise Mistake(f"there is no crate {' '.join(sorted(unknown))}; there are {', '.join(CRATES)}")
    if options.turn is not None:
        mutants = (one_of_each if options.each else dozen)(mutants, options.turn)
    cache = Path(os.environ["OXIB_CACHE"])
    noticed = Noticed(CHECKOUT, cache, os.environ.get("OXIB_COMMIT", "unknown"))
    if options.check:
        return _check(mutants, noticed.strays(existing))
    if options.record:
        noticed.record(existing)
        return 0
    if options.list:
        for mutant in mutants:
            test = " ".join((mutant.test, *mutant.arguments))
            print(f"{mutant.name}: {test} ({', '.join(mutant.kernels)}; {noticed.summary(mutant)}): {mutant.what}")
        return 0
    trials = [trial for trial in _trials(mutants) if not (options.rest and noticed.has(*trial))]
    if options.needs:
        print(*dict.fromkeys(kernel for _, kernel in trials if kernel != HOST))
        return 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    results = Results.first_free(cache / "out/mutants")
    end = math.inf if options.minutes is None else time.monotonic() + 60 * options.minutes
    trees = [Tree(cache, number, incremental=not options.each) for number in range(1, max(1, options.jobs) + 1)]
    tap = _Tap()
    late = _Patches(trees, results.path, tap, noticed, not options.each, end).try_all(trials)
    if late:
        print(f"# the time is over: {late} of {len(trials)} trials were not begun")
    limited = options.names or options.patches or options.rest or options.turn is not None or options.minutes is not None
    if options.crates or not limited:
        _try_crates(options.names, trees[0], results.path, tap)
    return tap.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Mistake as mistake:
        sys.exit(f"oxib: {mistake}")
