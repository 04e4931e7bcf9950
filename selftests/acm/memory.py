#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""memory.py SAMPLES: requests of which one allocation fails, spread evenly over all of them, and more of them until one is noticed:
each does all that it asks for, or nothing and says so.
"""

import errno
import sys
from collections.abc import Callable

from fail_nth import NEVER, FailNth, fail_some
from family import ADD, COMMIT, FLUSH, LOAD, REPLACE, REPLACE_ALL, Family, Refused, entry, part, record

REFUSALS = (errno.ENOMEM, errno.ENOBUFS)


class Failure(Exception):
    """What a request did that it may not do."""


def addresses(first: int, number: int, gid: str) -> bytes:
    return b"".join(record(f"10.1.{n >> 8}.{n & 255}", gid) for n in range(first, first + number))


def prepare(family: Family) -> None:
    """What is there before: 200 entries of files, 20 of netlink; a load of two parts is under way that replaces half of both."""
    family.ask(FLUSH)
    family.ask(LOAD, part(addresses(1, 200, "fec0::1"), COMMIT))
    for n in range(1000, 1020):
        family.ask(ADD, entry(f"10.1.{n >> 8}.{n & 255}", "fec0::2"))
    family.ask(LOAD, part(addresses(100, 200, "fec0::3")))
    family.ask(LOAD, part(addresses(1010, 20, "fec0::3")))


def commit(family: Family, flags: int) -> None:
    family.ask(LOAD, part(addresses(2000, 100, "fec0::4"), flags))


REQUESTS: dict[str, Callable[[Family], None]] = {
    "commit": lambda family: commit(family, COMMIT),
    "commit that replaces all": lambda family: commit(family, COMMIT | REPLACE_ALL),
    "add": lambda family: family.ask(ADD, entry("10.2.0.1", "fec0::5")) and None,
    "replace": lambda family: family.ask(REPLACE, entry("10.1.3.232", "fec0::5")) and None,
    "flush": lambda family: family.ask(FLUSH) and None,
}


def attempt(family: Family, fail: FailNth, request: Callable[[Family], None], number: int) -> tuple[bool, int]:
    """Whether it was done, and how many allocations were left."""
    prepare(family)
    fail.set(number)
    try:
        request(family)
    except Refused as refused:
        if refused.error not in REFUSALS:
            raise
        done = False
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        done = False
    else:
        done = True
    finally:
        left = fail.left()
        fail.set(0)
    return done, left


def expected(fail: FailNth, request: Callable[[Family], None]) -> tuple[list, list, int]:
    """The entries before the request and after it, and its number of allocations, when none fails."""
    with Family() as family:
        prepare(family)
        before = sorted(family.dump())
    # A socket of its own: the load that is under way goes with the one before.
    with Family() as family:
        done, left = attempt(family, fail, request, NEVER)
        after = sorted(family.dump())
    if not done or after == before:
        raise Failure("it fails although all memory is there")
    return before, after, NEVER - left


def all_or_nothing(fail: FailNth, request: Callable[[Family], None], samples: int) -> str:
    """Fail allocations of the request; returns how many, and how many of these it noticed."""
    before, after, total = expected(fail, request)
    refused: list[int] = []

    def fail_one(number: int) -> None:
        # An answer may be lost with its memory: a socket of its own, so that none is taken for a later request's.
        with Family() as family:
            done, _ = attempt(family, fail, request, number)
        with Family() as family:
            found = sorted(family.dump())
        if not done:
            refused.append(number)
        if found not in (before, after) or (done and found != after):
            raise Failure(f"allocation {number} of {total} fails, done {done}: {len(found)} entries, neither as before nor as after")

    tried = fail_some(total, samples, fail_one, lambda: bool(refused))
    if not refused:
        raise Failure(f"none of {total} allocations that fail is noticed")
    return f"{tried} of {total} allocations failed, refused {len(refused)} times"


def main() -> None:
    samples, fail = int(sys.argv[1]), FailNth()
    for name, request in REQUESTS.items():
        try:
            print(f"{name}: {all_or_nothing(fail, request, samples)}")
        except Failure as failure:
            sys.exit(f"{name}: {failure}")
    with Family() as family:
        family.ask(FLUSH)


main()
