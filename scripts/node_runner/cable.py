# SPDX-License-Identifier: GPL-2.0-only
"""Ethernet cables between nodes: a chain n1 - n2 - n3 - ...

A node's eth0 leads to its left neighbour and its eth1 to the right one; n1, which has no left neighbour, has its
right one on eth0. A cable is a socket pair that two QEMUs inherit, so runs side by side share nothing.
"""

import socket


class Chain:
    """The cables of a run. Close them once the nodes have been started."""

    def __init__(self, nodes):
        self._cables = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(nodes - 1)]

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
