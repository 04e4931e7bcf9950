# SPDX-License-Identifier: GPL-2.0-only
"""Connections step by step, through librdmacm. They have no queue pairs: their numbers are only said."""

import ctypes
import os
import select
import socket
import struct
from enum import IntEnum

from patience import PATIENCE

_LIBRARY = ctypes.CDLL("librdmacm.so.1", use_errno=True)


class Event(IntEnum):
    """enum rdma_cm_event_type."""

    ADDR_RESOLVED = 0
    ADDR_ERROR = 1
    ROUTE_RESOLVED = 2
    ROUTE_ERROR = 3
    CONNECT_REQUEST = 4
    CONNECT_RESPONSE = 5
    CONNECT_ERROR = 6
    UNREACHABLE = 7
    REJECTED = 8
    ESTABLISHED = 9
    DISCONNECTED = 10
    DEVICE_REMOVAL = 11
    TIMEWAIT_EXIT = 15


class Space(IntEnum):
    """enum rdma_port_space: connections, and datagrams."""

    TCP = 0x0106
    UDP = 0x0111


# Of an id, what librdmacm calls its options: level and number.
_ACK_TIMEOUT = (0, 3)
# Milliseconds for an address or a route to be resolved, unless the caller says otherwise.
_RESOLVE = 1000 * PATIENCE


class _Parameters(ctypes.Structure):
    """struct rdma_conn_param."""

    _fields_ = [
        ("private_data", ctypes.c_void_p),
        ("private_data_len", ctypes.c_uint8),
        ("responder_resources", ctypes.c_uint8),
        ("initiator_depth", ctypes.c_uint8),
        ("flow_control", ctypes.c_uint8),
        ("retry_count", ctypes.c_uint8),
        ("rnr_retry_count", ctypes.c_uint8),
        ("srq", ctypes.c_uint8),
        ("qp_num", ctypes.c_uint32),
    ]


class _Happened(ctypes.Structure):
    """struct rdma_cm_event. Of the union at its end only what both of its members begin with: the private data."""

    _fields_ = [
        ("id", ctypes.c_void_p),
        ("listen_id", ctypes.c_void_p),
        ("event", ctypes.c_int),
        ("status", ctypes.c_int),
        ("parameters", _Parameters),
    ]


_CALLS = {
    "rdma_create_event_channel": (ctypes.c_void_p, []),
    "rdma_create_id": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_int]),
    "rdma_bind_addr": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]),
    "rdma_resolve_addr": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]),
    "rdma_resolve_route": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "rdma_listen": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
    "rdma_connect": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(_Parameters)]),
    "rdma_establish": (ctypes.c_int, [ctypes.c_void_p]),
    "rdma_accept": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(_Parameters)]),
    "rdma_reject": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint8]),
    "rdma_disconnect": (ctypes.c_int, [ctypes.c_void_p]),
    "rdma_set_option": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t],
    ),
    "rdma_destroy_id": (ctypes.c_int, [ctypes.c_void_p]),
    "rdma_get_cm_event": (ctypes.c_int, [ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(_Happened))]),
    "rdma_ack_cm_event": (ctypes.c_int, [ctypes.POINTER(_Happened)]),
}
for _name, (_result, _arguments) in _CALLS.items():
    getattr(_LIBRARY, _name).restype = _result
    getattr(_LIBRARY, _name).argtypes = _arguments


