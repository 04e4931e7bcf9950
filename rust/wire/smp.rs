// SPDX-License-Identifier: GPL-2.0-only

//! Subnet management packets (IBTA 14.2): their header, and, below, their attributes.
//!
//! There are two kinds. One is routed by local identifiers as any packet is. The other goes a way
//! that its sender has written into it, port by port, through switches that need not have been
//! configured (IBTA 14.2.2).

use zerocopy::byteorder::big_endian::{
    U16,
    U64, //
};
use zerocopy::FromZeros as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::bits::words;
use super::lid::Lid;
use super::mad;
use super::mad::{
    Header,
    CLASS_SUBNET_DIRECTED,
    CLASS_SUBNET_LID, //
};

pub mod forwarding;
pub mod guid;
pub mod lanes;
pub mod led;
pub mod node;
pub mod notice;
pub mod partition;
pub mod port;
pub mod sm;
pub mod switch;

/// Length in bytes of a packet's datagram.
pub const LEN: usize = mad::LEN;

/// Length in bytes of an attribute.
pub const DATA_LEN: usize = 64;

/// Length in bytes of a path: one port number for each hop, and none in the first.
pub const PATH_LEN: usize = 64;

/// The largest number of hops that a path has room for (IBTA 14.2.2).
pub const MAX_HOPS: u8 = 63;

/// The version of both classes (IBTA 14.2.1).
pub const CLASS_VERSION: u8 = 1;

/// The bit of the status that says that the packet is on its way back (IBTA 14.2.1.2).
pub const DIRECTION: u16 = 0x8000;

/// Numbers of attributes (IBTA 14.2.5).
pub mod attribute {
    /// [`super::notice::Notice`].
    pub const NOTICE: u16 = 0x0002;
    /// [`super::node::NodeDescription`].
    pub const NODE_DESCRIPTION: u16 = 0x0010;
    /// [`super::node::NodeInfo`].
    pub const NODE_INFO: u16 = 0x0011;
    /// [`super::switch::SwitchInfo`].
    pub const SWITCH_INFO: u16 = 0x0012;
    /// [`super::guid::GuidInfo`].
    pub const GUID_INFO: u16 = 0x0014;
    /// [`super::port::PortInfo`].
    pub const PORT_INFO: u16 = 0x0015;
    /// [`super::partition::PKeyTable`].
    pub const P_KEY_TABLE: u16 = 0x0016;
    /// [`super::lanes::SlToVl`].
    pub const SL_TO_VL: u16 = 0x0017;
    /// [`super::lanes::VlArbitration`].
    pub const VL_ARBITRATION: u16 = 0x0018;
    /// [`super::forwarding::Linear`].
    pub const LINEAR_FORWARDING: u16 = 0x0019;
    /// [`super::forwarding::Multicast`].
    pub const MULTICAST_FORWARDING: u16 = 0x001b;
    /// [`super::sm::SmInfo`].
    pub const SM_INFO: u16 = 0x0020;
    /// [`super::led::LedInfo`].
    pub const LED_INFO: u16 = 0x0031;
}

const _: () = assert!(size_of::<Smp>() == LEN);

/// The datagram of a subnet management packet. In one that is routed by local identifiers all but
/// the header, the key and the attribute is reserved.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Smp {
    header: Header,
    m_key: U64,
    dr_slid: U16,
    dr_dlid: U16,
    reserved: [u8; 28],
    data: [u8; DATA_LEN],
    initial_path: [u8; PATH_LEN],
    return_path: [u8; PATH_LEN],
}

/// An attribute: what is at the beginning of the 64 bytes, the rest of which is reserved.
pub trait Attribute:
    zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable + zerocopy::KnownLayout
{
    /// The attribute identifier in the header.
    const ID: u16;
}

impl Smp {
    /// A packet that is routed by local identifiers, with an attribute of zeros.
    pub fn new(header: Header, m_key: u64) -> Smp {
        Smp {
            header,
            m_key: U64::new(m_key),
            ..Smp::new_zeroed()
        }
    }

