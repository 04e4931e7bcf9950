# SPDX-License-Identifier: GPL-2.0-only
"""Change and show the address cache of this network namespace, by the generic netlink family `oxib`.

cache.py WORD...      one request
cache.py -            one request a line, from the standard input; all of them, and the first error at the end

add|replace ADDRESS GID [qpn N] [pkey P] [lifetime S]
del ADDRESS
flush
show [ADDRESS]        address, GID, queue pair or -, source, seconds left or 0; one entry a line
stats [NAME...]       values of those counters, or names and values of all
"""

import ipaddress
import os
import socket
import struct
import sys

NETLINK_GENERIC = 16
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
NETLINK_EXT_ACK, SOL_NETLINK, NLMSGERR_ATTR_MSG = 11, 270, 1

GET, ADD, REPLACE, DEL, FLUSH, STATS = 1, 2, 3, 4, 5, 7
ADDRESS, GID, QPN, PKEY, SOURCE, LIFETIME = 1, 2, 3, 4, 5, 6
SOURCES = {1: "file", 2: "netlink", 3: "sidr", 4: "learned"}
STATISTICS = (
    "entries entries-file entries-netlink entries-sidr entries-learned memory hits misses expired refused"
    " arp-answered nd-answered sidr-sent sidr-answered sidr-refused sidr-timeouts sidr-in-flight sidr-waiting"
    " sidr-served paths path-hits path-misses path-queries path-invalidated router-no-oxib loads"
).split()


def attribute(number, value):
    data = struct.pack("=HH", len(value) + 4, number) + value
    return data + bytes(-len(data) % 4)


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, number = struct.unpack_from("=HH", data)
        found[number & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found


class Cache:
    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        name = attribute(CTRL_ATTR_FAMILY_NAME, b"oxib\0")
        reply = self.ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK, name)[0]
        self.family = struct.unpack("=H", reply[CTRL_ATTR_FAMILY_ID])[0]

    def ask(self, family, command, flags, payload=b""):
        body = struct.pack("=BBH", command, 1, 0) + payload
        header = struct.pack("=IHHII", 16 + len(body), family, NLM_F_REQUEST | flags, 1, 0)
        self.socket.send(header + body)
        replies = []
        while True:
            data = self.socket.recv(1 << 17)
            while data:
                length, kind = struct.unpack_from("=IH", data)
                message, data = data[16:length], data[(length + 3) & ~3 :]
                if kind == NLMSG_DONE:
                    return replies
                if kind == NLMSG_ERROR:
                    error = struct.unpack_from("=i", message)[0]
                    if error:
                        raise OSError(-error, self.text_of(message) or os.strerror(-error))
                    return replies
                replies.append(attributes(message[4:]))

    @staticmethod
    def text_of(message):
        length = struct.unpack_from("=I", message, 4)[0]
        for start in (20, 4 + ((length + 3) & ~3)):
            text = attributes(message[start:]).get(NLMSGERR_ATTR_MSG)
            if text:
                return text.rstrip(b"\0").decode()
        return None

    def request(self, command, payload=b"", flags=NLM_F_ACK):
        return self.ask(self.family, command, flags, payload)


def entry_of(words):
    payload = attribute(ADDRESS, ipaddress.ip_address(words[0]).packed)
    payload += attribute(GID, ipaddress.IPv6Address(words[1]).packed)
    formats = {"qpn": (QPN, "=I"), "pkey": (PKEY, "=H"), "lifetime": (LIFETIME, "=I")}
    for word, value in zip(words[2::2], words[3::2]):
        number, layout = formats[word]
        payload += attribute(number, struct.pack(layout, int(value, 0)))
    return payload


def show(cache, words):
    if words:
        entries = cache.request(GET, attribute(ADDRESS, ipaddress.ip_address(words[0]).packed))
    else:
        entries = cache.request(GET, flags=NLM_F_DUMP)
    for entry in entries:
        qpn = entry.get(QPN)
        source = SOURCES.get(entry[SOURCE][0], "unknown") if SOURCE in entry else "unknown"
        left = struct.unpack("=I", entry[LIFETIME])[0] if LIFETIME in entry else 0
        number = f"{struct.unpack('=I', qpn)[0]:#08x}" if qpn else "-"
        print(ipaddress.ip_address(entry[ADDRESS]), ipaddress.IPv6Address(entry[GID]), number, source, left)


def statistics(cache, words):
    found = cache.request(STATS)[0]
    for number, name in enumerate(STATISTICS, 1):
        value = struct.unpack("=Q", found[number])[0] if number in found else 0
        if not words:
            print(name, value)
        elif name in words:
            print(value)


def run(cache, words):
    word, *rest = words
    if word in ("add", "replace"):
        cache.request(ADD if word == "add" else REPLACE, entry_of(rest))
    elif word == "del":
        cache.request(DEL, attribute(ADDRESS, ipaddress.ip_address(rest[0]).packed))
    elif word == "flush":
        cache.request(FLUSH)
    elif word == "show":
        show(cache, rest)
    elif word == "stats":
        statistics(cache, rest)
    else:
        sys.exit(__doc__)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    cache, error = Cache(), None
    requests = sys.stdin if sys.argv[1:] == ["-"] else [" ".join(sys.argv[1:])]
    for line in requests:
        try:
            if line.split():
                run(cache, line.split())
        except OSError as failure:
            error = error or f"{line.strip()}: {failure.strerror} ({failure.errno})"
    if error:
        sys.exit(error)


main()
