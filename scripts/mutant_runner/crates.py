# SPDX-License-Identifier: GPL-2.0-only
"""cargo-mutants on the crates without a kernel in them, and what came of it."""

import os
import re
from pathlib import Path

# Their folders below rust/.
CRATES = ("wire", "oxib/cm/machine", "softib/fabric", "softib/transport", "tool/data_file")
# The newest one that Debian's Rust builds.
VERSION = "25.0.1"
# Its lists of mutants.
_CAUGHT = ("caught", "timeout")
_SURVIVED = ("missed",)


class Crates:
    """The crates of a copy of the checkout."""

    def __init__(self, tree, out):
        self._tree = tree
        self._out = out

    def install(self):
        """Install cargo-mutants into the cache, if it is not there. Returns the log if that fails."""
        if (self._place() / "bin/cargo-mutants").exists():
            return None
        log = self._out / "install.run"
        command = ["cargo", "install", "cargo-mutants", "--locked", "--version", VERSION, "--root", str(self._place())]
        return log if self._tree.run(command, log, CARGO_TARGET_DIR="/cache/build/mutants-program") else None

    @staticmethod
    def _place():
        return Path(os.environ["OXIB_CACHE"]) / f"cargo-mutants-{VERSION}"

    def run(self, crate):
        """Test all mutants of one. Returns how many were caught, the list of those that survived, and the log; nothing if its
        tests fail as they are."""
        name = crate.replace("/", "-")
        out = self._out / name
        out.mkdir(exist_ok=True)
        log = self._out / f"{name}.run"
        # In place: tests read files beside the crates.
        command = [f"{self._place()}/bin/cargo-mutants", "mutants", "--in-place", "--no-shuffle", "--colors", "never"]
        command += ["--dir", "rust", "--package", self._package(crate), "--output", str(out)]
        self._tree.run(command, log, CARGO_TARGET_DIR="/cache/build/mutants-crates")
        caught, survivors = [self._lines(out / "mutants.out", names) for names in (_CAUGHT, _SURVIVED)]
        return len(caught) if caught or survivors else None, survivors, log

    @staticmethod
    def _lines(place, names):
        """The mutants in some of cargo-mutants' lists; without a good run of the tests as they are these are empty."""
        files = [place / f"{name}.txt" for name in names]
        return [line for file in files if file.exists() for line in file.read_text(encoding="utf-8").splitlines()]

    def _package(self, crate):
        text = (self._tree.root / "rust" / crate / "Cargo.toml").read_text(encoding="utf-8")
        return re.search(r'^name = "(.*)"$', text, re.MULTILINE)[1]
