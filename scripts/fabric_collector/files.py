# SPDX-License-Identifier: GPL-2.0-only
"""The files: made of ports, read again, merged."""

import ipaddress
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fabric_collector.failure import Failure

# File name endings: the address cache's, a fragment of /etc/hosts, dnsmasq's (dhcp-hostsfile=).
DATA, HOSTS, DNSMASQ = ".data", ".hosts", ".dnsmasq"
ENDINGS = (DATA, HOSTS, DNSMASQ)

# The client identifier that DHCP clients on IPoIB send (RFC 4390, RFC 4361), as iPXE, dracut and NetworkManager make it: no
# IAID, then a DUID of the enterprise 713, which has the port's GUID.
_CLIENT_IDENTIFIER = "ff:00:00:00:00:00:02:00:00:02:c9:00"

_HOST_NAME = re.compile(r"^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$")


@dataclass
class Line:
    """A line of a file, and what in it may be in no other file."""

    place: str
    text: str
    # (what it is, its value), for example ("address", "10.1.0.1").
    keys: list


def client_identifier(guid):
    """A port's, as dnsmasq is told it."""
    return ":".join([_CLIENT_IDENTIFIER, *(f"{byte:02x}" for byte in guid.to_bytes(8, "big"))])


def of_ports(named):
    """The lines of each file, made of (port, name, GID, addresses)."""
    lines = {ending: [] for ending in ENDINGS}
    for port, name, gid, addresses in named:
        for address in addresses:
            lines[DATA].append(f"{address} {gid}  # {name}, {port}")
            lines[HOSTS].append(f"{address}\t{name}")
        first = next((address for address in addresses if address.version == 4), None)
        if first:
            lines[DNSMASQ].append(f"id:{client_identifier(port.guid)},{first},{name}")
    return lines


def check_names(named):
    """Complain of what would make files that contradict themselves."""
    mistakes = []
    owners = {}
    for port, name, _gid, addresses in named:
        if not _HOST_NAME.match(name):
            mistakes.append(f"{port}: '{name}' is no host name; --name and --table can give it another")
        for kind, value in [("name", name), *(("address", address) for address in addresses)]:
            other = owners.setdefault((kind, value), port)
            if other is not port:
                mistakes.append(f"the {kind} {value} is that of two ports: {other} and {port}; {_ADVICE[kind]}")
    if mistakes:
        raise Failure(*mistakes)


_ADVICE = {
    "name": "--name '{host}-{device}' or '{host}-{port}' makes different names",
    "address": "--table tells which of them has it",
}


def write(output, lines, title):
    """Write the files: each is whole, or as it was."""
    for ending in ENDINGS:
        path = Path(f"{output}{ending}")
        text = "\n".join([f"# {title}", *lines[ending]]) + "\n"
        try:
            _replace(path, text)
        except OSError as error:
            raise Failure(f"{path}: {error.strerror}") from error


def _replace(path, text):
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(made, 0o644)
        os.replace(made, path)
    except OSError:
        Path(made).unlink(missing_ok=True)
        raise


def _data_keys(words):
    address, gid = words[:2]
    return [("address", str(ipaddress.ip_address(address))), ("GID", str(ipaddress.IPv6Address(gid)))]


def _hosts_keys(words):
    address, *names = words
    return [("address", str(ipaddress.ip_address(address))), *(("name", name.lower()) for name in names)]


def _dnsmasq_keys(words):
    identifier, address, name = words[0].split(",")
    return [("client", identifier.lower()), ("address", str(ipaddress.ip_address(address))), ("name", name.lower())]


_KEYS = {DATA: _data_keys, HOSTS: _hosts_keys, DNSMASQ: _dnsmasq_keys}


def read(name, ending):
    """The lines of an input's file; what is wrong in it is a failure with its place."""
    path = f"{name}{ending}"
    try:
        with open(path, encoding="utf-8") as file:
            texts = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    lines, mistakes = [], []
    for number, text in enumerate(texts, 1):
        words = text.split("#")[0].split()
        if not words:
            continue
        try:
            lines.append(Line(f"{path}:{number}", text, _KEYS[ending](words)))
        except ValueError:
            mistakes.append(f"{path}:{number}: it is no line that collect-fabric writes: {text.strip()}")
    if mistakes:
        raise Failure(*mistakes)
    return lines


def merge(inputs):
    """The lines of several inputs' files. What one of them has, no other may have; within one it was right already, but for
    addresses, which are there once."""
    merged, mistakes = {}, [f"{name}: it is given twice" for name in _repeated(inputs)]
    for ending in ENDINGS:
        merged[ending] = []
        owners = {}
        for name in inputs:
            try:
                lines = read(name, ending)
            except Failure as failure:
                mistakes += failure.texts
                continue
            for line in lines:
                mistakes += _claim(owners, name, line)
                merged[ending].append(line.text)
    if mistakes:
        raise Failure(*mistakes)
    return merged


def _repeated(inputs):
    seen = set()
    for name in inputs:
        path = Path(f"{name}{DATA}").resolve()
        if path in seen:
            yield name
        seen.add(path)


def _claim(owners, name, line):
    for key in line.keys:
        owner, place = owners.setdefault(key, (name, line.place))
        if place != line.place and (owner != name or key[0] == "address"):
            yield f"{line.place}: the {key[0]} {key[1]} is there already: {place}"
