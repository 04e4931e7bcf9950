# SPDX-License-Identifier: GPL-2.0-only
"""A job: something with a name that is run once and comes to a result."""

import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from node_runner import reports
from node_runner.kernel import is_process
from node_runner.kernel import kind_of
from node_runner.run import BOOTED_AGAIN
from test_runner import commands
from test_runner.tap import Result
from test_runner.tap import read
from test_runner.tap import read_cargo

_HASH = re.compile(r"[0-9a-f]{7}")
_SPEAKS_TAP = re.compile(r"^(1\.\.\d|Bail out!)", re.MULTILINE)
_HEADER = re.compile(r"^# (nodes|kernels|machine|instead|part|timeout|memory|smp|soak|demo|icount|append): *(.+?) *$")
# Headers say what is enough on an ordinary machine with the fast kernel; one may be as much slower. A limit is for what hangs: on
# a machine whose processors others use as well, a test takes several times as long.
_PATIENCE = 4
# Emulated, with every check on.
_DEBUG_PATIENCE = 10
# So much less where nodes are processes.
_PROCESS_IMPATIENCE = 2
# Seconds between the time limit of a job and its end by force: in these it ends its nodes and says what they did.
_TO_END = 60
# The time limit of a job in a test run, whatever its header says: one that hangs is gone after 25 minutes and leaves time for the rest.
LONGEST = 25 * 60 - _TO_END
_DEBUG_MEMORY = 1024
# MiB of this machine's memory that a job without nodes may take, and for each MiB of a node with KASAN.
_HOST_MEMORY = 1024
_KASAN_MEMORY = 1.25


@dataclass
class Outcome:
    """What a job came to, and where its output is."""

    result: Result
    seconds: float
    # The seconds of processors used by all its processes.
    busy: float
    logs: list = field(default_factory=list)
    # Other lines to print beside the verdict.
    remarks: list = field(default_factory=list)
    # Reports on the nodes' consoles of a mistake, which no second run excuses.
    mistakes: list = field(default_factory=list)

    @property
    def failed(self):
        """Whether a check failed, or the job itself."""
        return bool(self.result.failures)

    @classmethod
    def of_failure(cls, why):
        """The outcome of a job that did not come to one of its own."""
        return cls(Result(failures=[why]), 0.0, 0.0)


def _move(path, to):
    """Rename a file or directory, in place of what has that name."""
    if to.is_dir():
        shutil.rmtree(to)
    if path.exists():
        path.rename(to)


class HostJob:
    """A command that runs in the toolchain root. `runs` are patterns for the directories in out/ of the runs of nodes that it starts,
    if it starts some; `remarks` are said beside its verdict. `again`: it may run again though no such directory is looked at.
    `after_kernels`: it begins when no kernel of this run is built any more."""

    # The seconds that it takes and the processors that it keeps busy, where neither has been measured.
    guess = (300, 1.0)
    turn = None
    kernel = None

    def __init__(self, name, command, reader, runs=(), memory=_HOST_MEMORY, remarks=(), again=False, after_kernels=False):
        self.name = self.test = name
        self.memory = memory
        self.after_kernels = after_kernels
        self._command = command
        self._reader = reader
        self._runs = runs
        self._remarks = list(remarks)
        self._again = again

    @property
    def may_run_again(self):
        """Whether a failure may be the machine's: it boots nodes."""
        return self._again or bool(self._runs)

    def run(self, out, limit):
        """Run it, for `limit` seconds at most; its output is in `out`."""
        log = out / f"{self.name}.log"
        # File systems take the time from a clock that is a little late.
        began, written_after = time.monotonic(), time.time() - 1
        ended = commands.call(self._command, log, limit)
        result = self._reader(log.read_text(encoding="utf-8", errors="replace"))
        if ended.late:
            result.failures.append(f"its time limit of {limit:.0f} s was over")
        if ended.status != 0 and not result.failures:
            result.failures.append(f"it ended with status {ended.status}")
        if not result.failures and result.passed == 0:
            result.passed = 1
        consoles = [console for console in self._consoles(out) if console.stat().st_mtime >= written_after]
        mistakes = _mistakes([log, *consoles]) if self._runs else []
        return Outcome(result, time.monotonic() - began, ended.busy, [log], self._remarks, mistakes)

    def _directories(self, out):
        return [directory for pattern in self._runs for directory in sorted(out.parent.glob(pattern)) if directory.is_dir()]

    def _consoles(self, out):
        return [console for directory in self._directories(out) for console in sorted(directory.glob("node*.console"))]

    def keep_first(self, out):
        """Put aside the output of a run that is made again."""
        _move(out / f"{self.name}.log", out / f"{self.name}.first.log")
        first = out / f"{self.name}.first"
        first.mkdir(exist_ok=True)
        for directory in self._directories(out):
            _move(directory, first / directory.name)


