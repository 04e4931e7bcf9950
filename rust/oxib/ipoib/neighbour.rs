// SPDX-License-Identifier: GPL-2.0-only

//! Hints in address resolution to the ports that neighbours are at.
//!
//! A port may get another LID and nobody tells its peers; those that run the kernel's driver then
//! send to the old one for ever. Two things give it away. The neighbour stops answering, which
//! the stack notices. And what the neighbour says of itself comes from another LID than its path
//! leads to.

use core::{
    net::IpAddr,
    ops::RangeInclusive, //
};

use kernel::sync::Arc;

use super::{
    address::FRESH_SECS,
    interface::Interface, //
};
use crate::{
    acm::{
        budget::SPREAD,
        sources::Source, //
    },
    rdma::management::random,
    wire::{
        arp,
        encap::EtherType,
        gid::Gid,
        hwaddr::HwAddr,
        nd, //
    },
};

/// Time until a hint is followed up that could not be at once, in milliseconds.
const MOVE_HINT_MS: u32 = 1000 * FRESH_SECS as u32 + 100;

/// Length of the IPv6 header, and of the fixed part of the messages below.
const IPV6_LEN: usize = 40;
const FIXED_LEN: usize = 24;

/// Offsets of the source in the IPv6 header, and of the target address in an advertisement.
const SOURCE: usize = 8;
const TARGET: usize = 8;

/// The next header of ICMPv6, and where the header says what is next (RFC 8200 §3).
const ICMPV6: u8 = 58;
const NEXT_HEADER: usize = 6;

/// The messages of neighbour discovery by which a node tells of itself: router and neighbour
/// solicitation and advertisement (RFC 4861 §4).
const DISCOVERY: RangeInclusive<u8> = 133..=136;

/// Neighbour solicitation and advertisement (RFC 4861 §4.3, §4.4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

/// Bytes of a datagram that [`may_tell`] reads.
pub(super) const SEEN: usize = IPV6_LEN + 1;

/// Returns whether a datagram of that type may be one by which a neighbour tells of itself. Of
/// one that is cut before [`SEEN`] bytes, that is not known.
#[inline(always)]
pub(super) fn may_tell(ethertype: EtherType, datagram: &[u8]) -> bool {
    match ethertype {
        EtherType::Arp => true,
        EtherType::Ipv6 => {
            datagram.get(NEXT_HEADER) == Some(&ICMPV6)
                && datagram
                    .get(IPV6_LEN)
                    .is_none_or(|number| DISCOVERY.contains(number))
        }
        _ => false,
    }
}

/// Returns the addresses that the sender of a datagram claims.
fn claimed(ethertype: EtherType, datagram: &[u8]) -> Option<(IpAddr, HwAddr)> {
    if ethertype == EtherType::Arp {
        let (_, packet) = arp::Packet::parse(datagram).ok()?;
        let sender = packet.sender();
        return Some((IpAddr::from(sender.protocol), sender.hardware));
    }
    let message = datagram.get(IPV6_LEN..)?;
    let (kind, address) = match *message.first()? {
        SOLICITATION => (nd::Kind::Source, datagram.get(SOURCE..)?),
        ADVERTISEMENT => (nd::Kind::Target, message.get(TARGET..)?),
        _ => return None,
    };
    let address = *address.first_chunk::<16>()?;
    let hardware = nd::find(message.get(FIXED_LEN..)?, kind).ok()??;
    Some((IpAddr::from(address), hardware))
}

/// Returns whether a datagram answers a question for a neighbour.
pub(super) fn is_answer(ethertype: EtherType, datagram: &[u8]) -> bool {
    match ethertype {
        EtherType::Arp => arp::Packet::parse(datagram)
            .is_ok_and(|(operation, _)| operation == arp::Operation::Reply),
        EtherType::Ipv6 => {
            datagram.get(NEXT_HEADER) == Some(&ICMPV6)
                && datagram.get(IPV6_LEN) == Some(&ADVERTISEMENT)
        }
        _ => false,
    }
}

