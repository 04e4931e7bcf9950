// SPDX-License-Identifier: GPL-2.0-only

//! The requests by which the stack looks for a neighbour, and the answers that stand in for the
//! neighbour's: ARP (RFC 826) and neighbour discovery (RFC 4861).

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};
use zerocopy::{
    FromBytes as _,
    IntoBytes as _, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::arp;
use super::encap::EtherType;
use super::hwaddr::HwAddr;
use super::ipv6::{
    Ipv6,
    ICMPV6, //
};
use super::nd;
use super::offload::{
    add,
    sum, //
};

/// The hop limit of neighbour discovery: a packet with another one is not of the link (RFC 4861
/// §7.1).
const HOPS: u8 = 255;

/// Neighbour solicitation and advertisement (RFC 4861 §4.3, §4.4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

/// Flags of an advertisement (RFC 4861 §4.4).
const ROUTER: u32 = 1 << 31;
const SOLICITED: u32 = 1 << 30;
const OVERRIDE: u32 = 1 << 29;

/// The fixed part of neighbour solicitation and advertisement (RFC 4861 §4.3, §4.4).
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Neighbour {
    number: u8,
    code: u8,
    checksum: U16,
    flags: U32,
    target: [u8; 16],
}

/// A neighbour advertisement with its IPv6 header.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Advertisement {
    ip: Ipv6,
    neighbour: Neighbour,
    option: nd::LinkLayerOption,
}

const _: () = assert!(size_of::<Advertisement>() == ADVERTISEMENT_LEN);

/// Length in bytes of an advertisement with its IPv6 header.
pub const ADVERTISEMENT_LEN: usize = 88;

/// Length in bytes of the longest answer.
pub const LEN: usize = ADVERTISEMENT_LEN;

/// A node looks for the hardware address of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// An address of the node that asks.
    pub asker: IpAddr,
    /// The address of the neighbour that is looked for.
    pub target: IpAddr,
}

/// An answer, as a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    bytes: [u8; LEN],
    length: usize,
    ethertype: EtherType,
}

impl Reply {
    /// The datagram, without encapsulation header.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }

    /// The protocol of the answer.
    pub const fn ethertype(&self) -> EtherType {
        self.ethertype
    }
}

impl Request {
    /// Reads the request in a datagram of this type, if it looks for a neighbour on behalf of a
    /// node that has the address it asks from. That leaves out announcements (gratuitous ARP) and
    /// probes for whether an address is free (from no address: RFC 5227, RFC 4862 §5.4.2), which
    /// others have to hear.
    pub fn of(ethertype: EtherType, datagram: &[u8]) -> Option<Request> {
        let request = match ethertype {
            EtherType::Arp => Self::of_arp(datagram),
            EtherType::Ipv6 => Self::of_nd(datagram),
            _ => None,
        }?;
        let is_somebody = |address: IpAddr| !address.is_unspecified() && !address.is_multicast();
        (is_somebody(request.asker)
            && is_somebody(request.target)
            && request.asker != request.target)
            .then_some(request)
    }

    fn of_arp(datagram: &[u8]) -> Option<Request> {
        let (operation, packet) = arp::Packet::parse(datagram).ok()?;
        let address = |party: arp::Party| IpAddr::V4(Ipv4Addr::from(party.protocol));
        (operation == arp::Operation::Request).then(|| Request {
            asker: address(packet.sender()),
            target: address(packet.target()),
        })
    }

    fn of_nd(datagram: &[u8]) -> Option<Request> {
        let (ip, rest) = Ipv6::ref_from_prefix(datagram).ok()?;
        let (neighbour, _) = Neighbour::ref_from_prefix(rest).ok()?;
        let asks = ip.next == ICMPV6
            && ip.hops == HOPS
            && usize::from(ip.length.get()) >= size_of::<Neighbour>()
            && neighbour.number == SOLICITATION
            && neighbour.code == 0;
        asks.then(|| Request {
            asker: IpAddr::V6(Ipv6Addr::from(ip.source)),
            target: IpAddr::V6(Ipv6Addr::from(neighbour.target)),
        })
    }

    /// Returns the answer of the neighbour, as if it was at `neighbour`, to the asker at `asker`;
    /// `router` says that the neighbour is known to be an IPv6 router. `None` if the addresses
    /// are not of one family.
    pub fn answer(&self, asker: HwAddr, neighbour: HwAddr, router: bool) -> Option<Reply> {
        match (self.asker, self.target) {
            (IpAddr::V4(from), IpAddr::V4(target)) => {
                let party = |hardware, address: Ipv4Addr| arp::Party {
                    hardware,
                    protocol: address.octets(),
                };
                let packet = arp::Packet::reply(party(neighbour, target), party(asker, from));
                Some(Reply::new(EtherType::Arp, &packet.bytes()))
            }
            (IpAddr::V6(from), IpAddr::V6(target)) => {
                let message = advertisement(from.octets(), target.octets(), neighbour, router);
                Some(Reply::new(EtherType::Ipv6, message.as_bytes()))
            }
            _ => None,
        }
    }
}

impl Reply {
    fn new(ethertype: EtherType, datagram: &[u8]) -> Reply {
        let mut bytes = [0; LEN];
        for (to, from) in bytes.iter_mut().zip(datagram) {
            *to = *from;
        }
        Reply {
            bytes,
            length: datagram.len().min(LEN),
            ethertype,
        }
    }
}

