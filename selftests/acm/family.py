# SPDX-License-Identifier: GPL-2.0-only
"""The generic netlink family `oxib`, by hand: requests may have any attributes, wrong ones too."""

import contextlib
import ipaddress
import os
import socket
import struct

NETLINK_GENERIC, GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 0x10, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME, CTRL_ATTR_MCAST_GROUPS = 1, 2, 7
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLM_F_DUMP_INTR, NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x10, 0x100, 0x200
NLMSG_ERROR, NLMSG_DONE = 2, 3
SOL_NETLINK, ADD_MEMBERSHIP, CAP_ACK, EXT_ACK = 270, 1, 10, 11
ERR_MSG, ERR_OFFS, ERR_MISS_TYPE = 1, 2, 5

GET, ADD, REPLACE, DEL, FLUSH, LOAD, STATS = range(1, 8)
RESOLVE, PATH_GET, PATH_FLUSH, INTERFACE_GET, INTERFACE_SET, NEW_NTF, DEL_NTF, PATH_RESOLVE = range(8, 16)
ADDRESS, GID, QPN, PKEY, SOURCE, LIFETIME = range(1, 7)
LEARNED_QPN, PREFIX_LENGTH = 7, 8
ENTRIES, FLAGS = 1, 2
COMMIT, ABORT, REPLACE_ALL = 1, 2, 4
FILE, NETLINK = 1, 2
STATISTICS = {"entries": 1, "file": 2, "netlink": 3, "memory": 6, "expired": 9, "loads": 26}


class Refused(Exception):
    """What the kernel answered: the error's number, its words, where the attribute at fault is, which one is missing."""

    def __init__(self, error: int, text: str, offset: int | None, missing: int | None) -> None:
        super().__init__(f"{os.strerror(error)}: {text} (offset {offset}, missing {missing})")
        self.error, self.text, self.offset, self.missing = error, text, offset, missing


