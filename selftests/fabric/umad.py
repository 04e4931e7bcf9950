# SPDX-License-Identifier: GPL-2.0-only
"""Management datagrams (MADs) of a program, by a device of ib_umad: agents, what they send and receive, questions and answers."""

import fcntl
import struct
from typing import NamedTuple

SUBNET_MANAGEMENT, GENERAL_SERVICES = 0, 1
PERMISSIVE_LID = 0xFFFF
LENGTH = 256
# struct ib_user_mad_hdr and struct ib_user_mad_reg_req2 of the kernel.
_HEADER = struct.Struct("=IIIII4s4s2sBBBBBB16s4sH6x")
_REQUEST = struct.Struct("=IIBB2xI16sIB3x")
_REGISTER_AGENT = 3 << 30 | _REQUEST.size << 16 | 0x1B << 8 | 4
# In the header of each MAD; the bit above the status of one with a directed route says that it is an answer.
_STATUS, _STATUS_MASK = slice(4, 6), 0x7FFF


class Unanswered(Exception):
    """A question without an answer, or with one that says no."""


class Address(NamedTuple):
    """The queue pair that a MAD goes to or comes from."""

    lid: int
    queue_pair: int = 0
    qkey: int = 0
    service_level: int = 0
    pkey_index: int = 0


class Agent:
    """An agent for a class of MADs, which gets the requests of these methods."""

    def __init__(self, file, queue_pair, of_class, version, methods=()):
        self._file = file
        mask = sum(1 << method for method in methods).to_bytes(16, "little")
        request = _REQUEST.pack(0, queue_pair, of_class, version, 0, mask, 0, 0)
        self._number = _REQUEST.unpack(fcntl.ioctl(file, _REGISTER_AGENT, request))[0]

    def send(self, data, to, timeout_ms=0, retries=0):
        """Sends a MAD. With a timeout an answer is awaited."""
        header = _HEADER.pack(self._number, 0, timeout_ms, retries, 0, to.queue_pair.to_bytes(4, "big"), to.qkey.to_bytes(4, "big"),
                              to.lid.to_bytes(2, "big"), to.service_level, 0, 0, 0, 0, 0, bytes(16), bytes(4), to.pkey_index)
        self._file.write(header + data)

    def receive(self):
        """Receives a MAD; returns the error with which it came back, or 0, its sender and its data."""
        message = self._file.read(_HEADER.size + LENGTH)
        header = _HEADER.unpack(message[: _HEADER.size])
        queue_pair, qkey, lid = (int.from_bytes(header[place], "big") for place in (5, 6, 7))
        return header[1], Address(lid, queue_pair, qkey, header[8], header[16]), message[_HEADER.size :]

    def ask(self, data, to, timeout_ms, retries):
        """Sends a question and returns the answer."""
        self.send(data, to, timeout_ms, retries)
        error, _, answer = self.receive()
        status = int.from_bytes(answer[_STATUS], "big") & _STATUS_MASK
        if error or status:
            raise Unanswered(f"error {error}, status {status:#x}")
        return answer
