// SPDX-License-Identifier: GPL-2.0-only

//! Inbound load balancing: an interface that receives by several queue pairs and tells each peer
//! the number of one (RFC 4861 §3.1, which has it for neighbour discovery; ARP is made to do the
//! same).
//!
//! A peer knows the address that it was last told, so it must be told the same one each time, or
//! its entry would alternate. Which one is a matter of the peer's GID ([`choose`]). What goes to
//! one peer can say it ([`tell`]); what goes to a group reaches many, of which each has another
//! one, so it gives no address of ours wherever the protocol lets it ([`ask`]).
//!
//! | packet to a group | as it leaves | why that does |
//! | --- | --- | --- |
//! | ARP request | as it is, with the main queue pair's number | peers have the main number until they are told theirs again, right after. Without the sender's IPv4 address it would be a probe (RFC 5227 §2.1.1), which is a conflict for any peer that verifies the target's address, passes `arp_filter` and gets no answer of proxies |
//! | neighbour solicitation | without the source's address, and once more [`direct`] | a peer that has an entry of the source answers the first; a peer that has none answers the second and asks for the source's address before (RFC 4861 §7.2.4) |
//! | router solicitation and advertisement | without the source's address | RFC 4861 §4.1, §4.2 |
//! | announcement (gratuitous ARP, unsolicited advertisement) | as it is, unless it is known to tell nothing new | it takes an IP address over from another node, which all must hear |

use zerocopy::byteorder::big_endian::U16;
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
use super::gid::Gid;
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
use super::qpn::Qpn;

/// The header that all messages of ICMPv6 begin with (RFC 4443 §2.1).
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Icmpv6 {
    number: u8,
    code: u8,
    checksum: U16,
}

impl Icmpv6 {
    /// Corrects the checksum after `old` has become `new`, both sums (RFC 1624 §3).
    fn replace(&mut self, old: u16, new: u16) {
        let now = add(add(!self.checksum.get(), !old), new);
        self.checksum = U16::new(!now);
    }
}

/// The fixed part of neighbour solicitation and advertisement, without [`Icmpv6`] (RFC 4861 §4.3).
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Neighbour {
    flags: [u8; 4],
    target: [u8; 16],
}

/// Messages of neighbour discovery that give a node's own address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Discovery {
    RouterSolicitation,
    RouterAdvertisement,
    NeighbourSolicitation,
    NeighbourAdvertisement,
}

impl Discovery {
    /// Returns the message that has this ICMPv6 type (RFC 4861 §4), if it is one of these.
    const fn of(number: u8) -> Option<Discovery> {
        Some(match number {
            133 => Discovery::RouterSolicitation,
            134 => Discovery::RouterAdvertisement,
            135 => Discovery::NeighbourSolicitation,
            136 => Discovery::NeighbourAdvertisement,
            _ => return None,
        })
    }

    /// Bytes between [`Icmpv6`] and the options.
    const fn fixed(self) -> usize {
        match self {
            Discovery::RouterSolicitation => 4,
            Discovery::RouterAdvertisement => 12,
            Discovery::NeighbourSolicitation | Discovery::NeighbourAdvertisement => {
                size_of::<Neighbour>()
            }
        }
    }

    const fn option(self) -> nd::Kind {
        match self {
            Discovery::NeighbourAdvertisement => nd::Kind::Target,
            _ => nd::Kind::Source,
        }
    }
}

/// A message of neighbour discovery.
struct Message<'a> {
    what: Discovery,
    ip: &'a mut Ipv6,
    icmp: &'a mut Icmpv6,
    /// The bytes behind [`Icmpv6`].
    body: &'a mut [u8],
}

