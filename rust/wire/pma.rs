// SPDX-License-Identifier: GPL-2.0-only

//! Performance management (IBTA 16.1): the counters of a port.

use zerocopy::byteorder::big_endian::{
    U16,
    U32,
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

use super::bits::{
    bit_fields,
    octets,
    words,
    Field, //
};
use super::mad;
use super::mad::Header;

/// The version of the class (IBTA 16.1.1).
pub const CLASS_VERSION: u8 = 1;

/// The offset of the attribute in the datagram.
pub const DATA_OFFSET: usize = 64;

/// Length in bytes of an attribute.
pub const DATA_LEN: usize = mad::LEN - DATA_OFFSET;

/// The port number that means all ports of a switch at once.
pub const ALL_PORTS: u8 = 0xff;

/// Numbers of attributes (IBTA 16.1.3).
pub mod attribute {
    /// [`super::ClassPortInfo`].
    pub const CLASS_PORT_INFO: u16 = 0x0001;
    /// [`super::PortCounters`].
    pub const PORT_COUNTERS: u16 = 0x0012;
    /// [`super::PortCountersExtended`].
    pub const PORT_COUNTERS_EXTENDED: u16 = 0x001d;
}

/// Bits of the capability mask of [`ClassPortInfo`].
pub mod capability {
    /// Support for [`super::ALL_PORTS`].
    pub const ALL_PORT_SELECT: u16 = 1 << 8;
    /// Support for all of [`super::PortCountersExtended`].
    pub const EXTENDED_WIDTH: u16 = 1 << 9;
    /// Switches count how often a packet had to wait.
    pub const XMIT_WAIT: u16 = 1 << 12;
}

const _: () = assert!(size_of::<Performance>() == mad::LEN);
const _: () = assert!(size_of::<ClassPortInfo>() == 72);
const _: () = assert!(size_of::<PortCounters>() == 44);
const _: () = assert!(size_of::<PortCountersExtended>() == 72);

/// A datagram of the class.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Performance {
    header: Header,
    reserved: [u8; DATA_OFFSET - mad::HEADER_LEN],
    data: [u8; DATA_LEN],
}

impl Performance {
    /// A view of a datagram, unjudged.
    pub fn from_bytes(bytes: &[u8; mad::LEN]) -> &Performance {
        zerocopy::transmute_ref!(bytes)
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; mad::LEN] {
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

    /// Reads the attribute as one of that form; the caller has looked at the header for which it
    /// is.
    pub fn get<A: Attribute>(&self) -> A {
        const { assert!(size_of::<A>() <= DATA_LEN, "attributes have 192 bytes") }
        mad::read_attribute(&self.data)
    }

    /// Writes the attribute, and zeros after it.
    pub fn put<A: Attribute>(&mut self, attribute: &A) {
        const { assert!(size_of::<A>() <= DATA_LEN, "attributes have 192 bytes") }
        mad::write_attribute(&mut self.data, attribute);
    }
}

/// An attribute of the class.
pub trait Attribute:
    zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable + zerocopy::KnownLayout
{
    /// The attribute identifier in the header.
    const ID: u16;
}

/// The information that every agent of a class gives about itself (IBTA 13.4.8.1).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ClassPortInfo {
    base_version: u8,
    class_version: u8,
    capability_mask: U16,
    capability_response: U32,
    redirect: [u8; 32],
    trap: [u8; 32],
}

impl Attribute for ClassPortInfo {
    const ID: u16 = attribute::CLASS_PORT_INFO;
}

/// The lowest five bits: how long the agent needs to answer.
type ResponseTime = Field<u8, 27, 5>;

impl ClassPortInfo {
    /// An agent with these capabilities, which answers within 4.096 µs shifted left so often, and
    /// redirects no requester.
    pub fn new(capability_mask: u16, response_time: u8) -> ClassPortInfo {
        let mut info = ClassPortInfo {
            base_version: mad::BASE_VERSION,
            class_version: CLASS_VERSION,
            capability_mask: U16::new(capability_mask),
            ..ClassPortInfo::new_zeroed()
        };
        ResponseTime::set(&mut info.capability_response, response_time);
        info
    }

