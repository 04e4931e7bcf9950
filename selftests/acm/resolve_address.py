#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""resolve_address.py ADDRESS [NUMBER]: have rdma_cm resolve an address, NUMBER times at once (1), with ten minutes' time for it,
and print each event with how often it came."""

import sys
from collections import Counter

from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel
from pyverbs.librdmacm_enums import RDMA_PS_TCP

_TIME = 600_000


def main():
    """Resolve it."""
    address, number = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    peer = AddrInfo(dst=address, dst_service="7174", port_space=RDMA_PS_TCP, flags=0)
    channel = CMEventChannel()
    names = [CMID(creator=channel, port_space=RDMA_PS_TCP) for _ in range(number)]
    for name in names:
        name.resolve_addr(peer, _TIME)
    found = Counter()
    for _ in names:
        event = CMEvent(channel)
        found[event.event_str()] += 1
        event.ack_cm_event()
    for event, times in found.items():
        print(times, event)
    for name in names:
        name.close()


if __name__ == "__main__":
    main()
