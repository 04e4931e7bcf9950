#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks that what documents name in backquotes exists: files of the checkout, and items of the source as Type::item.

names.py: prints a line for each name that is nowhere, and fails if there is one.
"""

import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

_QUOTED = re.compile(r"`([^`]+)`")
_SUFFIXES = (".rs", ".c", ".h", ".sh", ".py", ".md", ".patch", ".toml", ".mk")
_FOLDERS = ("Documentation/", "bench/", "ib_cm/", "modprobe.d/", "mutants/", "rust/", "scripts/", "selftests/", "systemd/")
_ITEM = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)+(\(\))?$")
# What is built, stands for another name, or is the kernel's.
_ELSEWHERE = re.compile(r"(out|build|arch)/|.*(_generated\.rs|NAME|SUBJECT|SCRIPT|TOPOLOGY|\$)")


def _checkout():
    """The paths of its files and folders."""
    for place, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name not in (".git", "target", "__pycache__", "build", "out")]
        for name in folders + names:
            yield os.path.relpath(os.path.join(place, name), ".")


def _is_path(word):
    return "/" in word and (word.endswith(_SUFFIXES) or word.startswith(_FOLDERS)) and not word.startswith(("/", "~", "http"))


def _missing(words, paths, source):
    for quoted in words:
        word = quoted.split()[0].rstrip("/") if quoted.split() else ""
        if _is_path(word) and not _ELSEWHERE.match(word):
            if not any(fnmatch(path, word) or fnmatch(path, f"*/{word}") for path in paths):
                yield f"there is no file {word}"
        elif _ITEM.match(quoted):
            lost = [name for name in re.findall(r"\w+", quoted) if name not in source]
            if lost:
                yield f"{quoted}: no {lost[0]} in the source"


def main():
    """Check the documents."""
    paths = list(_checkout())
    source = set()
    for path in paths:
        if path.endswith((".rs", ".c", ".h")):
            code = re.sub(r"//.*", "", Path(path).read_text(encoding="utf-8"))
            source |= set(re.findall(r"\w+", code))
    source |= {Path(path).stem for path in paths if path.endswith(".rs")}
    found = False
    for document in ["README.md", *sorted(Path("Documentation").rglob("*.md"))]:
        for number, line in enumerate(Path(document).read_text(encoding="utf-8").splitlines(), 1):
            for what in _missing(_QUOTED.findall(line), paths, source):
                print(f"{document}:{number}: {what}")
                found = True
    sys.exit(found)


if __name__ == "__main__":
    main()
