# SPDX-License-Identifier: GPL-2.0-only
"""Addresses of ports: from a table, from a neighbour table of this node, from the resolver. The first that has one is right."""

import ipaddress
import json
import re
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from fabric_collector.failure import Failure

_GUID = re.compile(r"^(0x[0-9a-f]{1,16}|[0-9a-f]{4}(:[0-9a-f]{4}){3})$")
_HARDWARE_ADDRESS_BYTES = 20
# How many addresses are asked for at once; the kernel's neighbour table holds 1024, unless told.
_SWEEP = 256
_SWEEP_SECONDS = 2
_LARGEST_SWEEP = 65536
_DISCARD = 9
# How many lines are named that are of no use.
_SHOWN = 5


def _address(text):
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def usable(address):
    """Whether the cache can have it."""
    return not (address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local)


class Table:
    """A file that the administrator wrote: lines `NAME ADDRESS...` or `GUID ADDRESS...`, with # comments."""

    def __init__(self, path):
        self._path = path
        self._places = {}
        self._addresses = {}
        mistakes = []
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if words:
                mistakes += [f"{path}:{number}: {mistake}" for mistake in self._take(number, *words)]
        if mistakes:
            raise Failure(*mistakes)
        self._unused = set(self._addresses)

    def _take(self, number, key, *texts):
        key = key.lower()
        if _GUID.match(key):
            key = int(key.removeprefix("0x").replace(":", ""), 16)
        if key in self._places:
            yield f"'{key}' is there already: {self._path}:{self._places[key]}"
            return
        if not texts:
            yield "the address is missing: a line is NAME ADDRESS..., or GUID ADDRESS..."
        addresses = [_address(text) for text in texts]
        for text, address in zip(texts, addresses):
            if address is None:
                yield f"'{text}' is not an IP address"
            elif not usable(address):
                yield f"{text} is no address that a node has on this network"
        self._places[key] = number
        self._addresses[key] = addresses

    def find(self, port, name):
        """A port's addresses: by one of its GUIDs, else by its name."""
        for key in (*sorted(port.guids), name):
            if key in self._addresses:
                self._unused.discard(key)
                return self._addresses[key]
        return []

    def unused(self):
        """A text about lines that fit no port, if there are any: a table may be that of all subnets."""
        lines = sorted(self._places[key] for key in self._unused)
        if not lines:
            return None
        shown = ", ".join(str(line) for line in lines[:_SHOWN]) + (", …" if len(lines) > _SHOWN else "")
        return f"{self._path}: {len(lines)} of its lines are about no port of this subnet: {shown}"


class Neighbours:
    """What this node knows of its neighbours on an IPoIB interface, and itself."""

    def __init__(self, interface, sweep):
        self._interface = interface
        self._addresses = {}
        self._own = self._ask("address", "show")
        for link in self._own:
            for own in link.get("addr_info", []):
                self._take(link.get("address", ""), own.get("local", ""))
        self._learn()
        if sweep:
            self._sweep()

    def _ask(self, *words):
        command = ["ip", "-json", *words, "dev", self._interface]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise Failure("there is no ip on this machine: install iproute2") from error
        if done.returncode != 0:
            raise Failure(f"`{' '.join(command)}` failed: {' '.join(done.stderr.split())}")
        return [link for link in json.loads(done.stdout or "[]") if link]

    def _take(self, hardware_address, text):
        parts = hardware_address.split(":")
        address = _address(text)
        if len(parts) == _HARDWARE_ADDRESS_BYTES and address and usable(address):
            known = self._addresses.setdefault(int("".join(parts[-8:]), 16), [])
            if address not in known:
                known.append(address)

    def _learn(self):
        for neighbour in self._ask("neighbour", "show"):
            self._take(neighbour.get("lladdr", ""), neighbour.get("dst", ""))

    def _sweep(self):
        """Have the stack resolve each address of the interface's IPv4 subnets, some at a time."""
        for link in self._own:
            for own in link.get("addr_info", []):
                if own.get("family") == "inet":
                    self._sweep_network(ipaddress.ip_network(f"{own['local']}/{own['prefixlen']}", strict=False))

    def _sweep_network(self, network):
        if network.num_addresses > _LARGEST_SWEEP:
            raise Failure(f"{network} is too large to ask for each of its addresses: use --table or --resolve")
        hosts = list(network.hosts())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.setblocking(False)
            for first in range(0, len(hosts), _SWEEP):
                for host in hosts[first : first + _SWEEP]:
                    try:
                        asking.sendto(b"", (str(host), _DISCARD))
                    except OSError:
                        # Nobody was there a moment ago, or the buffer is full of those.
                        time.sleep(0.01)
                time.sleep(_SWEEP_SECONDS)
                self._learn()

    def find(self, port, _name):
        """A port's addresses."""
        return [address for guid in sorted(port.guids) for address in self._addresses.get(guid, [])]


class Resolver:
    """The host's resolver: all addresses of a name."""

    def __init__(self, names):
        with ThreadPoolExecutor(16) as pool:
            self._addresses = dict(zip(names, pool.map(self._look_up, names)))

    @staticmethod
    def _look_up(name):
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return []
        addresses = {_address(where[4][0]) for where in found}
        return sorted((each for each in addresses if each and usable(each)), key=lambda each: (each.version, each))

    def find(self, _port, name):
        """A name's addresses."""
        return self._addresses.get(name, [])
