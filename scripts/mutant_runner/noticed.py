# SPDX-License-Identifier: GPL-2.0-only
"""Records which mutants were noticed, in two files with lines "NAME KERNEL DIGEST COMMIT".

Trials write the one in the cache, which is lost with the cache. `scripts/mutants --record` writes the one in the repository.

A line says no more than that at this commit, or with changes on top of it, the test failed on this kernel. It counts while the
digest is the same: that of the mutant's header, of the lines that it changes with those around them, and of the file of its test.
The rest of the changed files is left out. These have 300 lines, and some have ten mutants: with all of it in the digest a change
of any comment would cost ten trials, of a minute or more each, and there would never be a record of all mutants. So the digest
stays the same when other source, unit tests, what selftests source, or the kernel's version change. The commit tells how old a
line is; a mutant that is named on the command line is tried again in any case.
"""

import hashlib
import json

from mutant_runner.mutant import Mistake

FILE = "mutants/noticed"
_HEAD = "# Mutants that a test noticed: name, kernel, digest of mutant and test, commit. `scripts/mutants --record` writes this."


def _lines(path):
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _without_version(kernel):
    return kernel.partition("-")[0]


class Noticed:
    """The lines of both files."""

    def __init__(self, checkout, cache, commit):
        self._checkout = checkout
        self._kept, self._cached = checkout / FILE, cache / "mutants-noticed"
        self._commit = commit[:12]
        # By (name, digest), then by kernel without its version: (kernel, commit). The cache's lines replace the repository's.
        self._known = {}
        for line in _lines(self._kept) + _lines(self._cached):
            # Lines of an older form, or that an interruption cut short, have fewer words.
            if len(words := line.split()) == 4:
                name, kernel, digest, commit = words
                self._known.setdefault((name, digest), {})[_without_version(kernel)] = kernel, commit

    def _digest(self, mutant):
        """Nothing for a mutant that does not apply or whose test is gone."""
        try:
            mutant.changed(self._checkout)
            test = (self._checkout / mutant.test_file).read_bytes()
        except (Mistake, FileNotFoundError):
            return None
        report = mutant.report.pattern if mutant.report else ""
        header = [mutant.test, mutant.arguments, mutant.kernels, report]
        hunks = [(hunk.file, hunk.old, hunk.new) for hunk in mutant.hunks]
        return hashlib.sha256(json.dumps([header, hunks]).encode() + test).hexdigest()[:16]

    def _of(self, mutant):
        return self._known.get((mutant.name, self._digest(mutant)), {})

    def has(self, mutant, kernel):
        """Whether it was noticed as it is, on such a kernel."""
        return _without_version(kernel) in self._of(mutant)

    def summary(self, mutant):
        """The kernels on which it was noticed as it is, with the commits."""
        places = [f"{kernel} at {commit}" for kernel, commit in self._of(mutant).values()]
        return f"noticed on {', '.join(places)}" if places else "not noticed yet"

    def add(self, mutant, kernel):
        """Remember that it was noticed just now. Any thread."""
        with open(self._cached, "a", encoding="utf-8") as file:
            file.write(f"{mutant.name} {kernel} {self._digest(mutant)} {self._commit}\n")

    def record(self, mutants):
        """Write into the repository's file what is known of these, all that there are, as they are."""
        lines = [
            f"{mutant.name} {kernel} {self._digest(mutant)} {commit}"
            for mutant in mutants
            for kernel, commit in self._of(mutant).values()
        ]
        self._kept.write_text("".join(f"{line}\n" for line in [_HEAD, *sorted(lines)]), encoding="utf-8")

    def strays(self, mutants):
        """The lines of the repository's file that name none of these."""
        names = {mutant.name for mutant in mutants}
        return [line for line in _lines(self._kept) if not line.startswith("#") and line.partition(" ")[0] not in names]
