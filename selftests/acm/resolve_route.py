#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Have rdma_cm resolve the routes to some addresses, and print where they lead.

resolve_route.py [--time MS] [--port PORT] [--rounds N] [--pause S] [--each] [--start FILE] NUMBER ADDRESS...

Makes NUMBER names (rdma_cm_id) to each address, resolves their addresses, and then their routes: of all at once, or with
--each one after the other. --time is what rdma_resolve_route is given, for all its tries. --rounds does that so many times,
with a pause of so many seconds between. --start waits, before the routes, until FILE exists.

Prints for each round and address "to ADDRESS pkey P_KEY dlid LID number N", or "to ADDRESS error STATUS number N", and with
the microseconds from rdma_resolve_route to its event "each us=N" for each, or "all us=N" until the last one's event. Fails
if a route was not found.
"""

import argparse
import ctypes
import ipaddress
import os
import socket
import struct
import sys
import time
from collections import Counter

# Of rdma/rdma_cma.h: port space, events, and where in struct rdma_cm_event and struct rdma_cm_id something is.
_TCP = 0x0106
_ADDRESS_RESOLVED, _ROUTE_RESOLVED = 0, 2
_EVENT = struct.Struct("@PPii")
_PATH_RECORD = 4 * 8 + 2 * 128 + 40
# Of struct ibv_sa_path_rec: both are in the byte order of the wire.
_DLID, _PKEY = 32, 54

_library = ctypes.CDLL("librdmacm.so.1", use_errno=True)
_library.rdma_create_event_channel.restype = ctypes.c_void_p


def _call(name, *arguments):
    if getattr(_library, name)(*arguments) != 0:
        error = ctypes.get_errno()
        sys.exit(f"{name}: {os.strerror(error)}")


def _socket_address(address, port):
    if ipaddress.ip_address(address).version == 4:
        return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton(address))
    return struct.pack("=H", socket.AF_INET6) + struct.pack("!HI16sI", port, 0, socket.inet_pton(socket.AF_INET6, address), 0)


class _Names:
    """Names that are resolved."""

    def __init__(self, number, addresses, port):
        self.channel = ctypes.c_void_p(_library.rdma_create_event_channel())
        self.peers = {}
        for address in addresses:
            for _ in range(number):
                name = ctypes.c_void_p()
                _call("rdma_create_id", self.channel, ctypes.byref(name), None, _TCP)
                self.peers[name.value] = address
        for name, address in self.peers.items():
            where = _socket_address(address, port)
            _call("rdma_resolve_addr", ctypes.c_void_p(name), None, where, 60_000)
            self._expect(_ADDRESS_RESOLVED)

    def _next(self):
        event = ctypes.c_void_p()
        _call("rdma_get_cm_event", self.channel, ctypes.byref(event))
        name, _, kind, status = _EVENT.unpack(ctypes.string_at(event, _EVENT.size))
        _call("rdma_ack_cm_event", event)
        return name, kind, status

    def _expect(self, wanted):
        _, kind, status = self._next()
        if kind != wanted:
            sys.exit(f"event {kind}, status {status}, instead of {wanted}")

    def _take(self, found):
        name, kind, status = self._next()
        if kind != _ROUTE_RESOLVED:
            found[self.peers[name], f"error {status}"] += 1
            return
        record = ctypes.c_void_p.from_address(name + _PATH_RECORD).value
        pkey, dlid = (int.from_bytes(ctypes.string_at(record + place, 2), "big") for place in (_PKEY, _DLID))
        found[self.peers[name], f"pkey {pkey:#06x} dlid {dlid}"] += 1

    def resolve(self, limit, found):
        """Resolve all routes at once: the microseconds until the last one's event."""
        begin = time.perf_counter_ns()
        for name in self.peers:
            _call("rdma_resolve_route", ctypes.c_void_p(name), limit)
        for _ in self.peers:
            self._take(found)
        return (time.perf_counter_ns() - begin) / 1000

    def resolve_each(self, limit, found):
        """Resolve one after the other: the microseconds of each."""
        for name in self.peers:
            begin = time.perf_counter_ns()
            _call("rdma_resolve_route", ctypes.c_void_p(name), limit)
            self._take(found)
            yield (time.perf_counter_ns() - begin) / 1000

    def close(self):
        """Give them back."""
        for name in self.peers:
            _call("rdma_destroy_id", ctypes.c_void_p(name))
        _library.rdma_destroy_event_channel(self.channel)


def _wait_for(file):
    print("ready", flush=True)
    while not os.path.exists(file):
        time.sleep(0.05)


def _round(options):
    time.sleep(options.pause)
    found = Counter()
    names = _Names(options.number, options.addresses, options.port)
    if options.start:
        _wait_for(options.start)
    if options.each:
        for taken in names.resolve_each(options.time, found):
            print(f"each us={taken:.1f}")
    else:
        print(f"all us={names.resolve(options.time, found):.1f}")
    names.close()
    for (address, how), number in sorted(found.items()):
        print(f"to {address} {how} number {number}", flush=True)
    return all(how.startswith("pkey") for _, how in found)


def main():
    """Do what the arguments say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--time", type=int, default=60_000)
    parser.add_argument("--port", type=int, default=7471)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--start")
    parser.add_argument("number", type=int)
    parser.add_argument("addresses", nargs="+")
    options = parser.parse_args()
    if not all([_round(options) for _ in range(options.rounds)]):
        sys.exit(1)


if __name__ == "__main__":
    main()
