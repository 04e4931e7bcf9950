#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""netlink.py CASE [ARGUMENT...]: one thing that the address cache's netlink family must do; says what it did instead.

Each case begins and ends with an empty cache.
"""

import errno
import random
import re
import socket
import struct
import sys
import time

from family import (
    ABORT, ADD, ADDRESS, COMMIT, DEL, DEL_NTF, FILE, FLUSH, GET, GID, LEARNED_QPN, LIFETIME, LOAD, NETLINK, NEW_NTF, NLM_F_DUMP,
    INTERFACE_GET, INTERFACE_SET, PATH_FLUSH, PATH_RESOLVE, PKEY, PREFIX_LENGTH, QPN, REPLACE, REPLACE_ALL, RESOLVE, SOURCE,
    Family, Refused, attribute, attributes, entry, ip, part, record, subject,
)  # fmt: skip

GOOD = ("10.1.0.1", "fec0:0:0:1::5")


def expect(found: object, expected: object, what: str) -> None:
    if found != expected:
        sys.exit(f"{what}: expected {expected}, found {found}")


def expect_refused(family: Family, command: int, data: bytes, error: int, text: str = "", flags: int = 0) -> Refused:
    try:
        family.ask(command, data, flags)
    except Refused as refused:
        if refused.error != error or not re.search(text, refused.text):
            sys.exit(f"{data.hex()}: expected {errno.errorcode[error]} and {text!r}, found {refused}")
        return refused
    sys.exit(f"{data.hex()}: taken, although {text!r}")


def missing(family: Family) -> None:
    """Each attribute that must be there is named if it is not."""
    address, gid = attribute(ADDRESS, ip(GOOD[0])), attribute(GID, ip(GOOD[1]))
    for command, data, number in [
        (ADD, gid, ADDRESS), (REPLACE, gid, ADDRESS), (ADD, address, GID), (REPLACE, address, GID), (ADD, b"", ADDRESS),
        (DEL, b"", ADDRESS), (GET, b"", ADDRESS), (LOAD, b"", 1), (LOAD, part(None, 0), 1),
        (FLUSH, attribute(PREFIX_LENGTH, b"\x08"), ADDRESS),
    ]:  # fmt: skip
        refused = expect_refused(family, command, data, errno.EINVAL, "missing")
        expect(refused.missing, number, f"missing attribute of command {command}")


def expect_wrong_length(family: Family, command: int, before: bytes, number: int, value: bytes, flags: int = 0) -> None:
    what = f"attribute {number} of command {command} with {len(value)} bytes"
    try:
        family.ask(command, before + attribute(number, value), flags)
    except Refused as refused:
        if refused.error not in (errno.EINVAL, errno.ERANGE) or refused.offset != len(before) or not refused.text:
            sys.exit(f"{what}: {refused}")
    else:
        sys.exit(f"{what} was taken")


def lengths(family: Family) -> None:
    """Values that are shorter or longer than the attribute's are refused, and the attribute is named."""
    good = entry(*GOOD)
    for number, wrong in [
        (ADDRESS, (0, 1, 3, 5, 8, 15, 17, 32)), (GID, (0, 8, 15, 17)), (QPN, (0, 2, 3, 5, 8)), (PKEY, (0, 1, 3, 4)),
        (LIFETIME, (0, 3, 8)), (PREFIX_LENGTH, (0, 2)), (SOURCE, (0, 2)), (LEARNED_QPN, (1, 4)),
    ]:  # fmt: skip
        for length in wrong:
            # What was there before is another attribute's, so the offset tells them apart.
            expect_wrong_length(family, ADD, good, number, bytes([1] * length))
    expect(family.dump(), [], "entries after wrong lengths")


