# SPDX-License-Identifier: GPL-2.0-only
"""Run oxib's tests, some at a time, and say what came of them; see scripts/test."""

import argparse
import os
import random
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait
from pathlib import Path

from node_runner.kernel import PROCESS_KERNELS
from node_runner.results import Results
from node_runner.results import shown
from test_runner import again
from test_runner import commands
from test_runner import job
from test_runner import usual
from test_runner.job import NodeJob
from test_runner.job import Outcome
from test_runner.job import Selftest
from test_runner.measured import Measured
from test_runner.ready import Ready
from test_runner.room import Room
from test_runner.session import Session

_CHECKOUT = Path("/oxib")
_TAIL = 25
_KERNELS = ("uml", "fast", "umldebug", "debug", "stock")
# Seconds after which the room for another job is looked at again, though none has ended.
_LOOK = 5


def _selftests():
    scripts = sorted(path for path in (_CHECKOUT / "selftests").glob("*/*.sh") if path.parent.name != "lib")
    return [test for test in (Selftest(path, _CHECKOUT) for path in scripts) if not test.demo]


def _node_jobs(options):
    """The selftests asked for, on the kernels asked for."""
    chosen = [test for test in _selftests() if test.soak == options.soak or options.test or _also_in_soak(test, options)]
    if options.test:
        chosen = [test for test in chosen if test.subject == options.test or test.subject.startswith(options.test + "/")]
        if not chosen:
            names = "\n  ".join(test.subject for test in _selftests())
            raise SystemExit(f"oxib: there is no selftest {options.test}; there are\n  {names}")
    names = {test.subject for test in chosen}
    chosen = [test for test in chosen if test.whole not in names]
    kinds = options.kernels.split(",")
    kernels = [(test, kernel) for test in chosen for kind in test.kinds if kind in kinds for kernel in _kernels(test, kind, options)]
    turns = range(1, options.repeat + 1) if options.repeat else [None]
    return [NodeJob(test, kernel, turn) for turn in turns for test, kernel in kernels]


def _also_in_soak(test, options):
    """Whether `make soak` takes a test of every run: the debug kernel of a PC has preemption, which that of a process lacks."""
    return options.soak and test.subject.startswith("debug/")


def _names(test, kind, options):
    """The names of the kernels that a test which asks for a kind runs on."""
    if options.machine == "qemu" or test.needs_pc or _also_in_soak(test, options):
        return [kind]
    if kind == "stock":
        return ["uml" if test.process_instead else kind]
    return [PROCESS_KERNELS[kind]]


def _kernels(test, kind, options):
    """Their identifiers. The tests of stock/ show that oxib does its main job on a packaged kernel, and run on those of other
    versions, too."""
    versions = [os.environ["OXIB_KERNEL"]]
    if test.subject.startswith("stock/"):
        versions += os.environ.get("OXIB_OTHER_KERNELS", "").split()
    return [f"{name}-{version}" for version in versions for name in _names(test, kind, options)]


def _order(kernel):
    name, _, version = kernel.partition("-")
    return version != os.environ["OXIB_KERNEL"], _KERNELS.index(name)


# Seconds for each fuzz target, in `make test` and in `make soak`.
_FUZZ, _FUZZ_SOAK = 3, 300


def _mutants(options):
    if not (_CHECKOUT / "scripts/mutants").exists():
        return []
    return [job.mutants() if options.soak else job.mutants_of_each_kind(os.environ.get("OXIB_COMMIT", ""))]


def _host_jobs(options):
    seconds = options.fuzz or (_FUZZ_SOAK if options.soak else _FUZZ)
    fuzzing = [job.fuzzing(seconds, bool(options.soak))] if (_CHECKOUT / "scripts/fuzz").exists() else []
    found = [path.relative_to(_CHECKOUT) for path in (_CHECKOUT / "rust").glob("**/Cargo.toml")]
    # Without those of fuzz targets and of the workspace.
    manifests = sorted(path for path in found if path.parent.name not in ("fuzz", "rust"))
    if options.soak:
        seed = random.randrange(1 << 32)
        tests = [job.cargo_soak(str(manifest), seed) for manifest in manifests]
        return tests + fuzzing + _mutants(options) + _benchmarks(options)
    scripts = sorted((_CHECKOUT / "scripts/tests").glob("*.sh"))
    others = [job.of_scripts(path) for path in scripts] + fuzzing + _mutants(options)
    return [job.cargo_tests(str(manifest)) for manifest in manifests] + others


# What scripts/bench --smoke takes, one after the other without a name.
_BENCHMARKS = ("packets", "cm", "fabric", "ipoib", "acm", "programs", "routes", "floods", "profile")


def _benchmarks(options):
    """They run on the fast kernel, those of programs, routes and floods on its user-mode variant."""
    if "fast" not in options.kernels.split(",") or not (_CHECKOUT / "scripts/bench").exists():
        return []
    return [job.benchmark(name) for name in _BENCHMARKS]