/// Returns whether a datagram is a question for a neighbour or answers one.
pub(super) fn is_resolution(ethertype: EtherType, datagram: &[u8]) -> bool {
    match ethertype {
        EtherType::Arp => true,
        EtherType::Ipv6 => {
            datagram.get(NEXT_HEADER) == Some(&ICMPV6)
                && matches!(
                    datagram.get(IPV6_LEN),
                    Some(&(SOLICITATION | ADVERTISEMENT))
                )
        }
        _ => false,
    }
}

impl Interface {
    /// Takes notice of a datagram that came from LID `lid` (0 on RoCE) and, if it says so, from the
    /// GID `source`.
    #[cold]
    pub(super) fn heard(
        self: &Arc<Self>,
        ethertype: EtherType,
        datagram: &[u8],
        lid: u16,
        source: Option<Gid>,
    ) {
        let Some((ip, address)) = claimed(ethertype, datagram) else {
            return;
        };
        let gid = address.gid();
        let is_question = !is_answer(ethertype, datagram);
        self.note_asker(is_question, gid, self.link().source(lid, source));
        if lid == 0 {
            return;
        }
        self.heard_of(ip, address);
        if !self.is_elsewhere(&gid, lid) {
            return;
        }
        let (now, destinations) = (self.now(), self.destinations.lock());
        let is_early = destinations.is_fresh(&gid, now) || destinations.is_due(&gid, now);
        drop(destinations);
        if is_early || !self.link().take_query_token() {
            // It may be said once only.
            return self.follow_move_later(&gid);
        }
        self.forget_paths_to(&gid);
        if self.destinations.lock().invalidate(&gid) {
            // Spread: an announcement reaches all nodes at once, and each of them asks the SA.
            self.revalidate_soon(random() % SPREAD);
        }
    }

    /// Takes notice of a datagram that came by a connection, which `source` has made. The LID that
    /// it came from is not known, so it shows no move.
    #[cold]
    pub(super) fn heard_by_connection(
        &self,
        ethertype: EtherType,
        datagram: &[u8],
        source: Source,
    ) {
        if let Some((_, address)) = claimed(ethertype, datagram) {
            self.note_asker(!is_answer(ethertype, datagram), address.gid(), source);
        }
    }

    /// Takes notice that the neighbour at `gid` has moved, which is followed up when there is time
    /// for it. Any context.
    pub(super) fn follow_move_later(self: &Arc<Self>, gid: &Gid) {
        let (now, mut destinations) = (self.now(), self.destinations.lock());
        if destinations.note_move_hint(gid, now) {
            self.revalidate_soon(MOVE_HINT_MS);
        }
    }

    /// Returns whether something from LID `lid` shows that what is known of the path to `gid` is
    /// wrong.
    pub(super) fn is_elsewhere(&self, gid: &Gid, lid: u16) -> bool {
        let destinations = self.destinations.lock();
        match destinations.handle(gid) {
            Some(handle) => !self.link().is_same_port(handle.lid(), lid),
            // One that was not found is there after all.
            None => destinations.is_missing(gid),
        }
    }

    /// Takes notice of a neighbour that does not answer at `gid` any more.
    pub(super) fn neighbour_failed(self: &Arc<Self>, gid: &Gid) {
        if gid.is_multicast() {
            return;
        }
        let (now, mut destinations) = (self.now(), self.destinations.lock());
        let is_doubtful = destinations.neighbour_failed(gid, now);
        drop(destinations);
        if is_doubtful {
            self.invalidate_destination(gid);
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_neighbour)]
mod tests {
    use kernel::prelude::*;

    use super::*;

    /// Returns the hardware address that the sender of a datagram claims.
    fn sender(ethertype: EtherType, datagram: &[u8]) -> Option<HwAddr> {
        Some(claimed(ethertype, datagram)?.1)
    }