impl<'a> Message<'a> {
    fn parse(datagram: &'a mut [u8]) -> Option<Message<'a>> {
        let (ip, rest) = Ipv6::mut_from_prefix(datagram).ok()?;
        if ip.next != ICMPV6 {
            return None;
        }
        let message = rest.get_mut(..usize::from(ip.length.get()))?;
        let (icmp, body) = Icmpv6::mut_from_prefix(message).ok()?;
        let what = Discovery::of(icmp.number)?;
        Some(Message {
            what,
            ip,
            icmp,
            body,
        })
    }

    /// Returns whether there is an option that gives `own`.
    fn gives(&self, own: HwAddr) -> bool {
        let options = self.body.get(self.what.fixed()..).unwrap_or_default();
        nd::find(options, self.what.option())
            .is_ok_and(|found| found.is_some_and(|address| is_same(address, own)))
    }

    /// Changes the option that gives `own`, if there is one. Returns whether there is.
    fn change(&mut self, own: HwAddr, change: impl FnOnce(&mut nd::LinkLayerOption)) -> bool {
        let options = self.body.get_mut(self.what.fixed()..).unwrap_or_default();
        let Ok(Some(option)) = nd::find_mut(options, self.what.option()) else {
            return false;
        };
        if !is_same(option.address(), own) {
            return false;
        }
        let old = sum(option.as_bytes());
        change(option);
        self.icmp.replace(old, sum(option.as_bytes()));
        true
    }
}

/// Returns whether both are the same queue pair's. The connections on offer come and go.
fn is_same(one: HwAddr, other: HwAddr) -> bool {
    one.with_flags(0) == other.with_flags(0)
}

/// Returns which of `count` receive queues a peer at `gid` is given: always the same one.
pub const fn choose(gid: &Gid, count: u32) -> u32 {
    let bits = u128::from_be_bytes(gid.bytes());
    let mut hash = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
    // The numbers of one vendor's ports differ in few bits: each is to reach all of the hash.
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^= hash >> 33;
    ((hash >> 32) * count as u64 >> 32) as u32
}

/// Writes `qpn` into the address of a datagram to one peer, if it gives `own`. Returns whether it
/// does.
pub fn tell(ethertype: EtherType, datagram: &mut [u8], own: HwAddr, qpn: Qpn) -> bool {
    match ethertype {
        EtherType::Arp => {
            let Ok((_, packet)) = arp::Packet::parse_mut(datagram) else {
                return false;
            };
            let sender = packet.sender();
            let told = is_same(sender.hardware, own);
            if told {
                packet.set_sender(arp::Party {
                    hardware: sender.hardware.with_qpn(qpn),
                    ..sender
                });
            }
            told
        }
        EtherType::Ipv6 => Message::parse(datagram).is_some_and(|mut message| {
            message.change(own, |option| {
                option.set_address(option.address().with_qpn(qpn))
            })
        }),
        _ => false,
    }
}

/// The kind of a datagram to a group, as [`ask`] finds and leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A datagram that gives no address of ours; it is as it was.
    Nothing,
    /// A datagram that gave our address, and does not any more.
    Silent,
    /// A datagram that gave our address, and does not any more; a copy of it, made [`direct`], is
    /// to be sent too.
    Twice,
    /// A datagram that gives all nodes of the link the main queue pair's number, as an ARP request
    /// or an announcement has to; it is as it was.
    Announced,
}

/// Keeps a datagram to a group from giving the address `own`, wherever the protocol lets it.
/// Announcements give it unless what they announce is `known`.
pub fn ask(ethertype: EtherType, datagram: &mut [u8], own: HwAddr, known: bool) -> Asked {
    match ethertype {
        EtherType::Arp => ask_arp(datagram, own, known),
        EtherType::Ipv6 => {
            Message::parse(datagram).map_or(Asked::Nothing, |message| ask_nd(message, own, known))
        }
        _ => Asked::Nothing,
    }
}

fn ask_arp(datagram: &mut [u8], own: HwAddr, known: bool) -> Asked {
    const NOBODY: [u8; 4] = [0; 4];
    let Ok((operation, packet)) = arp::Packet::parse_mut(datagram) else {
        return Asked::Nothing;
    };
    let sender = packet.sender();
    if !is_same(sender.hardware, own) || sender.protocol == NOBODY {
        return Asked::Nothing;
    }
    // A reply cannot be made to give no address, a question must not.
    let is_gratuitous =
        operation == arp::Operation::Request && sender.protocol == packet.target().protocol;
    if !(is_gratuitous && known) {
        return Asked::Announced;
    }
    packet.set_sender(arp::Party {
        protocol: NOBODY,
        ..sender
    });
    Asked::Silent
}

fn ask_nd(mut message: Message<'_>, own: HwAddr, known: bool) -> Asked {
    let announces = message.what == Discovery::NeighbourAdvertisement;
    if announces && !known {
        return if message.gives(own) {
            Asked::Announced
        } else {
            Asked::Nothing
        };
    }
    let mut silenced = false;
    // Of several options the first counts, so the next must not come to be that.
    while message.change(own, nd::LinkLayerOption::hide) {
        silenced = true;
    }
    match (silenced, message.what) {
        (false, _) => Asked::Nothing,
        (true, Discovery::NeighbourSolicitation) => Asked::Twice,
        (true, _) => Asked::Silent,
    }
}

