# SPDX-License-Identifier: GPL-2.0-only
"""The chart: a bar for each path, with its parts one after the other."""

import pygal
from pygal.style import CleanStyle

_PARTS = (("stack", "stack"), ("device", "device"), ("own", "driver's own"))


def write(costs, path):
    """Write the chart of what 64-byte and MTU-sized packets cost in the longest bursts."""
    longest = max(cost.burst for cost in costs)
    # Bars are drawn from the bottom up.
    shown = [cost for cost in reversed(costs) if cost.burst == longest]
    chart = pygal.HorizontalStackedBar(
        style=CleanStyle,
        title=f"Instructions per packet, bursts of {longest}",
        x_title="instructions",
        # No script: the picture stands for itself.
        js=[],
        print_values=True,
        formatter=lambda value: f"{value:.0f}",
        legend_at_bottom=True,
        legend_at_bottom_columns=len(_PARTS),
    )
    chart.x_labels = [f"{cost.path}, {cost.bytes} B" for cost in shown]
    for part, name in _PARTS:
        chart.add(name, [round(getattr(cost, part)) for cost in shown])
    chart.render_to_file(str(path))
