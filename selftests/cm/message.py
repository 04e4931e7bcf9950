# SPDX-License-Identifier: GPL-2.0-only
"""The messages of the communication manager, field by field (IBTA volume 1, 12.6, in the order of the wire)."""

import struct
from dataclasses import dataclass

MAD_LENGTH = 256
_HEADER = "base_version:8 class:8 class_version:8 method:8 status:16 class_specific:16 tid:64 attribute:16 -:16 modifier:32"
_COMM_IDS = "local_comm_id:32 remote_comm_id:32"


def _path(name, last):
    return (
        f"{name}_local_lid:16 {name}_remote_lid:16 {name}_local_gid:128 {name}_remote_gid:128 {name}_flow_label:20 -:6 "
        f"{name}_rate:6 {name}_traffic_class:8 {name}_hop_limit:8 {name}_sl:4 {name}_subnet_local:1 -:3 "
        f"{name}_ack_timeout:5 {last}"
    )


_PATH_OF_LAP = (
    "local_lid:16 remote_lid:16 local_gid:128 remote_gid:128 flow_label:20 -:4 traffic_class:8 hop_limit:8 -:2 rate:6 "
    "sl:4 subnet_local:1 -:3 ack_timeout:5 -:3"
)

_BODIES = {
    0x10: (
        "REQ",
        "local_comm_id:32 -:8 vendor:24 service_id:64 local_ca_guid:64 -:32 qkey:32 qpn:24 responder_resources:8 "
        "local_eecn:24 initiator_depth:8 remote_eecn:24 remote_response_timeout:5 transport:2 flow_control:1 psn:24 "
        "local_response_timeout:5 retries:3 pkey:16 mtu:4 rdc_exists:1 rnr_retries:3 max_cm_retries:4 srq:1 "
        f"extended_transport:3 {_path('primary', '-:3')} {_path('alternate', 'sap_supported:1 -:2')} data:736",
    ),
    0x11: ("MRA", f"{_COMM_IDS} answers:2 -:6 service_timeout:5 -:3 data:1776"),
    0x12: ("REJ", f"{_COMM_IDS} rejects:2 -:6 information_length:7 -:1 reason:16 information:576 data:1184"),
    0x13: (
        "REP",
        f"{_COMM_IDS} qkey:32 qpn:24 vendor_high:8 eecn:24 vendor_middle:8 psn:24 vendor_low:8 responder_resources:8 "
        "initiator_depth:8 ack_delay:5 failover:2 flow_control:1 rnr_retries:3 srq:1 -:4 local_ca_guid:64 data:1568",
    ),
    0x14: ("RTU", f"{_COMM_IDS} data:1792"),
    0x15: ("DREQ", f"{_COMM_IDS} remote_qpn:24 -:8 data:1760"),
    0x16: ("DREP", f"{_COMM_IDS} data:1792"),
    0x19: (
        "LAP",
        f"{_COMM_IDS} -:32 remote_qpn:24 remote_response_timeout:5 -:3 -:32 {_PATH_OF_LAP} data:1344",
    ),
    0x1A: ("APR", f"{_COMM_IDS} information_length:8 ap_status:8 -:16 information:576 data:1184"),
    0x17: ("SIDR_REQ", "request_id:32 pkey:16 -:16 service_id:64 data:1728"),
    0x18: (
        "SIDR_REP",
        "request_id:32 sidr_status:8 information_length:8 vendor_high:16 qpn:24 vendor_low:8 service_id:64 qkey:32 "
        "information:576 data:1088",
    ),
}


def _widths(text):
    return [(name, int(width)) for name, width in (word.split(":") for word in text.split())]


_LAYOUTS = {number: (name, _widths(f"{_HEADER} {body}")) for number, (name, body) in _BODIES.items()}
assert all(sum(width for _, width in fields) == 8 * MAD_LENGTH for _, fields in _LAYOUTS.values())


@dataclass
class Message:
    """One message as it stood on the cable. Reserved fields count as fields, under the name of their place."""

    kind: str
    source: str
    destination: str
    fields: dict
    raw: bytes

    @property
    def service_port(self):
        """The port that rdma_cm made the service ID from."""
        return self.fields["service_id"] & 0xFFFF


def _split(raw, layout):
    rest, left = int.from_bytes(raw), 8 * len(raw)
    found = {}
    for name, width in layout:
        left -= width
        value = rest >> left & ((1 << width) - 1)
        found[name if name != "-" else f"reserved_at_{8 * len(raw) - left - width}"] = value
    return found


def parse(raw, source, destination, packet):
    """The message in a MAD, with the fields of the packet around it; None if it is not the communication manager's."""
    management_class, attribute = raw[1], struct.unpack_from("!H", raw, 16)[0]
    if management_class != 0x07:
        return None
    if attribute not in _LAYOUTS:
        return Message(f"attribute {attribute:#x}", source, destination, dict(packet), raw)
    kind, layout = _LAYOUTS[attribute]
    return Message(kind, source, destination, {**packet, **_split(raw, layout)}, raw)


_HEADER_DEFAULTS = {"base_version": 1, "class": 0x07, "class_version": 2, "method": 3}


def build(kind, **fields):
    """The MAD of a message of that kind; fields that are not given are zero, those of the header as they have to be."""
    attribute, layout = next((number, layout) for number, (name, layout) in _LAYOUTS.items() if name == kind)
    given = {**_HEADER_DEFAULTS, "attribute": attribute, **fields}
    unknown = given.keys() - {name for name, _ in layout}
    if unknown:
        raise ValueError(f"{kind} has no field {', '.join(unknown)}")
    value = 0
    for name, width in layout:
        value = value << width | given.get(name, 0) & ((1 << width) - 1)
    return value.to_bytes(MAD_LENGTH)