def ranges(family: Family) -> None:
    """Values that no entry can have are refused in words, with the attribute."""
    good = entry(*GOOD)
    u32, u16 = (lambda value: struct.pack("I", value)), (lambda value: struct.pack("H", value))
    for number, value, text in [
        (ADDRESS, ip("0.0.0.0"), "unspecified"), (ADDRESS, ip("0.1.2.3"), "unspecified"), (ADDRESS, ip("::"), "unspecified"),
        (ADDRESS, ip("127.0.0.1"), "loopback"), (ADDRESS, ip("::1"), "loopback"), (ADDRESS, ip("224.0.0.1"), "multicast"),
        (ADDRESS, ip("239.255.255.255"), "multicast"), (ADDRESS, ip("ff02::1"), "multicast"),
        (ADDRESS, ip("255.255.255.255"), "broadcast"), (ADDRESS, ip("::ffff:10.0.0.1"), "IPv4"),
        (GID, bytes(16), "zero"), (GID, ip("::1"), "loopback"), (GID, ip("ff12:401b:ffff::1"), "multicast"),
        (GID, ip("::ffff:224.0.0.1"), "multicast"), (QPN, u32(0), "QPN 0x0"), (QPN, u32(1), "QPN 0x1"),
        (QPN, u32(0x1000000), "QPN 0x1000000"), (QPN, u32(0xFFFFFFFF), "QPN 0xffffffff"), (PKEY, u16(0), "P_Key 0x0000"),
        (PKEY, u16(0x8000), "P_Key 0x8000"), (SOURCE, b"\x02", "source"), (PREFIX_LENGTH, b"\x20", "prefix-length"),
        (LEARNED_QPN, b"", "learned-qpn"),
    ]:  # fmt: skip
        for command in (ADD, REPLACE):
            refused = expect_refused(family, command, good + attribute(number, value), errno.EINVAL, text)
            expect(refused.offset, len(good), f"offset of attribute {number}")
    for number in (9, 10, 11, 12, 100):
        expect_refused(family, ADD, good + attribute(number, bytes(4)), errno.EINVAL)
    network = attribute(ADDRESS, ip("10.0.0.0")) + attribute(PREFIX_LENGTH, b"\x21")
    for command, flags in ((FLUSH, 0), (GET, NLM_F_DUMP)):
        expect_refused(family, command, network, errno.EINVAL, "33 is longer", flags)
        expect_refused(family, command, attribute(SOURCE, b"\x05"), errno.EINVAL, "source 5 is unknown", flags)
    expect(family.dump(), [], "entries after wrong values")


def interfaces(family: Family) -> None:
    """Requests about interfaces and paths: attributes that are missing, too short, too long, out of range; no such interface."""

    def u32(number: int, value: int) -> bytes:
        return attribute(number, struct.pack("I", value))

    dgid, address = attribute(2, ip(GOOD[1])), attribute(4, ip(GOOD[0]))
    # The command, its flags, its attributes with the number of each. Interface 1 is lo.
    requests = [
        (INTERFACE_GET, 0, [(1, u32(1, 1))]), (INTERFACE_SET, 0, [(1, u32(1, 1)), (2, attribute(2, b"\x01"))]),
        (RESOLVE, NLM_F_DUMP, [(5, u32(5, 1)), (4, address)]), (PATH_RESOLVE, NLM_F_DUMP, [(16, u32(16, 1)), (2, dgid)]),
    ]  # fmt: skip
    for command, flags, given in requests:
        whole = b"".join(data for _, data in given)
        expect_refused(family, command, whole, errno.ENODEV, "interface 1 is not one of oxib's", flags)
        for number, data in given:
            others = b"".join(other for _, other in given if other is not data)
            refused = expect_refused(family, command, others, errno.EINVAL, "missing", flags)
            expect(refused.missing, number, f"missing attribute of command {command}")
            for wrong in (data[4:-1], data[4:] + bytes(13), b""):
                expect_wrong_length(family, command, others, number, wrong, flags)
    expect_refused(family, INTERFACE_SET, u32(1, 1) + attribute(2, b"\x03"), errno.EINVAL, "mode 3 is unknown")
    for gid, text in ((bytes(16), "zero"), (ip("::1"), "loopback"), (ip("ff12:401b::1"), "multicast")):
        expect_refused(family, PATH_RESOLVE, u32(16, 1) + attribute(2, gid), errno.EINVAL, text, NLM_F_DUMP)
    # Whoever waits in the request itself holds up all of generic netlink.
    for command in (RESOLVE, PATH_RESOLVE):
        expect_refused(family, command, b"", errno.EOPNOTSUPP)


