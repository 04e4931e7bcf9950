#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks the text of the source: first words of doc comments, long lines.

text.py FILE...: prints a line for each complaint, and fails if there is one. rustfmt breaks code but leaves long strings alone.
"""

import re
import sys
from pathlib import Path

_DOC = re.compile(r"\s*//([/!])(?: (.*))?$")
# A doc comment begins with a noun or a verb; with these words begins half a sentence.
_ODD = re.compile(r"(What|How|Who|Whom|Whose|Where|It|Of|None|As|By|So|That|The same)\b")
_MOST_COLUMNS = {".rs": 100, ".md": 100}
_COMMENT = re.compile(r"//[/!]? ?(.*)")


def _first_lines(lines):
    """(number, text) of the first line of each doc comment."""
    before = None
    for number, line in enumerate(lines, 1):
        found = _DOC.match(line)
        kind = found and found[1]
        if found and kind != before:
            yield number, found[2] or ""
        before = kind


def _long(path, lines):
    """Lines with more columns than there may be, where they can be broken: not rows of a table, quotations or raw strings."""
    most = _MOST_COLUMNS[path.suffix]
    in_code = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if path.suffix == ".md":
            in_code ^= text.startswith("```")
            is_text = not in_code and not text.startswith(("|", ">"))
        else:
            comment = _COMMENT.match(text)
            is_text = not comment[1].startswith(("|", "    ")) if comment else 'r#"' not in line
        if is_text and len(line) > most:
            yield number, f"{len(line)} columns, of at most {most}"


def _complaints(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    yield from _long(path, lines)
    if path.suffix == ".rs":
        for number, text in _first_lines(lines):
            if _ODD.match(text):
                yield number, f"a doc comment begins with a noun or a verb, not with: {text}"


def main():
    """Check the files."""
    found = [(path, *each) for path in map(Path, sys.argv[1:]) for each in _complaints(path)]
    for path, number, what in found:
        print(f"{path}:{number}: {what}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