    words! {
        /// The capabilities of the agent: bits of [`capability`].
        capability_mask, set_capability_mask: u16;
    }
}

/// The counters of a port that every agent has. They stop at their largest value.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Debug,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct PortCounters {
    reserved: u8,
    port_select: u8,
    counter_select: U16,
    symbol_errors: U16,
    link_recoveries: u8,
    link_downed: u8,
    receive_errors: U16,
    remote_physical_errors: U16,
    relay_errors: U16,
    transmit_discards: U16,
    transmit_constraint: u8,
    receive_constraint: u8,
    counter_select2: u8,
    integrity_overrun: u8,
    qp1_dropped: U16,
    vl15_dropped: U16,
    transmit_data: U32,
    receive_data: U32,
    transmit_packets: U32,
    receive_packets: U32,
    transmit_wait: U32,
}

impl Attribute for PortCounters {
    const ID: u16 = attribute::PORT_COUNTERS;
}

impl PortCounters {
    octets! {
        /// The port that the counters are of, or [`ALL_PORTS`].
        port_select, set_port_select;
        /// Number of times that the link had to recover.
        link_recoveries, set_link_recoveries;
        /// Number of times that the link went down.
        link_downed, set_link_downed;
        /// Packets not sent because of their partition or form.
        transmit_constraint, set_transmit_constraint;
        /// Packets not taken because of their partition or form.
        receive_constraint, set_receive_constraint;
        /// The other counters that a Set() is for: bit 0 [`PortCounters::transmit_wait`].
        counter_select2, set_counter_select2;
    }

    words! {
        /// The counters that a Set() is for, one bit each in their order.
        counter_select, set_counter_select: u16;
        /// Minor errors on the physical lanes of the link.
        symbol_errors, set_symbol_errors: u16;
        /// Packets that came with an error.
        receive_errors, set_receive_errors: u16;
        /// Packets that came marked as bad.
        remote_physical_errors, set_remote_physical_errors: u16;
        /// Packets that the switch could not forward.
        relay_errors, set_relay_errors: u16;
        /// Packets that were not sent because the port was down or full.
        transmit_discards, set_transmit_discards: u16;
        /// Packets for the general services that found no room.
        qp1_dropped, set_qp1_dropped: u16;
        /// Packets for subnet management that found no room.
        vl15_dropped, set_vl15_dropped: u16;
        /// Words of four bytes sent, on all lanes.
        transmit_data, set_transmit_data: u32;
        /// Words of four bytes taken.
        receive_data, set_receive_data: u32;
        /// Packets sent, on all lanes.
        transmit_packets, set_transmit_packets: u32;
        /// Packets taken, on all lanes.
        receive_packets, set_receive_packets: u32;
        /// Ticks in which a packet had to wait.
        transmit_wait, set_transmit_wait: u32;
    }

    bit_fields! {
        /// Errors of the link's integrity, 4 bits.
        integrity_errors, set_integrity_errors: u8 = integrity_overrun[0, 4];
        /// Overruns of buffers, 4 bits.
        overrun_errors, set_overrun_errors: u8 = integrity_overrun[4, 4];
    }
}

/// The counters of traffic with 64 bits each (IBTA 16.1.4.11).
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Debug,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct PortCountersExtended {
    reserved: u8,
    port_select: u8,
    counter_select: U16,
    counter_select2: U32,
    transmit_data: U64,
    receive_data: U64,
    transmit_packets: U64,
    receive_packets: U64,
    unicast_transmit_packets: U64,
    unicast_receive_packets: U64,
    multicast_transmit_packets: U64,
    multicast_receive_packets: U64,
}

impl Attribute for PortCountersExtended {
    const ID: u16 = attribute::PORT_COUNTERS_EXTENDED;
}

impl PortCountersExtended {
    octets! {
        /// The port that the counters are of, or [`ALL_PORTS`].
        port_select, set_port_select;
    }