def limits(family: Family) -> None:
    """The outermost values that an entry can have are taken, and shown as they are."""
    for qpn, pkey, lifetime in [(2, 1, 0xFFFFFFFF), (0xFFFFFF, 0xFFFF, 0), (None, None, None)]:
        family.ask(REPLACE, entry(*GOOD, qpn, pkey, lifetime))
        found = family.get(GOOD[0])
        expect(found[:4] if found else None, (*GOOD, qpn, pkey), "an entry")
        expect(found[4] if found else None, NETLINK, "its source")
    family.ask(REPLACE, entry("fd00::1", "fe80::2:c903:f:a1b1"))
    expect(family.note, "a GID of fe80::/64 does not leave its subnet", "the note of a GID that stays in its subnet")
    family.ask(REPLACE, entry("fe80::1", GOOD[1]))
    expect(family.note, "", "the note of a GID that does not")


def single(family: Family) -> None:
    """Add, replace, delete."""
    family.ask(ADD, entry(*GOOD, 7))
    expect_refused(family, ADD, entry(GOOD[0], "fec0::9"), errno.EEXIST, r"10.1.0.1 has an entry \(netlink\): replace it")
    expect(family.get(GOOD[0]), (*GOOD, 7, None, NETLINK, 0), "the entry")
    family.ask(REPLACE, entry(GOOD[0], "fec0::9"))
    expect(family.get(GOOD[0]), (GOOD[0], "fec0::9", None, None, NETLINK, 0), "the entry that was replaced")
    family.ask(DEL, subject(GOOD[0]))
    expect_refused(family, DEL, subject(GOOD[0]), errno.ENOENT, "10.1.0.1 has no entry")
    expect_refused(family, GET, subject(GOOD[0]), errno.ENOENT, "10.1.0.1 has no entry")
    family.ask(LOAD, part(record(*GOOD), COMMIT))
    for command in (ADD, REPLACE):
        expect_refused(family, command, entry(GOOD[0], "fec0::9"), errno.EEXIST, r"\(file\): change the file")
    expect(family.get(GOOD[0]), (*GOOD, None, None, FILE, 0), "the file's entry")
    family.ask(DEL, subject(GOOD[0]))


def filters(family: Family) -> None:
    """Dumps and flushes of a network, a source, a GID, and of all together."""
    all_of_them = {
        ("10.1.0.1", "fec0::1", NETLINK), ("10.1.2.1", "fec0::2", NETLINK), ("10.2.0.1", "fec0::1", FILE), ("fd00::1", "fec0::1", FILE),
        ("fd00:0:0:1::1", "fec0::2", NETLINK),
    }  # fmt: skip
    for filter_, expected in [
        (b"", all_of_them),
        (subject("10.1.2.1"), {one for one in all_of_them if one[0] == "10.1.2.1"}),
        (subject("10.1.0.0") + attribute(PREFIX_LENGTH, b"\x10"), {one for one in all_of_them if one[0].startswith("10.1.")}),
        (subject("0.0.0.0") + attribute(PREFIX_LENGTH, b"\0"), {one for one in all_of_them if "." in one[0]}),
        (subject("::") + attribute(PREFIX_LENGTH, b"\0"), {one for one in all_of_them if "." not in one[0]}),
        (subject("fd00::") + attribute(PREFIX_LENGTH, b"\x40"), {one for one in all_of_them if one[0] == "fd00::1"}),
        (attribute(SOURCE, bytes([FILE])), {one for one in all_of_them if one[2] == FILE}),
        (attribute(GID, ip("fec0::1")), {one for one in all_of_them if one[1] == "fec0::1"}),
        (attribute(GID, ip("fec0::1")) + attribute(SOURCE, bytes([NETLINK])), {("10.1.0.1", "fec0::1", NETLINK)}),
        (attribute(SOURCE, b"\x04"), set()),
    ]:
        family.ask(LOAD, part(b"".join(record(*one[:2]) for one in all_of_them if one[2] == FILE), COMMIT))
        for one in all_of_them:
            if one[2] == NETLINK:
                family.ask(REPLACE, entry(*one[:2]))
        expect({(one[0], one[1], one[4]) for one in family.dump(filter_)}, expected, f"dump of {filter_.hex()}")
        family.ask(FLUSH, filter_)
        expect({(one[0], one[1], one[4]) for one in family.dump()}, all_of_them - expected, f"flush of {filter_.hex()}")


