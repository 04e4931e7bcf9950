# SPDX-License-Identifier: GPL-2.0-only
"""What saquery prints: records of the subnet administrator."""

import re
import subprocess

from fabric_collector.failure import Failure

# The records that are needed: what saquery calls them, and how its dumps of them begin.
NODE, PORT, GUIDS = "NodeRecord", "PortInfoRecord", "GUIDInfoRecord"
_HEADS = {"NodeRecord": NODE, "PortInfoRecord": PORT, "GUIDInfo Record": GUIDS}

_HEAD = re.compile(r"^(\S.*?) dump:$")
# A name, dots, a value. A value may begin with dots only where the name does not end.
_FIELD = re.compile(r"^\s+(\S(?:[^.]*[^.\s])?)\.{2,}(.*)$")


def parse(text):
    """Records as {kind: [{field: value}]}. What else is printed is passed over."""
    records = {NODE: [], PORT: [], GUIDS: []}
    fields = {}
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            fields = {}
            if head[1] in _HEADS:
                records[_HEADS[head[1]]].append(fields)
            continue
        field = _FIELD.match(line)
        if field:
            fields[field[1].lower()] = field[2].strip()
    return records


def _ask(kind, options):
    command = ["saquery", *options, kind]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise Failure("there is no saquery on this machine: install infiniband-diags") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split()) or f"status {done.returncode}"
        raise Failure(
            f"`{' '.join(command)}` failed: {said}. The port has to be active (`ibstat`), and this needs root; "
            "--ca and --port choose another port"
        )
    return done.stdout


def query(options):
    """Ask the subnet administrator that the local port knows."""
    return parse("".join(_ask(kind, options) for kind in (NODE, PORT, GUIDS)))


def read(paths):
    """Take the output of such commands from files."""
    texts = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error
    return parse("\n".join(texts))
