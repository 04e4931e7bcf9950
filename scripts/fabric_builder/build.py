# SPDX-License-Identifier: GPL-2.0-only
"""Building a fabric, and taking it down."""

import socket
import zlib
from contextlib import contextmanager
from functools import partial

from fabric_builder import machine
from fabric_builder.machine import Failure
from fabric_builder.machine import SOFTIB
from fabric_builder.topology import HCA
from fabric_builder.topology import HOST
from fabric_builder.topology import ROUTER
from fabric_builder.topology import SWITCH

# Room for an InfiniBand packet with an MTU of 4096 and all its headers.
_MTU = 9000


def _namespace(node):
    return node.name if node.kind == HOST else None


def _directory(node):
    return SOFTIB / ("hca" if node.kind in (HOST, HCA) else node.kind) / node.name


def _address(end):
    """A locally administered Ethernet address: the same one each time on this machine, another on another machine."""
    here = zlib.crc32(socket.gethostname().encode()) & 0xFFFF
    return ":".join(f"{byte:02x}" for byte in b"\x02" + (here << 24 | end.node.number << 8 | end.port).to_bytes(5, "big"))


def _refuse_what_exists(topology):
    for node in topology.of_kind(HOST):
        if machine.namespace_exists(node.name):
            raise Failure(f"there is a network namespace {node.name} already; host {node.name} would need it")
    for node in topology.nodes.values():
        if _directory(node).exists():
            raise Failure(f"{_directory(node)} is there already; {node.kind} {node.name} would need it")
    for cable in topology.cables:
        if cable.outside and not machine.net_device_exists(cable.outside):
            raise Failure(f"line {cable.line}: there is no net device {cable.outside}")
        if cable.outside and cable.ends[0].node.kind == HOST:
            raise Failure(f"line {cable.line}: a host cannot have {cable.outside} of this namespace: use an hca or a switch")
        for end in cable.ends:
            if not cable.outside and end.node.kind != HOST and machine.net_device_exists(end.net_device):
                raise Failure(f"there is a net device {end.net_device} already; the cable in {end} would need it")


@contextmanager
def _blamed_on(node):
    """What fails then is blamed on the node's line of the file."""
    try:
        yield
    except Failure as failure:
        raise Failure(f"line {node.line}: {node.kind} {node.name}: {failure}") from failure


def _make_cables(cables):
    def described(end):
        where = f" netns {end.node.name}" if end.node.kind == HOST else ""
        return f"name {end.net_device} mtu {_MTU} address {_address(end)}{where}"

    machine.ip_batch(
        f"link add {described(first)} type veth peer {described(second)}"
        for first, second in (cable.ends for cable in cables if not cable.outside)
    )


def _make_hca(node):
    """The device, named like its node; what it is described with to others is that name, too."""
    options = node.all_options()
    if 2 in node.ports:
        options["port2"] = node.net_device(2)
    if options:
        machine.configure(_directory(node), options)
    namespace = _namespace(node)
    first = node.ports[1].outside or node.net_device(1)
    machine.run("rdma", "link", "add", node.name, "type", "softib", "netdev", first, namespace=namespace)
    describe = f"printf %s {node.name} >/sys/class/infiniband/{node.name}/node_desc"
    machine.run("sh", "-c", describe, namespace=namespace)


def _make_switch_or_router(node):
    devices = [node.ports[port].outside or node.net_device(port) for port in sorted(node.ports)]
    machine.configure(_directory(node), node.options | {"ports": " ".join(devices), "enable": "1"})


def _plug_in(topology):
    """Take the cables up. An IPv6 address would only put frames on them that nobody wants."""
    mode = "addrgenmode none " if machine.has_ipv6() else ""
    here = []
    for node in topology.nodes.values():
        devices = [node.ports[port].outside or node.net_device(port) for port in sorted(node.ports)]
        lines = [f"link set {device} {mode}up" for device in devices]
        if node.kind == HOST:
            machine.ip_batch(["link set lo up", *lines], node.name)
        else:
            here += lines
    machine.ip_batch(here)


def up(topology):
    """Build it; raises Failure, with part of it built, if that does not work."""
    if topology.of_kind(HOST):
        machine.require_exclusive_namespaces()
    machine.ip_batch(f"netns add {node.name}" for node in topology.of_kind(HOST))
    _make_cables(topology.cables)
    for node in topology.of_kind(HOST, HCA):
        with _blamed_on(node):
            _make_hca(node)
    for node in topology.of_kind(SWITCH, ROUTER):
        with _blamed_on(node):
            _make_switch_or_router(node)
    _plug_in(topology)


def check(topology):
    """Raise Failure if something of this machine is in the fabric's way; nothing was changed then."""
    machine.require_softib()
    _refuse_what_exists(topology)


def _hca_exists(node):
    return bool(machine.run("rdma", "link", "show", namespace=_namespace(node)).count(f"link {node.name}/"))


def _delete(exists, *command, namespace=None):
    """Run a command that deletes what exists, if it does. A namespace that ends may be faster."""
    try:
        if exists():
            machine.run(*command, namespace=namespace)
    except Failure:
        if exists():
            raise


def _remove_hca(node):
    namespace = _namespace(node)

    def exists():
        return (namespace is None or machine.namespace_exists(namespace)) and _hca_exists(node)

    _delete(exists, "rdma", "link", "delete", node.name, namespace=namespace)
    machine.remove_directory(_directory(node))


def _remove_switch_or_router(node):
    if (_directory(node) / "enable").exists():
        machine.write(_directory(node) / "enable", 0)
    machine.remove_directory(_directory(node))


def _remove_cables(topology):
    """Each by the end that is in this namespace, or else by that in a host's."""
    for cable in topology.cables:
        if cable.outside:
            continue
        end = next((end for end in cable.ends if end.node.kind != HOST), cable.ends[0])
        namespace = _namespace(end.node)
        where = ["-n", namespace] if namespace else []
        # It is not there if the fabric was only partly built.
        exists = partial(machine.net_device_exists, end.net_device, namespace)
        _delete(exists, "ip", *where, "link", "delete", end.net_device)


def down(topology):
    """Remove what there is of it, also if it was only partly built."""
    hosts = [node.name for node in topology.of_kind(HOST) if machine.namespace_exists(node.name)]
    # While subnet managers answer: an interface that leaves its groups later waits for them, for some seconds each.
    for name in hosts:
        machine.take_interfaces_down(name)
    machine.end_processes(hosts)
    for node in topology.of_kind(HOST, HCA):
        _remove_hca(node)
    for node in topology.of_kind(SWITCH, ROUTER):
        _remove_switch_or_router(node)
    _remove_cables(topology)
    machine.ip_batch([f"netns delete {name}" for name in hosts])
    machine.remove_empty_folders()