def _mistakes(consoles):
    return [f"{console.stem}: {line}" for console in consoles for line in reports.mistakes(console)]


def cargo_tests(manifest):
    """The host tests of a crate, with the same choices each time."""
    return HostJob("-".join(["host", *Path(manifest).parent.parts[1:]]), cargo_command(manifest), read_cargo)


def cargo_command(manifest):
    """The command of these tests."""
    return ["scripts/cargo", "test", "--manifest-path", manifest]


# Schedules of each sort in a simulator.
_SOAK_SCHEDULES = 100_000


def cargo_soak(manifest, seed):
    """The host tests of a crate, with the choices that a seed makes, which is printed, and more schedules."""
    chosen = f"OXIB_FIRST_SEED={seed}"
    command = ["env", chosen, f"OXIB_SCHEDULES={_SOAK_SCHEDULES}", *cargo_command(manifest)]
    return HostJob("-".join(["soak", *Path(manifest).parent.parts[1:]]), command, read_cargo, remarks=[chosen])


# The tests of scripts that boot nodes, with patterns for the directories of these runs in out/ in the cache.
_RUNS_OF_SCRIPTS = {"demo": ("demo-*",)}


def of_scripts(path):
    """A test of the checkout's own scripts, which prints TAP."""
    return HostJob(f"host-scripts-{path.stem}", ["bash", str(path)], read, _RUNS_OF_SCRIPTS.get(path.stem, ()))


def fuzzing(seconds, is_counted):
    """Every fuzz target for that long, or those that count for as many inputs as they have to."""
    return HostJob("fuzz", ["scripts/fuzz", str(seconds), *(["counted"] if is_counted else [])], read)


# Nodes of benchmarks, and of mutants' tests, have up to 2 GiB.
_LARGE_MEMORY = 2560


def mutants():
    """A dozen mutants of the source, others each time."""
    return HostJob("mutants", ["scripts/mutants", "--turn"], read)


def mutants_of_each_kind(commit):
    """A mutant of each kind: others for each commit, and the same ones when it runs again. Nodes with a mutant may report anything.
    It builds modules, and waits for the kernels that these are for: beside the builds of kernels its time would be over before."""
    turn = int(commit[:7], 16) if _HASH.match(commit) else 0
    command = ["scripts/mutants", "--jobs", "1", "--each", "--turn", str(turn)]
    return HostJob("mutants", command, read, memory=_LARGE_MEMORY, remarks=[f"--turn {turn}"], again=True, after_kernels=True)


# Patterns for the directories of their runs in out/ in the cache, where the name of the benchmark is not in them.
_RUNS_OF_BENCHMARKS = {"packets": "smoke/bench", "profile": "smoke/profile"}


def benchmark(name):
    """A benchmark with the smallest counts, in nodes of the fast kernel."""
    runs = _RUNS_OF_BENCHMARKS.get(name, f"smoke/bench-{name}*")
    return HostJob(f"bench-{name}", ["scripts/bench", "--smoke", name], read, (runs,), _LARGE_MEMORY)


class Selftest:
    """A script of selftests/ with what its header asks for."""

    def __init__(self, path, checkout):
        self.path = path.relative_to(checkout)
        self._headers = {"nodes": "1", "kernels": "fast", "timeout": "300", "memory": "1024", "smp": "2"}
        for line in path.read_text(encoding="utf-8").splitlines():
            header = _HEADER.match(line)
            if header:
                self._headers[header[1]] = header[2]
            elif line and not line.startswith("#"):
                break

    @property
    def subject(self):
        """Its name: the path below selftests/ without the ending."""
        return str(self.path.relative_to("selftests").with_suffix(""))

    @property
    def soak(self):
        """Whether it is too long for every run."""
        return self._headers.get("soak") == "yes"

    @property
    def demo(self):
        """Whether it shows something rather than tests it."""
        return self._headers.get("demo") == "yes"

    @property
    def kinds(self):
        """The kinds of kernel it is for: fast, debug, stock."""
        return self._headers["kernels"].split()

    @property
    def needs_pc(self):
        """Whether its nodes have to be machines."""
        return self._headers.get("machine") == "qemu"

    @property
    def process_instead(self):
        """Whether a process will do where it asks for Debian's kernel."""
        return self._headers.get("instead") == "uml"

    @property
    def whole(self):
        """The test that it is a part of, if it is of one: where that runs, it need not."""
        return self._headers.get("part")

    @property
    def nodes(self):
        """The number of its nodes."""
        return int(self._headers["nodes"])

    def memory(self, kernel):
        """MiB of each node on that kernel."""
        memory = int(self._headers["memory"])
        return max(memory, _DEBUG_MEMORY) if kind_of(kernel) == "debug" else memory

    def timeout(self, kernel):
        """Seconds after which a run on that kernel is stopped."""
        patience = _DEBUG_PATIENCE if kind_of(kernel) == "debug" else _PATIENCE
        return int(self._headers["timeout"]) * patience // (_PROCESS_IMPATIENCE if is_process(kernel) else 1)

    def options(self, kernel):
        """The node runner's options for a run on that kernel, without its time limit."""
        options = ["--nodes", str(self.nodes), "--memory", str(self.memory(kernel)), "--smp", self._headers["smp"]]
        if self._headers.get("icount") == "yes":
            options.append("--icount")
        if "append" in self._headers:
            options += ["--append", self._headers["append"]]
        return options


