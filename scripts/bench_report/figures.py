# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic: what a packet costs, and what of it is whose."""

from dataclasses import asdict
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Path:
    """A way through ib0, with the measurements of its parts."""

    name: str
    total: str
    stack: str
    device: str
    events: str = ""


PATHS = (
    Path("TX queue", "tx-queue-ipoib", "tx-queue-floor", "tx-device-chain", "tx-device-chain-events"),
    Path("TX socket", "tx-socket-ipoib", "tx-socket-floor", "tx-device-single", "tx-device-single-events"),
    Path("RX", "rx-ipoib", "rx-floor", "rx-device"),
)


@dataclass(frozen=True)
class Cost:
    """Instructions per packet of one path, size and burst: medians over the repetitions.

    own: total less stack less device; own_spread: between the repetitions; notice: the part of it that a bare loop
    pays, too, when it is told of completions by events and does not poll for them (TX alone: on RX it is the stack's).
    """

    path: str
    bytes: int
    burst: int
    total: float
    stack: float
    device: float
    own: float
    own_spread: float
    notice: float | None


def cost(measurements, path, size, burst):
    """The cost of a path."""
    parts = [measurements.per_packet(name, size, burst) for name in (path.total, path.stack, path.device)]
    own = [total - stack - device for total, stack, device in zip(*parts, strict=True)]
    notice = None
    if path.events:
        notice = median(measurements.per_packet(path.events, size, burst)) - median(parts[2])
    total, stack, device = map(median, parts)
    return Cost(path.name, size, burst, total, stack, device, median(own), max(own) - min(own), notice)


def costs(measurements):
    """All of them, in the order of the table."""
    return [
        cost(measurements, path, size, burst)
        for path in PATHS
        for size in measurements.sizes
        for burst in measurements.bursts(path.total, size)
    ]


@dataclass(frozen=True)
class Events:
    """Calls of the device and completions per packet of 64 bytes."""

    direction: str
    burst: int
    posts: float
    completions: float


def events(measurements):
    """Of both directions, for each burst."""
    found = []
    for direction, name in (("tx", "tx-queue-ipoib"), ("rx", "rx-ipoib")):
        size = measurements.sizes[0]
        for burst in measurements.bursts(name, size):
            counted = measurements.events(name, size, burst)
            packets = counted[f"{direction}_packets"]
            if not packets:
                raise SystemExit(f"oxib: ib0 counted no packets during {name}")
            posts, completions = (counted[f"{direction}_{what}"] / packets for what in ("posts", "completions"))
            found.append(Events(direction.upper(), burst, posts, completions))
    return found


@dataclass(frozen=True)
class Aim:
    """What was to be reached, and what is."""

    name: str
    limit: float
    measured: float
    unit: str

    @property
    def met(self):
        """Whether it is."""
        return self.measured <= self.limit


_AIM_BURST = 32


def aims(measurements):
    """Those of the project, for packets of 64 bytes in bursts of 32."""
    size = measurements.sizes[0]
    own = {cost.path: cost.own for cost in costs(measurements) if (cost.bytes, cost.burst) == (size, _AIM_BURST)}
    sent, received = (e for e in events(measurements) if e.burst == _AIM_BURST)
    memory = sum(measurements.memory.values()) / 2**20
    return [
        Aim("driver's own cost, TX queue, 64 B", 400, own["TX queue"], "instructions"),
        Aim("driver's own cost, RX, 64 B", 500, own["RX"], "instructions"),
        Aim("TX posts per packet, burst 32", 1 / 16, sent.posts, ""),
        Aim("TX completions per packet, burst 32", 1 / 16, sent.completions, ""),
        Aim("RX posts per packet, burst 32", 1 / 16, received.posts, ""),
        Aim("memory of an interface with one queue", 4, memory, "MiB"),
    ]


def document(measurements, rounds):
    """All of it, for the JSON file."""
    return {
        "unit": "instructions per packet",
        "rounds": rounds,
        "aims": [{**asdict(aim), "met": aim.met} for aim in aims(measurements)],
        "costs": [asdict(cost) for cost in costs(measurements)],
        "events_per_packet": [asdict(event) for event in events(measurements)],
        "memory_bytes": measurements.memory,
        "results": measurements.raw(),
    }
