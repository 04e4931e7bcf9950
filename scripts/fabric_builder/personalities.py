# SPDX-License-Identifier: GPL-2.0-only
"""Options that HCAs have together, by the adapters that they resemble."""

# What all hardware has: memory is mapped for it, commands take time, its events come from an interrupt handler.
_HARDWARE = {"dma": "1", "command_ms": "1", "interrupts": "1"}

PERSONALITIES = {
    # mlx4: one engine for checksums and segments, address handles without a command.
    "connectx3": _HARDWARE | {"checksum": "1", "tso": "1", "max_inline": "512", "own_multicast": "1"},
    # mlx5: as many completion queues at work as there are.
    "connectx5": _HARDWARE
    | {
        "checksum": "1",
        "tso": "1",
        "max_inline": "828",
        "max_sge": "30",
        "overtaking": "1",
        "own_multicast": "1",
    },
    # irdma: few pieces, queue pairs share no receives.
    "irdma": _HARDWARE | {"max_inline": "101", "max_sge": "13", "max_wr": "4096", "srq": "0"},
    # No adapter, but the least of each: as few pieces as management takes. With sleeping_ah no connection manager works:
    # the kernel's and oxib's make address handles where they cannot sleep.
    "poor": _HARDWARE
    | {
        "mtu": "2048",
        "max_inline": "0",
        "max_sge": "2",
        "max_wr": "512",
        "srq": "0",
        "overtaking": "1",
    },
}
