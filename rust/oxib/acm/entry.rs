// SPDX-License-Identifier: GPL-2.0-only

//! An entry as the table has it: 32 bytes beside its address.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering::Relaxed, //
};

use crate::wire::{
    acm::{
        entry::Entry,
        source::Source, //
    },
    gid::Gid,
    pkey::Pkey,
    qpn::Qpn, //
};

/// An entry of the cache as readers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    /// The GID of the port that has it.
    pub(crate) gid: Gid,
    /// The queue pair of the interface there.
    pub(crate) qpn: Option<Qpn>,
    /// Whether the peer said so, and not the administrator: it may be invalidated
    /// ([`super::Cache::forget_qpn`]).
    pub(crate) qpn_is_learned: bool,
    /// The partition, if it is for one alone.
    pub(crate) pkey: Option<Pkey>,
    /// Origin of the entry.
    pub(crate) source: Source,
    /// Seconds that are left of it; `None` for ever.
    pub(crate) left: Option<u32>,
}

/// An entry. What a queue pair's number and a lifetime change in is atomic; all else stays as it
/// is while it is in the table.
pub(crate) struct Stored {
    gid: Gid,
    /// The administrator's number; 0 for none.
    qpn: u32,
    /// The peer's number; 0 for none.
    learned_qpn: AtomicU32,
    /// The second in which it ends ([`crate::counters::seconds`]); 0 for never.
    ends: AtomicU32,
    /// The P_Key; 0 for any partition.
    pkey: u16,
    source: Source,
    /// The load that is under way has it.
    marked: AtomicBool,
}

impl Stored {
    /// Makes one of what `source` says.
    pub(super) fn new(entry: &Entry, source: Source, now: u32) -> Self {
        let qpn = entry.qpn.map_or(0, Qpn::get);
        let (qpn, learned) = if source.is_network() {
            (0, qpn)
        } else {
            (qpn, 0)
        };
        Self {
            gid: entry.gid,
            qpn,
            learned_qpn: AtomicU32::new(learned),
            ends: AtomicU32::new(ends(now, entry.lifetime)),
            pkey: entry.pkey.map_or(0, Pkey::get),
            source,
            marked: AtomicBool::new(false),
        }
    }

    /// Returns the content, or `None` once the lifetime is over.
    #[inline]
    pub(super) fn known(&self, now: u32) -> Option<Known> {
        let left = match self.ends.load(Relaxed) {
            0 => None,
            ends => Some(ends.checked_sub(now).filter(|&left| left != 0)?),
        };
        Some(Known {
            left,
            ..self.last_known()
        })
    }

    /// Returns the content, whether or not the lifetime is over.
    #[inline]
    pub(super) fn last_known(&self) -> Known {
        let learned = self.learned_qpn.load(Relaxed);
        let qpn_is_learned = self.qpn == 0 && learned != 0;
        let number = if qpn_is_learned { learned } else { self.qpn };
        Known {
            gid: self.gid,
            qpn: Qpn::new(number).filter(|_| number != 0),
            qpn_is_learned,
            pkey: Some(Pkey::new(self.pkey)).filter(|pkey| pkey.is_valid()),
            source: self.source,
            left: None,
        }
    }

    /// Returns whether the entry's lifetime is over.
    pub(super) fn is_expired(&self, now: u32) -> bool {
        self.known(now).is_none()
    }

    /// Origin of the entry.
    pub(super) fn source(&self) -> Source {
        self.source
    }

    /// The GID of the port that has the address.
    pub(super) fn gid(&self) -> Gid {
        self.gid
    }

    /// The partition, if it is for one alone.
    pub(super) fn pkey(&self) -> Option<Pkey> {
        Some(Pkey::new(self.pkey)).filter(|pkey| pkey.is_valid())
    }

    /// Returns whether what a peer says of its interface in the partition `pkey` is about this
    /// entry. `None` is a partition that is not known, which only an entry for any takes.
    pub(super) fn is_in(&self, pkey: Option<Pkey>) -> bool {
        self.pkey()
            .is_none_or(|own| pkey.is_some_and(|pkey| pkey.base() == own.base()))
    }

    /// Returns whether the administrator named the queue pair.
    pub(super) fn has_given_qpn(&self) -> bool {
        self.qpn != 0
    }