def many(number: int, first: int, gid: str = "fec0::1") -> list[bytes]:
    """Parts of a load: entries for 10.0.0.0 and so many more, each with a GID whose last bytes are its number."""
    # Made of one of them: to read each address from text takes long in a node.
    one = record("10.0.0.0", f"{gid}:0:0")
    head, middle, tail = one[:12], one[16:28], one[32:]
    found = [head + struct.pack(">I", 10 << 24 | n) + middle + struct.pack(">I", n) + tail for n in range(first, first + number)]
    return [b"".join(found[n : n + 680]) for n in range(0, len(found), 680)]


def load(family: Family) -> None:
    """A load in parts is not seen before it is committed, and then all of it; one that is given up is not seen."""
    for one in many(3000, 1 << 16):
        family.ask(LOAD, part(one))
    expect(family.statistics()["entries"], 0, "entries before the commit")
    family.ask(LOAD, part(None, COMMIT))
    found = family.dump()
    expect((len(found), len(set(found))), (3000, 3000), "entries after the commit")
    expect({one[4] for one in found}, {FILE}, "their sources")
    expect(family.statistics()["loads"] > 0, True, "loads are counted")
    family.ask(LOAD, part(record("10.9.0.1", GOOD[1])))
    family.ask(LOAD, part(None, ABORT))
    family.ask(LOAD, part(None, COMMIT))
    with Family() as other:
        other.ask(LOAD, part(record("10.9.0.2", GOOD[1])))
    family.ask(LOAD, part(None, COMMIT))
    expect(family.dump(subject("10.9.0.0") + attribute(PREFIX_LENGTH, b"\x10")), [], "entries of loads that were given up")
    family.ask(ADD, entry("10.9.0.3", GOOD[1]))
    family.ask(LOAD, part(record("10.1.0.1", "fec0::77") + record("10.9.0.4", GOOD[1]), COMMIT | REPLACE_ALL))
    expect({one[0] for one in family.dump()}, {"10.1.0.1", "10.9.0.3", "10.9.0.4"}, "entries after a load that replaces all")
    family.ask(LOAD, part(None, COMMIT | REPLACE_ALL))
    expect({one[0] for one in family.dump()}, {"10.9.0.3"}, "entries after an empty load that replaces all")


def records(family: Family) -> None:
    """A record that is wrong ends its load, and is named."""
    good = record(*GOOD)
    for wrong, error, text in [
        (record("0.0.0.0", GOOD[1]), errno.EINVAL, "record 2: the address is unspecified"),
        (record("224.0.0.1", GOOD[1]), errno.EINVAL, "record 2: the address is a multicast"),
        (record("127.0.0.1", GOOD[1]), errno.EINVAL, "record 2: the address is a loopback"),
        (record("10.1.0.2", "::"), errno.EINVAL, "record 2: the GID is the reserved"),
        (record("10.1.0.2", "ff12::1"), errno.EINVAL, "record 2: the GID is a multicast"),
        (record("10.1.0.2", GOOD[1], qpn=1), errno.EINVAL, "record 2: QPN 0x1 "),
        (record("10.1.0.2", GOOD[1], qpn=1 << 24), errno.EINVAL, "record 2: QPN 0x1000000 "),
        (record("10.1.0.2", GOOD[1], pkey=0x8000), errno.EINVAL, "record 2: P_Key 0x8000"),
        (record("10.1.0.2", GOOD[1], reserved=(1, 0)), errno.EINVAL, "record 2: a reserved"),
        (record("10.1.0.2", GOOD[1], reserved=(0, 1)), errno.EINVAL, "record 2: a reserved"),
        (good, errno.EEXIST, "records 1 and 2 are of 10.1.0.1"),
    ]:
        # In one message, and in two.
        expect(expect_refused(family, LOAD, part(good + wrong, COMMIT), error, text).offset, 0, "offset of the records")
        family.ask(LOAD, part(good))
        expect_refused(family, LOAD, part(wrong, COMMIT), error, text)
        family.ask(LOAD, part(None, COMMIT))
    for bytes_ in (0, 1, 47, 49, 681 * 48):
        expect_refused(family, LOAD, part(bytes(bytes_)), errno.ERANGE if bytes_ > 680 * 48 else errno.EINVAL)
    for flags in (3, 4, 6, 7, 8, 0x80000001):
        expect_refused(family, LOAD, part(good, flags), errno.EINVAL, "flags")
    expect(family.dump(), [], "entries of loads that were wrong")


