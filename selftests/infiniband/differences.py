# SPDX-License-Identifier: GPL-2.0-only
"""Compare the interfaces of two drivers.

differences.py record INTERFACE CHILD        what is seen of an interface and of its child, one thing a line: a key, a tab, a value
differences.py compare FILE FILE DOCUMENT [event]
                                             the keys whose values differ have to be those that the tables under "Differences from
                                             ib_ipoib" list for the version of Linux that runs: with wildcards, but each line of
                                             them for one difference at least. Keys that begin with that word, or all others

Numbers that vary by themselves are left out: addresses, the stack's numbers, counters.
"""

import errno
import fnmatch
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

_HEADING = "Differences from ib_ipoib"
_VARIES = {"ifindex", "link_index", "address", "permaddr", "link_netnsid"}
# Of files whose contents are the same each time.
_CONTENTS = {
    "addr_assign_type", "addr_len", "broadcast", "carrier", "create_child", "dev_id", "dev_port", "dormant", "duplex", "flags",
    "link_mode", "mode", "mtu", "name_assign_type", "operstate", "parent", "pkey", "speed", "tx_queue_len", "type", "umcast",
}  # fmt: skip


def _run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _sysfs(interface):
    """Where the interface hangs, and its files: their modes, and what is in some."""
    place = Path("/sys/class/net") / interface
    yield "place", "/".join(part for part in place.resolve().parts[-3:-1] if part)
    for path in sorted(place.rglob("*")):
        name = path.relative_to(place)
        if name.parts[0] in ("device", "subsystem", "queues", "power", "statistics"):
            continue
        if path.is_symlink():
            yield f"{name}", f"link to {path.resolve().name}"
        elif path.is_dir():
            continue
        else:
            value = f"{path.stat().st_mode & 0o777:04o}"
            if name.name in _CONTENTS:
                try:
                    value += f" {path.read_text().strip()}"
                except OSError as error:
                    value += f" {errno.errorcode.get(error.errno, error.errno)}"
            yield f"{name}", value