    /// Returns the second in which the entry ends; `None` if it holds for ever.
    pub(super) fn ends_at(&self) -> Option<u32> {
        Some(self.ends.load(Relaxed)).filter(|&ends| ends != 0)
    }

    /// Keeps what the peer says of its queue pair, and tells whether that is new.
    pub(super) fn learn_qpn(&self, qpn: Option<Qpn>) -> bool {
        let number = qpn.map_or(0, Qpn::get);
        self.learned_qpn.swap(number, Relaxed) != number
    }

    /// Keeps what the peer said of its queue pair to `old`, the entry of the same address in whose
    /// place this one is put, unless that is about another port or partition.
    pub(super) fn inherit(&self, old: &Stored, now: u32) {
        let learned = old
            .known(now)
            .filter(|known| known.qpn_is_learned && known.gid == self.gid)
            .and_then(|known| known.qpn);
        if learned.is_some() && !self.has_given_qpn() && self.is_in(old.pkey()) {
            self.learn_qpn(learned);
        }
    }

    /// Lets it hold for `lifetime` seconds from now on; 0 for ever.
    pub(super) fn renew(&self, now: u32, lifetime: u32) {
        self.ends.store(ends(now, lifetime), Relaxed);
    }

    /// Returns whether another entry says the same of the address, for however long.
    pub(super) fn says_as(&self, other: &Stored, now: u32) -> bool {
        let says = |stored: &Stored| {
            stored.known(now).map(|known| Known {
                left: None,
                ..known
            })
        };
        says(self) == says(other)
    }

    /// Returns whether the load under way has the entry.
    pub(super) fn is_marked(&self) -> bool {
        self.marked.load(Relaxed)
    }

    /// Notes whether the load under way has the entry.
    pub(super) fn mark(&self, marked: bool) {
        self.marked.store(marked, Relaxed);
    }
}

/// Returns the second in which a lifetime ends; 0 for never.
fn ends(now: u32, lifetime: u32) -> u32 {
    match lifetime {
        0 => 0,
        seconds => now.saturating_add(seconds).max(1),
    }
}

#[kernel::prelude::kunit_tests(oxib_acm_entry)]
mod tests {
    use super::*;
    use core::net::{
        IpAddr,
        Ipv4Addr, //
    };

    const ENTRY: Entry = Entry {
        address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        gid: Gid::from_bytes([0xfe, 0xc0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]),
        qpn: Qpn::new(0x123456),
        pkey: Some(Pkey::new(0x8001)),
        lifetime: 10,
    };

    #[test]
    fn lifetimes_end() {
        let stored = Stored::new(&ENTRY, Source::Netlink, 100);
        for (now, left) in [(100, Some(10)), (109, Some(1)), (110, None), (5000, None)] {
            assert_eq!(stored.known(now).map(|known| known.left), left.map(Some));
            assert_eq!(stored.is_expired(now), left.is_none());
        }
        stored.renew(200, 0);
        assert_eq!(stored.known(u32::MAX).map(|known| known.left), Some(None));
        stored.renew(0, 1);
        assert!(!stored.is_expired(0) && stored.is_expired(1));
        stored.renew(u32::MAX - 5, u32::MAX);
        assert!(!stored.is_expired(u32::MAX - 1));
    }

    #[test]
    fn given_numbers_stay_and_learned_ones_go() {
        let number = |stored: &Stored| stored.known(0).and_then(|known| known.qpn);
        let given = Stored::new(&ENTRY, Source::File, 0);
        assert!(given.has_given_qpn());
        given.learn_qpn(Qpn::new(7));
        assert_eq!(number(&given), ENTRY.qpn);
        assert_eq!(
            given.known(0).map(|known| known.qpn_is_learned),
            Some(false)
        );

        let learned = Stored::new(&ENTRY, Source::Learned, 0);
        assert!(!learned.has_given_qpn());
        assert_eq!(number(&learned), ENTRY.qpn);
        assert_eq!(
            learned.known(0).map(|known| known.qpn_is_learned),
            Some(true)
        );
        assert!(learned.learn_qpn(None));
        assert!(!learned.learn_qpn(None));
        assert_eq!(number(&learned), None);
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Stored>(), 32);
    }
}