def atomic(family: Family) -> None:
    """A load whose record 40,001 is wrong changes nothing, and says so."""
    for one in many(1000, 1 << 20, "fec0::2"):
        family.ask(LOAD, part(one))
    family.ask(LOAD, part(None, COMMIT))
    before = sorted(family.dump())
    for one in many(40_000, 1 << 20):
        family.ask(LOAD, part(one))
    expect_refused(family, LOAD, part(record("10.200.0.1", "ff00::1"), COMMIT | REPLACE_ALL), errno.EINVAL, "record 40001: the GID is a multicast GID")
    expect(sorted(family.dump()), before, "entries after the load that failed")


def changes(family: Family) -> None:
    """A listener hears of each change once, in order, and of nothing else."""
    with Family() as other:
        family.listen()
        other.ask(ADD, entry(*GOOD))
        other.ask(REPLACE, entry(*GOOD, lifetime=1000))  # says nothing else of the address
        other.ask(REPLACE, entry(GOOD[0], "fec0::9", 5))
        other.ask(LOAD, part(record(GOOD[0], "fec0::9", 5), COMMIT))
        other.ask(LOAD, part(record("fd00::1", "fec0::9")))
        other.ask(LOAD, part(None, ABORT))
        other.ask(GET, subject(GOOD[0]))
        other.ask(DEL, subject(GOOD[0]))
        for wrong in (subject(GOOD[0]), b""):
            expect_refused(other, DEL, wrong, errno.EINVAL if not wrong else errno.ENOENT)
    expected = [
        (NEW_NTF, (*GOOD, None, None, NETLINK, 0)), (NEW_NTF, (GOOD[0], "fec0::9", 5, None, NETLINK, 0)),
        (NEW_NTF, (GOOD[0], "fec0::9", 5, None, FILE, 0)), (DEL_NTF, (GOOD[0], "fec0::9", 5, None, FILE, 0)),
    ]  # fmt: skip
    expect(family.heard(2), expected, "what was announced")


def expiry(family: Family) -> None:
    """An entry whose lifetime ends is not found any more, goes, and is announced; one that is renewed stays."""
    family.listen()
    with Family() as other:
        other.ask(ADD, entry("10.1.0.1", "fec0::1", lifetime=2))
        other.ask(ADD, entry("10.1.0.2", "fec0::2", lifetime=2))
        other.ask(ADD, entry("10.1.0.3", "fec0::3"))
        left = other.get("10.1.0.1")
        expect(left is not None and 0 < left[5] <= 2, True, f"seconds that are left of {left}")
        other.ask(REPLACE, entry("10.1.0.2", "fec0::2", lifetime=1000))
        expired = other.statistics()["expired"]
        heard = family.heard(10)
        expect([one[1][0] for one in heard if one[0] == DEL_NTF], ["10.1.0.1"], f"what has gone, of {heard}")
        expect({one[0] for one in other.dump()}, {"10.1.0.2", "10.1.0.3"}, "what is left")
        expect(other.statistics()["expired"] - expired, 1, "entries that ended")


def memory(family: Family) -> None:
    """An entry costs at most 96 bytes, all included, and nothing is left when it has gone."""
    number, empty = 20_000, family.statistics()["memory"]
    for one in many(number, 1 << 20):
        family.ask(LOAD, part(one))
    family.ask(LOAD, part(None, COMMIT))
    found = family.statistics()
    expect(found["entries"], number, "entries")
    each = found["memory"] / number
    print(f"{each:.1f} bytes per entry")
    expect(40 <= each <= 96, True, f"bytes per entry, {each:.1f}")
    family.ask(FLUSH)
    expect(family.statistics()["entries"], 0, "entries after a flush")
    expect(family.statistics()["memory"] < found["memory"] and empty >= 0, True, "memory goes down")


