# SPDX-License-Identifier: GPL-2.0-only
"""Run oxib's tests, some at a time, and say what came of them; see scripts/test."""

import argparse
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
from test_runner.job import NodeJob
from test_runner.job import Selftest
from test_runner.tap import Result

_CHECKOUT = Path("/oxib")
_TAIL = 25
_KERNELS = ("fast", "debug", "stock")


def _selftests():
    scripts = sorted((_CHECKOUT / "selftests").glob("*/*.sh"))
    return [test for test in (Selftest(path, _CHECKOUT) for path in scripts) if not test.demo]


def _node_jobs(options):
    """The selftests asked for, on the kernels asked for."""
    chosen = [test for test in _selftests() if test.soak == options.soak or options.test]
    if options.test:
        chosen = [test for test in chosen if test.subject == options.test or test.subject.startswith(options.test + "/")]
        if not chosen:
            names = "\n  ".join(test.subject for test in _selftests())
            raise SystemExit(f"oxib: there is no selftest {options.test}; there are\n  {names}")
    names = options.kernels.split(",")
    return [NodeJob(test, kernel) for test in chosen for name in test.kernels if name in names for kernel in _kernels(test, name)]


def _kernels(test, name):
    """The identifiers of the kernels of that name that a test runs on. The tests of stock/ show that oxib does its main job on a
    packaged kernel, and run on those of other versions, too."""
    versions = [os.environ["OXIB_KERNEL"]]
    if test.subject.startswith("stock/"):
        versions += os.environ.get("OXIB_OTHER_KERNELS", "").split()
    return [f"{name}-{version}" for version in versions]


def _order(kernel):
    name, _, version = kernel.partition("-")
    return version != os.environ["OXIB_KERNEL"], _KERNELS.index(name)


# Seconds for each fuzz target, in `make test` and in `make soak`.
_FUZZ, _FUZZ_SOAK = 5, 300


def _host_jobs(options):
    seconds = options.fuzz or (_FUZZ_SOAK if options.soak else _FUZZ)
    fuzzing = [job.fuzzing(seconds)] if (_CHECKOUT / "scripts/fuzz").exists() else []
    if options.soak:
        return fuzzing + ([job.mutants()] if (_CHECKOUT / "scripts/mutants").exists() else [])
    found = [path.relative_to(_CHECKOUT) for path in (_CHECKOUT / "rust").glob("**/Cargo.toml")]
    manifests = sorted(path for path in found if path.parent.name != "fuzz")
    scripts = sorted((_CHECKOUT / "scripts/tests").glob("*.sh"))
    return [job.cargo_tests(str(manifest)) for manifest in manifests] + [job.of_scripts(path) for path in scripts] + fuzzing


def _seconds():
    """Since the user's command began, as scripts/progress.sh counts them."""
    return int(time.time()) - int(os.environ["OXIB_PROGRESS_START"])


def _say(text):
    """A line with the time since the user's command began."""
    seconds = _seconds()
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
        print(f"  not ok - {failure}", file=sys.stderr)
    for log in outcome.logs:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
        print(f"  the end of {str(log).replace('/cache', '$OXIB_CACHE', 1)}:", file=sys.stderr)
        for line in lines:
            print(f"  | {line}", file=sys.stderr)
    sys.stderr.flush()


def _start(pool, waiting, running, room, out):
    """Start what fits beside what runs, the longest first; alone, anything does."""
    for each in list(waiting):
        if running and sum(other.share for other in running.values()) + each.share > room:
            continue
        waiting.remove(each)
        running[pool.submit(each.run, out)] = each


def _skip(waiting, minutes, total):
    """What has not begun is skipped: there is no time for it any more."""
    for each in waiting:
        _say(f"{each.name}: skipped: {minutes} minutes were over before it could begin")
    total.skipped += len(waiting)
    waiting.clear()


def _run_all(jobs, out, options, total):
    """Run the jobs and count what they come to; returns the names of the failed."""
    failed = []
    waiting = sorted(jobs, key=lambda each: -each.weight)
    running = {}
    with ThreadPoolExecutor(max(1, len(jobs))) as pool:
        while waiting or running:
            if options.minutes and _seconds() > 60 * options.minutes:
                _skip(waiting, options.minutes, total)
            _start(pool, waiting, running, options.processors * job.PROCESSOR, out)
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                each, outcome = running.pop(future), future.result()
                total.add(outcome.result)
                verdict = "FAILED" if outcome.result.failures else "ok"
                number = len(jobs) - len(waiting) - len(running)
                times = f"{outcome.seconds:.0f} s, {outcome.busy:.0f} s of processors"
                _say("; ".join([f"{number}/{len(jobs)} {each.name}: {verdict} in {times}", *outcome.remarks]))
                if outcome.result.failures:
                    failed.append(each.name)
                    _explain(each, outcome)
    return failed


def _parse():
    parser = argparse.ArgumentParser(prog="scripts/test", description="Run oxib's tests.")
    parser.add_argument("--kernels", default="fast,debug,stock", help="run selftests on these (default: all)")
    parser.add_argument("--test", help="only the selftest of this name, or of this folder")
    parser.add_argument("--soak", action="store_true", help="the selftests that are too long for every run")
    parser.add_argument("--no-host", action="store_true", help="without the tests that need no node")
    parser.add_argument(
        "--fuzz", type=int, metavar="SECONDS", help=f"for each fuzz target (default {_FUZZ}, with --soak {_FUZZ_SOAK})"
    )
    parser.add_argument("--needs", action="store_true", help="only print the kernels that this would need")
    parser.add_argument("--processors", type=int, default=2, help="how many to keep busy with jobs side by side (default 2)")
    parser.add_argument("--minutes", type=int, help="begin no test later than that after the command began: skip those that are left")
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
    if not (options.test or options.no_host):
        jobs += _host_jobs(options)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    total = Result()
    failed = _run_all(jobs, results.path, options, total)
    for name in failed:
        print(f"failed: {name}")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {len(total.failures)} failed{skipped}", flush=True)
    return 1 if total.failures or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
