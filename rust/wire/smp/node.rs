// SPDX-License-Identifier: GPL-2.0-only

//! The identity of a node: NodeDescription and NodeInfo (IBTA 14.2.5.2, 14.2.5.3).

use zerocopy::byteorder::big_endian::{
    U16,
    U32,
    U64, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::{
    octets,
    words,
    Field, //
};
use super::{
    attribute,
    Attribute, //
};

/// Length in bytes of a description.
pub const DESCRIPTION_LEN: usize = 64;

const _: () = assert!(size_of::<NodeDescription>() == DESCRIPTION_LEN);
const _: () = assert!(size_of::<NodeInfo>() == 40);

/// The name that an administrator gives the node, in UTF-8, with zeros after its end.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct NodeDescription(pub [u8; DESCRIPTION_LEN]);

impl Attribute for NodeDescription {
    const ID: u16 = attribute::NODE_DESCRIPTION;
}

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NodeType {
    /// A channel adapter of a host or a device.
    ChannelAdapter = 1,
    /// A switch within a subnet.
    Switch = 2,
    /// A router between subnets.
    Router = 3,
}

/// The identity of a node, and the port by which it was asked.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct NodeInfo {
    base_version: u8,
    class_version: u8,
    node_type: u8,
    ports: u8,
    system_guid: U64,
    node_guid: U64,
    port_guid: U64,
    partitions: U16,
    device: U16,
    revision: U32,
    port_vendor: U32,
}

impl Attribute for NodeInfo {
    const ID: u16 = attribute::NODE_INFO;
}

/// The highest 8 bits of the last word.
type LocalPort = Field<u8, 0, 8>;
/// The others of the last word.
type Vendor = Field<u32, 8, 24>;

impl NodeInfo {
    /// A node of that kind.
    pub fn new(node_type: NodeType) -> NodeInfo {
        NodeInfo {
            base_version: super::super::mad::BASE_VERSION,
            class_version: super::CLASS_VERSION,
            node_type: node_type as u8,
            ports: 0,
            system_guid: U64::ZERO,
            node_guid: U64::ZERO,
            port_guid: U64::ZERO,
            partitions: U16::ZERO,
            device: U16::ZERO,
            revision: U32::ZERO,
            port_vendor: U32::ZERO,
        }
    }

    octets! {
        /// The number of a [`NodeType`].
        node_type, set_node_type;
        /// The number of ports, without a switch's own.
        ports, set_ports;
    }

    words! {
        /// The GUID that several nodes of one system share.
        system_guid, set_system_guid: u64;
        /// The GUID of the node.
        node_guid, set_node_guid: u64;
        /// The GUID of the port that was asked; of a switch, of port 0.
        port_guid, set_port_guid: u64;
        /// The number of entries in the P_Key table of each port; of a switch, of port 0.
        partitions, set_partitions: u16;
        /// The device identifier, of the vendor's numbers.
        device, set_device: u16;
        /// The revision of the device.
        revision, set_revision: u32;
    }

    /// The port that was asked.
    pub fn local_port(&self) -> u8 {
        LocalPort::get(self.port_vendor)
    }

    /// Writes what [`NodeInfo::local_port`] reads.
    pub fn set_local_port(&mut self, port: u8) {
        LocalPort::set(&mut self.port_vendor, port);
    }

    /// The vendor, 24 bits.
    pub fn vendor(&self) -> u32 {
        Vendor::get(self.port_vendor)
    }

    /// Writes what [`NodeInfo::vendor`] reads.
    pub fn set_vendor(&mut self, vendor: u32) {
        Vendor::set(&mut self.port_vendor, vendor);
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_smp_node))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn node_on_the_wire() {
        let golden: [u8; 40] = [
            0x01, 0x01, 0x02, 0x24, // versions, a switch, 36 ports
            0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x01, // system
            0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x02, // node
            0x00, 0x02, 0xc9, 0x03, 0x00, 0x00, 0x00, 0x03, // port
            0x00, 0x20, 0xab, 0xcd, // partitions, device
            0x00, 0x00, 0x01, 0xa0, // revision
            0x07, 0x00, 0x02, 0xc9, // port, vendor
        ];
        let mut info = NodeInfo::new(NodeType::Switch);
        info.set_ports(36);
        info.set_system_guid(0x0002_c903_0000_0001);
        info.set_node_guid(0x0002_c903_0000_0002);
        info.set_port_guid(0x0002_c903_0000_0003);
        info.set_partitions(32);
        info.set_device(0xabcd);
        info.set_revision(0x1a0);
        info.set_local_port(7);
        info.set_vendor(0xff00_02c9);
        assert_eq!((info.local_port(), info.vendor()), (7, 0x2c9));
        let bytes: [u8; 40] = zerocopy::transmute!(info);
        assert_eq!(bytes, golden);
    }
}
