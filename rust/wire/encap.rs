// SPDX-License-Identifier: GPL-2.0-only

//! The encapsulation header of a datagram (RFC 4391 §6), and the pseudo header before it in the
//! sending host.

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

use super::hwaddr::HwAddr;

/// Length in bytes of the encapsulation header, the only one on the wire.
pub const LEN: usize = 4;

/// Length in bytes of the pseudo header, which never leaves the host.
pub const PSEUDO_LEN: usize = HwAddr::LEN;

/// Length in bytes of both: the `hard_header_len` of the net device.
pub const HARD_LEN: usize = PSEUDO_LEN + LEN;

const _: () = assert!(size_of::<Header>() == LEN);
const _: () = assert!(size_of::<PseudoHeader>() == PSEUDO_LEN);

/// The protocol that a datagram carries: one of RFC 4391 §6, or TIPC, which the Linux stack sends
/// over IPoIB too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum EtherType {
    /// Internet protocol, version 4.
    Ipv4 = 0x0800,
    /// Address resolution for IPv4.
    Arp = 0x0806,
    /// Reverse address resolution for IPv4.
    Rarp = 0x8035,
    /// IPv6, neighbour discovery included.
    Ipv6 = 0x86dd,
    /// Transparent inter-process communication (TIPC).
    Tipc = 0x88ca,
}

impl EtherType {
    /// The number, host byte order.
    pub const fn get(self) -> u16 {
        self as u16
    }
}

impl TryFrom<u16> for EtherType {
    type Error = EncapError;

    /// Takes the number in host byte order.
    fn try_from(number: u16) -> Result<EtherType, EncapError> {
        [
            EtherType::Ipv4,
            EtherType::Arp,
            EtherType::Rarp,
            EtherType::Ipv6,
            EtherType::Tipc,
        ]
        .into_iter()
        .find(|known| known.get() == number)
        .ok_or(EncapError::EtherType(number))
    }
}

/// The encapsulation header: four bytes between the headers of the transport and the packet of the
/// network layer.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Header {
    ethertype: U16,
    /// Sent as zero and ignored by the receiver.
    reserved: U16,
}

impl Header {
    /// The header of a datagram that carries this protocol.
    pub const fn new(ethertype: EtherType) -> Header {
        Header {
            ethertype: U16::new(ethertype.get()),
            reserved: U16::ZERO,
        }
    }

    /// The four bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// Splits a received datagram into its protocol and the packet of that protocol, which may be
    /// empty: its length is for that protocol to judge. The reserved field is ignored.
    ///
    /// # Errors
    ///
    /// [`EncapError::Short`] if the header is not all there, [`EncapError::EtherType`] if the
    /// protocol is none that IPoIB carries.
    pub fn parse(datagram: &[u8]) -> Result<(EtherType, &[u8]), EncapError> {
        let (header, packet) =
            Header::ref_from_prefix(datagram).map_err(|_| EncapError::Short(datagram.len()))?;
        Ok((EtherType::try_from(header.ethertype.get())?, packet))
    }
}

/// The header that the sending host keeps before the encapsulation header, to remember where the
/// neighbour lookup said the datagram goes. Taken off before the datagram is posted.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct PseudoHeader {
    /// The hardware address that the datagram goes to.
    pub destination: HwAddr,
}

/// Why a received datagram has no use here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncapError {
    /// A datagram that ends within the header; its length in bytes.
    Short(usize),
    /// A datagram of a protocol that IPoIB does not carry: the ethertype, host byte order.
    EtherType(u16),
}

impl fmt::Display for EncapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncapError::Short(length) => write!(
                f,
                "datagram of {length} bytes is shorter than the {LEN} bytes of the IPoIB header"
            ),
            EncapError::EtherType(number) => {
                write!(f, "IPoIB does not carry ethertype {number:#06x}")
            }
        }
    }
}

impl core::error::Error for EncapError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_encap))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        assert_eq!([LEN, PSEUDO_LEN, HARD_LEN], [4, 20, 24]);
    }

    #[test]
    fn headers_on_the_wire() {
        let table = [
            (EtherType::Ipv4, [0x08, 0x00, 0, 0]),
            (EtherType::Arp, [0x08, 0x06, 0, 0]),
            (EtherType::Rarp, [0x80, 0x35, 0, 0]),
            (EtherType::Ipv6, [0x86, 0xdd, 0, 0]),
            (EtherType::Tipc, [0x88, 0xca, 0, 0]),
        ];
        let empty: &[u8] = &[];
        for (ethertype, bytes) in table {
            assert_eq!(Header::new(ethertype).bytes(), bytes);
            assert_eq!(Header::parse(&bytes), Ok((ethertype, empty)));
        }
    }

    #[test]
    fn the_packet_is_what_follows() {
        let bytes = [0x08, 0x00, 0, 0, 0x45, 0x00, 0x14];
        assert_eq!(
            Header::parse(&bytes),
            Ok((EtherType::Ipv4, &[0x45, 0x00, 0x14][..]))
        );
        // The reserved field is ignored.
        let bytes = [0x08, 0x06, 0xff, 0xff, 1];
        assert_eq!(Header::parse(&bytes), Ok((EtherType::Arp, &[1][..])));
    }

    #[test]
    fn short_datagrams() {
        let table: [&[u8]; 4] = [&[], &[0x08], &[0x08, 0x00], &[0x08, 0x00, 0x00]];
        for bytes in table {
            assert_eq!(Header::parse(bytes), Err(EncapError::Short(bytes.len())));
        }
    }

    #[test]
    fn other_protocols() {
        // Nothing, a VLAN tag, RoCE v1, a byte-swapped IPv4, and the neighbours of IPv4's number.
        let table = [
            0x0000, 0x8100, 0x8915, 0x0008, 0x07ff, 0x0801, 0xdd86, 0xffff,
        ];
        for number in table {
            let [high, low] = u16::to_be_bytes(number);
            assert_eq!(
                Header::parse(&[high, low, 0, 0, 1]),
                Err(EncapError::EtherType(number))
            );
        }
    }
}