def _needs(options):
    """The kernels that the jobs need, the default version's first."""
    kernels = {each.kernel for each in _node_jobs(options)}
    if options.soak and not (options.test or options.no_host) and _benchmarks(options):
        kernels.update(f"{name}-{os.environ['OXIB_KERNEL']}" for name in ("fast", "uml"))
    return sorted(kernels, key=_order)


def _print_plan(jobs, measured):
    """Print what the jobs take, by what was measured here or is usual elsewhere, the dearest first."""
    expected = {each.name: measured.expected(each.test) for each in jobs}
    print("To be run, with the seconds and the processor seconds that it took:")
    for name, took in sorted(expected.items(), key=lambda item: -item[1]["busy"] if item[1] else 0):
        print(f"{took['seconds']:8.0f} {took['busy']:6.0f}  {name}" if took else f"{'unknown':>15}  {name}")
    unknown = sum(took is None for took in expected.values())
    total = sum(took["busy"] for took in expected.values() if took)
    print(f"{len(jobs)} jobs, {total:.0f} processor seconds" + (f", and those of {unknown} that are unknown" if unknown else ""))
    elsewhere = sum(expected[each.name] is not None and measured.known(each.test) is None for each in jobs)
    if elsewhere:
        print(f"{elsewhere} of them were not run here yet: what they took on another machine")


def _say(text):
    """A line with the time since the user's command began, as scripts/lib/progress.sh counts it."""
    seconds = int(time.time()) - int(os.environ["OXIB_PROGRESS_START"])
    elapsed = f"{seconds // 60}:{seconds % 60:02d}"
    print(f"[{elapsed:>6}] {text}", file=sys.stderr, flush=True)


def _explain(each, outcome):
    """A failed job: which checks failed, and the end of its logs."""
    print(f"FAILED: {each.name}", file=sys.stderr)
    for failure in outcome.result.failures[:20]:
        print("  not ok -", failure.replace("\n", "\n    "), file=sys.stderr)
    for log in outcome.logs:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
        print(f"  the end of {shown(log)}:", file=sys.stderr)
        for line in lines:
            print(f"  | {line}", file=sys.stderr)
    sys.stderr.flush()


def _deadline():
    """The time (of time.time) at which .ci/run ends the run; none without it."""
    return float(os.environ.get("OXIB_DEADLINE", "inf"))


class _Runner:
    """Runs jobs side by side, and those that may have failed by accident once more."""

    def __init__(self, pool, out, room, options, session, measured):
        self._pool = pool
        self._out = out
        self._session = session
        self._measured = measured
        self._room = Room(options.processors, measured, room)
        self._ready = Ready(options.ready)
        self._kernels = set()
        self._limit = None if options.soak else job.LONGEST
        self._running = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupted)

    def _interrupted(self, number, _frame):
        """End what runs. The summary is written when it has ended."""
        if self._session.interruption:
            return
        over = time.time() >= _deadline() - 1
        self._session.interruption = "the time of .ci/run is over" if over else f"interrupted ({signal.Signals(number).name})"
        # Not by print(), which this handler may have interrupted.
        os.write(sys.stderr.fileno(), f"oxib: {self._session.interruption}: ending what runs\n".encode())
        commands.end_all()

    def run_all(self, jobs):
        """Run the jobs and enter what they come to."""
        self._kernels = {each.kernel for each in jobs}
        waiting = sorted(jobs, key=lambda each: -self._measured.seconds(each))
        while self._running or waiting and not self._session.interruption:
            self._drop_those_without_kernel(waiting)
            self._start(waiting)
            if not self._running:
                # Other runs have all the memory, or the kernels of those that wait are still being made.
                if waiting:
                    time.sleep(_LOOK)
                continue
            done, _ = wait(self._running, timeout=_LOOK, return_when=FIRST_COMPLETED)
            self._room.look()
            for future in done:
                each, outcome = self._running.pop(future), self._outcome(future)
                self._room.take(self._running.values())
                self._session.add(each, outcome)
                number = len(jobs) - len(waiting) - len(self._running)
                self._tell(f"{number}/{len(jobs)} {each.name}", each, outcome)
        for each in waiting:
            self._session.add_not_run(each, f"it did not run: {self._session.interruption}")

    def close(self):
        """Leave the machine to other runs."""
        self._room.close()

    def _drop_those_without_kernel(self, waiting):
        """Give up the jobs whose kernel could not be made."""
        for each in [each for each in waiting if self._ready.has_failed(each.kernel)]:
            waiting.remove(each)
            self._session.add_not_run(each, f"it did not run: the kernel {each.kernel} or its modules could not be made")

    def _has_kernels(self, each):
        """Whether what a job waits for is made."""
        return self._ready.is_over(self._kernels) if each.after_kernels else self._ready.has(each.kernel)

    def _can_start(self, each):
        return not self._session.interruption and self._has_kernels(each) and self._room.fits(each, self._running.values())

    def _start(self, waiting):
        """Start what fits beside what runs, the longest first."""
        for each in list(waiting):
            if self._can_start(each):
                waiting.remove(each)
                self._running[self._submit(each, self._limit)] = each
                self._room.started(self._running.values())

    def _submit(self, each, limit):
        return self._pool.submit(each.run, self._out, limit)

    def _outcome(self, future):
        """The outcome of a job that has ended, or was ended."""
        try:
            outcome = future.result()
        except commands.Closed:
            outcome = Outcome.of_failure("")
        except OSError as error:
            outcome = Outcome.of_failure(f"it cannot run: {error}")
        if self._session.interruption:
            outcome.result.failures = [f"it was ended: {self._session.interruption}"]
        return outcome

    def _tell(self, what, each, outcome):
        verdict = "FAILED" if outcome.failed else "ok"
        times = f"{outcome.seconds:.0f} s, {outcome.busy:.0f} s of processors"
        _say("; ".join([f"{what}: {verdict} in {times}", *outcome.remarks]))
        if outcome.failed and not self._session.interruption:
            _explain(each, outcome)

    def run_failed_again(self, flakes):
        """Run again, alone, the jobs that may have failed by accident; those that pass are added to the file `flakes`."""
        failed = self._session.failed
        for entry in failed:
            if self._session.interruption:
                return
            why_not = again.why_not(entry, len(failed))
            if why_not:
                self._leave(entry.job, why_not)
                continue
            record = again.Record(entry.job, entry.outcome)
            self._run_again(entry.job)
            if self._session.entry(entry.job).flaky:
                record.append_to(flakes)

    def _leave(self, each, why):
        """Say why a failed job is not run again, here and in the closing lines: these are what a shortened output keeps."""
        _say(f"{each.name} is not run again: {why}")
        self._session.add_not_again(each, why)

    def _run_again(self, each):
        """Run a job alone until it has failed or has passed often enough."""
        seconds = self._measured.seconds(each)
        if time.time() + again.RUNS * again.LEAST_LEFT > _deadline():
            self._leave(each, ".ci/run leaves no time for that")
            return
        each.keep_first(self._out)
        for number in range(1, again.RUNS + 1):
            _say(f"{each.name} is run again, alone ({number} of {again.RUNS})")
            future = self._submit(each, again.limit(seconds))
            wait([future])
            outcome = self._outcome(future)
            self._session.add_second(each, outcome)
            self._tell(f"{each.name}, again ({number} of {again.RUNS})", each, outcome)
            if outcome.failed:
                return


