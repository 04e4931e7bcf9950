# SPDX-License-Identifier: GPL-2.0-only
"""One node of a run: its directories, its QEMU, and what came of it."""

import ctypes
import shlex
import signal
import subprocess

from node_runner import reports

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def _die_with_the_runner():
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Node:
    """A machine that runs one command and switches itself off."""

    def __init__(self, number, run_directory):
        self.number = number
        self.name = f"n{number}"
        self.out = run_directory / f"node{number}"
        self.console = run_directory / f"node{number}.console"
        self.log = run_directory / f"node{number}.log"
        self.stopped = ""
        self._errors = run_directory / f"node{number}.qemu"
        self._process = None
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

    def start(self, command, plugs, terminal=False):
        """Start QEMU; a node with the terminal reads from it, and any other node from nothing."""
        with open(self._errors, "wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=None if terminal else subprocess.DEVNULL,
                stdout=None if terminal else errors,
                stderr=errors,
                pass_fds=plugs,
                preexec_fn=_die_with_the_runner,
            )

    @property
    def running(self):
        """Whether its QEMU runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def boots(self):
        """Whether it is on its way to its command."""
        return self.running and not (self.out / "begun").exists()

    def reset(self):
        """Pull the plug, and keep nothing of what it did but its console, as node*.first-boot."""
        self.stop("")
        if self.console.exists():
            self.console.rename(self.console.with_suffix(".first-boot"))
        (self.out / "log").write_bytes(b"")
        self._streamed = 0
        for name in ("begun", "status"):
            (self.out / name).unlink(missing_ok=True)

    def stop(self, why):
        """Pull the plug."""
        if self.running:
            self.stopped = why
            self._process.kill()
            self._process.wait()

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
