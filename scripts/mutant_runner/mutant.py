# SPDX-License-Identifier: GPL-2.0-only
"""A mutant: a patch of mutants/SUBJECT/NAME.patch, with a header that says which test has to fail."""

import re
from dataclasses import dataclass
from pathlib import Path

_FIELD = re.compile(r"^(Test|Kernel|Report): (.+)$")
_FIELDS = ("Test", "Kernel")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
# Where the tests of a crate run.
HOST = "host"
KERNELS = ("uml", "umldebug", "fast", "debug", "stock", HOST)


class Mistake(Exception):
    """A patch that cannot be one: its text, or that of what it changes."""


@dataclass(frozen=True)
class Hunk:
    """What stands in a file from a line on, and what takes its place."""

    file: str
    line: int
    old: list
    new: list


class Mutant:
    """A patch with its header."""

    def __init__(self, path, folder):
        self.name = str(path.relative_to(folder).with_suffix(""))
        self._path = path
        head, diff = self._split(path.read_text(encoding="utf-8"))
        fields = {}
        text = []
        for line in head:
            field = _FIELD.match(line)
            if field:
                fields[field[1]] = field[2]
            elif line:
                text.append(line)
        self.what = " ".join(text)
        missing = [name for name in _FIELDS if name not in fields]
        if missing or not text:
            raise self._mistake(f"its header has no {missing[0] + ': line' if missing else 'description'}")
        self.test, *self.arguments = fields["Test"].split()
        self.kernels = fields["Kernel"].split()
        # What has to be in a kernel's log; without it, any failure of the test will do.
        self.report = re.compile(fields["Report"]) if "Report" in fields else None
        self.hunks = list(self._hunks(diff))

    def _mistake(self, text):
        return Mistake(f"{self._path}: {text}")

    def _split(self, text):
        lines = text.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("--- a/"):
                return lines[:number], lines[number:]
        raise self._mistake("it has no unified diff")

    def _hunks(self, lines):
        file = hunk = None
        for line in lines:
            start = _HUNK.match(line)
            if line.startswith("--- a/"):
                file = line.removeprefix("--- a/")
            elif line.startswith("+++ b/"):
                if line.removeprefix("+++ b/") != file:
                    raise self._mistake(f"{file}: it gives the file another name")
            elif start:
                if hunk:
                    yield hunk
                hunk = Hunk(file, int(start[1]), [], [])
            elif hunk is None or line[:1] not in (" ", "-", "+", ""):
                raise self._mistake(f"a line of the diff is none: {line}")
            else:
                if line[:1] != "+":
                    hunk.old.append(line[1:])
                if line[:1] != "-":
                    hunk.new.append(line[1:])
        if hunk is None:
            raise self._mistake("its diff changes nothing")
        yield hunk

    def changed(self, root):
        """The texts of the files that it changes, as they are with it, by their names. Each hunk has to be there once: lines may
        have been added before it since, but what it changes is the same."""
        texts = {}
        for hunk in self.hunks:
            path = root / hunk.file
            if hunk.file not in texts and not path.is_file():
                raise self._mistake(f"there is no {hunk.file}")
            lines = texts.setdefault(hunk.file, path.read_text(encoding="utf-8").splitlines())
            places = [place for place in range(len(lines)) if lines[place : place + len(hunk.old)] == hunk.old]
            if len(places) != 1:
                raise self._mistake(f"what it changes at line {hunk.line} of {hunk.file} is there {len(places)} times, not once")
            if hunk.old == hunk.new:
                raise self._mistake(f"it changes nothing at line {hunk.line} of {hunk.file}")
            lines[places[0] : places[0] + len(hunk.old)] = hunk.new
        return {name: "\n".join(lines) + "\n" for name, lines in texts.items()}

    @property
    def manifest(self):
        """Of the crate whose tests have to fail, for a mutant that is tried on the host."""
        return f"rust/{self.test}/Cargo.toml"

    @property
    def test_file(self):
        """The file that shows whether its test is there."""
        return self.manifest if HOST in self.kernels else f"selftests/{self.test}.sh"

    @property
    def is_for_kunit(self):
        """Whether unit tests in the kernel have to fail."""
        return self.test.startswith("kunit/")

    def apply(self, root):
        """Change the files."""
        for name, text in self.changed(root).items():
            (root / name).write_text(text, encoding="utf-8")


def mutants_of(checkout):
    """All mutants of a checkout, by their names."""
    folder = Path(checkout) / "mutants"
    return [Mutant(path, folder) for path in sorted(folder.glob("*/*.patch"))]


def chosen(mutants, names):
    """Those of some subjects or names; of none given, all."""
    for name in names:
        if not any(_is_of(mutant, name) for mutant in mutants):
            raise Mistake(f"there is no mutant {name}; scripts/mutants --list shows them")
    return [mutant for mutant in mutants if not names or any(_is_of(mutant, name) for name in names)]


def _is_of(mutant, name):
    return mutant.name == name or mutant.name.startswith(name + "/")


def _kind(mutant):
    """What has to fail: a crate's tests, unit tests in the kernel, or a selftest; and on which kernel."""
    return mutant.is_for_kunit, mutant.kernels[0]


# Where the three kinds that every test run tries are tried.
_EACH = ((False, HOST), (True, "uml"), (False, "uml"))


def one_of_each(mutants, turn):
    """A mutant of each kind, others with each turn until all had theirs."""
    kinds = [[mutant for mutant in mutants if _kind(mutant) == kind] for kind in _EACH]
    return [kind[turn % len(kind)] for kind in kinds if kind]


def dozen(mutants, turn):
    """A dozen of them, others with each turn until all had theirs. They are taken from all subjects alike."""
    size = min(12, len(mutants))
    strides = -(-len(mutants) // size) if size else 0
    return mutants[turn % strides :: strides] if strides else []
