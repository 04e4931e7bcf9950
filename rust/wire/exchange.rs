// SPDX-License-Identifier: GPL-2.0-only

//! The exchange by which two interfaces learn each other's queue pairs: a service ID resolution
//! (IBTA 12.11) for a service of oxib's own.
//!
//! An interface knows a peer's GID from its cache, and not the number of its queue pair. It asks
//! the connection manager at that GID for [`SERVICE`]. The private data of the SIDR_REQ
//! ([`Question`]) says for which IP address, and which interface asks; the SIDR_REP has the queue
//! pair and its Q_Key in its own fields, and in its private data ([`Answer`]) what they are about.
//!
//! A peer may claim anything about itself: see the checks of the reader
//! (`acm/exchange/serve.rs`).

use core::fmt;
use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::acm::entry::{
    check_address,
    parse_gid, //
};
use super::cm::ServiceId;
use super::gid::Gid;
use super::pkey::Pkey;
use super::qpn::Qpn;

/// The identifier of the service.
///
/// The highest byte of an identifier names the authority that hands it out (IBTA annex A3): 0x00
/// the IBTA, 0x02 each operating system for itself, 0x10 others, with their company's identifier
/// behind it (RFC 4755 §3.5 has zero there). Behind 0x10 this one has the letters `oxib`: an
/// identifier of a company never begins with an odd byte, as that is the mark of a group's address
/// (IEEE 802), so no company can come to use it. The rest counts the services of oxib.
pub const SERVICE: ServiceId = ServiceId::new(0x106f_7869_6200_0001);

/// The version of both formats.
const VERSION: u8 = 1;

/// The family of an address (the field `family`).
const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// The private data of the request, as it stands on the wire.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
struct Asking {
    version: u8,
    family: u8,
    pkey: U16,
    asker_qpn: U32,
    asker: [u8; 16],
    asker_gid: [u8; 16],
    asked: [u8; 16],
}

/// The private data of the answer, as it stands on the wire.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
struct Answering {
    version: u8,
    family: u8,
    reserved: [u8; 6],
    asked: [u8; 16],
    gid: [u8; 16],
}

const _: () = assert!(size_of::<Asking>() == Question::LEN);
const _: () = assert!(size_of::<Answering>() == Answer::LEN);
const _: () = assert!(Question::LEN <= super::cm::sidr_req::PRIVATE_DATA_LEN);
const _: () = assert!(Answer::LEN <= super::cm::sidr_rep::PRIVATE_DATA_LEN);

/// A question for the queue pair of the interface that has an address, and the asker's identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// The partition that both are in.
    pub pkey: Pkey,
    /// The queue pair of the interface that asks.
    pub asker_qpn: Qpn,
    /// An address of that interface, of the same family as the one asked for.
    pub asker: IpAddr,
    /// The GID that its packets come from.
    pub asker_gid: Gid,
    /// The address of the interface that is asked for.
    pub asked: IpAddr,
}

/// The answer of a peer, beside the queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The address that was asked for.
    pub asked: IpAddr,
    /// The GID in the hardware address of its interface: one of the port that was asked.
    pub gid: Gid,
}

impl Question {
    /// The length of a question in bytes.
    pub const LEN: usize = 56;

    /// The bytes as they stand in a SIDR_REQ. An asker of another family than the address asked for
    /// is one that [`Question::parse`] refuses.
    pub fn bytes(&self) -> [u8; Self::LEN] {
        let (family, asked) = written(self.asked);
        let (_, asker) = written(self.asker);
        let asking = Asking {
            version: VERSION,
            family,
            pkey: U16::new(self.pkey.get()),
            asker_qpn: U32::new(self.asker_qpn.get()),
            asker,
            asker_gid: self.asker_gid.bytes(),
            asked,
        };
        zerocopy::transmute!(asking)
    }