    /// A view of a datagram, unjudged.
    pub fn from_bytes(bytes: &[u8; LEN]) -> &Smp {
        zerocopy::transmute_ref!(bytes)
    }

    /// A view of a datagram, to be written.
    pub fn from_bytes_mut(bytes: &mut [u8; LEN]) -> &mut Smp {
        zerocopy::transmute_mut!(bytes)
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The header of the datagram.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The header, to be written.
    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.header
    }

    /// Returns whether it goes a way that is written in it.
    pub const fn is_directed(&self) -> bool {
        self.header.class() == CLASS_SUBNET_DIRECTED
    }

    /// Returns whether it is a packet of subnet management at all.
    pub const fn is_subnet_management(&self) -> bool {
        matches!(
            self.header.class(),
            CLASS_SUBNET_LID | CLASS_SUBNET_DIRECTED
        )
    }

    words! {
        /// The key that allows the request (IBTA 14.2.4).
        m_key, set_m_key: u64;
    }

    /// The LID of the port for which a directed route begins, permissive if that is the
    /// first of the written way (DrSLID).
    pub const fn dr_slid(&self) -> Lid {
        Lid::new(self.dr_slid.get())
    }

    /// Writes what [`Smp::dr_slid`] reads.
    pub fn set_dr_slid(&mut self, lid: Lid) {
        self.dr_slid.set(lid.get());
    }

    /// The LID to which a directed route goes on after the written way, permissive if nowhere
    /// (DrDLID).
    pub const fn dr_dlid(&self) -> Lid {
        Lid::new(self.dr_dlid.get())
    }

    /// Writes what [`Smp::dr_dlid`] reads.
    pub fn set_dr_dlid(&mut self, lid: Lid) {
        self.dr_dlid.set(lid.get());
    }

    /// Returns whether the packet of a directed route is on its way back.
    pub const fn is_returning(&self) -> bool {
        self.header.status() & DIRECTION != 0
    }

    /// The hop of the written way that the packet of a directed route is at.
    pub const fn hop_pointer(&self) -> u8 {
        self.header.class_specific().to_be_bytes()[0]
    }

    /// Writes what [`Smp::hop_pointer`] reads.
    pub fn set_hop_pointer(&mut self, hop: u8) {
        let count = self.hop_count();
        self.header
            .set_class_specific(u16::from_be_bytes([hop, count]));
    }

    /// The number of hops in the written way of a directed route.
    pub const fn hop_count(&self) -> u8 {
        self.header.class_specific().to_be_bytes()[1]
    }

    /// Writes what [`Smp::hop_count`] reads.
    pub fn set_hop_count(&mut self, count: u8) {
        let hop = self.hop_pointer();
        self.header
            .set_class_specific(u16::from_be_bytes([hop, count]));
    }

    /// The port by which to leave at that hop, counted from 1.
    pub fn initial_hop(&self, hop: u8) -> Option<u8> {
        self.initial_path.get(usize::from(hop)).copied()
    }

    /// Writes what [`Smp::initial_hop`] reads. `None` if there is no such hop.
    pub fn set_initial_hop(&mut self, hop: u8, port: u8) -> Option<()> {
        *self.initial_path.get_mut(usize::from(hop))? = port;
        Some(())
    }

    /// The port by which it came in at that hop, counted from 1.
    pub fn return_hop(&self, hop: u8) -> Option<u8> {
        self.return_path.get(usize::from(hop)).copied()
    }

    /// Writes what [`Smp::return_hop`] reads. `None` if there is no such hop.
    pub fn set_return_hop(&mut self, hop: u8, port: u8) -> Option<()> {
        *self.return_path.get_mut(usize::from(hop))? = port;
        Some(())
    }

    /// The 64 bytes of the attribute.
    pub const fn data(&self) -> &[u8; DATA_LEN] {
        &self.data
    }

