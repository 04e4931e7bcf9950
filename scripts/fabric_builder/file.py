# SPDX-License-Identifier: GPL-2.0-only
"""Reading a topology file: a statement in each line, '#' begins a comment.

host|hca|switch|router NAME... [OPTION=VALUE...]
cable END END                       END is NAME, NAME:PORT or @NETDEVICE
star hosts=N
routed hosts=N,N[,N...] [routers=N]
fattree leaves=N spines=N hosts=N
"""

from fabric_builder.topology import HOST
from fabric_builder.topology import KINDS
from fabric_builder.topology import Mistake
from fabric_builder.topology import ROUTER
from fabric_builder.topology import SWITCH
from fabric_builder.topology import Topology


class Unreadable(Exception):
    """A file that describes no fabric: the text names the file and the line."""


def _options(words):
    options = {}
    for word in words:
        key, _, value = word.partition("=")
        if not key.isidentifier() or not value:
            raise Mistake(f"'{word}' is no option: an option is NAME=VALUE")
        if key in options:
            raise Mistake(f"the option {key} is there twice")
        options[key] = value
    return options


def _split(words):
    """(words without '=', options)"""
    return [word for word in words if "=" not in word], _options(word for word in words if "=" in word)


class _Numbers:
    """The numbers that a shape is described with: each is to be taken, and none may be left."""

    def __init__(self, shape, words):
        names, self._left = _split(words)
        self._shape = shape
        if names:
            raise Mistake(f"{shape} takes only NAME=NUMBER, not '{names[0]}'")

    def take_list(self, name, default=None):
        """Numbers with commas between them."""
        text = self._left.pop(name, default)
        if text is None:
            raise Mistake(f"{self._shape} needs {name}=")
        if not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in text.split(",")):
            raise Mistake(f"{name}={text}: numbers from 1 on are wanted")
        return [int(part) for part in text.split(",")]

    def take(self, name, default=None):
        """One number."""
        numbers = self.take_list(name, default)
        if len(numbers) > 1:
            raise Mistake(f"{self._shape} takes one number as {name}")
        return numbers[0]

    def end(self):
        """Refuse what was not taken."""
        for name in self._left:
            raise Mistake(f"{self._shape} has no {name}=")


class _Reader:
    def __init__(self):
        self.topology = Topology()
        self._line = 0
        self._statements = {"cable": self._cable, "star": self._star, "routed": self._routed, "fattree": self._fattree}

    def read(self, number, words):
        """One line, in words."""
        self._line = number
        keyword, *rest = words
        if keyword in KINDS:
            self._nodes(keyword, rest)
        elif keyword in self._statements:
            self._statements[keyword](rest)
        else:
            known = ", ".join([*KINDS, *self._statements])
            raise Mistake(f"there is no statement '{keyword}', but {known}")

    def _nodes(self, kind, words):
        names, options = _split(words)
        if not names:
            raise Mistake(f"{kind} needs a name")
        for name in names:
            node = self.topology.nodes.get(name)
            if node and node.kind == kind and options:
                node.add_options(options)
            else:
                self._node(kind, name, options)

    def _node(self, kind, name, options=None):
        return self.topology.add_node(kind, name, self._line, options).name

    def _cable(self, words):
        if len(words) != 2:
            raise Mistake(f"a cable has two ends, not {len(words)}")
        self.topology.add_cable(words, self._line)

    def _join(self, *names):
        self.topology.add_cable(names, self._line)

    def _hosts(self, switch, first, count):
        for number in range(first, first + count):
            self._join(self._node(HOST, f"h{number}"), switch)

    def _star(self, words):
        numbers = _Numbers("star", words)
        hosts = numbers.take("hosts")
        numbers.end()
        self._hosts(self._node(SWITCH, "s1"), 1, hosts)

    def _routed(self, words):
        numbers = _Numbers("routed", words)
        subnets = numbers.take_list("hosts")
        routers = numbers.take("routers", "1")
        numbers.end()
        if len(subnets) < 2:
            raise Mistake("routed needs the hosts of two subnets, at least: hosts=2,2")
        for number, hosts in enumerate(subnets, 1):
            self._hosts(self._node(SWITCH, f"s{number}"), 1 + sum(subnets[: number - 1]), hosts)
        for number in range(1, routers + 1):
            router = self._node(ROUTER, f"r{number}")
            for subnet in range(1, len(subnets) + 1):
                self._join(router, f"s{subnet}")

    def _fattree(self, words):
        numbers = _Numbers("fattree", words)
        leaves, spines, hosts = (numbers.take(name) for name in ("leaves", "spines", "hosts"))
        numbers.end()
        tops = [self._node(SWITCH, f"s{number}") for number in range(1, spines + 1)]
        for number in range(1, leaves + 1):
            leaf = self._node(SWITCH, f"l{number}")
            self._hosts(leaf, 1 + (number - 1) * hosts, hosts)
            for top in tops:
                self._join(leaf, top)


def read(path):
    """The topology that a file describes."""
    reader = _Reader()
    try:
        with open(path, encoding="utf-8") as lines:
            text = lines.read()
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: it is no text: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        try:
            if words:
                reader.read(number, words)
        except Mistake as mistake:
            raise Unreadable(f"{path}:{number}: {mistake}") from mistake
    unfinished = reader.topology.unfinished()
    if unfinished:
        raise Unreadable(f"{path}:{unfinished[0]}: {unfinished[1]}")
    if not reader.topology.nodes:
        raise Unreadable(f"{path}: it describes nothing")
    return reader.topology