    words! {
        /// The counters that a Set() is for, one bit each in their order.
        counter_select, set_counter_select: u16;
        /// Words of four bytes sent, on all lanes.
        transmit_data, set_transmit_data: u64;
        /// Words of four bytes taken.
        receive_data, set_receive_data: u64;
        /// Packets sent, on all lanes.
        transmit_packets, set_transmit_packets: u64;
        /// Packets taken, on all lanes.
        receive_packets, set_receive_packets: u64;
        /// Packets sent to one port.
        unicast_transmit_packets, set_unicast_transmit_packets: u64;
        /// Packets taken that went to one port.
        unicast_receive_packets, set_unicast_receive_packets: u64;
        /// Packets sent to a group.
        multicast_transmit_packets, set_multicast_transmit_packets: u64;
        /// Packets taken that went to a group.
        multicast_receive_packets, set_multicast_receive_packets: u64;
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_pma))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn counters_on_the_wire() {
        let golden: [u8; 44] = [
            0x00, 0x01, 0xff, 0xff, 0x01, 0x02, 0x03,
            0x04, // port, select; symbol, recovery, down
            0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, // errors, relay, discards
            0x0d, 0x0e, 0x01, 0x23, 0x0f, 0x10, 0x11, 0x12, // constraints; integrity; dropped
            0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, // data
            0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, // packets
            0x23, 0x24, 0x25, 0x26, // wait
        ];
        let mut counters = PortCounters::default();
        counters.set_port_select(1);
        counters.set_counter_select(0xffff);
        counters.set_symbol_errors(0x0102);
        counters.set_link_recoveries(3);
        counters.set_link_downed(4);
        counters.set_receive_errors(0x0506);
        counters.set_remote_physical_errors(0x0708);
        counters.set_relay_errors(0x090a);
        counters.set_transmit_discards(0x0b0c);
        counters.set_transmit_constraint(0x0d);
        counters.set_receive_constraint(0x0e);
        counters.set_counter_select2(1);
        counters.set_integrity_errors(2);
        counters.set_overrun_errors(3);
        counters.set_qp1_dropped(0x0f10);
        counters.set_vl15_dropped(0x1112);
        counters.set_transmit_data(0x1314_1516);
        counters.set_receive_data(0x1718_191a);
        counters.set_transmit_packets(0x1b1c_1d1e);
        counters.set_receive_packets(0x1f20_2122);
        counters.set_transmit_wait(0x2324_2526);
        let bytes: [u8; 44] = zerocopy::transmute!(counters);
        assert_eq!(bytes, golden);
    }

    #[test]
    fn wide_counters_on_the_wire() {
        let mut counters = PortCountersExtended::default();
        counters.set_port_select(2);
        counters.set_counter_select(0x00ff);
        counters.set_transmit_data(1);
        counters.set_receive_data(2);
        counters.set_transmit_packets(3);
        counters.set_receive_packets(4);
        counters.set_unicast_transmit_packets(5);
        counters.set_unicast_receive_packets(6);
        counters.set_multicast_transmit_packets(7);
        counters.set_multicast_receive_packets(8);
        let bytes: [u8; 72] = zerocopy::transmute!(counters);
        assert!(bytes.starts_with(&[0, 2, 0, 0xff, 0, 0, 0, 0]));
        let (_head, words) = bytes.split_at(8);
        for (word, value) in words.chunks_exact(8).zip(1_u8..) {
            assert_eq!(word, [0, 0, 0, 0, 0, 0, 0, value]);
        }
    }

    #[test]
    fn agent_on_the_wire() {
        let info = ClassPortInfo::new(capability::ALL_PORT_SELECT | capability::EXTENDED_WIDTH, 18);
        let bytes: [u8; 72] = zerocopy::transmute!(info);
        assert!(bytes.starts_with(&[1, 1, 3, 0, 0, 0, 0, 18, 0]));
        assert_eq!(info.capability_mask(), 0x300);
    }

    #[test]
    fn attributes_begin_at_64() {
        let mut bytes = [0; mad::LEN];
        if let Some(byte) = bytes.get_mut(65) {
            *byte = 7;
        }
        let mut datagram = *Performance::from_bytes(&bytes);
        let counters: PortCounters = datagram.get();
        assert_eq!(counters.port_select(), 7);
        datagram.put(&PortCounters::default());
        assert_eq!(datagram.bytes(), [0; mad::LEN]);
    }
}
