# SPDX-License-Identifier: GPL-2.0-only
"""What is said of events.

notices.py listen                  print each uevent of this network namespace: what it says, a JSON object a line
notices.py record DIRECTORY FILE   make a record, for differences.py, of what notices.sh wrote down: for each event a
                                   directory with the files `log`, `uevents` and `queries`
notices.py queries DIRECTORY...    the queries of each event, in each of several directories

What varies by itself is left out: numbers, addresses, times, order.
"""

import collections
import json
import os
import re
import socket
import sys
from pathlib import Path

_KOBJECT_UEVENT = 15
# Of a uevent: those that it is known by, and those whose values are other ones each time.
_KNOWN_BY = {"ACTION", "SUBSYSTEM", "DEVPATH"}
_VARIES = {"SEQNUM", "IFINDEX"}
# Lines that only test kernels have.
_OF_TESTS = "kunit: "
_QUERIES = {(0x01, 0x35): "path", (0x02, 0x38): "join", (0x15, 0x38): "leave"}


def _listen():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _KOBJECT_UEVENT) as heard:
        heard.bind((0, 1))
        print('{"ready": ""}', flush=True)
        while True:
            words = heard.recv(16384).decode("utf-8", "replace").split("\0")
            print(json.dumps(dict(word.split("=", 1) for word in words if "=" in word)), flush=True)


def _normal(line):
    """A line of the log without what varies."""
    line = re.sub(r"[0-9a-f]{0,4}(:[0-9a-f]{0,4}){4,7}", "GID", line)
    line = re.sub(r"0x[0-9a-f]+", "NUMBER", line)
    line = re.sub(r"(?<![A-Za-z0-9.])-?[0-9]+", "NUMBER", line)
    return re.sub(r"\bh[12]\b", "HOST", line).strip()


def _uevents(path):
    """Each kind, what else it says, and how often."""
    count = collections.Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        place = [part for part in said["DEVPATH"].split("/") if part]
        others = " ".join(f"{key}={said[key]}" for key in sorted(said.keys() - _KNOWN_BY - _VARIES))
        name = "/".join(place[-3:] if said["SUBSYSTEM"] == "queues" else place[-1:])
        count[f"{said['ACTION']} {said['SUBSYSTEM']} {name}", others] += 1
    return count


def _queries(path):
    """Each kind, and how many there were. One that was sent again, as no answer came in time, is one."""
    asked = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        asked.add(tuple(int(re.search(rf"\b{what} (0x[0-9a-f]+|0)\b", line).group(1), 16) for what in ("method", "attr_id", "tid")))
    return collections.Counter(
        _QUERIES.get((method, attribute), f"{method:#x} of {attribute:#x}") for method, attribute, _ in asked
    )


def _record(directory):
    for event in sorted(directory.iterdir()):
        lines = (event / "log").read_text(encoding="utf-8").splitlines()
        for line in sorted({_normal(line) for line in lines if not line.startswith(_OF_TESTS)}):
            yield f"event {event.name} log {line}", "said"
        for (what, others), number in sorted(_uevents(event / "uevents").items()):
            yield f"event {event.name} uevent {what}", f"{number} {others}"


def _all_queries(directories):
    """A line for each kind of query of each event: how often in each directory."""
    counts = collections.defaultdict(list)
    for number, directory in enumerate(directories):
        for event in sorted(directory.iterdir()):
            for what, count in _queries(event / "queries").items():
                seen = counts[f"{event.name} {what}"]
                seen += [0] * (number - len(seen)) + [count]
    for what, seen in sorted(counts.items()):
        yield f"{what}: {' '.join(map(str, seen + [0] * (len(directories) - len(seen))))}"


def main():
    """Do what the command line says."""
    match sys.argv[1:]:
        case ["listen"]:
            _listen()
        case ["record", directory, file]:
            lines = [f"{key}\t{value}\n" for key, value in _record(Path(directory))]
            Path(file).write_text("".join(lines), encoding="utf-8")
        case ["queries", *directories]:
            print(os.linesep.join(_all_queries([Path(directory) for directory in directories])))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