    const ADDRESS: HwAddr = HwAddr::from_bytes([7; 20]);
    const OTHER: HwAddr = HwAddr::from_bytes([9; 20]);

    fn party(hardware: HwAddr, n: u8) -> arp::Party {
        arp::Party {
            hardware,
            protocol: [10, 0, 0, n],
        }
    }

    /// A message of neighbour discovery with one option.
    fn message(next: u8, number: u8, option: nd::LinkLayerOption) -> Result<KVec<u8>> {
        let mut bytes = KVec::from_elem(0, IPV6_LEN + FIXED_LEN, GFP_KERNEL)?;
        bytes[NEXT_HEADER] = next;
        bytes[IPV6_LEN] = number;
        bytes.extend_from_slice(&option.bytes(), GFP_KERNEL)?;
        Ok(bytes)
    }

    #[test]
    fn answers_are_told_from_questions() {
        let question = arp::Packet::request(party(ADDRESS, 1), [10, 0, 0, 2]).bytes();
        assert!(!is_answer(EtherType::Arp, &question));
        assert!(is_resolution(EtherType::Arp, &question));
        let mut answer = question;
        // The operation: a reply.
        answer[7] = 2;
        assert!(is_answer(EtherType::Arp, &answer));
        assert!(is_resolution(EtherType::Arp, &answer));
        let mut message = [0; SEEN];
        message[NEXT_HEADER] = ICMPV6;
        for kind in DISCOVERY {
            message[IPV6_LEN] = kind;
            assert_eq!(is_answer(EtherType::Ipv6, &message), kind == ADVERTISEMENT);
            let is_of_neighbours = kind == SOLICITATION || kind == ADVERTISEMENT;
            assert_eq!(is_resolution(EtherType::Ipv6, &message), is_of_neighbours);
        }
        assert!(!is_answer(EtherType::Ipv4, &message));
        assert!(!is_resolution(EtherType::Ipv4, &message));
    }

    #[test]
    fn arp_tells_of_its_sender() {
        let request = arp::Packet::request(party(ADDRESS, 1), [10, 0, 0, 2]).bytes();
        let reply = arp::Packet::reply(party(ADDRESS, 1), party(OTHER, 2)).bytes();
        for bytes in [request, reply] {
            assert!(may_tell(EtherType::Arp, &bytes));
            assert_eq!(sender(EtherType::Arp, &bytes), Some(ADDRESS));
            for length in 0..bytes.len() {
                assert_eq!(sender(EtherType::Arp, &bytes[..length]), None);
            }
        }
    }

    #[test]
    fn neighbour_discovery_tells_of_its_sender() -> Result {
        for (number, kind, may, claims) in [
            (SOLICITATION, nd::Kind::Source, true, true),
            (ADVERTISEMENT, nd::Kind::Target, true, true),
            (SOLICITATION, nd::Kind::Target, true, false),
            // Routers' messages may, but nobody asks for what they tell of a port.
            (133, nd::Kind::Source, true, false),
            (134, nd::Kind::Source, true, false),
            // Echo is about no node, a redirect about another one.
            (128, nd::Kind::Source, false, false),
            (137, nd::Kind::Target, false, false),
        ] {
            let bytes = message(ICMPV6, number, nd::LinkLayerOption::new(kind, ADDRESS))?;
            assert_eq!(may_tell(EtherType::Ipv6, &bytes), may);
            assert_eq!(may_tell(EtherType::Ipv6, &bytes[..SEEN]), may);
            assert!(may_tell(EtherType::Ipv6, &bytes[..SEEN - 1]));
            let found = sender(EtherType::Ipv6, &bytes);
            assert_eq!(found, claims.then_some(ADDRESS));
            for length in 0..bytes.len() {
                assert_eq!(sender(EtherType::Ipv6, &bytes[..length]), None);
            }
        }
        assert!(!may_tell(EtherType::Ipv6, &[0; 40]));
        assert!(!may_tell(EtherType::Ipv4, &[ICMPV6; 40]));
        Ok(())
    }
}
