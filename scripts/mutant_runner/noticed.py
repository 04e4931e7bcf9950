# SPDX-License-Identifier: GPL-2.0-only
"""What is known of mutants: which were noticed, each with the files that it changes and the test as they were then."""

import hashlib

from mutant_runner.mutant import Mistake


class Noticed:
    """A file in the cache with a line for each: digest, name, kernel."""

    def __init__(self, path, checkout):
        self._path = path
        self._checkout = checkout
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        self._digests = {line.split()[0] for line in text.splitlines()}

    def _digest(self, mutant, kernel):
        digest = hashlib.sha256(kernel.encode())
        for name, text in sorted(mutant.changed(self._checkout).items()):
            digest.update(f"{name}\0{text}\0".encode())
        digest.update((self._checkout / mutant.test_file).read_bytes())
        return digest.hexdigest()

    def has(self, mutant, kernel):
        """Whether it was noticed as it is. One that does not apply was not."""
        try:
            return self._digest(mutant, kernel) in self._digests
        except Mistake:
            return False

    def add(self, mutant, kernel):
        """It was noticed just now. Any thread."""
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(f"{self._digest(mutant, kernel)} {mutant.name} {kernel}\n")
