# SPDX-License-Identifier: GPL-2.0-only
"""The command line; see scripts/fabric."""

import argparse
import sys

from fabric_builder import build
from fabric_builder import file
from fabric_builder import machine
from fabric_builder import manage
from fabric_builder import show
from fabric_builder import state
from fabric_builder.file import Unreadable
from fabric_builder.machine import Failure


def _up(path):
    topology = file.read(path)
    build.check(topology)
    state.begin(path)
    try:
        build.up(topology)
    except BaseException:
        _remove(topology)
        raise
    print(f"up: {show.summary(topology)}")


def _remove(topology):
    build.down(topology)
    manage.forget()
    state.end()


def _manage():
    machine.require_root()
    print(*manage.start(state.current()), sep="\n")


def _down():
    machine.require_root()
    _remove(state.current())


def _show():
    machine.require_root()
    print(*show.state(state.current()), sep="\n")


def _check(paths):
    complaints = []
    for path in paths:
        try:
            print(*show.described(file.read(path)), sep="\n")
        except Unreadable as complaint:
            complaints.append(str(complaint))
    if complaints:
        raise Failure("\nfabric: ".join(complaints))


# How many files a command takes.
_FILES = {"up": {}, "check": {"nargs": "+"}}


def _parse():
    """The command as a function, and its arguments."""
    parser = argparse.ArgumentParser(prog="fabric", description="Build a fabric of softib's HCAs, switches and routers.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function, text in (
        ("up", _up, "build the fabric that a file describes"),
        ("manage", _manage, "start an OpenSM in each subnet, and wait until all ports are active"),
        ("down", _down, "take the fabric down"),
        ("show", _show, "its cables, and the state of each end"),
        ("check", _check, "only read files, and say what they describe"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(function=function)
        if name in _FILES:
            command.add_argument("file", **_FILES[name])
    words = parser.parse_args()
    return words.function, [words.file] if "file" in words else []


def main():
    """Do what the command line says."""
    function, arguments = _parse()
    try:
        function(*arguments)
    except (Failure, Unreadable) as error:
        print(f"fabric: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
