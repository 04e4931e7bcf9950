// SPDX-License-Identifier: GPL-2.0-only

//! Destinations that nobody here asked for.
//!
//! An answer to a question for a neighbour goes to where the question says that it came from. So
//! questions from invented addresses have the node look for as many ports that there are not. A
//! small table notes the source of a question for the GID that it names, if the GID is not known
//! yet, and each source has a budget of such searches
//! ([`Sources`](crate::acm::sources::Sources)).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::Errand,
    interface::Interface,
    neighbour, //
};
use crate::{
    acm::{
        budget::Rate,
        sources::Source, //
    },
    net::skb::Skb,
    wire::{
        encap::{
            self,
            EtherType, //
        },
        gid::Gid,
        hwaddr::HwAddr, //
    },
};

/// Rate of the searches that a source of an InfiniBand port has made.
pub(super) const SEARCHES: Rate = Rate {
    most: 32,
    every: 250,
};

/// Rate on RoCE, where each search that comes to nothing has a worker wait for a second.
pub(super) const ROCE_SEARCHES: Rate = Rate {
    most: 2,
    every: 1000,
};

/// Number of askers that are noted; a power of two. A question is answered in a moment.
const ASKERS: usize = 512;

/// Sources that have asked lately, by their GIDs that are not known.
pub(super) struct Askers(KVec<Option<(Gid, Source)>>);

impl Askers {
    /// Creates an empty table.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        Ok(Self(KVec::from_elem(None, ASKERS, GFP_KERNEL)?))
    }

    fn place(&mut self, gid: &Gid) -> Option<&mut Option<(Gid, Source)>> {
        let mixed = Source::gid(gid).get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let index = mixed >> (64 - ASKERS.trailing_zeros());
        self.0.get_mut(index as usize)
    }

    /// Notes that `source` asked, and gave `gid` as its own.
    fn note(&mut self, gid: Gid, source: Source) {
        if let Some(place) = self.place(&gid) {
            *place = Some((gid, source));
        }
    }

    /// Returns the source of the last question from `gid`.
    fn find(&mut self, gid: &Gid) -> Option<Source> {
        match *self.place(gid)? {
            Some((other, source)) if other == *gid => Some(source),
            _ => None,
        }
    }

    /// Takes out the source of the last question from `gid`.
    fn take(&mut self, gid: &Gid) -> Option<Source> {
        let source = self.find(gid)?;
        *self.place(gid)? = None;
        Some(source)
    }
}

impl Interface {
    /// Takes notice of a packet in which the sender, `source`, says that it is at `gid`.
    pub(super) fn note_asker(&self, is_question: bool, gid: Gid, source: Source) {
        if is_question {
            if !self.destinations.lock().is_known(&gid) {
                self.askers.lock().note(gid, source);
            }
        } else {
            // This node asked for it.
            let _ = self.askers.lock().take(&gid);
        }
    }

    /// Returns the sender that `packet`, which begins with its pseudo header, serves, if it is sent
    /// to `gid`, which is not known.
    pub(super) fn errand(self: &Arc<Self>, gid: &Gid, packet: &Skb) -> Errand {
        if gid.is_multicast() {
            return Errand::Own;
        }
        let mut askers = self.askers.lock();
        let asker = if is_resolution(packet) {
            // Kept: besides the answer, the stack probes the neighbour that the question has made.
            askers.find(gid)
        } else {
            // Taken out: a later packet of another kind serves this node itself.
            askers.take(gid)
        };
        drop(askers);
        match asker {
            Some(source) => Errand::Stranger(source),
            None if has_datagram(packet, neighbour::is_answer) => Errand::Stranger(Source::UNKNOWN),
            None => Errand::Own,
        }
    }
}

/// Returns whether a packet, which begins with its pseudo header, is a question for a neighbour or
/// answers one.
pub(super) fn is_resolution(packet: &Skb) -> bool {
    has_datagram(packet, neighbour::is_resolution)
}

/// Returns whether the datagram in a packet, which begins with its pseudo header, is of a kind that
/// `is_of_kind` tells.
fn has_datagram(packet: &Skb, is_of_kind: impl FnOnce(EtherType, &[u8]) -> bool) -> bool {
    let datagram = packet.data().get(HwAddr::LEN..).unwrap_or_default();
    encap::Header::parse(datagram).is_ok_and(|(ethertype, rest)| is_of_kind(ethertype, rest))
}

#[kernel::prelude::kunit_tests(oxib_strangers)]
mod tests {
    use super::*;

    #[test]
    fn askers_are_known_until_they_are_taken_out() -> Result {
        let mut askers = Askers::new()?;
        let (one, other) = (Gid::from_ipv4([10, 0, 0, 1]), Gid::from_ipv4([10, 0, 0, 2]));
        let source = Source::port(5, 0);
        askers.note(one, source);
        assert_eq!((askers.find(&other), askers.take(&other)), (None, None));
        assert_eq!(askers.find(&one), Some(source));
        assert_eq!(askers.take(&one), Some(source));
        assert_eq!((askers.find(&one), askers.take(&one)), (None, None));
        Ok(())
    }
}
