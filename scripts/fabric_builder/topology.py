# SPDX-License-Identifier: GPL-2.0-only
"""What a fabric consists of: nodes with ports, and cables between these."""

from dataclasses import dataclass, field

from .personalities import PERSONALITIES

# One is a host in a network namespace of its own, the other a device in the namespace of the builder of the fabric.
HOST = "host"
HCA = "hca"
SWITCH = "switch"
ROUTER = "router"
KINDS = (HOST, HCA, SWITCH, ROUTER)

# An option that stands for others, of hosts and HCAs.
PERSONALITY = "personality"

# As many as softib makes.
_MOST_PORTS = {HOST: 2, HCA: 2, SWITCH: 63, ROUTER: 63}
# The longest name of a net device, and what there is room for behind a node's name in it: "-" and three digits.
_LONGEST_DEVICE = 15
_LONGEST_NAME = _LONGEST_DEVICE - len("-999")


class Mistake(Exception):
    """Something that a topology cannot be: a text for whoever wrote it."""


@dataclass
class Node:
    """A host, switch or router. `options` are written to its directory in configfs."""

    name: str
    kind: str
    number: int
    line: int
    options: dict = field(default_factory=dict)
    # Port number to the cable in it.
    ports: dict = field(default_factory=dict)

    def add_options(self, options):
        """Take more options: none twice."""
        for key in options:
            if key in self.options:
                raise Mistake(f"{self.kind} {self.name} has the option {key} already")
        name = options.get(PERSONALITY)
        if name is not None and self.kind not in (HOST, HCA):
            raise Mistake(f"{self.kind} {self.name} cannot have a personality: it is no HCA")
        if name is not None and name not in PERSONALITIES:
            raise Mistake(f"there is no personality '{name}', but {', '.join(PERSONALITIES)}")
        self.options |= options

    def all_options(self):
        """Its options, and those of the adapter that it resembles, if it is to resemble one."""
        own = dict(self.options)
        name = own.pop(PERSONALITY, None)
        return PERSONALITIES.get(name, {}) | own

    def free_port(self):
        """The first port without a cable."""
        return next(number for number in range(1, len(self.ports) + 2) if number not in self.ports)

    def net_device(self, port):
        """The name of the net device that is a port, where the cable is one that the fabric makes."""
        return f"port{port}" if self.kind == HOST else f"{self.name}-{port}"


@dataclass(frozen=True)
class End:
    """Where a cable ends: in a node's port."""

    node: Node
    port: int

    def __str__(self):
        return f"{self.node.name}:{self.port}"

    @property
    def net_device(self):
        """The net device of this end, in the namespace of its node."""
        cable = self.node.ports[self.port]
        return cable.outside or self.node.net_device(self.port)


@dataclass
class Cable:
    """One end in a node's port; the other, too, or a net device that leads out of the fabric."""

    ends: list
    outside: str
    line: int


class Topology:
    """The nodes and cables of a fabric. Each method that adds one raises Mistake if it cannot be."""

    def __init__(self):
        self.nodes = {}
        self.cables = []

    def of_kind(self, *kinds):
        """The nodes of these kinds, in the order in which they were named."""
        return [node for node in self.nodes.values() if node.kind in kinds]

    def add_node(self, kind, name, line, options=None):
        """A node, still without cables."""
        if not name.replace("_", "").isalnum() or not name.isascii() or not name[0].isalpha():
            raise Mistake(f"'{name}' is no name: take letters, digits and _, beginning with a letter")
        if len(name) > _LONGEST_NAME:
            raise Mistake(f"the name {name} is too long: {_LONGEST_NAME} letters, at most")
        if name in self.nodes:
            other = self.nodes[name]
            raise Mistake(f"the name {name} is taken by the {other.kind} of line {other.line}")
        node = Node(name, kind, len(self.nodes) + 1, line)
        node.add_options(options or {})
        self.nodes[name] = node
        return node

    def add_cable(self, ends, line):
        """A cable between two ends: each 'NAME', which takes the first free port, 'NAME:PORT', or '@NETDEVICE'."""
        outside = [end[1:] for end in ends if end.startswith("@")]
        inside = [end for end in ends if not end.startswith("@")]
        if len(outside) == 2:
            raise Mistake("a cable has to end in the fabric on one side, at least")
        if outside and not 0 < len(outside[0]) <= _LONGEST_DEVICE:
            raise Mistake(f"'@{outside[0]}' is not @ and the name of a net device")
        cable = Cable([], outside[0] if outside else "", line)
        for end in inside:
            found = self._end(end)
            if cable.ends and cable.ends[0].node is found.node:
                raise Mistake(f"both ends of the cable are in {found.node.name}")
            found.node.ports[found.port] = cable
            cable.ends.append(found)
        self.cables.append(cable)

    def _end(self, text):
        name, colon, port = text.partition(":")
        if name not in self.nodes:
            raise Mistake(f"there is no {name}: name it before, as a host, hca, switch or router")
        node = self.nodes[name]
        number = self._port_number(port) if colon else node.free_port()
        if number > _MOST_PORTS[node.kind]:
            raise Mistake(f"{node.kind} {name} has no port {number}: {_MOST_PORTS[node.kind]} ports, at most")
        if number in node.ports:
            raise Mistake(f"port {number} of {name} has a cable already, that of line {node.ports[number].line}")
        return End(node, number)

    @staticmethod
    def _port_number(text):
        if not text.isdecimal() or not text.isascii() or int(text) == 0:
            raise Mistake(f"'{text}' is no port: take a number from 1 on")
        return int(text)

    def unfinished(self):
        """(line, what is wrong) of the first node that the fabric cannot be built with, or None."""
        for node in self.nodes.values():
            if not node.ports:
                return node.line, f"{node.kind} {node.name} has no cable"
            if node.free_port() <= len(node.ports):
                return node.line, f"{node.kind} {node.name} has no cable in port {node.free_port()}, but in later ones"
        return None
