// SPDX-License-Identifier: GPL-2.0-only

//! The path between two ports, as a REQ and a LAP describe it.

use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::Field;
use super::super::gid::Gid;
use super::super::lid::Lid;
use super::timeout::Timeout;

const _: () = assert!(size_of::<ReqPath>() == 44);
const _: () = assert!(size_of::<LapPath>() == 44);

/// A path (IBTA 12.6.5, 12.8.1). "Local" is the side that sends the message. Values that do not
/// fit their field lose the bits above.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    /// LID of the sender's port; [`Lid::PERMISSIVE`] if its peer shall take that from the packet.
    pub local_lid: Lid,
    /// LID of the receiver's port; [`Lid::PERMISSIVE`] if the sender does not know it.
    pub remote_lid: Lid,
    /// GID of the sender's port.
    pub local_gid: Gid,
    /// GID of the receiver's port.
    pub remote_gid: Gid,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Number for the largest rate at which packets may be put in, 6 bits.
    pub packet_rate: u8,
    /// Traffic class, 8 bits.
    pub traffic_class: u8,
    /// Routers a packet may pass.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Whether both ports are in one subnet.
    pub subnet_local: bool,
    /// Time that the sender of a packet waits for the acknowledgment. Exponent 0 is for ever.
    pub local_ack_timeout: Timeout,
}

/// `byte[0]`, 20 bits.
type FlowLabel = Field<u32, 0, 20>;
/// `byte[0]`, 4 bits.
type Sl = Field<u8, 0, 4>;
/// `byte[4]`, 1 bit.
type SubnetLocal = Field<bool, 4, 1>;
/// `byte[0]`, 5 bits.
type LocalAckTimeout = Field<Timeout, 0, 5>;

/// The fields that a path of either form begins with.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
struct Ports {
    local_lid: U16,
    remote_lid: U16,
    local_gid: Gid,
    remote_gid: Gid,
}

impl Ports {
    fn set(&mut self, path: &Path) {
        self.local_lid.set(path.local_lid.get());
        self.remote_lid.set(path.remote_lid.get());
        self.local_gid = path.local_gid;
        self.remote_gid = path.remote_gid;
    }
}

/// The fields that a path of either form ends with.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub(super) struct Tail {
    /// [`Sl`], [`SubnetLocal`].
    sl_subnet: u8,
    /// [`LocalAckTimeout`]; in a REQ there is a flag after that of the alternate path.
    pub(super) ack_timeout: u8,
}

impl Tail {
    fn set(&mut self, path: &Path) {
        Sl::set(&mut self.sl_subnet, path.sl);
        SubnetLocal::set(&mut self.sl_subnet, path.subnet_local);
        LocalAckTimeout::set(&mut self.ack_timeout, path.local_ack_timeout);
    }
}

/// A path as it stands in a REQ, bytes counted from its beginning (IBTA 12.6.5).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub(super) struct ReqPath {
    ports: Ports,
    /// [`FlowLabel`], [`ReqPath::PacketRate`](ReqPacketRate).
    flow_rate: U32,
    traffic_class: u8,
    hop_limit: u8,
    pub(super) tail: Tail,
}

/// `39[2]`, 6 bits.
type ReqPacketRate = Field<u8, 26, 6>;

impl ReqPath {
    /// Returns whether there is a path: the sender has no LID for one that is not there (IBTA
    /// 12.6.5).
    pub(super) fn is_present(&self) -> bool {
        self.ports.local_lid != U16::ZERO
    }

    pub(super) fn get(&self) -> Path {
        Path {
            local_lid: Lid::new(self.ports.local_lid.get()),
            remote_lid: Lid::new(self.ports.remote_lid.get()),
            local_gid: self.ports.local_gid,
            remote_gid: self.ports.remote_gid,
            flow_label: FlowLabel::get(self.flow_rate),
            packet_rate: ReqPacketRate::get(self.flow_rate),
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            sl: Sl::get(self.tail.sl_subnet),
            subnet_local: SubnetLocal::get(self.tail.sl_subnet),
            local_ack_timeout: LocalAckTimeout::get(self.tail.ack_timeout),
        }
    }

    pub(super) fn set(&mut self, path: &Path) {
        self.ports.set(path);
        FlowLabel::set(&mut self.flow_rate, path.flow_label);
        ReqPacketRate::set(&mut self.flow_rate, path.packet_rate);
        self.traffic_class = path.traffic_class;
        self.hop_limit = path.hop_limit;
        self.tail.set(path);
    }
}

/// A path as it stands in a LAP, bytes counted from its beginning (IBTA 12.8.1).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub(super) struct LapPath {
    ports: Ports,
    /// [`FlowLabel`], [`LapTrafficClass`].
    flow_class: U32,
    hop_limit: u8,
    /// [`LapPacketRate`].
    packet_rate: u8,
    tail: Tail,
}

/// `39[0]`, 8 bits.
type LapTrafficClass = Field<u8, 24, 8>;
/// `41[2]`, 6 bits.
type LapPacketRate = Field<u8, 2, 6>;

impl LapPath {
    pub(super) fn get(&self) -> Path {
        Path {
            local_lid: Lid::new(self.ports.local_lid.get()),
            remote_lid: Lid::new(self.ports.remote_lid.get()),
            local_gid: self.ports.local_gid,
            remote_gid: self.ports.remote_gid,
            flow_label: FlowLabel::get(self.flow_class),
            packet_rate: LapPacketRate::get(self.packet_rate),
            traffic_class: LapTrafficClass::get(self.flow_class),
            hop_limit: self.hop_limit,
            sl: Sl::get(self.tail.sl_subnet),
            subnet_local: SubnetLocal::get(self.tail.sl_subnet),
            local_ack_timeout: LocalAckTimeout::get(self.tail.ack_timeout),
        }
    }

    pub(super) fn set(&mut self, path: &Path) {
        self.ports.set(path);
        FlowLabel::set(&mut self.flow_class, path.flow_label);
        LapTrafficClass::set(&mut self.flow_class, path.traffic_class);
        self.hop_limit = path.hop_limit;
        LapPacketRate::set(&mut self.packet_rate, path.packet_rate);
        self.tail.set(path);
    }
}