class NodeJob:
    """A selftest on one kernel, which an identifier as fast-7.3 names; the turn tells repetitions apart."""

    may_run_again = True
    after_kernels = False

    def __init__(self, selftest, kernel, turn=None):
        self.test = f"{selftest.subject} ({kernel})"
        self.turn = turn
        self.name = self.test if turn is None else f"{self.test} {turn}"
        self.kernel = kernel
        kind = kind_of(kernel)
        self._timeout = selftest.timeout(kernel)
        # Machines that are emulated are slower than processes, and busier.
        self.guess = (self._timeout / (8 if is_process(kernel) else 4), 0.7 if kind == "fast" else 1.0)
        self.memory = selftest.nodes * selftest.memory(kernel) * (_KASAN_MEMORY if kind == "debug" else 1)
        self._options = selftest.options(kernel)
        self._selftest = selftest
        turns = "" if turn is None else f"-{turn}"
        self._directory = f"{selftest.subject.replace('/', '-')}-{kernel}{turns}"

    def command(self, name, limit):
        """The node runner's command for a run of that name, which takes `limit` seconds at most."""
        timeout = self._timeout if limit is None else min(self._timeout, limit)
        command = ["python3", "-m", "node_runner", "run", "--name", name, "--tail", "0", "--kernel", self.kernel]
        return [*command, "--timeout", str(timeout), *self._options, str(self._selftest.path)]

    def run(self, out, limit):
        """Boot the nodes, for `limit` seconds at most; the run's results are in `out`, below the test's name."""
        log = out / f"{self._directory}.run"
        began = time.monotonic()
        at_end = None if limit is None else limit + _TO_END
        ended = commands.call(self.command(f"{out.name}/{self._directory}", limit), log, at_end)
        seconds = time.monotonic() - began
        logs = sorted((out / self._directory).glob("node*.log"))
        result = _result_of_nodes(logs)
        complaints = log.read_text(encoding="utf-8", errors="replace").splitlines()[:-1]
        remarks = [line for line in complaints if BOOTED_AGAIN in line]
        if ended.status != 0:
            result.failures += [line for line in complaints if "ended with status 1" not in line or not result.failures]
            if not result.failures:
                result.failures.append(f"the node runner ended with status {ended.status}")
        consoles = sorted((out / self._directory).glob("node*.console"))
        if self.turn is not None and not result.failures:
            # Of many repetitions only the failures are kept.
            self._remove(out)
            logs = consoles = []
        return Outcome(result, seconds, ended.busy, logs + consoles, remarks, _mistakes(consoles))

    def _remove(self, out):
        (out / f"{self._directory}.run").unlink()
        shutil.rmtree(out / self._directory)
        (out / f".{self._directory}.lock").unlink()

    def keep_first(self, out):
        """Put aside the results of a run that is made again."""
        _move(out / f"{self._directory}.run", out / f"{self._directory}.first.run")
        _move(out / self._directory, out / f"{self._directory}.first")


def _result_of_nodes(logs):
    """The sum over the nodes that speak TAP; at least one has to."""
    result = Result()
    texts = [log.read_text(encoding="utf-8", errors="replace") for log in logs]
    speaking = [text for text in texts if _SPEAKS_TAP.search(text)] or texts[:1]
    for text in speaking:
        result.add(read(text))
    if not texts:
        result.failures.append("no node started")
    return result
