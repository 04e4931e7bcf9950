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

/// The operation of an ARP packet (RFC 826, RFC 903).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Operation {
    /// A request for the hardware address of an IPv4 address.
    Request = 1,
    /// A reply with the hardware address.
    Reply = 2,
    /// A reverse request for the IPv4 address of a hardware address.
    ReverseRequest = 3,
    /// A reverse reply with the IPv4 address.
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(C)]
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Party {
    /// The IPoIB hardware address, 20 bytes.
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

    /// [`Packet::parse`], of a packet that is to be changed.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn parse_mut(bytes: &mut [u8]) -> Result<(Operation, &mut Packet), ArpError> {
        let (operation, _) = Packet::parse(bytes)?;
        let length = bytes.len();
        let (packet, _padding) =
            Packet::mut_from_prefix(bytes).map_err(|_| ArpError::Short(length))?;
        Ok((operation, packet))
    }

    /// Replaces the sender of the packet.
    pub const fn set_sender(&mut self, sender: Party) {
        self.sender = sender;
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The party that sent the packet.
    pub const fn sender(&self) -> Party {
        self.sender
    }

    /// The party that a request is about, or that a reply is for.
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

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_arp))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// 192.0.2.1, queue pair 0x000012 at fe80::2:c903:f:a1b1, asks for 192.0.2.2.
    const REQUEST: [u8; LEN] = [
        0x00, 0x20, 0x08, 0x00, 20, 4, 0x00, 0x01, //
        0x00, 0x00, 0x00, 0x12, //
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1, //
        192, 0, 2, 1, //
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
        192, 0, 2, 2,
    ];

    const ASKER: Party = Party {
        hardware: HwAddr::new(
            Qpn::from_bytes([0x00, 0x00, 0x12]),
            Gid::from_bytes([
                0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1,
            ]),
        ),
        protocol: [192, 0, 2, 1],
    };

    const ANSWERER: Party = Party {
        hardware: HwAddr::new(
            Qpn::from_bytes([0x12, 0x34, 0x56]),
            Gid::from_ipv4([198, 51, 100, 2]),
        )
        .with_flags(HwAddr::RC),
        protocol: [192, 0, 2, 2],
    };

    /// The reply that 192.0.2.2 sends.
    const REPLY: [u8; LEN] = [
        0x00, 0x20, 0x08, 0x00, 20, 4, 0x00, 0x02, //
        0x80, 0x12, 0x34, 0x56, //
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 2, //
        192, 0, 2, 2, //
        0x00, 0x00, 0x00, 0x12, //
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1, //
        192, 0, 2, 1,
    ];

    #[test]
    fn packets_on_the_wire() {
        let request = Packet::request(ASKER, ANSWERER.protocol);
        let reply = Packet::reply(ANSWERER, ASKER);
        assert_eq!(request.bytes(), REQUEST);
        assert_eq!(reply.bytes(), REPLY);
        assert_eq!(Packet::parse(&REQUEST), Ok((Operation::Request, &request)));
        assert_eq!(Packet::parse(&REPLY), Ok((Operation::Reply, &reply)));
        assert_eq!(reply.sender(), ANSWERER);
        assert_eq!(reply.target(), ASKER);
    }

    #[test]
    fn padding_is_ignored() {
        let mut padded = [0xee; LEN + 4];
        if let Some(packet) = padded.first_chunk_mut() {
            *packet = REPLY;
        }
        assert_eq!(Packet::parse(&padded), Packet::parse(&REPLY));
    }

    #[test]
    fn short_packets() {
        for length in 0..LEN {
            let bytes = REQUEST.get(..length).unwrap_or(&REQUEST);
            assert_eq!(Packet::parse(bytes), Err(ArpError::Short(length)));
        }
    }

    #[test]
    fn wrong_fields() {
        // Which byte, its value, what is wrong.
        let table = [
            (1, 0x01, ArpError::HardwareType(1)),
            (0, 0x20, ArpError::HardwareType(0x2020)),
            (2, 0x86, ArpError::ProtocolType(0x8600)),
            (4, 6, ArpError::HardwareLength(6)),
            (5, 16, ArpError::ProtocolLength(16)),
            (7, 0, ArpError::Operation(0)),
            (7, 5, ArpError::Operation(5)),
            (6, 1, ArpError::Operation(0x0101)),
        ];
        for (index, value, error) in table {
            let mut bytes = REQUEST;
            if let Some(byte) = bytes.get_mut(index) {
                *byte = value;
            }
            assert_eq!(Packet::parse(&bytes), Err(error));
        }
    }

    #[test]
    fn reverse_operations() {
        let table = [(3, Operation::ReverseRequest), (4, Operation::ReverseReply)];
        for (number, operation) in table {
            assert_eq!(Operation::try_from(number), Ok(operation));
            assert_eq!(operation.get(), number);
        }
    }
}