/// Makes a neighbour solicitation one for its target alone, though it travels to a group: the
/// target then has to know the source's address to answer. Returns whether it was a solicitation.
pub fn direct(datagram: &mut [u8]) -> bool {
    let Some(message) = Message::parse(datagram) else {
        return false;
    };
    let Ok((neighbour, _)) = Neighbour::ref_from_prefix(message.body) else {
        return false;
    };
    if message.what != Discovery::NeighbourSolicitation {
        return false;
    }
    // The destination is part of what the checksum covers.
    let (old, new) = (sum(&message.ip.destination), sum(&neighbour.target));
    message.ip.destination = neighbour.target;
    message.icmp.replace(old, new);
    true
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_inbound))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    const GID: Gid = Gid::from_bytes([
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1,
    ]);
    const OWN: HwAddr = HwAddr::new(Qpn::from_bytes([0, 0, 0x12]), GID);
    const OTHER: HwAddr = HwAddr::new(Qpn::from_bytes([0, 0, 0x13]), GID);
    const TOLD: Qpn = Qpn::from_bytes([0xab, 0xcd, 0xef]);

    const fn party(hardware: HwAddr, n: u8) -> arp::Party {
        arp::Party {
            hardware,
            protocol: [192, 0, 2, n],
        }
    }

    /// fe80::1 asks the group of 2001:db8::2:3 for it, at queue pair 0x000012, with the checksum.
    const SOLICITATION: [u8; 88] = [
        0x60, 0, 0, 0, 0, 48, 58, 255, //
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
        0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2, 0, 3, //
        135, 0, 0xe3, 0xee, 0, 0, 0, 0, //
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, //
        1, 3, 0, 0, 0, 0, 0, 0x12, //
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1,
    ];

    /// The solicitation as it leaves to the group.
    const SILENT: [u8; 88] = [
        0x60, 0, 0, 0, 0, 48, 58, 255, //
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, //
        0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2, 0, 3, //
        135, 0, 0x51, 0x47, 0, 0, 0, 0, //
        0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, //
        253, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    /// Returns whether the sum of the whole message is the one of a right checksum.
    fn sums_up(datagram: &[u8]) -> bool {
        let (header, message) = datagram.split_at_checked(40).unwrap_or_default();
        let addresses = header.get(8..).unwrap_or_default();
        let length = message.len() as u16;
        let pseudo = add(add(sum(addresses), length), u16::from(ICMPV6));
        add(pseudo, sum(message)) == u16::MAX
    }

    #[test]
    fn choice_is_spread_and_golden() {
        // A peer that changed its queue with a new version would be told something else then.
        for (count, queue) in [(1, 0), (2, 1), (4, 2), (64, 37)] {
            assert_eq!(choose(&GID, count), queue);
        }
        let mut counts = [0_u32; 4];
        for last in 0..=255 {
            let mut bytes = GID.bytes();
            if let Some(byte) = bytes.last_mut() {
                *byte = last;
            }
            let gid = Gid::from_bytes(bytes);
            assert_eq!(choose(&gid, 1), 0);
            if let Some(count) = counts.get_mut(choose(&gid, 4) as usize) {
                *count += 1;
            }
            assert!(choose(&gid, 64) < 64);
        }
        assert_eq!(counts.iter().sum::<u32>(), 256);
        assert!(counts.iter().all(|count| (40..90).contains(count)));
    }

    #[test]
    fn arp_to_a_peer() {
        let (own, peer) = (party(OWN.with_flags(HwAddr::RC), 1), party(OTHER, 2));
        let told = party(own.hardware.with_qpn(TOLD), 1);
        for (before, after) in [
            (
                arp::Packet::reply(own, peer),
                Some(arp::Packet::reply(told, peer)),
            ),
            (
                arp::Packet::request(own, [192, 0, 2, 2]),
                Some(arp::Packet::request(told, [192, 0, 2, 2])),
            ),
            // Of another interface, as a bridge of protocols might send.
            (arp::Packet::reply(peer, own), None),
        ] {
            let mut bytes = before.bytes();
            assert_eq!(tell(EtherType::Arp, &mut bytes, OWN, TOLD), after.is_some());
            assert_eq!(bytes, after.unwrap_or(before).bytes());
        }
    }

    #[test]
    fn arp_to_all() {
        let own = party(OWN, 1);
        let nobody = arp::Party {
            protocol: [0; 4],
            ..own
        };
        let request = arp::Packet::request(own, [192, 0, 2, 2]);
        let probe = arp::Packet::request(nobody, [192, 0, 2, 2]);
        let gratuitous = arp::Packet::request(own, own.protocol);
        let reply = arp::Packet::reply(own, own);
        let foreign = arp::Packet::request(party(OTHER, 2), [192, 0, 2, 1]);
        for (before, known, asked, after) in [
            (request, false, Asked::Announced, request),
            (request, true, Asked::Announced, request),
            (probe, false, Asked::Nothing, probe),
            (gratuitous, false, Asked::Announced, gratuitous),
            (
                gratuitous,
                true,
                Asked::Silent,
                arp::Packet::request(nobody, own.protocol),
            ),
            (reply, false, Asked::Announced, reply),
            (reply, true, Asked::Announced, reply),
            (foreign, false, Asked::Nothing, foreign),
        ] {
            let mut bytes = before.bytes();
            assert_eq!(ask(EtherType::Arp, &mut bytes, OWN, known), asked);
            assert_eq!(bytes, after.bytes());
        }
    }

    #[test]
    fn solicitation_on_the_wire() {
        assert!(sums_up(&SOLICITATION));
        let mut bytes = SOLICITATION;
        assert_eq!(ask(EtherType::Ipv6, &mut bytes, OWN, false), Asked::Twice);
        assert_eq!(bytes, SILENT);
        assert!(sums_up(&bytes));
        assert_eq!(ask(EtherType::Ipv6, &mut bytes, OWN, false), Asked::Nothing);
        assert!(direct(&mut bytes));
        assert!(sums_up(&bytes));
        assert_eq!(bytes.get(24..40), SOLICITATION.get(48..64));
    }

    #[test]
    fn solicitation_to_a_peer() {
        let mut bytes = SOLICITATION;
        assert!(!tell(EtherType::Ipv6, &mut bytes, OTHER, TOLD));
        assert_eq!(bytes, SOLICITATION);
        assert!(tell(EtherType::Ipv6, &mut bytes, OWN, TOLD));
        assert!(sums_up(&bytes));
        assert_eq!(bytes.get(69..72), Some(&TOLD.bytes()[..]));
    }

    /// The solicitation as another message, with its option behind `fixed` bytes.
    fn as_other(number: u8, fixed: usize, option: u8) -> [u8; 88] {
        let mut bytes = SOLICITATION;
        bytes[40] = number;
        bytes[44..].fill(0);
        bytes[44 + fixed..][..24].copy_from_slice(&SOLICITATION[64..]);
        bytes[44 + fixed] = option;
        bytes[5] = (4 + fixed + 24) as u8;
        bytes
    }

    #[test]
    fn other_messages_to_groups() {
        for (number, fixed, option, known, asked) in [
            (133, 4, 1, false, Asked::Silent),
            (134, 12, 1, false, Asked::Silent),
            (136, 20, 2, false, Asked::Announced),
            (136, 20, 2, true, Asked::Silent),
            // Echo is about nobody.
            (128, 4, 1, false, Asked::Nothing),
            // The option of the other kind.
            (135, 20, 2, false, Asked::Nothing),
        ] {
            let mut bytes = as_other(number, fixed, option);
            assert_eq!(ask(EtherType::Ipv6, &mut bytes, OWN, known), asked);
            let gone = bytes[44 + fixed] == 253;
            assert_eq!(gone, asked == Asked::Silent);
        }
    }

    #[test]
    fn announcement_is_left_alone() {
        // Of the two ways to write zero as a checksum, it keeps its own.
        let mut bytes = as_other(136, 20, 2);
        bytes[42..44].fill(0xff);
        let before = bytes;
        assert_eq!(
            ask(EtherType::Ipv6, &mut bytes, OWN, false),
            Asked::Announced
        );
        assert_eq!(bytes, before);
    }

    #[test]
    fn cut_messages_are_left_alone() {
        for length in 0..SOLICITATION.len() {
            let mut bytes = SOLICITATION;
            let cut = bytes.get_mut(..length).unwrap_or_default();
            assert!(!tell(EtherType::Ipv6, cut, OWN, TOLD));
            assert_eq!(ask(EtherType::Ipv6, cut, OWN, false), Asked::Nothing);
            assert!(!direct(cut));
            assert_eq!(bytes, SOLICITATION);
        }
    }
}
