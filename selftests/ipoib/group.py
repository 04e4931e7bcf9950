#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Datagrams to and from groups, on one interface.

group.py listen [--member] [--interface NAME] GROUP PORT
    Print what comes to the port, a line each, as a member of the group or not. Ends with the datagram `end`.
group.py hold [--ipv4] [--interface NAME] NUMBER
    Be a member of that many groups of IPv6, or of IPv4, until killed.
group.py say [--loop] [--interface NAME] ADDRESS PORT TEXT [FILE...]
    Send TEXT to a group, a broadcast or a single address: once, or until all of the files exist.
"""

import argparse
import os
import signal
import socket
import struct
import time

_BETWEEN = 0.1


def _family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _join(sock, group, interface):
    index = socket.if_nametoindex(interface)
    if sock.family == socket.AF_INET6:
        request = socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", index)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)
    else:
        request = socket.inet_aton(group) + bytes(4) + struct.pack("@i", index)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)


def _listen(options):
    with socket.socket(_family(options.group), socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", options.port))
        if options.member:
            _join(sock, options.group, options.interface)
        print("listening", flush=True)
        while (text := sock.recv(65536).decode()) != "end":
            print(text, flush=True)
        print("end", flush=True)


def _hold(options):
    family, form = (socket.AF_INET, "239.77.0.{}") if options.ipv4 else (socket.AF_INET6, "ff05::77:{:x}")
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        for number in range(1, options.number + 1):
            _join(sock, form.format(number), options.interface)
        print("listening", flush=True)
        signal.pause()


def _leave_by(sock, interface, loop):
    """Send groups by that interface, one hop far, and to our own node only if asked to."""
    index = socket.if_nametoindex(interface)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, loop)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, bytes(8) + struct.pack("@i", index))
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, loop)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)


def _say(options):
    with socket.socket(_family(options.address), socket.SOCK_DGRAM) as sock:
        _leave_by(sock, options.interface, options.loop)
        while True:
            sock.sendto(options.text.encode(), (options.address, options.port))
            if all(os.path.exists(file) for file in options.files):
                return
            time.sleep(_BETWEEN)


def main():
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    listen = commands.add_parser("listen")
    listen.add_argument("--member", action="store_true")
    listen.add_argument("group")
    listen.set_defaults(do=_listen)
    hold = commands.add_parser("hold")
    hold.add_argument("--ipv4", action="store_true")
    hold.add_argument("number", type=int)
    hold.set_defaults(do=_hold)
    say = commands.add_parser("say")
    say.add_argument("--loop", action="store_true")
    say.add_argument("address")
    say.set_defaults(do=_say)
    for command in (listen, say):
        command.add_argument("port", type=int)
    for command in (listen, hold, say):
        command.add_argument("--interface", default="ib0")
    say.add_argument("text")
    say.add_argument("files", nargs="*")
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
