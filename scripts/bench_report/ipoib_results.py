# SPDX-License-Identifier: GPL-2.0-only
"""What the nodes of bench/ipoib.sh printed and counted, by kind of run, fabric and driver."""

from collections import defaultdict
from statistics import median

from bench_report.profile import Symbols
from bench_report.profile import count

DRIVERS = ("ib_ipoib", "oxib")
# Parts of a node that takes several, by the kind of node that takes one of them.
_PARTS = {"tcp datagram": "stream", "tcp connected": "connected"}


def _pairs(words):
    return {key: int(value) for key, _, value in (word.partition("=") for word in words)}


class Results:
    """All of them."""

    def __init__(self, directory):
        self._packets = defaultdict(list)
        self._loads = defaultdict(list)
        self._memory = {}
        self._mtu = {}
        self._calls = {}
        for log in sorted(directory.glob("bench-ipoib-*-*-*-*/node1.log")):
            kind, fabric, driver, _boot = log.parent.name.removeprefix("bench-ipoib-").rsplit("-", 3)
            self._read(log, kind, fabric, driver)
        if not self._packets:
            raise SystemExit("oxib: the nodes' logs have no results")

    def _read(self, log, kind, fabric, driver):
        loads, parts = [], kind == "all"
        for line in log.read_text(encoding="utf-8").splitlines():
            word, *words = line.split() or [""]
            if word == "part" and parts:
                kind = _PARTS.get(" ".join(words[:2]), words[0])
            if word == "result" and kind == "packets":
                values = _pairs(words[1:])
                size = "64" if values["bytes"] == 64 else "MTU"
                self._packets[fabric, driver, words[0], size, values["burst"]].append(values["median"] / values["packets"])
            elif word == "load":
                loads.append((kind, words[0], _pairs(words[1:])))
            elif word == "memory":
                self._memory.setdefault(driver, {}).update(_pairs(words))
            elif word == "mtu":
                self._mtu[fabric] = int(words[0])
        self._note_loads(log, fabric, driver, loads)
        if kind.startswith("calls_"):
            self._calls[driver, kind.removeprefix("calls_")] = _calls(log.parent)

    def _note_loads(self, log, fabric, driver, loads):
        rounds = log.parent / "counts.rounds"
        counted = []
        if rounds.exists():
            counted = [int(line) for line in rounds.read_text(encoding="ascii").split()]
        # In a node of several parts, bursts of packets are marked, too, before the loads.
        marked = sum(kind != "rate" for kind, _, _ in loads) if counted else 0
        if marked > len(counted):
            return
        left = iter(counted[len(counted) - marked :])
        for kind, what, values in loads:
            amount = values.get("bytes", values.get("rounds", values.get("packets")))
            if kind == "rate" or not marked:
                value = amount / values["microseconds"] * 1e6
            else:
                value = next(left) / amount
            self._loads[kind, fabric, driver, what, values["flows"]].append(value)

    def fabrics(self, kind):
        """Those that there are figures of both drivers for."""
        known = self._packets if kind == "packets" else {key[1:]: None for key in self._loads if key[0] == kind}
        return [f for f in ("peer", "hop") if all(any(key[:2] == (f, driver) for key in known) for driver in DRIVERS)]

    def mtu(self, fabric):
        """Of the interfaces."""
        return self._mtu[fabric]

    def packet(self, fabric, driver, name, size, burst):
        """Instructions per packet: the median over the boots and repetitions."""
        return median(self._taken(fabric, driver, name, size, burst))

    def floor(self, fabric, name, size, burst):
        """The same of what is no driver's: over the boots of both."""
        taken = [self._taken(fabric, driver, name, size, burst) for driver in DRIVERS]
        return median([value for values in taken for value in values])

    def _taken(self, fabric, driver, name, size, burst):
        found = self._packets[fabric, driver, name, size, burst]
        if not found:
            what = f"{name}, {size} bytes, bursts of {burst}"
            raise SystemExit(f"oxib: {driver}'s logs ({fabric}) have no result of {what}")
        return found

    def loads(self, kind, fabric, driver, what, flows=1):
        """Instructions per byte or request, or bytes or packets in a second: each as it was taken."""
        return self._loads[kind, fabric, driver, what, flows]

    def memory(self, what):
        """Of both drivers; nothing unless it was taken of both."""
        found = [self._memory.get(driver, {}).get(what) for driver in DRIVERS]
        return None if None in found else found

    def calls(self, path, matches):
        """Calls per packet of the functions whose name matches, of both drivers; nothing unless both were profiled."""
        found = [self._calls.get((driver, path)) for driver in DRIVERS]
        if None in found:
            return None
        return [sum(number for name, number in calls.items() if matches(name)) for calls in found]


def _calls(directory):
    with open(directory / "node1/kallsyms", encoding="ascii") as kallsyms:
        symbols = Symbols(kallsyms)
    with open(directory / "counts", encoding="ascii") as counts:
        rounds, _instructions, calls = count(counts, symbols)
    return {name: number / (rounds * 32) for name, number in calls.items()}
