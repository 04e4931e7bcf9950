// SPDX-License-Identifier: GPL-2.0-only

//! The private data that two interfaces exchange when they connect (RFC 4755).

use zerocopy::byteorder::big_endian::U32;
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::cm::ServiceId;
use super::encap;
use super::qpn::Qpn;

/// The largest MTU of an interface in connected mode, as all implementations on Linux have it: what
/// an IPv4 packet can be, rounded down to a multiple of 16.
pub const MAX_MTU: u32 = 65_520;

/// The largest packet, with its encapsulation header.
pub const MAX_PACKET: u32 = MAX_MTU + encap::LEN as u32;

/// The service identifiers of interfaces (RFC 4755 §3.2): those of the IETF, number 0.
const SERVICES: u64 = 0x1000_0000_0000_0000;

/// The service of the interface with this queue pair in its address.
pub const fn service(qpn: Qpn) -> ServiceId {
    ServiceId::new(SERVICES | qpn.get() as u64)
}

/// The private data of both a REQ and a REP (RFC 4755 §3.3).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Greeting {
    /// The queue pair in the sender's address: which interface it is.
    qpn: U32,
    /// The largest packet that the sender takes, the encapsulation header included.
    packet: U32,
}

const _: () = assert!(size_of::<Greeting>() == Greeting::LEN);

impl Greeting {
    /// The length of a greeting in bytes.
    pub const LEN: usize = 8;

    /// Creates the greeting of an interface that takes the largest packets.
    pub const fn new(qpn: Qpn) -> Greeting {
        Greeting {
            qpn: U32::new(qpn.get()),
            packet: U32::new(MAX_PACKET),
        }
    }

    /// The bytes as they stand in a message.
    pub const fn bytes(self) -> [u8; Self::LEN] {
        zerocopy::transmute!(self)
    }

    /// Finds the greeting at the beginning of private data.
    ///
    /// # Errors
    ///
    /// [`GreetingError`] if it is too short, names no queue pair, or leaves no room for a packet.
    pub fn parse(private_data: &[u8]) -> Result<Greeting, GreetingError> {
        let (greeting, _) =
            Greeting::read_from_prefix(private_data).map_err(|_| GreetingError::Short)?;
        if Qpn::new(greeting.qpn.get()).is_none() {
            return Err(GreetingError::Qpn(greeting.qpn.get()));
        }
        if greeting.packet.get() <= encap::LEN as u32 {
            return Err(GreetingError::Packet(greeting.packet.get()));
        }
        Ok(greeting)
    }

    /// The queue pair in the sender's address.
    pub const fn qpn(self) -> u32 {
        self.qpn.get()
    }

    /// The largest packet that the sender takes, with its encapsulation header, as far as we send
    /// any.
    pub fn packet(self) -> u32 {
        self.packet.get().min(MAX_PACKET)
    }
}

/// The reason why private data is no greeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GreetingError {
    /// The data is shorter than a greeting.
    Short,
    /// The number of a queue pair that there cannot be.
    Qpn(u32),
    /// The largest packet has no room for data behind the encapsulation header.
    Packet(u32),
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_connected))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn the_service_names_the_queue_pair() {
        let qpn = Qpn::from_bytes([0x12, 0x34, 0x56]);
        assert_eq!(service(qpn).get(), 0x1000_0000_0012_3456);
    }

    #[test]
    fn greetings_are_two_numbers() {
        let greeting = Greeting::new(Qpn::from_bytes([0x12, 0x34, 0x56]));
        let bytes = greeting.bytes();
        assert_eq!(bytes, [0, 0x12, 0x34, 0x56, 0, 0, 0xff, 0xf4]);
        assert_eq!(Greeting::parse(&bytes), Ok(greeting));
        // Private data is as long as its message has room.
        let mut long = [0; 92];
        long[..8].copy_from_slice(&bytes);
        assert_eq!(Greeting::parse(&long), Ok(greeting));
    }

    #[test]
    fn what_there_cannot_be_is_refused() {
        for (bytes, error) in [
            (&[0, 0, 0, 1, 0, 0, 8][..], GreetingError::Short),
            (&[], GreetingError::Short),
            (&[1, 0, 0, 1, 0, 0, 8, 0], GreetingError::Qpn(0x0100_0001)),
            (&[0, 0, 0, 1, 0, 0, 0, 4], GreetingError::Packet(4)),
            (&[0, 0, 0, 1, 0, 0, 0, 0], GreetingError::Packet(0)),
        ] {
            assert_eq!(Greeting::parse(bytes), Err(error));
        }
    }

    #[test]
    fn larger_packets_than_ours_are_not_sent() {
        let greeting = Greeting::parse(&[0, 0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(greeting.map(Greeting::packet), Ok(MAX_PACKET));
        let greeting = Greeting::parse(&[0, 0, 0, 1, 0, 0, 8, 4]);
        assert_eq!(greeting.map(Greeting::packet), Ok(2052));
    }
}