def _parse():
    parser = argparse.ArgumentParser(prog="scripts/test", description="Run oxib's tests.")
    parser.add_argument("--kernels", default="fast,debug,stock", help="run selftests that ask for these (default: all)")
    parser.add_argument("--machine", choices=("qemu", "uml"), default="qemu", help="what nodes are, unless a test needs the other")
    parser.add_argument("--test", help="only the selftest of this name, or of this folder")
    parser.add_argument("--soak", action="store_true", help="the selftests that are too long for every run")
    parser.add_argument("--no-host", action="store_true", help="without the tests that need no node")
    parser.add_argument(
        "--fuzz", type=int, metavar="SECONDS", help=f"for each fuzz target (default {_FUZZ}, with --soak {_FUZZ_SOAK})"
    )
    parser.add_argument("--no-again", action="store_true", help="do not run a failed job again to see whether it is flaky")
    parser.add_argument("--needs", action="store_true", help="only print the kernels that this would need")
    parser.add_argument("--plan", action="store_true", help="only print what would run, and what that took when it ran last")
    parser.add_argument("--ready", type=Path, metavar="DIRECTORY", help="where a file tells of each kernel that it is made (default: all are)")
    parser.add_argument("--repeat", type=int, metavar="TIMES", help="run each selftest this many times; keep the logs of failures")
    parser.add_argument(
        "--processors", type=int, default=os.cpu_count(), help="how many to keep busy with jobs side by side (default: all)"
    )
    return parser.parse_args()


def main():
    """Run what was asked for; the last line of the output has the counts."""
    options = _parse()
    if options.needs:
        print(*_needs(options))
        return 0
    cache = Path(os.environ["OXIB_CACHE"])
    jobs = _node_jobs(options)
    if not (options.test or options.no_host or options.repeat):
        jobs += _host_jobs(options)
    measured = Measured(cache / "measured.json", usual.read())
    if options.plan:
        _print_plan(jobs, measured)
        return 0
    results = Results.first_free(cache / "out/tests")
    session = Session(measured)
    with ThreadPoolExecutor(max(1, len(jobs))) as pool:
        runner = _Runner(pool, results.path, cache / "room", options, session, measured)
        runner.run_all(jobs)
        if not (options.no_again or options.repeat or options.soak):
            runner.run_failed_again(cache / "flaky.json")
        runner.close()
    session.write(results.path / "results.json")
    if options.repeat:
        session.report_repetitions()
    else:
        session.report_slowest()
    session.report()
    return 0 if session.passed else 1


if __name__ == "__main__":
    sys.exit(main())
