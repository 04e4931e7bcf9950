# SPDX-License-Identifier: GPL-2.0-only
"""What the nodes of bench/acm.sh and bench/resolve.sh printed."""

from collections import defaultdict
from statistics import median

DRIVERS = ("ib_ipoib", "oxib")


def _pairs(words):
    return {key: int(value) for key, _, value in (word.partition("=") for word in words)}


class Results:
    """All of them."""

    def __init__(self, directory):
        self._instructions = defaultdict(list)
        self._times, self._mads, self._queries = defaultdict(list), defaultdict(list), {}
        # Nanoseconds of a resolution by ib_acme.
        self._ibacm = []
        # Bytes of an entry, by the number of entries.
        self.memory = {}
        for log in sorted(directory.glob("bench-acm-*/node1.log")):
            part = ""
            kind, *names = log.parent.name.removeprefix("bench-acm-").split("-")
            for line in log.read_text(encoding="utf-8").splitlines():
                word, *words = line.split() or [""]
                if word == "part" and kind == "all":
                    part = words[0]
                if kind == "all":
                    self._take_part(part, names[0], word, words)
                else:
                    self._take(kind, names, word, words)
        self.sizes = sorted(entries for name, entries in self._instructions if name == "loop")
        if not self.sizes or set(self.sizes) != set(self.memory):
            raise SystemExit("oxib: the nodes' logs do not have all results of look-ups")

    def _take_part(self, part, driver, word, words):
        """Of a node that takes several kinds of figures."""
        if part in ("subnet", "router"):
            self._take("resolve", [part, driver], word, words)
        else:
            self._take(part, [driver], word, words)

    def _take(self, kind, names, word, words):
        if (kind, word) == ("lookup", "result"):
            values = _pairs(words[1:])
            each = values["median"] / values["packets"]
            self._instructions[words[0].removeprefix("acm-"), values["bytes"]].append(each)
        elif (kind, word) == ("lookup", "memory"):
            values = _pairs(words)
            self.memory[values["entries"]] = max(values["bytes"], values["slab"]) / values["entries"]
        elif (kind, word) == ("resolve", "resolve"):
            self._times[(*names[:2], words[0])].append(_pairs(words[1:])["us"])
        elif (kind, word) == ("resolve", "mads"):
            self._mads[(*names[:2], words[0])].append(_pairs(words[1:])["number"])
        elif (kind, word) == ("connections", "connections"):
            self._queries[names[0], words[0]] = _pairs(words[1:])
        elif (kind, word) == ("ibacm", "ib_acme"):
            values = _pairs(words)
            self._ibacm.append(values["ns"] / values["answers"])

    def look_up(self, name, entries):
        """Instructions of a look-up, without those of the loop around it; nothing if that was not measured."""
        if (name, entries) not in self._instructions:
            return None
        return median(self._instructions[name, entries]) - median(self._instructions["loop", entries])

    def times(self, fabric, driver, state):
        """Microseconds from a first packet to its reply, ascending; none if that was not measured."""
        return sorted(self._times[fabric, driver, state])

    def mads(self, fabric, driver, state):
        """Management datagrams for it: the median."""
        found = self._mads[fabric, driver, state]
        return median(found) if found else None

    def queries(self, driver, kind):
        """Path queries for connections, with how many these are; nothing if that was not measured."""
        return self._queries.get((driver, kind))

    def ibacm(self):
        """Instructions of a resolution by ib_acme, its start left out; nothing if that was not measured."""
        return median(self._ibacm) if self._ibacm else None