def attribute(number: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("HH", length, number) + value + bytes(-length % 4)


def attributes(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    while len(data) >= 4:
        length, number = struct.unpack_from("HH", data)
        found.append((number & 0x3FFF, data[4:length]))
        data = data[(length + 3) & ~3 :]
    return found


def ip(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def entry(address: str, gid: str, qpn: int | None = None, pkey: int | None = None, lifetime: int | None = None) -> bytes:
    data = attribute(ADDRESS, ip(address)) + attribute(GID, ip(gid))
    if qpn is not None:
        data += attribute(QPN, struct.pack("I", qpn))
    if pkey is not None:
        data += attribute(PKEY, struct.pack("H", pkey))
    if lifetime is not None:
        data += attribute(LIFETIME, struct.pack("I", lifetime))
    return data


def subject(address: str) -> bytes:
    return attribute(ADDRESS, ip(address))


def record(address: str, gid: str, qpn: int = 0, pkey: int = 0, lifetime: int = 0, reserved: tuple[int, int] = (0, 0)) -> bytes:
    packed = ip(address)
    if len(packed) == 4:
        packed = bytes(10) + b"\xff\xff" + packed
    return packed + ip(gid) + struct.pack(">IHHII", qpn, pkey, reserved[0], lifetime, reserved[1])


def part(records: bytes | None, flags: int | None = None) -> bytes:
    data = b"" if records is None else attribute(ENTRIES, records)
    return data + (b"" if flags is None else attribute(FLAGS, struct.pack("I", flags)))


def shown(data: bytes) -> tuple:
    """An entry: address, GID, QPN, P_Key, source, lifetime."""
    found = dict(attributes(data))
    number = {key: int.from_bytes(found[key], "little") if key in found else None for key in (QPN, PKEY, SOURCE, LIFETIME)}
    address, gid = (str(ipaddress.ip_address(found[key])) for key in (ADDRESS, GID))
    return address, gid, number[QPN], number[PKEY], number[SOURCE], number[LIFETIME]


class Family:
    """A socket to the family."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        self.socket.setsockopt(SOL_NETLINK, EXT_ACK, 1)
        self.socket.setsockopt(SOL_NETLINK, CAP_ACK, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.sequence = 0
        self.id, self.groups = GENL_ID_CTRL, {}
        name = attribute(CTRL_ATTR_FAMILY_NAME, b"oxib\0")
        found = dict(attributes(self.ask(CTRL_CMD_GETFAMILY, name, version=2)[0]))
        self.id = struct.unpack("H", found[CTRL_ATTR_FAMILY_ID])[0]
        for _, group in attributes(found[CTRL_ATTR_MCAST_GROUPS]):
            of = dict(attributes(group))
            self.groups[of[1].rstrip(b"\0").decode()] = struct.unpack("I", of[2])[0]

    def __enter__(self) -> "Family":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, command: int, data: bytes, flags: int, version: int) -> None:
        self.sequence += 1
        head = struct.pack("IHHII", 20 + len(data), self.id, NLM_F_REQUEST | NLM_F_ACK | flags, self.sequence, 0)
        self.socket.send(head + struct.pack("BBH", command, version, 0) + data)

    def messages(self) -> list[tuple[int, int, bytes]]:
        data, found = self.socket.recv(1 << 20), []
        while data:
            length, kind, flags = struct.unpack_from("IHH", data)
            found.append((kind, flags, data[16:length]))
            data = data[(length + 3) & ~3 :]
        return found

    def ask(self, command: int, data: bytes = b"", flags: int = 0, version: int = 1) -> list[bytes]:
        """Answers' attributes; the words of a success are in self.note."""
        self.send(command, data, flags, version)
        return self.answers()

    def answers(self) -> list[bytes]:
        """Those to the last request."""
        answers, self.note, self.interrupted = [], "", False
        while True:
            for kind, message_flags, body in self.messages():
                self.interrupted |= bool(message_flags & NLM_F_DUMP_INTR)
                if kind not in (NLMSG_ERROR, NLMSG_DONE):
                    answers.append(body[4:])
                    continue
                self.conclude(kind, message_flags, body)
                return answers

    def conclude(self, kind: int, flags: int, body: bytes) -> None:
        error = -struct.unpack_from("i", body)[0]
        rest = body[4:] if kind == NLMSG_DONE else body[20:] if flags & NLM_F_CAPPED or not error else body[4 + struct.unpack_from("I", body, 4)[0] :]
        said = dict(attributes(rest)) if flags & NLM_F_ACK_TLVS else {}
        self.note = said.get(ERR_MSG, b"").rstrip(b"\0").decode()
        number = {key: struct.unpack("I", said[key])[0] if key in said else None for key in (ERR_OFFS, ERR_MISS_TYPE)}
        if error:
            # Counted from the first attribute.
            offset = None if number[ERR_OFFS] is None else number[ERR_OFFS] - 20
            raise Refused(error, self.note, offset, number[ERR_MISS_TYPE])

    def dump(self, data: bytes = b"") -> list[tuple]:
        return [shown(answer) for answer in self.ask(GET, data, NLM_F_DUMP)]

    def get(self, address: str) -> tuple | None:
        try:
            return shown(self.ask(GET, subject(address))[0])
        except Refused:
            return None

    def statistics(self) -> dict[str, int]:
        found = dict(attributes(self.ask(STATS)[0]))
        return {name: struct.unpack("Q", found[number])[0] for name, number in STATISTICS.items()}

    def listen(self) -> None:
        self.socket.setsockopt(SOL_NETLINK, ADD_MEMBERSHIP, self.groups["changes"])

    def heard(self, seconds: float) -> list[tuple[int, tuple]]:
        """What is announced, until nothing is for so long."""
        self.socket.settimeout(seconds)
        found = []
        with contextlib.suppress(TimeoutError):
            while True:
                found += [(body[0], shown(body[4:])) for _, _, body in self.messages()]
        self.socket.settimeout(None)
        return found