    /// Reads the attribute as one of that form; the caller has looked at the header for which it
    /// is.
    pub fn get<A: Attribute>(&self) -> A {
        const { assert!(size_of::<A>() <= DATA_LEN, "attributes have 64 bytes") }
        mad::read_attribute(&self.data)
    }

    /// Writes the attribute, and zeros after it.
    pub fn put<A: Attribute>(&mut self, attribute: &A) {
        const { assert!(size_of::<A>() <= DATA_LEN, "attributes have 64 bytes") }
        mad::write_attribute(&mut self.data, attribute);
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::super::mad::{
        Subject,
        METHOD_GET, //
    };
    use super::*;

    /// A Get(NodeInfo) on the second of three hops of a directed route.
    const HEAD: [u8; 36] = [
        0x01, 0x81, 0x01, 0x01, 0x00, 0x00, 0x02, 0x03, // versions, class, method, hops
        0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x12, 0x34, // transaction
        0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // attribute
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, // M_Key
        0xff, 0xff, 0xff, 0xff, // DrSLID, DrDLID
    ];

    /// The whole datagram: its path is by the ports 1, 5, 7, and it came in by the ports 1 and 2.
    fn golden() -> [u8; LEN] {
        let mut bytes = [0; LEN];
        if let Some(head) = bytes.first_chunk_mut() {
            *head = HEAD;
        }
        for (index, value) in [(129, 1), (130, 5), (131, 7), (193, 1), (194, 2)] {
            if let Some(byte) = bytes.get_mut(index) {
                *byte = value;
            }
        }
        bytes
    }

    #[test]
    fn fields_of_a_directed_route() {
        let bytes = golden();
        let smp = Smp::from_bytes(&bytes);
        assert!(smp.is_directed() && smp.is_subnet_management() && !smp.is_returning());
        assert_eq!(smp.header().attribute(), attribute::NODE_INFO);
        assert_eq!((smp.hop_pointer(), smp.hop_count()), (2, 3));
        assert_eq!(smp.m_key(), 0x1122_3344_5566_7788);
        assert_eq!(smp.dr_slid(), Lid::PERMISSIVE);
        assert_eq!(smp.dr_dlid(), Lid::PERMISSIVE);
        assert_eq!(
            [1, 2, 3].map(|hop| smp.initial_hop(hop)),
            [1, 5, 7].map(Some)
        );
        assert_eq!(
            [1, 2, 3].map(|hop| smp.return_hop(hop)),
            [1, 2, 0].map(Some)
        );
        assert_eq!(smp.initial_hop(64), None);
        assert_eq!(smp.return_hop(64), None);
    }

    #[test]
    fn fields_are_written_where_they_are_read() {
        let mut smp = Smp::new(
            Header::new(Subject {
                class: CLASS_SUBNET_DIRECTED,
                class_version: CLASS_VERSION,
                method: METHOD_GET,
                tid: 0x1_0000_1234,
                attribute: attribute::NODE_INFO,
                modifier: 0,
            }),
            0x1122_3344_5566_7788,
        );
        smp.set_hop_pointer(2);
        smp.set_hop_count(3);
        smp.set_dr_slid(Lid::PERMISSIVE);
        smp.set_dr_dlid(Lid::PERMISSIVE);
        for (hop, port) in [(1, 1), (2, 5), (3, 7)] {
            assert_eq!(smp.set_initial_hop(hop, port), Some(()));
        }
        for (hop, port) in [(1, 1), (2, 2)] {
            assert_eq!(smp.set_return_hop(hop, port), Some(()));
        }
        assert_eq!(smp.set_return_hop(64, 1), None);
        assert_eq!(smp.set_initial_hop(64, 1), None);
        assert_eq!(smp.bytes(), golden());
    }

    #[test]
    fn direction_is_a_bit_of_the_status() {
        let mut bytes = golden();
        if let Some(byte) = bytes.get_mut(4) {
            *byte = 0x80;
        }
        assert!(Smp::from_bytes(&bytes).is_returning());
    }
}
