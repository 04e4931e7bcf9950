# SPDX-License-Identifier: GPL-2.0-only
"""What an MPI job does among its ranks: a ring, an all-to-all and an all-reduce, of several sizes. Each checks what arrives.

Started by mpirun, a process for each rank. The first rank prints the hosts of all, and a line for each that was right.
"""

import socket
import sys
from array import array

from mpi4py import MPI

_SIZES = (1, 1000, 100_000, 1_000_000)


def _pattern(rank, size):
    """Bytes that tell who sent them and where they were."""
    return bytes((7 * rank + position) & 0xFF for position in range(256)) * (size // 256 + 1)


def ring(world, size):
    """Each rank passes on what it gets, until everybody has had everybody's."""
    mine = bytearray(_pattern(world.rank, size)[:size])
    for distance in range(1, world.size + 1):
        got = bytearray(size)
        world.Sendrecv(mine, (world.rank + 1) % world.size, recvbuf=got, source=(world.rank - 1) % world.size)
        if got != _pattern((world.rank - distance) % world.size, size)[:size]:
            return False
        mine = got
    return True


def all_to_all(world, size):
    """Each rank sends each other one a part of its own."""
    out = bytearray().join(_pattern(world.rank + to, size)[:size] for to in range(world.size))
    got = bytearray(len(out))
    world.Alltoall([out, MPI.BYTE], [got, MPI.BYTE])
    return got == bytearray().join(_pattern(source + world.rank, size)[:size] for source in range(world.size))


def all_reduce(world, size):
    """The sum over all ranks, at each."""
    out = array("q", range(world.rank, world.rank + size // 8 + 1))
    got = array("q", bytes(8 * len(out)))
    world.Allreduce([out, MPI.INT64_T], [got, MPI.INT64_T], MPI.SUM)
    ranks = sum(range(world.size))
    return got == array("q", (world.size * place + ranks for place in range(len(out))))


def main():
    """Do all of them."""
    world = MPI.COMM_WORLD
    hosts = world.gather(socket.gethostname())
    if world.rank == 0:
        print("ranks on", *hosts, flush=True)
    failed = False
    for exchange in (ring, all_to_all, all_reduce):
        for size in _SIZES:
            right = world.allreduce(exchange(world, size), MPI.LAND)
            failed = failed or not right
            if world.rank == 0:
                print("right" if right else "wrong", exchange.__name__, size, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
