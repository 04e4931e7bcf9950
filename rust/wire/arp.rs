// SPDX-License-Identifier: GPL-2.0-only

//! Address resolution for IPv4 (RFC 826) with IPoIB's hardware addresses (RFC 4391 §9.2).

use core::fmt;
use zerocopy::byteorder::big_endian::U16;
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::encap::EtherType;
use super::gid::Gid;
use super::hwaddr::HwAddr;
use super::qpn::Qpn;

/// Length in bytes of an ARP packet between IPoIB interfaces.
pub const LEN: usize = 56;

/// The hardware type of InfiniBand (RFC 4391 §9.2).
pub const HARDWARE_TYPE: u16 = 32;

/// Length in bytes of the protocol's addresses: those of IPv4.
const PROTOCOL_LEN: u8 = 4;

const _: () = assert!(size_of::<Packet>() == LEN);

/// What an ARP packet asks or says (RFC 826, RFC 903).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Operation {
    /// Who has this IPv4 address?
    Request = 1,
    /// I have.
    Reply = 2,
    /// Reverse: which IPv4 address has this hardware?
    ReverseRequest = 3,
    /// Reverse: this one.
    ReverseReply = 4,
}

impl Operation {
    /// The number, host byte order.
    pub const fn get(self) -> u16 {
        self as u16
    }
}

impl TryFrom<u16> for Operation {
    type Error = ArpError;

    /// Takes the number in host byte order.
    fn try_from(number: u16) -> Result<Operation, ArpError> {
        [
            Operation::Request,
            Operation::Reply,
            Operation::ReverseRequest,
            Operation::ReverseReply,
        ]
        .into_iter()
        .find(|known| known.get() == number)
        .ok_or(ArpError::Operation(number))
    }
}

/// An interface as ARP knows it.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Party {
    /// Hardware address.
    pub hardware: HwAddr,
    /// IPv4 address, network byte order.
    pub protocol: [u8; 4],
}

/// An ARP packet between IPoIB interfaces.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Packet {
    hardware_type: U16,
    protocol_type: U16,
    hardware_length: u8,
    protocol_length: u8,
    operation: U16,
    sender: Party,
    target: Party,
}

impl Packet {
    const fn new(operation: Operation, sender: Party, target: Party) -> Packet {
        Packet {
            hardware_type: U16::new(HARDWARE_TYPE),
            protocol_type: U16::new(EtherType::Ipv4.get()),
            hardware_length: HwAddr::LEN as u8,
            protocol_length: PROTOCOL_LEN,
            operation: U16::new(operation.get()),
            sender,
            target,
        }
    }

    /// Asks for the hardware address of an IPv4 address; the target's is left zero.
    pub const fn request(sender: Party, target: [u8; 4]) -> Packet {
        let unknown = HwAddr::new(Qpn::from_bytes([0; 3]), Gid::ZERO);
        let target = Party {
            hardware: unknown,
            protocol: target,
        };
        Packet::new(Operation::Request, sender, target)
    }

    /// Answers that the sender has the address which the target asked for.
    pub const fn reply(sender: Party, target: Party) -> Packet {
        Packet::new(Operation::Reply, sender, target)
    }

    /// A view of an ARP packet, what follows an encapsulation header of that type. Bytes after its
    /// end are padding and ignored.
    ///
    /// # Errors
    ///
    /// [`ArpError`] for the first field that is not what the IPv4 of an IPoIB link uses.
    pub fn parse(bytes: &[u8]) -> Result<(Operation, &Packet), ArpError> {
        let (packet, _padding) =
            Packet::ref_from_prefix(bytes).map_err(|_| ArpError::Short(bytes.len()))?;
        if packet.hardware_type.get() != HARDWARE_TYPE {
            return Err(ArpError::HardwareType(packet.hardware_type.get()));
        }
        if packet.protocol_type.get() != EtherType::Ipv4.get() {
            return Err(ArpError::ProtocolType(packet.protocol_type.get()));
        }
        if usize::from(packet.hardware_length) != HwAddr::LEN {
            return Err(ArpError::HardwareLength(packet.hardware_length));
        }
        if packet.protocol_length != PROTOCOL_LEN {
            return Err(ArpError::ProtocolLength(packet.protocol_length));
        }
        Ok((Operation::try_from(packet.operation.get())?, packet))
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// Who sent the packet.
    pub const fn sender(&self) -> Party {
        self.sender
    }

    /// Whom it is about, or, in a reply, for.
    pub const fn target(&self) -> Party {
        self.target
    }
}

/// Why bytes are not an ARP packet of an IPoIB link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArpError {
    /// The packet ends early; how many bytes there are.
    Short(usize),
    /// The hardware type is not InfiniBand's.
    HardwareType(u16),
    /// The protocol is not IPv4.
    ProtocolType(u16),
    /// Hardware addresses do not have 20 bytes.
    HardwareLength(u8),
    /// Protocol addresses do not have 4 bytes.
    ProtocolLength(u8),
    /// The operation is none of [`Operation`].
    Operation(u16),
}

impl fmt::Display for ArpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArpError::Short(length) => {
                write!(f, "ARP packet of {length} bytes, where IPoIB's has {LEN}")
            }
            ArpError::HardwareType(number) => write!(
                f,
                "ARP packet of hardware type {number}, not {HARDWARE_TYPE}"
            ),
            ArpError::ProtocolType(number) => {
                write!(f, "ARP packet for protocol {number:#06x}, not IPv4")
            }
            ArpError::HardwareLength(length) => write!(
                f,
                "ARP packet with hardware addresses of {length} bytes, not {}",
                HwAddr::LEN
            ),
            ArpError::ProtocolLength(length) => write!(
                f,
                "ARP packet with protocol addresses of {length} bytes, not {PROTOCOL_LEN}"
            ),
            ArpError::Operation(number) => write!(f, "ARP packet with operation {number}"),
        }
    }
}

impl core::error::Error for ArpError {}