fn advertisement(to: [u8; 16], target: [u8; 16], neighbour: HwAddr, router: bool) -> Advertisement {
    let length = (size_of::<Neighbour>() + nd::LEN) as u16;
    let flags = SOLICITED | OVERRIDE | if router { ROUTER } else { 0 };
    let mut message = Advertisement {
        ip: Ipv6 {
            version: [0x60, 0, 0, 0],
            length: U16::new(length),
            next: ICMPV6,
            hops: HOPS,
            source: target,
            destination: to,
        },
        neighbour: Neighbour {
            number: ADVERTISEMENT,
            code: 0,
            checksum: U16::ZERO,
            flags: U32::new(flags),
            target,
        },
        option: nd::LinkLayerOption::new(nd::Kind::Target, neighbour),
    };
    message.neighbour.checksum = U16::new(!total(&message));
    message
}

/// The sum of all that the checksum covers (RFC 4443 §2.3).
fn total(message: &Advertisement) -> u16 {
    let addresses = add(sum(&message.ip.source), sum(&message.ip.destination));
    let rest = add(message.ip.length.get(), u16::from(ICMPV6));
    let body = add(
        sum(message.neighbour.as_bytes()),
        sum(message.option.as_bytes()),
    );
    add(add(addresses, rest), body)
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_resolution))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::super::gid::Gid;
    use super::super::qpn::Qpn;
    use super::*;

    const OWN: HwAddr = HwAddr::new(Qpn::from_bytes([0, 0, 0x12]), Gid::from_ipv4([10, 0, 0, 1]));
    const PEER: HwAddr = HwAddr::new(Qpn::from_bytes([0, 0, 0x34]), Gid::from_ipv4([10, 0, 0, 2]));

    const fn party(n: u8) -> arp::Party {
        arp::Party {
            hardware: OWN,
            protocol: [192, 0, 2, n],
        }
    }

    const fn v4(n: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, n))
    }

    const fn v6(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n)
    }

    #[test]
    fn arp_asks_for_another() {
        let request = arp::Packet::request(party(1), [192, 0, 2, 2]).bytes();
        let expected = Request {
            asker: v4(1),
            target: v4(2),
        };
        assert_eq!(Request::of(EtherType::Arp, &request), Some(expected));
        assert_eq!(Request::of(EtherType::Ipv4, &request), None);
        let nobody = arp::Party {
            protocol: [0; 4],
            ..party(1)
        };
        for other in [
            // An announcement, a probe, a reply.
            arp::Packet::request(party(1), [192, 0, 2, 1]),
            arp::Packet::request(nobody, [192, 0, 2, 2]),
            arp::Packet::reply(party(1), party(2)),
        ] {
            assert_eq!(Request::of(EtherType::Arp, &other.bytes()), None);
        }
        let Some(reply) = expected.answer(OWN, PEER, false) else {
            panic!("no answer");
        };
        assert_eq!(reply.ethertype(), EtherType::Arp);
        let Ok((operation, packet)) = arp::Packet::parse(reply.bytes()) else {
            panic!("no ARP packet");
        };
        assert_eq!(operation, arp::Operation::Reply);
        assert_eq!(packet.sender().hardware, PEER);
        assert_eq!(packet.sender().protocol, [192, 0, 2, 2]);
        assert_eq!(packet.target(), party(1));
        assert_eq!(reply.bytes().len(), arp::LEN);
    }

    fn solicitation(source: Ipv6Addr, target: Ipv6Addr) -> Advertisement {
        let mut message = advertisement([0xff; 16], target.octets(), OWN, false);
        message.ip.source = source.octets();
        message.neighbour.number = SOLICITATION;
        message
    }

    #[test]
    fn neighbour_discovery_asks_for_another() {
        let message = solicitation(v6(1), v6(2));
        let found = Request::of(EtherType::Ipv6, message.as_bytes());
        let expected = Request {
            asker: IpAddr::V6(v6(1)),
            target: IpAddr::V6(v6(2)),
        };
        assert_eq!(found, Some(expected));
        for length in 0..size_of::<Ipv6>() + size_of::<Neighbour>() {
            let cut = message.as_bytes().get(..length).unwrap_or_default();
            assert_eq!(Request::of(EtherType::Ipv6, cut), None);
        }
        // Whether an address is free, and what is about nobody else.
        for other in [
            solicitation(Ipv6Addr::UNSPECIFIED, v6(2)),
            solicitation(v6(2), v6(2)),
            solicitation(v6(1), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
        ] {
            assert_eq!(Request::of(EtherType::Ipv6, other.as_bytes()), None);
        }
        // One byte that is another.
        for (at, value) in [(6, 17), (7, 254), (5, 23), (40, 136), (41, 1)] {
            let mut bytes: [u8; LEN] = zerocopy::transmute!(message);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            assert_eq!(Request::of(EtherType::Ipv6, &bytes), None);
        }
    }

    #[test]
    fn advertisements_are_whole() {
        let request = Request {
            asker: IpAddr::V6(v6(1)),
            target: IpAddr::V6(v6(2)),
        };
        for router in [false, true] {
            let Some(reply) = request.answer(OWN, PEER, router) else {
                panic!("no answer");
            };
            assert_eq!(reply.ethertype(), EtherType::Ipv6);
            let Ok(message) = Advertisement::ref_from_bytes(reply.bytes()) else {
                panic!("no advertisement");
            };
            assert_eq!(total(message), 0xffff);
            assert_eq!(message.ip.source, v6(2).octets());
            assert_eq!(message.ip.destination, v6(1).octets());
            let says_router = message.neighbour.flags.get() & ROUTER != 0;
            assert_eq!(says_router, router);
            assert_eq!(message.option.address(), PEER);
        }
    }

    #[test]
    fn families_are_not_mixed() {
        let request = Request {
            asker: v4(1),
            target: IpAddr::V6(v6(2)),
        };
        assert_eq!(request.answer(OWN, PEER, false), None);
    }
}
