# SPDX-License-Identifier: GPL-2.0-only
"""The command line; see scripts/collect-fabric."""

import argparse
import ipaddress
import sys

from fabric_collector import files
from fabric_collector import ports
from fabric_collector import records
from fabric_collector.addresses import Neighbours
from fabric_collector.addresses import Resolver
from fabric_collector.addresses import Table
from fabric_collector.failure import Failure
from fabric_collector.failure import warn


def _saquery_options(options):
    words = ["-C", options.ca] if options.ca else []
    return words + (["-P", str(options.port)] if options.port else [])


def _sources(options, names):
    """The sources that are asked for addresses, in this order; the table by itself, as it may have lines that nobody asks for."""
    table = Table(options.table) if options.table else None
    sources = [table] if table else []
    if options.neighbours:
        sources.append(Neighbours(options.neighbours, options.sweep))
    if options.resolve:
        sources.append(Resolver(names))
    if not sources:
        raise Failure("where shall addresses come from? Give --table FILE, --neighbours INTERFACE or --resolve")
    return table, sources


def _addresses_of(port, name, sources, within):
    """From the first source that has any."""
    for source in sources:
        found = source.find(port, name)
        if within and not isinstance(source, Table):
            found = [address for address in found if any(address in network for network in within)]
        if found:
            return found
    return []


def _collect(options):
    found = records.read(options.records) if options.records else records.query(_saquery_options(options))
    all_ports = ports.of_records(found, options.link_local)
    names = [port.name(options.name) for port in all_ports]
    table, sources = _sources(options, sorted(set(names)))
    named, without = [], []
    for port, name in zip(all_ports, names):
        addresses = _addresses_of(port, name, sources, options.within)
        if addresses:
            named.append((port, name, port.gid(options.gid), addresses))
        else:
            without.append(f"{port}: no address of it is known: it is left out")
    if without and options.strict:
        raise Failure(*without)
    for text in without:
        warn(text)
    if table and table.unused():
        warn(table.unused())
    files.check_names(named)
    prefix = ipaddress.IPv6Network((all_ports[0].prefix << 64, 64))
    title = f"The subnet {prefix}: {len(named)} of {len(all_ports)} ports. Made by collect-fabric."
    files.write(options.output, files.of_ports(named), title)
    print(f"{options.output}: {len(named)} of {len(all_ports)} ports of {prefix}")


def _merge(options):
    merged = files.merge(options.inputs)
    files.write(options.output, merged, f"Merged by collect-fabric: {', '.join(options.inputs)}.")
    print(f"{options.output}: {len(merged[files.DATA])} addresses of {len(options.inputs)} subnets")


def _parse():
    parser = argparse.ArgumentParser(
        prog="collect-fabric", description="Collect the GIDs and addresses of a fabric's nodes, for oxib's address cache."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    collect = commands.add_parser("collect", help="one subnet, seen from one of its nodes")
    collect.set_defaults(function=_collect)
    collect.add_argument("output", metavar="OUTPUT", help="writes OUTPUT.data, OUTPUT.hosts and OUTPUT.dnsmasq")
    collect.add_argument("--ca", metavar="NAME", help="ask the subnet manager through this RDMA device")
    collect.add_argument("--port", type=int, metavar="N", help="through this port of the device")
    collect.add_argument("--records", action="append", metavar="FILE", help="read what saquery NR, PIR and GIR printed, instead of asking; may be repeated")
    collect.add_argument("--table", metavar="FILE", help="addresses: lines NAME ADDRESS... or GUID ADDRESS... of a file")
    collect.add_argument("--neighbours", metavar="INTERFACE", help="addresses: the neighbour table of this node's INTERFACE, and its own addresses")
    collect.add_argument("--sweep", action="store_true", help="with --neighbours: first resolve each address of the interface's IPv4 subnets")
    collect.add_argument("--resolve", action="store_true", help="addresses: those that the host's resolver has for the nodes' names")
    collect.add_argument(
        "--within", action="append", type=ipaddress.ip_network, metavar="PREFIX", help="with --neighbours and --resolve: take only addresses within PREFIX"
    )
    collect.add_argument(
        "--name",
        default="{host}",
        metavar="TEMPLATE",
        help="a port's name, out of {host} and {device}, the first words of its node's description, and {port} (default: {host})",
    )
    collect.add_argument(
        "--gid", choices=("auto", "port", "alias"), default="auto", help="the GID to take: that of the port's GUID, or of the alias GUID that ends with its LID"
    )
    collect.add_argument("--link-local", action="store_true", help="take GIDs of fe80::/64, which are not valid outside the subnet")
    collect.add_argument("--strict", action="store_true", help="fail if a port has no known address, instead of leaving it out")
    merge = commands.add_parser("merge", help="several subnets into one")
    merge.set_defaults(function=_merge)
    merge.add_argument("inputs", nargs="+", metavar="INPUT", help="an OUTPUT of `collect`")
    merge.add_argument("--output", required=True, metavar="OUTPUT", help="writes OUTPUT.data, OUTPUT.hosts and OUTPUT.dnsmasq")
    return parser.parse_args()


def main():
    """Do what the command line says."""
    options = _parse()
    try:
        options.function(options)
    except Failure as failure:
        for text in failure.texts:
            print(f"collect-fabric: {text}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
