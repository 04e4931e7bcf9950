# SPDX-License-Identifier: GPL-2.0-only
"""The table, for people."""


def _number(value):
    return "" if value is None else f"{value:.0f}"


def _columns(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        first, *rest = (cell.ljust(width) if not i else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths)))
        yield "  ".join([first, *rest]).rstrip()


def _cost_rows(costs):
    yield ("path", "bytes", "burst", "total", "stack", "device", "own", "spread", "notice")
    for cost in costs:
        yield (
            cost.path, str(cost.bytes), str(cost.burst), _number(cost.total), _number(cost.stack),
            _number(cost.device), _number(cost.own), _number(cost.own_spread), _number(cost.notice),
        )  # fmt: skip


def _event_rows(events):
    yield ("events per packet", "burst", "posts (doorbells)", "completions")
    for event in events:
        yield (event.direction, str(event.burst), f"{event.posts:.4f}", f"{event.completions:.4f}")


def _value(value, unit):
    text = f"{value:.0f}" if value >= 10 else f"{value:.4f}".rstrip("0").rstrip(".")
    return f"{text} {unit}".rstrip()


def _aim_rows(aims):
    yield ("aim", "at most", "measured", "")
    for aim in aims:
        yield (aim.name, _value(aim.limit, aim.unit), _value(aim.measured, aim.unit), "met" if aim.met else "NOT MET")


def lines(costs, events, aims, memory, rounds):
    """The lines of the table."""
    samples = f"medians of {rounds} samples, each as many bursts as fill a ring"
    yield f"Instructions per packet ({samples}; bytes are UDP payload; own = total - stack - device)"
    yield ""
    yield from _columns(list(_cost_rows(costs)))
    yield ""
    yield from _columns(list(_event_rows(events)))
    yield ""
    yield "memory of ib0: " + ", ".join(f"{name.removeprefix('memory_')} {size} bytes" for name, size in memory.items())
    yield ""
    yield from _columns(list(_aim_rows(aims)))