def _call(name, *arguments):
    if getattr(_LIBRARY, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


# What an address begins with that is a GID: it is one of AF_IB, which needs no interface with an IP address.
GID = "gid "
_AF_IB = 27


def _address(host, port):
    """A sockaddr."""
    if host.startswith(GID):
        gid = socket.inet_pton(socket.AF_INET6, host.removeprefix(GID))
        service, mask = Space.TCP << 16 | port, 0xFFFFFFFFFFFF0000 | (0xFFFF if port else 0)
        return struct.pack("=H", _AF_IB) + struct.pack("!HI16sQQ", 0xFFFF, 0, gid, service, mask) + bytes(8)
    if ":" in host:
        return struct.pack("=H", socket.AF_INET6) + struct.pack("!HI", port, 0) + socket.inet_pton(
            socket.AF_INET6, host
        ) + bytes(4)
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(host) + bytes(8)


class Channel:
    """Where the events of its connections arrive."""

    def __init__(self):
        self._channel = _LIBRARY.rdma_create_event_channel()
        if not self._channel:
            raise OSError(ctypes.get_errno(), "rdma_create_event_channel failed: is rdma_ucm loaded?")
        self._descriptor = ctypes.cast(self._channel, ctypes.POINTER(ctypes.c_int))[0]

    def fileno(self):
        """To wait for events of several."""
        return self._descriptor

    def create(self, space=Space.TCP):
        """A new connection or listener."""
        id_ = ctypes.c_void_p()
        _call("rdma_create_id", self._channel, ctypes.byref(id_), None, space)
        return Connection(id_.value)

    def next(self, timeout):
        """(event, status, private data, connection it came with) of the next event, or None when the time is over."""
        if not select.select([self], [], [], timeout)[0]:
            return None
        happened = ctypes.POINTER(_Happened)()
        _call("rdma_get_cm_event", self._channel, ctypes.byref(happened))
        what = happened.contents
        length = what.parameters.private_data_len
        data = ctypes.string_at(what.parameters.private_data, length) if what.parameters.private_data and length else b""
        depths = (what.parameters.responder_resources, what.parameters.initiator_depth)
        result = (Event(what.event), what.status, data, Connection(what.id, what.parameters.qp_num, depths))
        _call("rdma_ack_cm_event", happened)
        return result


class Connection:
    """An id of librdmacm."""

    def __init__(self, id_, peer_qpn=0, depths=(0, 0)):
        self._id = id_
        # In the event of a request, the number of the queue pair that it is for.
        self.peer_qpn = peer_qpn
        # In the event of a request for a connection, the responder resources and the initiator depth that are offered.
        self.depths = depths

    @property
    def key(self):
        """What tells it from others, as long as it is there."""
        return self._id

    def resolve(self, source, destination, timeout=_RESOLVE):
        """Find the way; each is (host, port). Answered by ADDR_RESOLVED."""
        _call("rdma_resolve_addr", self._id, _address(*source), _address(*destination), timeout)

    def set_ack_timeout(self, exponent):
        """Say, before it is resolved, how long its packets may take; a closed connection rests for as long."""
        value = ctypes.c_uint8(exponent)
        _call("rdma_set_option", self._id, *_ACK_TIMEOUT, ctypes.byref(value), 1)

    def resolve_route(self, timeout=_RESOLVE):
        """Answered by ROUTE_RESOLVED."""
        _call("rdma_resolve_route", self._id, timeout)

    def listen(self, host, port, backlog=0):
        """Serve there."""
        _call("rdma_bind_addr", self._id, _address(host, port))
        _call("rdma_listen", self._id, backlog)

    def connect(self, qpn, data=b""):
        """Ask for the connection, as that queue pair."""
        _call("rdma_connect", self._id, self._parameters(qpn, data))

    def accept(self, qpn, data=b""):
        """Grant it, as that queue pair."""
        _call("rdma_accept", self._id, self._parameters(qpn, data))

    def establish(self):
        """Say that our queue pair is ready."""
        _call("rdma_establish", self._id)

    def reject(self, data=b""):
        """Refuse it."""
        _call("rdma_reject", self._id, data, len(data))

    def disconnect(self):
        """End it, or agree to the end."""
        _call("rdma_disconnect", self._id)

    def destroy(self):
        """Give it back, in whatever state."""
        if self._id:
            _call("rdma_destroy_id", self._id)
        self._id = None

    @staticmethod
    def _parameters(qpn, data):
        buffer = ctypes.create_string_buffer(data, len(data)) if data else None
        return _Parameters(
            private_data=ctypes.cast(buffer, ctypes.c_void_p) if buffer else None,
            private_data_len=len(data),
            responder_resources=3,
            initiator_depth=2,
            flow_control=1,
            retry_count=5,
            rnr_retry_count=6,
            srq=0,
            qp_num=qpn,
        )
