#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Be the subnet administrator (SA) of a subnet whose subnet manager is gone, until killed; answer as one should not.

sa.py DEVICE CABLE FILE    DEVICE is ib_umad's of the port that was the manager's, CABLE the net device of its cable

FILE has a line for each thing known, and is read again for each question:

    port GID LID              a path to GID leads to LID
    group MGID LID            that group has LID
    mlid LID                  of all other groups
    own LID                   of the SA's own port
    limited GID               the port at GID is a limited member of its partitions: it has no path to another one, nor to itself
    ask GID HOW [NUMBER]      what is asked about GID (a path there, that group) is answered so: see `Answers` and
                              _DELIVERIES

Questions about others are answered as they should be. It prints what it is asked: `path GID`, `join GID`, `leave GID`.
"""

import ipaddress
import struct
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "fabric"))
import packets  # noqa: E402 # pylint: disable=wrong-import-position
import umad  # noqa: E402 # pylint: disable=wrong-import-position

# IBTA 15.2.1: the class and its version; methods, attributes.
_CLASS, _VERSION = 0x03, 2
_GET, _SET, _DELETE, _RESPONSE = 0x01, 0x02, 0x15, 0x80
_PATH, _GROUP = 0x35, 0x38
# A MAD of that class: the header, RMPP, SM_Key, offset, component mask, and the record.
_MAD = struct.Struct(">BBBBHHQHHI12s8sHHQ200s")
# PathRecord (IBTA 15.2.5.16): service ID, DGID, SGID, DLID, SLID, flow label and hop limit, traffic class, paths, P_Key, SL,
# MTU, rate, life time, preference.
_PATH_RECORD = struct.Struct(">Q16s16sHHIBBHHBBBB6x")
# MCMemberRecord (15.2.5.17): MGID, port's GID, Q_Key, MLID, MTU, traffic class, P_Key, rate, life time, SL with flow label and
# hop limit, scope and join state, proxy.
_GROUP_RECORD = struct.Struct(">16s16sIHBBHBBIBB2x")
# The component of a path that is its end, by the GID. Without it the end is the port with the LID.
_DGID = 1 << 2
_EXACTLY = 2 << 6
_RATE, _LIFE = 3, 14
_QKEY = 0x0B1B
_MTU = 4


class Mad:
    """A question, or what becomes of it."""

    def __init__(self, data):
        (self.base, self.of_class, self.version, self.method, self.status, _, self.tid, self.attribute, _, self.modifier,
         self.rmpp, self.key, self.offset, _, self.mask, self.record) = _MAD.unpack(data)

    def bytes(self):
        """As it is sent."""
        return _MAD.pack(self.base, self.of_class, self.version, self.method, self.status, 0, self.tid, self.attribute, 0,
                         self.modifier, self.rmpp, self.key, self.offset, 0, self.mask, self.record)


class Subnet:
    """What the file says."""

    def __init__(self, path):
        # LIDs of ports and of groups.
        self.ports, self.limited, self.hows, self.mlid, self.own = {}, set(), {}, 0xC000, 1
        for line in Path(path).read_text(encoding="ascii").splitlines():
            what, *words = line.split()
            if what in ("port", "group"):
                self.ports[ipaddress.IPv6Address(words[0]).packed] = int(words[1], 0)
            elif what == "limited":
                self.limited.add(ipaddress.IPv6Address(words[0]).packed)
            elif what == "ask":
                self.hows[ipaddress.IPv6Address(words[0]).packed] = words[1], int((words + ["0"])[2], 0)
            else:
                setattr(self, what, int(words[0], 0))

    def end(self, mad):
        """The GID to which a path is asked for, zero if there is none."""
        values = _PATH_RECORD.unpack(mad.record[: _PATH_RECORD.size])
        if mad.mask & _DGID:
            return values[1]
        return next((gid for gid, lid in self.ports.items() if lid == values[3]), bytes(16))

    def path(self, end, record):
        """The record of the path to `end` that is asked for; None if there is none."""
        values = list(_PATH_RECORD.unpack(record[: _PATH_RECORD.size]))
        values[1] = end
        if values[1] not in self.ports or values[2] not in self.ports or {values[1], values[2]} <= self.limited:
            return None
        values[3], values[4] = self.ports[values[1]], self.ports[values[2]]
        values[7] = 0x80 | 1
        values[10:13] = _EXACTLY | _MTU, _EXACTLY | _RATE, _EXACTLY | _LIFE
        return values

    def group(self, record):
        """The record of the group that is joined or left."""
        values = list(_GROUP_RECORD.unpack(record[: _GROUP_RECORD.size]))
        values[2] = values[2] or _QKEY
        values[3] = self.ports.get(values[0], self.mlid)
        values[4] = values[4] or _EXACTLY | _MTU
        values[7] = values[7] or _EXACTLY | _RATE
        values[8] = _EXACTLY | _LIFE
        values[10] = 2 << 4 | values[10] & 0x0F
        return values


def _other(gid):
    return gid[:8] + bytes(byte ^ 0x55 for byte in gid[8:])


class Answers:
    """What can be done with a good answer: each method is a HOW, which changes it or says when it goes."""

    @staticmethod
    def good(_mad, _values, _number):
        """As it should be."""

    @staticmethod
    def status(mad, _values, number):
        """With a status that says no, and yet with all that was asked for."""
        mad.status = number

    @staticmethod
    def mask(mad, _values, number):
        """With a component mask of its own."""
        mad.mask = number

    @staticmethod
    def method(mad, _values, number):
        """By another method."""
        mad.method = number

    @staticmethod
    def tid(mad, _values, number):
        """To another question."""
        mad.tid ^= number or 1

    @staticmethod
    def first_gid(_mad, values, _number):
        """About another port or group."""
        place = 1 if len(values) == 14 else 0
        values[place] = _other(values[place])

    @staticmethod
    def second_gid(_mad, values, _number):
        """Of another port than who asks."""
        place = 2 if len(values) == 14 else 1
        values[place] = _other(values[place])

    @staticmethod
    def scope(_mad, values, _number):
        """A group of the same name in another scope."""
        values[0] = bytes([values[0][0], values[0][1] & 0xF0 | 0x0E]) + values[0][2:]

    @staticmethod
    def pkey(_mad, values, number):
        """In another partition."""
        values[8 if len(values) == 14 else 6] = number

    @staticmethod
    def lid(_mad, values, number):
        """With another LID."""
        values[3] = number

    @staticmethod
    def qkey(_mad, values, number):
        """With another Q_Key."""
        values[2] = number

    @staticmethod
    def mtu(_mad, values, number):
        """With another MTU, encoded."""
        values[10 if len(values) == 14 else 4] = _EXACTLY | number

    @staticmethod
    def zeros(_mad, values, number):
        """A record of which nothing but the first so many fields is filled in."""
        values[number:] = [bytes(16) if isinstance(value, bytes) else 0 for value in values[number:]]


# In these the answer is good; when, how and how often it goes is another matter.
_DELIVERIES = {"never", "late", "twice", "short", "cable", "attribute"}


class Administrator:
    """The port, and what is still to be answered."""

    def __init__(self, device, cable, path):
        file = open(device, "r+b", buffering=0)
        self._agent = umad.Agent(file, umad.GENERAL_SERVICES, _CLASS, _VERSION, (_GET, _SET, _DELETE))
        self._cable = cable
        self._path = path
        self._late = []

    def run(self):
        """Answer until killed."""
        while True:
            error, sender, data = self._agent.receive()
            # What comes back of our own was not delivered.
            if error == 0:
                self._asked(sender, Mad(data), Subnet(self._path))

    def _asked(self, sender, mad, subnet):
        about, values = self._good(mad, subnet)
        how, number = subnet.hows.get(about, ("good", 0))
        if how not in ("late", "never"):
            self._answer_late(subnet)
        print({_GET: "path", _SET: "join", _DELETE: "leave"}[mad.method], ipaddress.IPv6Address(about), how, flush=True)
        mad.method |= _RESPONSE
        if values is None:
            # No records (IBTA 15.2.4).
            mad.status = 0x0300
        elif mad.method != _DELETE | _RESPONSE and how not in _DELIVERIES:
            getattr(Answers, how)(mad, values, number)
        if values is not None:
            form = _PATH_RECORD if len(values) == 14 else _GROUP_RECORD
            mad.record = form.pack(*values).ljust(200, b"\0")
            if how == "attribute":
                # It is the answer to a question about the other kind of record, as if it had come here.
                mad.attribute ^= _PATH ^ _GROUP
                mad.record = mad.record[16:] + bytes(16)
        self._deliver(sender, mad, about, (how, number), subnet)

    def _deliver(self, sender, mad, about, how, subnet):
        how, number = how if mad.method != _DELETE | _RESPONSE else ("good", 0)
        if how == "late":
            self._late.append((sender, mad.bytes(), about))
        elif how == "cable":
            self._by_cable(sender, mad.bytes()[:number], subnet)
        elif how != "never":
            data = mad.bytes()
            for _ in range(2 if how == "twice" else 1):
                self._send(sender, data[:number] if how == "short" else data)

    @staticmethod
    def _good(mad, subnet):
        if mad.attribute == _PATH and mad.method == _GET:
            end = subnet.end(mad)
            return end, subnet.path(end, mad.record)
        if mad.attribute == _GROUP and mad.method in (_SET, _DELETE):
            return mad.record[:16], subnet.group(mad.record)
        return bytes(16), None

    def _answer_late(self, subnet):
        """What was kept, as soon as something else is asked and it is to be late no more."""
        for item in [item for item in self._late if subnet.hows.get(item[2], ("good",))[0] != "late"]:
            self._late.remove(item)
            print("late", ipaddress.IPv6Address(item[2]), flush=True)
            self._send(*item[:2])

    def _send(self, sender, data):
        to = sender._replace(qkey=packets.QP1_QKEY)
        for _ in range(100):
            try:
                self._agent.send(data, to)
                return
            except OSError:
                # The same is on its way yet.
                time.sleep(0.02)

    def _by_cable(self, sender, data, subnet):
        """A packet that the port's own management would not send."""
        pad = -len(data) % 4
        transport = packets.bth(packets.UD_SEND_ONLY, sender.queue_pair, pad=pad)
        frame = packets.whole(sender.lid, subnet.own, transport + packets.deth() + data + bytes(pad))
        packets.put_on_cable(self._cable, [frame])


def main():
    """Begin."""
    administrator = Administrator(*sys.argv[1:4])
    print("ready", flush=True)
    administrator.run()


if __name__ == "__main__":
    main()