def _flat(value, before=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _VARIES:
                yield from _flat(inner, f"{before}{key}.")
    elif isinstance(value, list):
        yield before[:-1], " ".join(str(each) for each in value)
    else:
        yield before[:-1], value


def _link(interface):
    yield from _flat(json.loads(_run("ip", "-d", "-j", "link", "show", interface).stdout)[0])


def _ethtool(interface, option):
    """Its lines, with the headings that they are under."""
    result = _run("ethtool", option, interface)
    if result.returncode:
        yield "fails", result.stderr.strip().splitlines()[-1].replace(interface, "IF") if result.stderr.strip() else result.returncode
        return
    heading = ""
    for line in result.stdout.splitlines():
        name, colon, value = line.partition(":")
        if not colon or line.startswith(f"Features for {interface}") or name.endswith(f"for {interface}"):
            continue
        if not value.strip() and not line.startswith((" ", "\t")) and option != "-i":
            heading = f"{name.strip()}: "
            continue
        yield heading + name.strip(), re.sub(r"\s+", " ", value).strip()


def _outcome(*command):
    """What `ip` is answered: the kernel's number for it, and what it says beside."""
    result = _run(*command)
    if not result.returncode:
        return "done"
    text = result.stderr.strip()
    return " / ".join(line for line in text.splitlines() if line) or f"status {result.returncode}"


def _write(path, text):
    """As `echo` does."""
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "done"


def _netlink(key, *command):
    """The key with what `ip` is answered. When ib_ipoib is told a mode, it lets go of the RTNL, and goes on without it if another
    task has it by then, which the kernel reports. It is not told here: what it answers if all goes well is known.
    """
    is_told = key.partition(" ")[2] in ("mode connected", "mode datagram")
    return key, "done" if is_told and os.path.exists("/sys/module/ib_ipoib") else _outcome(*command)


def _creations(parent):
    """Children that are made, and go again."""
    for words in (
        "pkey 0x8001", "pkey 0x0001", "pkey 0", "pkey 0x8000", "pkey 0xffff", "mode connected", "mode 7", "umcast 1", "umcast 2", "mtu 1500",
        "mtu 4092", "mtu 9000", "txqueuelen 10", "address 00:00:00:01:fe:80:00:00:00:00:00:00:00:11:22:33:44:55:66:77", "numtxqueues 2",
    ):  # fmt: skip
        before, _, after = words.partition(" ")
        generic = before in ("mtu", "txqueuelen", "address", "numtxqueues")
        general, own = (words.split(), []) if generic else ([], [before, after])
        command = ["ip", "link", "add", "link", parent, "name", "tried", *general, "type", "ipoib", *own]
        yield _netlink(f"add {words}", *command)
        _run("ip", "link", "delete", "tried")
    yield "add under a child", _outcome("ip", "link", "add", "link", "child", "name", "tried", "type", "ipoib", "pkey", "0x8001")
    _run("ip", "link", "delete", "tried")


def _changes(interface):
    for words in (
        "mtu 1500", "mtu 67", "mtu 68", "mtu 2044", "mtu 9000", "mtu 65520", "txqueuelen 100", "txqueuelen 256", "name other", "name lo",
        "address 00:00:00:01:fe:80:00:00:00:00:00:00:00:11:22:33", "alias one", "alias", "promisc on", "promisc off", "allmulticast on",
        "allmulticast off", "arp off", "arp on", "group 1", "group 0", "nomaster", "netns nowhere",
    ):  # fmt: skip
        option, _, value = words.partition(" ")
        command = ["ip", "link", "set", "dev", interface, option]
        yield f"set {words}", _outcome(*command, *([value] if value or option == "alias" else []))
        if words == "name other":
            _run("ip", "link", "set", "dev", "other", "name", interface)
    for words in ("mode connected", "mode datagram", "umcast 1", "umcast 0", "pkey 0x8001"):
        option, _, value = words.partition(" ")
        yield _netlink(f"change {words}", "ip", "link", "set", "dev", interface, "type", "ipoib", option, value)


def _writes(interface):
    place = f"/sys/class/net/{interface}"
    for name, text in (
        ("mode", "connected"), ("mode", "datagram"), ("mode", "neither"), ("umcast", "1"), ("umcast", "0"), ("umcast", "x"), ("pkey", "1"),
        ("mtu", "1500"), ("mtu", "2044"), ("mtu", "x"), ("tx_queue_len", "256"), ("create_child", "0x8001"), ("create_child", "0x8001"),
        ("create_child", "0x0001"), ("create_child", "0"), ("create_child", "0x8000"), ("create_child", "x"), ("delete_child", "0x8001"),
        ("delete_child", "0x8001"), ("delete_child", "x"),
    ):  # fmt: skip
        yield f"{name} <- {text}", _write(f"{place}/{name}", text + "\n") if os.path.exists(f"{place}/{name}") else "no such file"


def _record(interface, child):
    seen = {}

    def note(subject, pairs):
        for key, value in pairs:
            key = f"{subject} {key}"
            number = sum(1 for known in seen if known == key or known.startswith(f"{key} #"))
            seen[f"{key} #{number + 1}" if number else key] = value

    for what, name in (("port", interface), ("child", child)):
        note(f"{what} sysfs", _sysfs(name))
        note(f"{what} link", _link(name))
        for option in "-i", "-k", "-g", "-l", "-c":
            note(f"{what} ethtool {option}", _ethtool(name, option))
    note("errno", _creations(interface))
    for what, name in (("port", interface), ("child", child)):
        note(f"{what} errno", _changes(name))
        note(f"{what} errno", _writes(name))
    for key, value in seen.items():
        print(f"{key}\t{' '.join(str(value).split())}")


def _read(path):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


def _version():
    """The version of Linux that runs, as the tables have it."""
    return ".".join(platform.release().split(".")[:2])


def _listed(document, version):
    """The patterns in the first columns of the tables, of the lines whose second column has that version of Linux."""
    section = Path(document).read_text(encoding="utf-8").split(f"## {_HEADING}\n", 1)[1].split("\n## ", 1)[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) > 1 and version in cells[1].split(", "):
            yield from (pattern.replace("\\|", "|") for pattern in re.findall(r"`([^`]+)`", cells[0]))


def _compare(one, other, document, are_events):
    first, second = _read(one), _read(other)
    keys = sorted(first.keys() | second.keys())
    differing = [key for key in keys if first.get(key) != second.get(key)]
    patterns = [pattern for pattern in _listed(document, _version()) if pattern.startswith("event ") == are_events]
    if not patterns:
        print(f"{document} has no list for Linux {_version()}")
    unlisted = [key for key in differing if not any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)]
    idle = [pattern for pattern in patterns if not any(fnmatch.fnmatchcase(key, pattern) for key in differing)]
    for key in unlisted:
        print(f"not listed: {key}: {first.get(key, 'nothing')} | {second.get(key, 'nothing')}")
    for pattern in idle:
        print(f"listed, and no difference: {pattern}")
    print(f"{len(keys)} things compared, {len(differing)} differ")
    return 1 if unlisted or idle else 0


def main():
    """Record, or compare."""
    match sys.argv[1:]:
        case ["record", interface, child]:
            _record(interface, child)
        case ["compare", one, other, document]:
            sys.exit(_compare(one, other, document, False))
        case ["compare", one, other, document, "event"]:
            sys.exit(_compare(one, other, document, True))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