    /// Finds a question at the beginning of private data.
    ///
    /// # Errors
    ///
    /// [`ExchangeError`] for the first field that cannot be so.
    pub fn parse(private_data: &[u8]) -> Result<Question, ExchangeError> {
        let (asking, _) =
            Asking::read_from_prefix(private_data).map_err(|_| ExchangeError::Short)?;
        check_version(asking.version)?;
        let pkey = Pkey::new(asking.pkey.get());
        if !pkey.is_valid() {
            return Err(ExchangeError::Pkey(pkey.get()));
        }
        let qpn = asking.asker_qpn.get();
        Ok(Question {
            pkey,
            asker_qpn: number(qpn).ok_or(ExchangeError::Qpn(qpn))?,
            asker: read(asking.family, asking.asker)?,
            asker_gid: of_port(asking.asker_gid)?,
            asked: read(asking.family, asking.asked)?,
        })
    }
}

impl Answer {
    /// The length of an answer in bytes.
    pub const LEN: usize = 40;

    /// The bytes as they stand in a SIDR_REP.
    pub fn bytes(&self) -> [u8; Self::LEN] {
        let (family, asked) = written(self.asked);
        let answering = Answering {
            version: VERSION,
            family,
            reserved: [0; 6],
            asked,
            gid: self.gid.bytes(),
        };
        zerocopy::transmute!(answering)
    }

    /// Finds an answer at the beginning of private data.
    ///
    /// # Errors
    ///
    /// [`ExchangeError`] for the first field that cannot be so.
    pub fn parse(private_data: &[u8]) -> Result<Answer, ExchangeError> {
        let (answering, _) =
            Answering::read_from_prefix(private_data).map_err(|_| ExchangeError::Short)?;
        check_version(answering.version)?;
        Ok(Answer {
            asked: read(answering.family, answering.asked)?,
            gid: of_port(answering.gid)?,
        })
    }
}

/// The queue pair of an interface: 24 bits, not one of management, nor the one that stands for a
/// group's members.
pub fn number(qpn: u32) -> Option<Qpn> {
    Qpn::new(qpn).filter(|qpn| !qpn.is_special() && *qpn != Qpn::MULTICAST)
}

/// Returns whether an address can be an interface's, as those of entries are: what is learned by an
/// exchange becomes one, which may be saved and loaded.
pub fn is_of_interface(address: &IpAddr) -> bool {
    check_address(*address).is_ok()
}

fn check_version(version: u8) -> Result<(), ExchangeError> {
    match version {
        VERSION => Ok(()),
        other => Err(ExchangeError::Version(other)),
    }
}

/// An address's family and its bytes: an IPv4 address is written as IPv6 maps it (RFC 4291
/// §2.5.5.2).
fn written(address: IpAddr) -> (u8, [u8; 16]) {
    match address {
        IpAddr::V4(address) => (IPV4, address.to_ipv6_mapped().octets()),
        IpAddr::V6(address) => (IPV6, address.octets()),
    }
}

fn read(family: u8, bytes: [u8; 16]) -> Result<IpAddr, ExchangeError> {
    let address = Ipv6Addr::from(bytes);
    let mapped: Option<Ipv4Addr> = address.to_ipv4_mapped();
    let address = match (family, mapped) {
        (IPV4, Some(address)) => IpAddr::V4(address),
        (IPV6, None) => IpAddr::V6(address),
        (IPV4 | IPV6, _) => return Err(ExchangeError::Address),
        _ => return Err(ExchangeError::Family(family)),
    };
    if is_of_interface(&address) {
        Ok(address)
    } else {
        Err(ExchangeError::Address)
    }
}

/// Takes a GID that an entry may have, too.
fn of_port(bytes: [u8; 16]) -> Result<Gid, ExchangeError> {
    parse_gid(&bytes).map_err(|_| ExchangeError::Gid)
}

/// The reason why private data is no question or no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExchangeError {
    /// The data is shorter than the format.
    Short,
    /// A version of the format that is not known.
    Version(u8),
    /// A family of addresses that is neither IPv4 nor IPv6.
    Family(u8),
    /// An address that is none of its family, or no interface's.
    Address,
    /// A GID that is no port's.
    Gid,
    /// A queue pair that is no interface's.
    Qpn(u32),
    /// A P_Key that names no partition.
    Pkey(u16),
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExchangeError::Short => f.write_str("it ends early"),
            ExchangeError::Version(number) => write!(f, "version {number} is not known"),
            ExchangeError::Family(number) => write!(f, "address family {number} is not known"),
            ExchangeError::Address => f.write_str("an address is no interface's"),
            ExchangeError::Gid => f.write_str("a GID is no port's"),
            ExchangeError::Qpn(number) => write!(f, "queue pair {number:#x} is no interface's"),
            ExchangeError::Pkey(number) => write!(f, "P_Key {number:#06x} names no partition"),
        }
    }
}

