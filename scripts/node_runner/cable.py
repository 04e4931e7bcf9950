# SPDX-License-Identifier: GPL-2.0-only
"""Ethernet cables between nodes: a chain n1 - n2 - n3 - ...

A node's eth0 leads to its left neighbour and its eth1 to the right one; n1, which has no left neighbour, has its
right one on eth0. A cable is a socket pair that two nodes' processes inherit, so runs side by side share nothing.
"""

import socket

# Bytes on their way in one direction, where a packet is a message: a few hundred of the largest packets.
_BUFFER = 4 << 20
# Of socket(7): it exceeds the host's limit, which root may do.
_SO_SNDBUFFORCE = 32


def _cable(kind):
    ends = socket.socketpair(socket.AF_UNIX, kind)
    if kind == socket.SOCK_SEQPACKET:
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
    return ends


class Chain:
    """The cables of a run, sockets of one type. Close them once the nodes have been started."""

    def __init__(self, nodes, kind):
        self._cables = [_cable(kind) for _ in range(nodes - 1)]

    def plugs(self, node):
        """The file descriptors of a node's ends (nodes count from 1), in the order eth0, eth1."""
        left = [self._cables[node - 2][1]] if node > 1 else []
        right = [self._cables[node - 1][0]] if node <= len(self._cables) else []
        return [end.fileno() for end in left + right]

    def close(self):
        """Close this process's ends, so that a node sees when its neighbour is gone."""
        for cable in self._cables:
            for end in cable:
                end.close()
