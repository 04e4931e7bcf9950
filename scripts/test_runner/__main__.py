# SPDX-License-Identifier: GPL-2.0-only
"""Run oxib's tests, some at a time, and say what came of them; see scripts/test."""

import argparse
import json
import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait
from pathlib import Path

from node_runner.results import Results
from test_runner import job
from test_runner.job import PROCESS_KERNELS
from test_runner.job import NodeJob
from test_runner.job import Selftest
from test_runner.measured import Measured
from test_runner.room import Room
from test_runner.tap import Result

_CHECKOUT = Path("/oxib")
_TAIL = 25
_KERNELS = ("uml", "fast", "umldebug", "debug", "stock")
_SLOWEST = 10
# Seconds after which the room for another job is looked at again, though none has ended.
_LOOK = 5


def _selftests():
    scripts = sorted((_CHECKOUT / "selftests").glob("*/*.sh"))
    return [test for test in (Selftest(path, _CHECKOUT) for path in scripts) if not test.demo]


def _node_jobs(options):
    """The selftests asked for, on the kernels asked for."""
    chosen = [test for test in _selftests() if test.soak == options.soak or options.test or _also_in_soak(test, options)]
    if options.test:
        chosen = [test for test in chosen if test.subject == options.test or test.subject.startswith(options.test + "/")]
        if not chosen:
            names = "\n  ".join(test.subject for test in _selftests())
            raise SystemExit(f"oxib: there is no selftest {options.test}; there are\n  {names}")
    kinds = options.kernels.split(",")
    kernels = [(test, kernel) for test in chosen for kind in test.kinds if kind in kinds for kernel in _kernels(test, kind, options)]
    turns = range(1, options.repeat + 1) if options.repeat else [None]
    return [NodeJob(test, kernel, _arguments(test, kernel, options), turn) for turn in turns for test, kernel in kernels]


def _arguments(test, kernel, options):
    """The arguments of a test's script: a machine beside a process may do less."""
    return test.arguments_beside if options.machine == "uml" and kernel.startswith("fast-") else []


def _also_in_soak(test, options):
    """Whether `make soak` takes a test of every run: the debug kernel of a PC has preemption, which that of a process lacks."""
    return options.soak and test.subject.startswith("debug/")


def _names(test, kind, options):
    """The names of the kernels that a test which asks for a kind runs on."""
    if options.machine == "qemu" or test.needs_pc or _also_in_soak(test, options):
        return [kind]
    if kind == "stock":
        return ["uml" if test.process_instead else kind]
    names = [PROCESS_KERNELS[kind]]
    if kind == "fast" and test.also_pc and not options.no_other:
        names.append(kind)
    return names


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


def _host_jobs(options):
    seconds = options.fuzz or (_FUZZ_SOAK if options.soak else _FUZZ)
    fuzzing = [job.fuzzing(seconds)] if (_CHECKOUT / "scripts/fuzz").exists() else []
    if options.soak:
        return fuzzing + ([job.mutants()] if (_CHECKOUT / "scripts/mutants").exists() else [])
    found = [path.relative_to(_CHECKOUT) for path in (_CHECKOUT / "rust").glob("**/Cargo.toml")]
    manifests = sorted(path for path in found if path.parent.name != "fuzz")
    scripts = sorted((_CHECKOUT / "scripts/tests").glob("*.sh"))
    others = [job.of_scripts(path) for path in scripts] + fuzzing
    return [job.cargo_tests(str(manifest)) for manifest in manifests] + others


def _say(text):
    """A line with the time since the user's command began, as scripts/progress.sh counts it."""
    seconds = int(time.time()) - int(os.environ["OXIB_PROGRESS_START"])
    elapsed = f"{seconds // 60}:{seconds % 60:02d}"
    print(f"[{elapsed:>6}] {text}", file=sys.stderr, flush=True)


def _interrupted(number, _frame):
    """End at once, but not before what was started has been told to."""
    print(f"oxib: interrupted ({signal.Signals(number).name})", file=sys.stderr)
    job.stop_all()
    os._exit(130)


def _explain(each, outcome):
    """A failed job: which checks failed, and the end of its logs."""
    print(f"FAILED: {each.name}", file=sys.stderr)
    for failure in outcome.result.failures[:20]:
        print("  not ok -", failure.replace("\n", "\n    "), file=sys.stderr)
    for log in outcome.logs:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
        print(f"  the end of {str(log).replace('/cache', '$OXIB_CACHE', 1)}:", file=sys.stderr)
        for line in lines:
            print(f"  | {line}", file=sys.stderr)
    sys.stderr.flush()


def _start(pool, waiting, running, room, out):
    """Start what fits beside what runs, the longest first."""
    for each in list(waiting):
        if room.fits(each, running.values()):
            waiting.remove(each)
            running[pool.submit(each.run, out)] = each


