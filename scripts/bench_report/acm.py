# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.acm DIRECTORY: report on the runs of bench/acm.sh whose results are in DIRECTORY."""

import json
import sys
from pathlib import Path
from statistics import median

_TABLES = (("cache", "oxib's cache"), ("table", "bare rhashtable"), ("neighbours", "neigh_lookup"))


def _pairs(words):
    return {key: int(value) for key, _, value in (word.partition("=") for word in words)}


class Results:
    """What the nodes printed: instructions of a look-up, and bytes."""

    def __init__(self, directory):
        self._instructions, self.memory = {}, {}
        for log in sorted(directory.glob("bench-acm-*/node1.log")):
            for line in log.read_text(encoding="utf-8").splitlines():
                kind, *words = line.split() or [""]
                if kind == "result":
                    values = _pairs(words[1:])
                    each = values["median"] / values["burst"]
                    self._instructions.setdefault((words[0].removeprefix("acm-"), values["bytes"]), []).append(each)
                elif kind == "memory":
                    values = _pairs(words)
                    self.memory[values["entries"]] = max(values["bytes"], values["slab"]) / values["entries"]
        self.sizes = sorted({entries for _, entries in self._instructions})
        if not self.sizes or set(self.sizes) != set(self.memory):
            raise SystemExit("oxib: the nodes' logs do not have all results")

    def of(self, name, entries):
        """Instructions of a look-up, without those of the loop around it."""
        return median(self._instructions[name, entries]) - median(self._instructions["loop", entries])


def _table(results):
    print(f"{'look-up, instructions':28}" + "".join(f"{entries:>12,}" for entries in results.sizes) + "  entries")
    for kind, title in _TABLES:
        for found in ("hit", "miss"):
            row = "".join(f"{results.of(f'{kind}-{found}', entries):12.0f}" for entries in results.sizes)
            print(f"{title + ', ' + found:28}{row}")
    print(f"{'bytes of an entry':28}" + "".join(f"{results.memory[entries]:12.1f}" for entries in results.sizes))


def _aims(results):
    few, many = results.sizes[0], results.sizes[-1]
    hit = {entries: results.of("cache-hit", entries) for entries in results.sizes}
    worst = max(hit[entries] / results.of("table-hit", entries) for entries in results.sizes)
    return (
        ("a hit, of a bare table's", worst, 2.0),
        (f"{many:,} entries, of {few:,}", hit[many] / hit[few], 1.2),
        (f"bytes of an entry, {many:,}", results.memory[many], 96.0),
    )


def main():
    """Print the table, and whether aims are met; write them as JSON."""
    directory = Path(sys.argv[1])
    results = Results(directory)
    _table(results)
    aims = _aims(results)
    for name, value, limit in aims:
        print(f"{name:40}{value:8.2f}  aim {limit:g}: {'met' if value <= limit else 'NOT met'}")
    place = directory / "bench-acm"
    place.mkdir(exist_ok=True)
    rows = {f"{kind}-{found}": {n: results.of(f"{kind}-{found}", n) for n in results.sizes} for kind, _ in _TABLES for found in ("hit", "miss")}
    (place / "bench.json").write_text(json.dumps({"instructions": rows, "bytes": results.memory, "aims": aims}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
