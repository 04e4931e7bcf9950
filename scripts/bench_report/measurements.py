# SPDX-License-Identifier: GPL-2.0-only
"""What the node printed: `result MEASUREMENT KEY=VALUE...` for each measurement, `memory KEY=VALUE...` once."""

from collections import defaultdict
from statistics import median


def _pairs(words):
    return {key: int(value) for key, _, value in (word.partition("=") for word in words)}


class Measurements:
    """All results of a run, by measurement, bytes and burst; each as often as it was repeated."""

    def __init__(self, lines):
        self.memory = {}
        self._results = defaultdict(list)
        for line in lines:
            kind, *words = line.split() or [""]
            if kind == "memory":
                self.memory = _pairs(words)
            elif kind == "result":
                values = _pairs(words[1:])
                self._results[words[0], values["bytes"], values["burst"]].append(values)
        if not self._results or not self.memory:
            raise SystemExit("oxib: the node's log has no results")

    @property
    def sizes(self):
        """The payload sizes, ascending."""
        return sorted({size for _, size, _ in self._results})

    def bursts(self, name, size):
        """The bursts that a measurement was taken with."""
        return sorted(burst for other, bytes_, burst in self._results if (other, bytes_) == (name, size))

    def per_packet(self, name, size, burst):
        """The median sample's instructions per packet, for each repetition."""
        found = self._results[name, size, burst]
        if not found:
            raise SystemExit(
                f"oxib: the node's log has no result of {name}, {size} bytes, bursts of {burst}"
            )
        return [result["median"] / result["packets"] for result in found]

    def quartiles(self, name, size, burst):
        """Median over the repetitions of the samples' quartiles, per packet."""
        results = self._results[name, size, burst]
        return [median(result[key] / result["packets"] for result in results) for key in ("q1", "q3")]

    def events(self, name, size, burst):
        """What ib0 counted during a measurement, summed over its repetitions."""
        sums = defaultdict(int)
        for result in self._results[name, size, burst]:
            for key, value in result.items():
                sums[key] += value
        return sums

    def raw(self):
        """Everything, for the JSON file."""
        return [
            {"measurement": name, **result}
            for (name, _, _), results in sorted(self._results.items())
            for result in results
        ]
