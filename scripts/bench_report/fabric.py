# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.fabric DIRECTORY: report on the runs of bench/fabric.sh whose results are in DIRECTORY."""

import json
import sys
from collections import defaultdict
from dataclasses import asdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pygal
from pygal.style import CleanStyle

from bench_report.connections import instructions

# Ways of TCP, the one that the others are compared with first.
_WAYS = ("veth", "datagram", "offloads", "connected")
_NODE = 2 * 2**20

# Where the kernel begins. What iperf3 executes does not count: it spins until a second is over.
_KERNEL = 1 << 63


def _pairs(words):
    return {key: int(value) for key, _, value in (word.partition("=") for word in words)}


class Results:
    """What the nodes printed and counted."""

    def __init__(self, directory):
        self.packets = defaultdict(list)
        self.tcp = {}
        self.memory = {}
        for log in sorted(directory.glob("bench-fabric-*/node1.log")):
            for line in log.read_text(encoding="utf-8").splitlines():
                kind, *words = line.split() or [""]
                if kind == "result":
                    values = _pairs(words[1:])
                    self.packets[words[0], values["bytes"], values["burst"]].append(values["median"] / values["packets"])
                elif kind == "tcp":
                    self.tcp[words[0]] = instructions(log.parent / "counts", _KERNEL) / _pairs(words[1:])["bytes"]
                elif kind == "memory":
                    values = _pairs(words)
                    self.memory[words[0].partition("=")[0]] = values
        # The smallest counts leave ways of TCP out.
        self.ways = [way for way in _WAYS if way in self.tcp]
        whole = self.packets and "veth" in self.ways and len(self.ways) > 1
        if not whole or not {"hcas", "switches", "fabric"} <= set(self.memory):
            raise SystemExit("oxib: the nodes' logs do not have all results")

    def packet(self, name, size, burst):
        """Instructions of a packet: the median over the repetitions."""
        return median(self.packets[name, size, burst])


@dataclass(frozen=True)
class Aim:
    """What was to be reached, and what is."""

    name: str
    limit: str
    measured: str
    met: bool


def aims(results):
    """Those of the project."""

    def instructions_of(name, text, limit):
        measured = results.packet(name, 64, 32)
        return Aim(text, f"at most {limit} instructions", f"{measured:.0f}", measured <= limit)

    best = min(results.tcp[way] for way in results.ways[1:])
    part = results.tcp["veth"] / best
    fabric = results.memory["fabric"]["kib"]
    return [
        instructions_of("hop-fabric-chain", "a datagram of 64 B, one switch, bursts of 32", 4000),
        instructions_of("peer-fabric-chain", "a datagram of 64 B, peer in memory, bursts of 32", 800),
        Aim("TCP over ib_ipoib, its best way, of that over a bare veth pair", "at least 0.5", f"{part:.2f}", part >= 0.5),
        Aim("64 HCAs and 8 switches, with all that is on them", "a node of 2 GiB", f"{fabric / 1024:.0f} MiB", fabric < _NODE),
    ]


def _columns(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *rest = row
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()


def _packet_rows(results):
    yield ("a datagram, from post to the peer's completion", "bytes", "burst", "one switch", "peer")
    names = {"chain": "one call", "chain-events": "one call, with an event", "single": "a call each"}
    shapes = sorted({(name.partition("-fabric-")[2], size, burst) for name, size, burst in results.packets})
    for shape, size, burst in shapes:
        values = (f"{results.packet(f'{fabric}-fabric-{shape}', size, burst):.0f}" for fabric in ("hop", "peer"))
        yield (names[shape], str(size), str(burst), *values)


def _tcp_rows(results):
    yield ("TCP", "the kernel's instructions a byte", "of veth's speed")
    texts = {
        "veth": "bare veth pair",
        "datagram": "ib_ipoib, datagram mode",
        "offloads": "ib_ipoib, datagram mode, checksum=1 tso=1",
        "connected": "ib_ipoib, connected mode",
    }
    for way in results.ways:
        yield (texts[way], f"{results.tcp[way]:.2f}", f"{results.tcp['veth'] / results.tcp[way]:.2f}")


def _memory_rows(results):
    memory = results.memory
    hcas, switches = memory["hcas"], memory["switches"]
    yield ("memory", "KiB")
    yield ("an HCA, with its ib_core, MAD and umad parts", f"{hcas['kib'] / hcas['hcas']:.0f}")
    yield (f"a switch of {switches['ports']} ports", f"{switches['kib'] / switches['switches']:.0f}")
    yield ("64 HCAs in namespaces of their own, 8 switches, all cables and namespaces", f"{memory['fabric']['kib']}")


def table(results):
    """The lines of the table."""
    yield "softib, in instructions (medians of samples, each as many bursts as fill a ring)"
    for rows in (_packet_rows, _tcp_rows, _memory_rows):
        yield ""
        yield from _columns(list(rows(results)))
    yield ""
    rows = [(aim.name, aim.limit, aim.measured, "met" if aim.met else "NOT MET") for aim in aims(results)]
    yield from _columns([("aim", "", "measured", ""), *rows])


def _write_chart(results, path):
    chart = pygal.HorizontalBar(style=CleanStyle, title="softib: instructions per datagram of 64 B", js=[], print_values=True)
    chart.x_labels = ["bursts of 32", "bursts of 8", "bursts of 1"]
    for fabric, text in (("hop", "one switch"), ("peer", "peer in memory")):
        chart.add(text, [round(results.packet(f"{fabric}-fabric-chain", 64, burst)) for burst in (32, 8, 1)])
    chart.render_to_file(str(path))


def main():
    """Read the nodes' logs; print the table, write all three."""
    directory = Path(sys.argv[1])
    results = Results(directory)
    out = directory / "bench-fabric"
    out.mkdir(exist_ok=True)
    text = "\n".join(table(results)) + "\n"
    print(text, end="")
    (out / "table.txt").write_text(text, encoding="utf-8")
    document = {
        "aims": [asdict(aim) for aim in aims(results)],
        "packets": [
            {"measurement": name, "bytes": size, "burst": burst, "instructions": values}
            for (name, size, burst), values in sorted(results.packets.items())
        ],
        "tcp_instructions_per_byte": results.tcp,
        "memory": results.memory,
    }
    (out / "bench.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    _write_chart(results, out / "bench.svg")


if __name__ == "__main__":
    main()
