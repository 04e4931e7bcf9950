# SPDX-License-Identifier: GPL-2.0-only
"""A job: something with a name that is run once and comes to a result."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from node_runner.run import BOOTED_AGAIN
from test_runner.tap import Result
from test_runner.tap import read
from test_runner.tap import read_cargo

_SPEAKS_TAP = re.compile(r"^(1\.\.\d|Bail out!)", re.MULTILINE)
_HEADER = re.compile(r"^# (nodes|kernels|machine|also|instead|timeout|memory|smp|soak|demo|icount|append): *(.+?) *$")
# Headers say what is enough on an ordinary machine with the fast kernel; one may be as much slower. A limit is for what hangs: on
# a machine whose processors others use as well, a test takes several times as long.
_PATIENCE = 4
# Emulated, with every check on.
_DEBUG_PATIENCE = 10
# So much less where nodes are processes.
_PROCESS_IMPATIENCE = 2
_DEBUG_MEMORY = 1024
# The name of the kernel that serves as one of the others where nodes are processes.
PROCESS_KERNELS = {"fast": "uml", "debug": "umldebug"}
_KINDS = {name: kind for kind, name in PROCESS_KERNELS.items()}
# MiB of this machine's memory that a job without nodes may take, and for each MiB of a node with KASAN.
_HOST_MEMORY = 1024
_KASAN_MEMORY = 1.25


@dataclass
class Outcome:
    """What a job came to, and where its output is."""

    result: Result
    seconds: float
    # What all its processes used of processors.
    busy: float
    logs: list = field(default_factory=list)
    # What else is to be said of it.
    remarks: list = field(default_factory=list)


# What runs now, so that an interruption can end it. The lock is held while a command is being started, and kept for
# good once no more may be.
_running = set()
_starting = threading.Lock()


def _call(command, log):
    """Run a command with its output in a log, in a process group of its own: its status, and the seconds of processors
    that it and what it waited for used."""
    with open(log, "wb") as output:
        with _starting:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            _running.add(process)
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        _running.discard(process)
        return process.returncode, usage.ru_utime + usage.ru_stime


def stop_all():
    """End the commands that run, each with all it started, wait for them, and let no other start."""
    _starting.acquire(timeout=5)
    for process in list(_running):
        os.killpg(process.pid, signal.SIGTERM)
    # Whoever called it waits for it.
    while _running:
        time.sleep(0.1)


class HostJob:
    """A command that runs in the toolchain root, no node needed."""

    # The seconds that it takes and the processors that it keeps busy, where neither has been measured.
    guess = (300, 1.0)
    memory = _HOST_MEMORY
    turn = None

    def __init__(self, name, command, reader):
        self.name = self.test = name
        self._command = command
        self._reader = reader

    def run(self, out):
        """Run it; its output is in `out`."""
        log = out / f"{self.name}.log"
        began = time.monotonic()
        status, busy = _call(self._command, log)
        result = self._reader(log.read_text(encoding="utf-8", errors="replace"))
        if status != 0 and not result.failures:
            result.failures.append(f"it ended with status {status}")
        if status == 0 and not result.failures and result.passed == 0:
            result.passed = 1
        return Outcome(result, time.monotonic() - began, busy, [log])


def cargo_tests(manifest):
    """The host tests of a crate."""
    command = ["scripts/cargo", "test", "--manifest-path", manifest]
    return HostJob("-".join(["host", *Path(manifest).parent.parts[1:]]), command, read_cargo)


def of_scripts(path):
    """A test of the checkout's own scripts, which prints TAP."""
    return HostJob(f"host-scripts-{path.stem}", ["bash", str(path)], read)


def fuzzing(seconds):
    """Every fuzz target for that long."""
    return HostJob("fuzz", ["scripts/fuzz", str(seconds)], read)


def mutants():
    """A dozen mutants of the source, others each time."""
    return HostJob("mutants", ["scripts/mutants", "--turn"], read)


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
    def also_pc(self):
        """Whether its nodes are machines as well, where nodes are processes."""
        return self._headers.get("also", "").split()[:1] == ["qemu"]

    @property
    def arguments_beside(self):
        """The script's arguments on these machines: they may have less to do."""
        return self._headers.get("also", "").split()[1:]

    @property
    def process_instead(self):
        """Whether a process will do where it asks for Debian's kernel."""
        return self._headers.get("instead") == "uml"

    @property
    def nodes(self):
        """The number of its nodes."""
        return int(self._headers["nodes"])

    def memory(self, kind):
        """MiB of each node."""
        memory = int(self._headers["memory"])
        return max(memory, _DEBUG_MEMORY) if kind == "debug" else memory

    def timeout(self, kind, process):
        """Seconds after which a run on a kernel of that kind is stopped, where nodes are processes or are not."""
        patience = _DEBUG_PATIENCE if kind == "debug" else _PATIENCE
        return int(self._headers["timeout"]) * patience // (_PROCESS_IMPATIENCE if process else 1)

    def options(self, kind, process):
        """The node runner's options for a run on a kernel of that kind."""
        options = ["--nodes", str(self.nodes), "--memory", str(self.memory(kind))]
        options += ["--smp", self._headers["smp"], "--timeout", str(self.timeout(kind, process))]
        if self._headers.get("icount") == "yes":
            options.append("--icount")
        if "append" in self._headers:
            options += ["--append", self._headers["append"]]
        return options


class NodeJob:
    """A selftest with arguments on one kernel, which an identifier as fast-7.3 names; the turn tells repetitions apart."""

    def __init__(self, selftest, kernel, arguments=(), turn=None):
        name = kernel.partition("-")[0]
        kind = _KINDS.get(name, name)
        self.test = f"{selftest.subject} ({kernel})"
        self.turn = turn
        self.name = self.test if turn is None else f"{self.test} {turn}"
        self.kernel = kernel
        process = name in _KINDS
        # Machines that are emulated are slower than processes, and busier.
        self.guess = (selftest.timeout(kind, process) / (8 if process else 4), 0.7 if kind == "fast" else 1.0)
        self.memory = selftest.nodes * selftest.memory(kind) * (_KASAN_MEMORY if kind == "debug" else 1)
        self._options = selftest.options(kind, process)
        self._selftest = selftest
        self._arguments = arguments

    def run(self, out):
        """Boot the nodes; the run's results are in `out`, below the test's name."""
        name = f"{self._selftest.subject.replace('/', '-')}-{self.kernel}"
        if self.turn is not None:
            name += f"-{self.turn}"
        log = out / f"{name}.run"
        command = ["python3", "-m", "node_runner", "run", "--name", f"{out.name}/{name}", "--tail", "0"]
        command += ["--kernel", self.kernel, *self._options, str(self._selftest.path), *self._arguments]
        began = time.monotonic()
        status, busy = _call(command, log)
        logs = sorted((out / name).glob("node*.log"))
        result = _result_of_nodes(logs)
        complaints = log.read_text(encoding="utf-8", errors="replace").splitlines()[:-1]
        remarks = [line for line in complaints if BOOTED_AGAIN in line]
        if status != 0:
            result.failures += [line for line in complaints if "ended with status 1" not in line or not result.failures]
            if not result.failures:
                result.failures.append(f"the node runner ended with status {status}")
        logs += sorted((out / name).glob("node*.console"))
        if self.turn is not None and not result.failures:
            # Of many repetitions only the failures are kept.
            log.unlink()
            shutil.rmtree(out / name)
            (out / f".{name}.lock").unlink()
            logs = []
        return Outcome(result, time.monotonic() - began, busy, logs, remarks)


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
