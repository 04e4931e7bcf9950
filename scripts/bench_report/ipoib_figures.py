# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of oxib against ib_ipoib."""

from dataclasses import dataclass
from statistics import median

from bench_report.ipoib_results import DRIVERS

# A way through ib0, with the measurements of its parts: total, stack, device.
_PATHS = {
    "TX queue": ("tx-queue-ipoib", "tx-queue-floor", "tx-subnet-chain"),
    "TX socket": ("tx-socket-ipoib", "tx-socket-floor", "tx-subnet-single"),
    "RX": ("rx-subnet-ipoib", "rx-floor", "rx-subnet-device"),
}
# On a wire softib delivers in a soft interrupt: it is in the device's floor, so the stack's must not have it again.
_ON_A_WIRE = {"rx-floor": "rx-floor-joined"}


@dataclass(frozen=True)
class Cost:
    """Instructions per packet of one path, size and burst."""

    path: str
    bytes: int
    burst: int
    stack: float
    device: float
    kernel: float
    oxib: float

    @property
    def kernel_own(self):
        """What ib_ipoib itself costs."""
        return self.kernel - self.stack - self.device

    @property
    def oxib_own(self):
        """What oxib itself costs."""
        return self.oxib - self.stack - self.device

    @property
    def own_ratio(self):
        """oxib's part of that of ib_ipoib."""
        return self.oxib_own / self.kernel_own if self.kernel_own > 0 else float("inf")


def costs(results, fabric):
    """All of a fabric, in the order of the table."""
    found = []
    for path, (total, stack, device) in _PATHS.items():
        for size in ("64", "MTU"):
            for burst in (32,) if path == "TX socket" else (1, 8, 32):
                bytes_ = 64 if size == "64" else results.mtu(fabric) - 28
                if fabric == "hop":
                    stack = _ON_A_WIRE.get(stack, stack)
                floors = (results.floor(fabric, name, size, burst) for name in (stack, device))
                totals = (results.packet(fabric, driver, total, size, burst) for driver in DRIVERS)
                found.append(Cost(path, bytes_, burst, *floors, *totals))
    return found


@dataclass(frozen=True)
class Pair:
    """A figure of both: medians, and what they are the medians of."""

    name: str
    unit: str
    kernel: float
    oxib: float
    kernel_values: list
    oxib_values: list

    @property
    def ratio(self):
        """oxib's part of the kernel's."""
        return self.oxib / self.kernel if self.kernel else float("inf")


def _pair(name, unit, values, scale=1):
    kernel, oxib = ([value / scale for value in each] for each in values)
    return Pair(name, unit, median(kernel), median(oxib), kernel, oxib)


_KINDS = {"stream": "datagrams", "offloads": "datagrams, checksum=1 tso=1", "connected": "connected mode"}


def traffic(results):
    """TCP: the stream and the requests, for each fabric and each way."""
    found = []
    for kind, text in _KINDS.items():
        for fabric in results.fabrics(kind):
            for what, unit in (("stream", "a byte"), ("echo", "a request with its answer")):
                values = [results.loads(kind, fabric, driver, what) for driver in DRIVERS]
                if all(values):
                    found.append(_pair(f"{what}, {text}, {fabric}", unit, values))
    return found


def rates(results):
    """What goes through in a second."""
    found = []
    for fabric in results.fabrics("rate"):
        for what, unit, scale in (("stream", "MB/s", 1e6), ("flood", "packets/s of 64 B", 1)):
            for flows in (1, 4):
                values = [results.loads("rate", fabric, driver, what, flows) for driver in DRIVERS]
                if all(values):
                    found.append(_pair(f"{what}, {flows} flow{'s' * (flows > 1)}, {fabric}", unit, values, scale))
    return found


def memory(results):
    """Of an interface, and of a destination."""
    found = []
    interface = results.memory("interface")
    if interface:
        found.append(_pair("an interface that is up", "", [[value] for value in interface]))
    numbers, bytes_ = results.memory("destinations"), results.memory("bytes")
    if numbers:
        found.append(_pair("a destination", "", [[value / number] for value, number in zip(bytes_, numbers, strict=True)]))
    return found


_ALLOCATORS = ("kmem_cache_alloc", "__kmalloc", "__alloc_frozen_pages_noprof", "krealloc")
_EVENTS = {
    "posts (doorbells), TX": ("tx", lambda name: "provider4post4send" in name),
    "posts, RX": ("rx", lambda name: "provider4post7receive" in name),
    "completions, TX": ("tx", lambda name: "CompletionQueue4push" in name),
    "allocations, RX": ("rx", lambda name: name.startswith(_ALLOCATORS)),
    "allocations, TX": ("tx", lambda name: name.startswith(_ALLOCATORS)),
    "events of completion queues, TX": ("tx", lambda name: "Handle6notify" in name),
    "events of completion queues, RX": ("rx", lambda name: "Handle6notify" in name),
}


def events(results):
    """Calls per packet: (name, both drivers' values)."""
    counted = ((name, results.calls(path, matches)) for name, (path, matches) in _EVENTS.items())
    return [(name, values) for name, values in counted if values]


@dataclass(frozen=True)
class Aim:
    """What was to be reached, and what is."""

    name: str
    limit: str
    measured: str
    met: bool


def _ratio_aim(name, limit, pair):
    return Aim(name, f"at most {limit} of ib_ipoib's", f"{pair.ratio:.2f}", pair.ratio <= limit)


def aims(results):
    """Those of the project, as far as there are figures."""
    found = []
    for fabric in results.fabrics("packets"):
        for cost in costs(results, fabric):
            if cost.bytes == 64 and cost.burst == 32 and cost.path != "TX socket":
                found.append(Aim(
                    f"driver's own, {cost.path}, 64 B, {fabric}", "at most 0.6 of ib_ipoib's",
                    f"{cost.own_ratio:.2f}", cost.own_ratio <= 0.6,
                ))  # fmt: skip
    for pair in traffic(results):
        if pair.name.startswith("stream"):
            found.append(_ratio_aim(pair.name, 0.85, pair))
        else:
            found.append(_ratio_aim(pair.name, 0.95, pair))
    for pair in rates(results):
        if pair.name.startswith("stream, 4 flows"):
            found.append(Aim(pair.name, "at least 1.3 times ib_ipoib's", f"{pair.ratio:.2f}", pair.ratio >= 1.3))
    for pair in memory(results):
        if pair.name == "a destination":
            found.append(Aim("memory of a destination", "at most 512 bytes", f"{pair.oxib:.0f}", pair.oxib <= 512))
    return found
