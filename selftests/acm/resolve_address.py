#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""resolve_address.py ADDRESS: have rdma_cm resolve an address, with ten minutes' time for it, and print what it says."""

import sys

from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel
from pyverbs.librdmacm_enums import RDMA_PS_TCP

_TIME = 600_000


def main():
    """Resolve it."""
    peer = AddrInfo(dst=sys.argv[1], dst_service="7174", port_space=RDMA_PS_TCP, flags=0)
    channel = CMEventChannel()
    name = CMID(creator=channel, port_space=RDMA_PS_TCP)
    name.resolve_addr(peer, _TIME)
    event = CMEvent(channel)
    print(event.event_str())
    event.ack_cm_event()
    name.close()


if __name__ == "__main__":
    main()
