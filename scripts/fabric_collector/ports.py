# SPDX-License-Identifier: GPL-2.0-only
"""Ports of a subnet: who they are, and by which GID others reach them."""

import ipaddress
from dataclasses import dataclass, field

from fabric_collector import records
from fabric_collector.failure import Failure

LINK_LOCAL = 0xFE80_0000_0000_0000
_GUIDS_IN_BLOCK = 8
_CHANNEL_ADAPTER = "Channel Adapter"


@dataclass
class Port:
    """A port of a channel adapter."""

    guid: int
    lid: int
    number: int
    description: str
    prefix: int = 0
    # GUIDs besides the first, by their index in the port's table.
    aliases: dict = field(default_factory=dict)

    def gid(self, choice):
        """Its GID: that of its own GUID, or of an alias. Routers that compute a host's LID find it by the alias that ends
        with the LID: `auto` takes that one if there is one."""
        guid = self.guid
        if choice != "port":
            fit = [alias for _, alias in sorted(self.aliases.items()) if alias & 0xFFFF == self.lid]
            if fit:
                guid = fit[0]
            elif choice == "alias":
                raise Failure(f"{self}: no alias GUID of it ends with its LID; --gid port takes its own GUID")
        return ipaddress.IPv6Address(self.prefix << 64 | guid)

    @property
    def guids(self):
        """All its GUIDs."""
        return {self.guid, *self.aliases.values()}

    def name(self, template):
        """What the template makes of its node's description, as host names are written."""
        words = [*self.description.split(), "", ""]
        try:
            return template.format(host=words[0], device=words[1], port=self.number).lower()
        except (KeyError, IndexError, ValueError) as error:
            raise Failure(f"--name '{template}': it may have {{host}}, {{device}} and {{port}} in it") from error

    def __str__(self):
        return f"'{self.description}' port {self.number} (GUID {self.guid:#018x}, LID {self.lid})"


def _number(fields, *names):
    for name in names:
        if name in fields:
            try:
                return int(fields[name].split()[0], 0)
            except (IndexError, ValueError) as error:
                raise Failure(f"saquery printed '{fields[name]}' as {name}, which is no number") from error
    raise Failure(f"what saquery printed has no {names[0]}: {fields}")


def _from_node(fields):
    return Port(
        guid=_number(fields, "port_guid"),
        lid=_number(fields, "lid"),
        number=_number(fields, "port_num"),
        description=fields.get("nodedescription", ""),
    )


def of_records(found, link_local):
    """The ports of channel adapters that records tell of, in the order of their GUIDs."""
    ports = [_from_node(fields) for fields in found[records.NODE] if fields.get("node_type") == _CHANNEL_ADAPTER]
    if not ports:
        raise Failure("the subnet administrator knows no channel adapter: is there a subnet manager (`sminfo`)?")
    by_place = {(port.lid, port.number): port for port in ports}
    for fields in found[records.PORT]:
        port = by_place.get((_number(fields, "endportlid"), _number(fields, "portnum")))
        if port:
            port.prefix = _number(fields, "gidprefix", "prefix")
    by_lid = {port.lid: port for port in ports}
    for fields in found[records.GUIDS]:
        port = by_lid.get(_number(fields, "lid"))
        if port:
            _add_aliases(port, fields)
    _check(ports, link_local)
    return sorted(ports, key=lambda port: port.guid)


def _add_aliases(port, fields):
    first = _number(fields, "block") * _GUIDS_IN_BLOCK
    for number in range(_GUIDS_IN_BLOCK):
        guid = _number(fields, f"guid {number}")
        if guid not in (0, port.guid):
            port.aliases[first + number] = guid


def _check(ports, link_local):
    lost = [port for port in ports if not port.prefix]
    if lost:
        raise Failure(*(f"{port}: the subnet administrator does not tell its prefix" for port in lost))
    if ports[0].prefix == LINK_LOCAL and not link_local:
        raise Failure(
            "the subnet has the prefix fe80::/64: its GIDs do not leave it. Give it one of its own, by subnet_prefix in "
            "opensm.conf; --link-local collects these GIDs all the same, for use within the subnet"
        )
