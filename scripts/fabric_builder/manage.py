# SPDX-License-Identifier: GPL-2.0-only
"""Subnet managers: an OpenSM in the first host of each subnet."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

from fabric_builder import machine
from fabric_builder.machine import Failure
from fabric_builder.show import rdma_links
from fabric_builder.topology import HCA
from fabric_builder.topology import HOST
from fabric_builder.topology import SWITCH

# A directory for each OpenSM, with its files, its cache and its log.
_PLACE = Path("/run/softib.managers")
# Seconds in which every port has to become active.
_PATIENCE = 300
# The prefix of subnet N of several is fec0:0:0:N::/64. A subnet alone keeps the one that OpenSM gives it.
_PREFIXES = 0xFEC0000000000000
# Unicast LIDs are below.
_FIRST_MULTICAST_LID = 0xC000


@dataclass
class Subnet:
    """The ports that are joined without a router between them: those of hosts and of HCAs. The first one is a host's."""

    number: int
    ends: list

    @property
    def manager(self):
        """The host of its subnet manager."""
        return self.ends[0].node

    @property
    def prefix(self):
        """Its prefix, where there are several subnets."""
        return _PREFIXES + self.number

    @property
    def place(self):
        """The directory of its subnet manager."""
        return _PLACE / self.manager.name


def _vertex(end):
    """A switch joins its ports. Those of HCAs and routers are each in a subnet of their own."""
    return end.node.name, 0 if end.node.kind == SWITCH else end.port


class _Groups:
    """Vertices, and which of them are joined."""

    def __init__(self):
        self._towards = {}

    def of(self, vertex):
        """The vertex that stands for all those that are joined to this one."""
        while vertex in self._towards:
            vertex = self._towards[vertex]
        return vertex

    def join(self, one, other):
        """Join the groups of two vertices."""
        one, other = self.of(one), self.of(other)
        if one != other:
            self._towards[other] = one


def subnets(topology):
    """The subnets that have HCAs, in the order of these; raises Failure if one has no host for its subnet manager."""
    groups = _Groups()
    for cable in topology.cables:
        if not cable.outside:
            groups.join(*(_vertex(end) for end in cable.ends))
    members = {}
    for cable in topology.cables:
        for end in cable.ends:
            if end.node.kind in (HOST, HCA):
                members.setdefault(groups.of(_vertex(end)), []).append(end)
    found = []
    for ends in members.values():
        ends.sort(key=lambda end: (end.node.kind != HOST, end.node.number, end.port))
        if ends[0].node.kind != HOST:
            raise Failure(f"line {ends[0].node.line}: the subnet of {ends[0].node.name} has no host for a subnet manager")
        found.append(ends)
    found.sort(key=lambda ends: (ends[0].node.number, ends[0].port))
    return [Subnet(number, ends) for number, ends in enumerate(found, 1)]


def _guid(end):
    """The GUID of an HCA's port, a number."""
    namespace = end.node.name if end.node.kind == HOST else None
    gid = machine.run("cat", f"/sys/class/infiniband/{end.node.name}/ports/{end.port}/gids/0", namespace=namespace)
    return int(gid.strip().replace(":", "")[-16:], 16)


def _lids(subnet):
    """Lines of guid2lid: the LIDs that a router with the option `algorithmic` expects. OpenSM wants an empty line after each."""
    for guid in map(_guid, subnet.ends):
        lid = guid & 0xFFFF
        if 0 < lid < _FIRST_MULTICAST_LID:
            yield f"{guid:#018x} {lid:#06x} {lid:#06x}\n"


def _configuration(subnet, others):
    place = subnet.place
    lines = [
        f"guid {_guid(subnet.ends[0]):#018x}",
        f"log_file {place}/log",
        f"dump_files_dir {place}",
        f"partition_config_file {place}/partitions.conf",
        f"prefix_routes_file {place}/prefix-routes.conf",
        # For a processor that many share: milliseconds that an agent has for its answer, and seconds between sweeps.
        "transaction_timeout 1000",
        "sweep_interval 5",
    ]
    if others:
        lines += [f"subnet_prefix {subnet.prefix:#x}", "honor_guid2lid_file TRUE"]
    return lines


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def _start(subnet, others):
    place = subnet.place
    place.mkdir(parents=True)
    _write(place / "opensm.conf", _configuration(subnet, others))
    _write(place / "prefix-routes.conf", [f"{other.prefix:#x} *" for other in others])
    _write(place / "guid2lid", _lids(subnet))
    environment = os.environ | {"OSM_TMP_DIR": str(place), "OSM_CACHE_DIR": str(place)}
    command = ["ip", "netns", "exec", subnet.manager.name, "opensm", "--config", str(place / "opensm.conf")]
    with open(place / "output", "wb") as output:
        # It goes on when this program has ended, until its host is removed.
        return subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def _inactive(subnet, prefix):
    """The first port of a subnet that is not active, or has another prefix than it is to have; None if there is none."""
    for end in subnet.ends:
        link = rdma_links(end.node).get(end.port, {})
        given = link.get("subnet_prefix", "").replace(":", "")
        if link.get("state") != "ACTIVE" or prefix not in ("", given):
            return end
    return None


def _wait(subnet, manager, prefix):
    deadline = time.monotonic() + _PATIENCE
    while (end := _inactive(subnet, prefix)) is not None:
        where = f"the OpenSM of {subnet.manager.name}"
        if manager.poll() is not None:
            raise Failure(f"{where} has ended: {subnet.place}/output and {subnet.place}/log say why")
        if time.monotonic() > deadline:
            raise Failure(f"port {end} does not become active: {subnet.place}/log is the log of {where}")
        time.sleep(0.2)


def start(topology):
    """Start an OpenSM in each subnet, and wait until every port of a host or HCA is active. Returns a line for each subnet."""
    found = subnets(topology)
    if _PLACE.exists():
        raise Failure("the subnet managers have been started already")
    managers = [_start(subnet, [other for other in found if other is not subnet]) for subnet in found]
    lines = []
    for subnet, manager in zip(found, managers):
        prefix = f"{subnet.prefix:016x}" if len(found) > 1 else ""
        _wait(subnet, manager, prefix)
        named = f"{IPv6Address(subnet.prefix << 64)}/64, " if prefix else ""
        count = len(subnet.ends)
        lines.append(f"{named}OpenSM in {subnet.manager.name}: {count} active {'port' if count == 1 else 'ports'}")
    return lines


def forget():
    """Remove their files, once they have ended."""
    shutil.rmtree(_PLACE, ignore_errors=True)