def garbage(family: Family) -> None:
    """Attributes of any form: what is taken is an entry as ever, all else is refused, and the kernel stays."""
    chance = random.Random(20_260_101)
    for _ in range(1000):
        data = b""
        for _ in range(chance.randrange(6)):
            number, length = chance.randrange(18), chance.choice([0, 1, 2, 4, 8, 16, 17, 48, 96])
            data += attribute(number, chance.randbytes(length))
        data = data[: len(data) - chance.choice([0, 0, 1, 3])]
        try:
            family.ask(chance.randrange(17), data, chance.choice([0, 0, NLM_F_DUMP]))
        except Refused as refused:
            # Among them that there is no such interface.
            if refused.error not in (errno.EINVAL, errno.ERANGE, errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.EEXIST):
                sys.exit(f"{data.hex()}: {refused}")
    for one in family.dump():
        expect(one[4] in (FILE, NETLINK), True, f"source of {one}")


def may_read_only(family: Family) -> None:
    """A user that is no administrator may look, and change nothing."""
    family.dump()
    family.statistics()
    for command, data in [
        (ADD, entry(*GOOD)), (REPLACE, entry(*GOOD)), (DEL, subject(GOOD[0])), (FLUSH, b""), (LOAD, part(record(*GOOD), COMMIT)),
        (PATH_FLUSH, b""), (INTERFACE_SET, b""),
    ]:  # fmt: skip
        expect_refused(family, command, data, errno.EPERM)
    for command in (RESOLVE, PATH_RESOLVE):
        expect_refused(family, command, b"", errno.EPERM, flags=NLM_F_DUMP)


def ask_in_silence(family: Family, command: int, request: bytes) -> list[bytes]:
    """The answer to a request that nobody can answer is waited for where it is read: the request has been made by then."""
    begin = time.monotonic()
    family.send(command, request, NLM_F_DUMP, 1)
    sent = time.monotonic()
    try:
        return family.answers()
    finally:
        waited = time.monotonic() - sent
        print(f"command {command}: sent after {sent - begin:.3f} s, answered {waited:.3f} s later")
        expect(waited > 2, True, f"command {command} waited for an answer, {waited:.3f} s")
        expect(sent - begin < waited / 2, True, f"command {command} was sent at once, {sent - begin:.3f} s")


def silence(family: Family, name: str, address: str, gid: str) -> None:
    """The subnet administrator is silent: who waits for it keeps nobody else from generic netlink."""
    index = struct.pack("I", socket.if_nametoindex(name))
    path, way = attribute(16, index) + attribute(2, ip(gid)), attribute(5, index) + attribute(4, ip(address))
    # Who goes away before it has read the answer leaves nothing behind: the module is unloaded later.
    with Family() as other:
        other.send(PATH_RESOLVE, path, NLM_F_DUMP, 1)
    try:
        ask_in_silence(family, PATH_RESOLVE, path)
    except Refused as refused:
        expect((refused.error, "does not answer" in refused.text), (errno.EAGAIN, True), f"the end of a path's dump: {refused}")
    else:
        sys.exit("a path was found")
    answers = [[number for number, _ in attributes(answer)] for answer in ask_in_silence(family, RESOLVE, way)]
    expect(answers, [[4, 5], [1, 2, 2, 2]], "attributes of the request, and of the answer: an entry and three steps")


def add(family: Family, address: str, gid: str) -> None:
    """Adds an entry, which stays."""
    family.ask(ADD, entry(address, gid))


def show(family: Family) -> None:
    """Prints all entries."""
    for one in sorted(family.dump()):
        print(*one)


CASES = [missing, lengths, ranges, interfaces, limits, single, filters, load, records, atomic, changes, expiry, memory, garbage]
OTHERS = [may_read_only, silence, add, show]


def main() -> None:
    name, *arguments = sys.argv[1:]
    with Family() as family:
        for case in OTHERS:
            if case.__name__ == name:
                return case(family, *arguments)
        for case in CASES:
            if case.__name__ == name:
                family.ask(FLUSH)
                case(family)
                with Family() as cleaner:
                    cleaner.ask(FLUSH)
                return None
    sys.exit(f"no such case: {name}")


main()