class _Session:
    """The jobs that have ended, and what they came to."""

    def __init__(self, measured):
        self.total = Result()
        self._measured = measured
        self._outcomes = []

    def add(self, each, outcome):
        """Enter a job that has ended."""
        self.total.add(outcome.result)
        self._outcomes.append((each, outcome))
        if not outcome.result.failures and each.turn is None:
            self._measured.add(each.test, outcome.seconds, outcome.busy)

    @property
    def failed(self):
        """The names of those that failed."""
        return [each.name for each, outcome in self._outcomes if outcome.result.failures]

    def write(self, path):
        """Write what each took and came to."""
        records = [
            {
                "test": each.name,
                "seconds": round(outcome.seconds, 1),
                "processor_seconds": round(outcome.busy, 1),
                "passed": outcome.result.passed,
                "failed": len(outcome.result.failures),
                "skipped": outcome.result.skipped,
            }
            for each, outcome in self._outcomes
        ]
        path.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")

    def report(self):
        """Print the slowest."""
        slowest = sorted(self._outcomes, key=lambda ended: -ended[1].seconds)[:_SLOWEST]
        print(f"The slowest {len(slowest)}, in seconds and processor seconds:")
        for each, outcome in slowest:
            print(f"{outcome.seconds:6.0f} {outcome.busy:6.0f}  {each.name}")

    def report_repetitions(self):
        """Print how often each test failed."""
        turns = {}
        for each, outcome in self._outcomes:
            turns.setdefault(each.test, []).append(bool(outcome.result.failures))
        for test, failures in turns.items():
            print(f"{test}: {sum(failures)} of {len(failures)} failed")


def _run_all(jobs, out, options, session, measured):
    """Run the jobs and enter what they come to."""
    waiting = sorted(jobs, key=lambda each: -measured.seconds(each))
    running = {}
    room = Room(options.processors, measured)
    with ThreadPoolExecutor(max(1, len(jobs))) as pool:
        while waiting or running:
            _start(pool, waiting, running, room, out)
            if not running:
                break
            done, _ = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
            if not done:
                room.look()
            for future in done:
                each, outcome = running.pop(future), future.result()
                session.add(each, outcome)
                verdict = "FAILED" if outcome.result.failures else "ok"
                number = len(jobs) - len(waiting) - len(running)
                times = f"{outcome.seconds:.0f} s, {outcome.busy:.0f} s of processors"
                _say("; ".join([f"{number}/{len(jobs)} {each.name}: {verdict} in {times}", *outcome.remarks]))
                if outcome.result.failures:
                    _explain(each, outcome)


def _parse():
    parser = argparse.ArgumentParser(prog="scripts/test", description="Run oxib's tests.")
    parser.add_argument("--kernels", default="fast,debug,stock", help="run selftests that ask for these (default: all)")
    parser.add_argument("--machine", choices=("qemu", "uml"), default="qemu", help="what nodes are, unless a test needs the other")
    parser.add_argument("--no-other", action="store_true", help="without the runs of chosen tests on the other machine")
    parser.add_argument("--test", help="only the selftest of this name, or of this folder")
    parser.add_argument("--soak", action="store_true", help="the selftests that are too long for every run")
    parser.add_argument("--no-host", action="store_true", help="without the tests that need no node")
    parser.add_argument(
        "--fuzz", type=int, metavar="SECONDS", help=f"for each fuzz target (default {_FUZZ}, with --soak {_FUZZ_SOAK})"
    )
    parser.add_argument("--needs", action="store_true", help="only print the kernels that this would need")
    parser.add_argument("--repeat", type=int, metavar="TIMES", help="run each selftest so often; keep the logs of failures")
    parser.add_argument(
        "--processors", type=int, default=os.cpu_count(), help="how many to keep busy with jobs side by side (default: all)"
    )
    return parser.parse_args()


def main():
    """Run what was asked for; the last line of the output has the counts."""
    options = _parse()
    if options.needs:
        # The default version's first.
        print(*dict.fromkeys(sorted((each.kernel for each in _node_jobs(options)), key=_order)))
        return 0
    results = Results.first_free(Path(os.environ["OXIB_CACHE"]) / "out/tests")
    jobs = _node_jobs(options)
    if not (options.test or options.no_host or options.repeat):
        jobs += _host_jobs(options)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    measured = Measured(Path(os.environ["OXIB_CACHE"]) / "measured.json")
    session = _Session(measured)
    _run_all(jobs, results.path, options, session, measured)
    session.write(results.path / "results.json")
    if options.repeat:
        session.report_repetitions()
    else:
        session.report()
    for name in session.failed:
        print(f"failed: {name}")
    total = session.total
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {len(total.failures)} failed{skipped}", flush=True)
    return 1 if total.failures or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