impl core::error::Error for ExchangeError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_exchange))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    const GID: Gid = Gid::from_bytes([
        0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 2, 0xc9, 3, 0, 0xf, 0xa1, 0xb1,
    ]);

    const QUESTION: Question = Question {
        pkey: Pkey::new(0x8001),
        asker_qpn: Qpn::from_bytes([0x12, 0x34, 0x56]),
        asker: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        asker_gid: GID,
        asked: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    };

    const BYTES: [u8; Question::LEN] = [
        1, 4, 0x80, 0x01, 0x00, 0x12, 0x34, 0x56, //
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1, //
        0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 2, 0xc9, 3, 0, 0xf, 0xa1, 0xb1, //
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 2,
    ];

    #[test]
    fn questions_on_the_wire() {
        assert_eq!(QUESTION.bytes(), BYTES);
        assert_eq!(Question::parse(&BYTES), Ok(QUESTION));
        // Private data is as long as its message has room.
        let mut long = [0; 216];
        if let Some(place) = long.first_chunk_mut() {
            *place = BYTES;
        }
        assert_eq!(Question::parse(&long), Ok(QUESTION));
        for length in 0..Question::LEN {
            let cut = BYTES.get(..length).unwrap_or(&BYTES);
            assert_eq!(Question::parse(cut), Err(ExchangeError::Short));
        }
    }

    #[test]
    fn answers_on_the_wire() {
        let asked = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
        let answer = Answer { asked, gid: GID };
        let bytes = answer.bytes();
        assert_eq!(
            bytes,
            [
                1, 6, 0, 0, 0, 0, 0, 0, //
                0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, //
                0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 2, 0xc9, 3, 0, 0xf, 0xa1, 0xb1,
            ]
        );
        assert_eq!(Answer::parse(&bytes), Ok(answer));
        for length in 0..Answer::LEN {
            let cut = bytes.get(..length).unwrap_or(&bytes);
            assert_eq!(Answer::parse(cut), Err(ExchangeError::Short));
        }
    }

    #[test]
    fn wrong_fields() {
        const LOOPBACK: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        // From which byte on, what is there, what is wrong.
        let table: [(usize, &[u8], ExchangeError); 17] = [
            (0, &[0], ExchangeError::Version(0)),
            (0, &[2], ExchangeError::Version(2)),
            (1, &[5], ExchangeError::Family(5)),
            (1, &[6], ExchangeError::Address),
            (2, &[0, 0], ExchangeError::Pkey(0)),
            (2, &[0x80, 0], ExchangeError::Pkey(0x8000)),
            (4, &[0, 0, 0, 1], ExchangeError::Qpn(1)),
            (4, &[0, 0xff, 0xff, 0xff], ExchangeError::Qpn(0xff_ffff)),
            (4, &[1, 0, 0, 2], ExchangeError::Qpn(0x0100_0002)),
            (18, &[0], ExchangeError::Address),
            (20, &[0], ExchangeError::Address),
            (20, &[127], ExchangeError::Address),
            (24, &[0xff], ExchangeError::Gid),
            (24, &[0; 16], ExchangeError::Gid),
            (24, LOOPBACK, ExchangeError::Gid),
            (52, &[224], ExchangeError::Address),
            (52, &[255, 255, 255, 255], ExchangeError::Address),
        ];
        for (at, wrong, error) in table {
            let mut bytes = BYTES;
            for (to, from) in bytes.iter_mut().skip(at).zip(wrong) {
                *to = *from;
            }
            assert_eq!(Question::parse(&bytes), Err(error));
        }
    }

    #[test]
    fn the_service_is_nobody_elses() {
        assert!(!SERVICE.is_locally_assigned());
        assert!(!SERVICE.is_rdma_ip_cm());
        let [agn, company, ..] = SERVICE.get().to_be_bytes();
        assert_eq!(agn, 0x10);
        assert_eq!(company & 1, 1);
    }
}
