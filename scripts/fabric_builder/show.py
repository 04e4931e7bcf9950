# SPDX-License-Identifier: GPL-2.0-only
"""A fabric as a table: a line for each end of a cable."""

import json

from fabric_builder import machine
from fabric_builder.topology import HCA
from fabric_builder.topology import HOST


def _peer(cable, end):
    if cable.outside:
        return f"@{cable.outside}"
    return str(next(other for other in cable.ends if other is not end))


def _count(number, word):
    plural = {"switch": "switches"}.get(word, f"{word}s")
    return f"{number} {word if number == 1 else plural}"


def summary(topology):
    """How many of each kind there are."""
    kinds = [node.kind for node in topology.nodes.values()]
    counts = [_count(kinds.count(kind), kind) for kind in dict.fromkeys(kinds)]
    return ", ".join([*counts, _count(len(topology.cables), "cable")])


def _ends(topology):
    """(end, its peer in words) in the order of nodes and ports."""
    for node in topology.nodes.values():
        for port in sorted(node.ports):
            cable = node.ports[port]
            end = next(end for end in cable.ends if end.node is node)
            yield end, _peer(cable, end)


def described(topology):
    """The table without the state of anything."""
    lines = [f"{end.node.kind:<7} {str(end):<16} {peer}" for end, peer in _ends(topology)]
    return [summary(topology), *lines]


def rdma_links(node):
    namespace = node.name if node.kind == HOST else None
    links = json.loads(machine.run("rdma", "-j", "-d", "link", "show", namespace=namespace) or "[]")
    return {link["port"]: link for link in links if link["ifname"] == node.name}


def _hca_state(link):
    if link is None:
        return "gone"
    words = [link["state"].lower(), link["physical_state"].lower()]
    words += [f"{name} {link[name]}" for name in ("lid", "sm_lid", "subnet_prefix") if name in link]
    return " ".join(words)


def _net_devices(namespace):
    where = ["-n", namespace] if namespace else []
    return {device["ifname"]: device for device in json.loads(machine.run("ip", *where, "-j", "link", "show"))}


def _cable_state(device):
    if device is None:
        return "no cable"
    return "cable up" if "LOWER_UP" in device["flags"] else "cable down"


def state(topology):
    """The table with the state of each end."""
    lines = [summary(topology)]
    devices, links = {}, {}
    for end, peer in _ends(topology):
        node = end.node
        namespace = node.name if node.kind == HOST else None
        if namespace not in devices:
            devices[namespace] = _net_devices(namespace)
        words = [_cable_state(devices[namespace].get(end.net_device))]
        if node.kind in (HOST, HCA):
            if node.name not in links:
                links[node.name] = rdma_links(node)
            words.append(_hca_state(links[node.name].get(end.port)))
        lines.append(f"{node.kind:<7} {str(end):<16} {peer:<16} {'  '.join(words)}")
    return lines


