# SPDX-License-Identifier: GPL-2.0-only
"""One node of a run: its directories, its process, and its outcome."""

import ctypes
import os
import resource
import shlex
import shutil
import signal
import subprocess

from node_runner import reports, standstill

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def _before_it_runs():
    """It ends with the runner. A kernel that panics as a process would dump the node's memory."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Node:
    """A machine that runs one command and switches itself off."""

    def __init__(self, number, run_directory):
        self.number = number
        self.name = f"n{number}"
        self.out = run_directory / f"node{number}"
        self.console = run_directory / f"node{number}.console"
        self.log = run_directory / f"node{number}.log"
        self.stopped = ""
        self._tasks = run_directory / f"node{number}.tasks"
        self._management = None
        self._errors = run_directory / f"node{number}.errors"
        self._process = None
        self._leavings = []
        self._streamed = 0
        self.out.mkdir()
        (self.out / "log").touch()
        self.log.symlink_to(f"node{number}/log")

    def give_command(self, words):
        """The command to run inside, quoted for the shell that is the node's first process."""
        (self.out / "command").write_text("exec " + shlex.join(words) + "\n", encoding="utf-8")

    def give_prompt(self):
        """Have the node offer a prompt on its console instead of running a command."""
        (self.out / "prompt").touch()

    def start(self, launch, seat):
        """Start its process; a node whose console is the terminal reads from it, and any other node from nothing."""
        terminal = seat.console is None
        self._leavings = launch.leavings
        self._management = launch.console
        with open(self._errors, "wb") as errors, open(launch.output or os.devnull, "wb") as output:
            self._process = subprocess.Popen(
                launch.words,
                stdin=None if terminal else subprocess.DEVNULL,
                stdout=None if terminal else output if launch.output else errors,
                stderr=errors,
                env=launch.environment,
                pass_fds=seat.plugs,
                # Signals for this process's group are not for nodes, which end when they are killed.
                process_group=None if terminal else 0,
                preexec_fn=_before_it_runs,
            )

    @property
    def running(self):
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def has_begun(self):
        """Whether it has come to its command."""
        return (self.out / "begun").exists()

    @property
    def boots(self):
        """Whether it is on its way to its command."""
        return self.running and not self.has_begun

    @property
    def died_in_boot(self):
        """Whether its process ended before it came to its command."""
        return self._process is not None and self._process.poll() is not None and not self.has_begun

    def mistakes(self):
        """The lines of its console so far that report a mistake."""
        return reports.mistakes(self.console)

    def names_our_modules(self):
        """Whether its console names a module that is tested."""
        return reports.names_our_modules(self.console)

    def reset(self):
        """Pull the plug, and keep nothing of what it did but its console, as node*.first-boot."""
        self.stop("")
        if self.console.exists():
            self.console.rename(self.console.with_suffix(".first-boot"))
        (self.out / "log").write_bytes(b"")
        self._streamed = 0
        for name in ("begun", "status"):
            (self.out / name).unlink(missing_ok=True)

    def stop_late(self, why):
        """Pull the plug of a node whose time is over, having asked it what its tasks do: node*.tasks has the answer."""
        if not (self.running and self._management and self.console.exists()):
            return self.stop(why)
        threads = standstill.threads(self._process.pid)
        said = self.console.stat().st_size
        standstill.ask(self._management)
        self.stop(f"{why}; what its tasks did is in {self._tasks.name}")
        with open(self.console, "r+b") as console:
            console.seek(said)
            answer = console.read()
            console.truncate(said)
        return self._tasks.write_bytes(threads.encode("utf-8") + answer)

    def stop(self, why):
        """Pull the plug."""
        if self.running:
            self.stopped = why
            self._process.kill()
            self._process.wait()
        self.clean_up()

    def clean_up(self):
        """Remove what its process left behind, once that has ended."""
        for directory in self._leavings:
            shutil.rmtree(directory, ignore_errors=True)

    def new_output(self):
        """The whole lines of script output since the last call."""
        with open(self.log, "rb") as log:
            log.seek(self._streamed)
            text = log.read()
        if self.running:
            text = text[: text.rfind(b"\n") + 1]
        self._streamed += len(text)
        return text.decode("utf-8", errors="replace").splitlines()

    def _status(self):
        try:
            return int((self.out / "status").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def troubles(self):
        """Why this node failed, a line each; nothing if it did not."""
        found = [f"the console reports: {line}" for line in reports.find(self.console)[:5]]
        status = self._status()
        if self.stopped:
            found.append(self.stopped)
        elif status is None:
            found.append("the node ended before its script did")
            found += self._errors.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        elif status != 0:
            found.append(f"the script ended with status {status}")
        return found
