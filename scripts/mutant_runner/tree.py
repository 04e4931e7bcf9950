# SPDX-License-Identifier: GPL-2.0-only
"""The copy of the checkout that mutants are made of, in the cache."""

import os
import signal
import subprocess
from pathlib import Path

CHECKOUT = Path("/oxib")
# What is built or written there is no part of it.
_LEFT_OUT = (".git", "target", "build", "__pycache__")
# Where make finds the copy, the makefiles of a build directory expect it: at the place of the checkout.
_UNSHARE = ("unshare", "--mount", "--propagation", "unchanged", "--")
_ENTER = 'mount --bind "$1" /oxib && cd /oxib && shift && exec "$@"'


class Tree:
    """A copy of the checkout with a build directory of its own for each kernel."""

    def __init__(self, cache):
        self.root = Path(cache) / "mutants"
        self.root.mkdir(exist_ok=True)
        # Neither the modules of the checkout nor its command may be taken for those of a mutant.
        self._environment = os.environ | {"OXIB_BUILD": "build-mutants", "OXIB_CHECKOUT_ID": "mutants"}

    def restore(self):
        """Make the copy as the checkout is. What differs gets a new time, so that make builds it again; nothing else does."""
        command = ["rsync", "--recursive", "--links", "--perms", "--checksum", "--delete"]
        command += [f"--exclude={name}" for name in _LEFT_OUT]
        subprocess.run([*command, f"{CHECKOUT}/", f"{self.root}/"], check=True)

    def start(self, command, log, **environment):
        """Start a command that finds the copy in the place of the checkout; its output is in the log."""
        with open(log, "wb") as output:
            return subprocess.Popen(
                [*_UNSHARE, "/bin/bash", "-c", _ENTER, "mutant", self.root, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environment | environment,
            )

    def run(self, command, log, **environment):
        """Run it to its end; returns its status."""
        process = self.start(command, log, **environment)
        try:
            return process.wait()
        except BaseException:
            end(process)
            raise


def end(process):
    """End a command that was started, and wait for all that it waits for itself."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    process.wait()
