// SPDX-License-Identifier: GPL-2.0-only

//! The cache of a network namespace.
//!
//! Lookups never wait. All that enters entries, or takes them out, holds the table's writer's lock,
//! and is in process context. What changes in an entry that stays are words, without that lock.

use core::{
    net::IpAddr,
    sync::atomic::{
        AtomicBool,
        AtomicU32,
        Ordering::{
            AcqRel,
            Relaxed,
            Release, //
        }, //
    }, //
};

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    workqueue::{
        new_delayed_work,
        DelayedWork, //
    }, //
};

use super::{
    entry::{
        Known,
        Stored, //
    },
    expiry::Plan,
    netlink,
    options,
    Counter,
    Source, //
};
use crate::{
    counters::{
        seconds,
        Counters, //
    },
    hash_table::{
        Key,
        Retired,
        Slab,
        Table,
        Writer, //
    },
    net::{
        device::{
            Device,
            Operations, //
        },
        namespace::{
            Handle,
            Member,
            Namespace, //
        }, //
    },
    wire::{
        acm::entry::{
            from_key,
            to_key,
            Entry, //
        },
        gid::Gid,
        pkey::Pkey,
        qpn::Qpn, //
    },
    work, //
};

/// The cache of a namespace.
#[pin_data]
pub(crate) struct Cache {
    table: Arc<Entries>,
    counters: Counters<Counter>,
    /// Most entries of the administrator's.
    limit: usize,
    namespace: Arc<Namespace>,
    /// Number of the table's state, another one after each change of an entry.
    generation: AtomicU32,
    /// An entry has come since the cache was empty, and nobody has taken notice of that.
    has_first: AtomicBool,
    #[pin]
    pub(super) expiry: DelayedWork<Cache>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Cache { self.expiry }
}

/// The entries, with what their writer keeps.
pub(super) type Entries = Table<Stored, State>;

/// The right to change entries.
pub(super) type Changing<'a> = Writer<'a, Stored, State>;

/// State that belongs to the table's writer.
#[derive(Default)]
pub(super) struct State {
    /// Entries of each source, highest rank first.
    numbers: [usize; Source::ALL.len()],
    /// Time of the next expiry run.
    pub(super) plan: Plan,
}

impl State {
    /// Returns the number of entries that an administrator entered.
    pub(super) fn configured(&mut self) -> usize {
        *self.number(Source::File) + *self.number(Source::Netlink)
    }

    /// Returns whether there are no entries.
    fn is_empty(&self) -> bool {
        self.numbers.iter().all(|number| *number == 0)
    }

    /// Returns the number of entries that were learned from peers.
    fn of_network(&mut self) -> usize {
        *self.number(Source::Sidr) + *self.number(Source::Learned)
    }

    /// Returns the counter of the entries of `source`.
    pub(super) fn number(&mut self, source: Source) -> &mut usize {
        let [file, netlink, sidr, learned] = &mut self.numbers;
        match source {
            Source::File => file,
            Source::Netlink => netlink,
            Source::Sidr => sidr,
            Source::Learned => learned,
        }
    }
}

/// Outcome of learning an address from the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Learned {
    /// The cache has an entry that says this now: a new one, or one that was changed.
    Entered,
    /// The entry said so already; it holds for longer now.
    Renewed,
    /// An entry of higher rank has the same GID, and now this queue pair, which it lacked.
    Filled,
    /// An entry of higher rank says otherwise, says all of it, or is for another partition: it is
    /// as it was.
    Refused,
}

/// An address that the network reports, with the attributes it reports of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LearnedEntry {
    /// The IPv4 or IPv6 address.
    pub(crate) address: IpAddr,
    /// The GID of the port that has it.
    pub(crate) gid: Gid,
    /// The queue pair of its interface.
    pub(crate) qpn: Option<Qpn>,
    /// The partition, if it holds for one alone.
    pub(crate) pkey: Option<Pkey>,
    /// Origin of the report: [`Source::Sidr`] or [`Source::Learned`].
    pub(crate) source: Source,
    /// Seconds for which to keep it.
    pub(crate) lifetime: u32,
}

impl LearnedEntry {
    /// Returns whether an entry is this one already, but for its queue pair and its age.
    fn is_of(&self, stored: &Stored) -> bool {
        stored.gid() == self.gid
            && stored.source() == self.source
            && stored.pkey() == self.pkey
            && stored.ends_at().is_some() == (self.lifetime != 0)
    }
}

/// Seconds for which what the network says holds, if nothing else is said.
pub(crate) const LIFETIME_SECS: u32 = 1200;

/// Most entries that peers tell of themselves, beside so many of the administrator's: any node of
/// the partition can tell of any number of addresses.
const fn network_limit(limit: usize) -> usize {
    match limit / 8 {
        0..64 => 64,
        limit @ 64..65_536 => limit,
        65_536.. => 65_536,
    }
}

/// The table's key of an address.
pub(super) fn key(address: IpAddr) -> Key {
    Key(to_key(address))
}

/// The address of a table's key.
pub(super) fn address(key: &Key) -> IpAddr {
    from_key(key.0)
}

impl Cache {
    /// Makes the cache of a namespace, for at most `limit` entries of the administrator's.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn make(
        slab: &Arc<Slab<Stored>>,
        namespace: Arc<Namespace>,
        limit: usize,
    ) -> Result<Arc<Self>> {
        let table = Table::new(slab.clone(), State::default())?;
        let counters = Counters::new()?;
        Arc::pin_init(
            pin_init!(Self {
                table,
                counters,
                limit,
                namespace,
                generation: AtomicU32::new(1),
                has_first: AtomicBool::new(false),
                expiry <- new_delayed_work!("oxib_acm"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the cache of the namespace that a net device is in. Its last reference is dropped
    /// in process context: elsewhere use [`Cache::with`].
    pub(crate) fn of<T: Operations>(device: &Device<T>) -> Option<Arc<Self>> {
        device.member()
    }

    /// Uses the cache of the namespace that a net device is in. Any context; `use_it` must not
    /// sleep.
    pub(crate) fn with<T: Operations, R>(
        device: &Device<T>,
        use_it: impl FnOnce(&Cache) -> R,
    ) -> Option<R> {
        device.with_member(|cache: &Arc<Cache>, _| use_it(cache))
    }

    /// Looks an address up in the cache of a net device's namespace. Any context; does not wait.
    pub(crate) fn find_for<T: Operations>(device: &Device<T>, address: IpAddr) -> Option<Known> {
        device
            .with_member(|cache: &Arc<Cache>, rcu| cache.find_key(&key(address), rcu))
            .flatten()
    }

    /// Looks the address of a key up for a packet, and counts a hit or a miss. The caller holds
    /// RCU.
    #[inline]
    pub(crate) fn find_key(&self, key: &Key, rcu: &rcu::Guard) -> Option<Known> {
        let known = self
            .table
            .get_in(key, rcu, |stored| stored.known(seconds()))
            .flatten();
        self.counters.count(match known {
            Some(_) => Counter::Hits,
            None => Counter::Misses,
        });
        known
    }

    /// Looks an address up without counting.
    pub(crate) fn peek(&self, address: IpAddr) -> Option<Known> {
        self.table
            .get(&key(address), |stored| stored.known(seconds()))?
    }

    /// The counters, of the resolution as well.
    pub(crate) fn counters(&self) -> &Counters<Counter> {
        &self.counters
    }

    /// Most entries of the administrator's.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns a number that is another one after each change of an entry.
    pub(super) fn generation(&self) -> u32 {
        // Relaxed: the number is compared with its next value, and no entry is read by it.
        self.generation.load(Relaxed)
    }

    /// Returns whether an entry has come since the cache was empty, once. Whatever may enter the
    /// first entry asks afterwards, so that it is not missed.
    pub(super) fn take_first(&self) -> bool {
        // What is done about it comes after the entry, also if another thread has entered that.
        self.has_first.swap(false, AcqRel)
    }

    /// The table of all entries, expired ones included.
    pub(super) fn entries(&self) -> &Arc<Entries> {
        &self.table
    }

    /// Keeps what the network said of an address. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENOSPC` if there are as many entries of the network's as there may be.
    pub(crate) fn learn(self: &Arc<Self>, learned: &LearnedEntry) -> Result<Learned> {
        self.learn_in(&mut self.table.write(), learned)
    }

    /// Learns `learned` only if the cache has an entry of the address with that GID: it may have
    /// been removed since the question was asked.
    ///
    /// # Errors
    ///
    /// Those of [`Cache::learn`].
    pub(crate) fn learn_more(self: &Arc<Self>, learned: &LearnedEntry) -> Result<Learned> {
        // One hold from the check to the change: an administrator may delete the entry in between.
        let mut writer = self.table.write();
        let known = writer.get(&key(learned.address));
        if known.is_none_or(|stored| stored.is_expired(seconds()) || stored.gid() != learned.gid) {
            return Ok(Learned::Refused);
        }
        self.learn_in(&mut writer, learned)
    }

    /// Learns `learned` if the entry that is there takes it in place and no listener is to be told.
    /// `None` if not, or if there is no entry: [`Cache::learn_more`] is for that, and nothing has
    /// changed. Any context; does not wait, however long a change of many entries takes.
    pub(crate) fn learn_in_place(&self, learned: &LearnedEntry) -> Option<Learned> {
        let now = seconds();
        // The words are atomic, and RCU keeps the entry. One that another takes the place of
        // meanwhile has learned in vain: as if that had come a moment later.
        let learn = |stored: &Stored| match stored.is_expired(now) {
            true => None,
            false => self.update(stored, learned, now),
        };
        self.table.get(&key(learned.address), learn).flatten()
    }

    fn learn_in(
        self: &Arc<Self>,
        writer: &mut Changing<'_>,
        learned: &LearnedEntry,
    ) -> Result<Learned> {
        let now = seconds();
        let key = key(learned.address);
        if let Some(stored) = writer.get(&key).filter(|stored| !stored.is_expired(now)) {
            if let Some(outcome) = self.update(stored, learned, now) {
                return Ok(outcome);
            }
            if learned.is_of(stored) {
                stored.renew(now, learned.lifetime);
                stored.learn_qpn(learned.qpn);
                self.announce(&key, stored);
                return Ok(Learned::Entered);
            }
        }
        let entry = Entry {
            address: learned.address,
            gid: learned.gid,
            qpn: learned.qpn,
            pkey: learned.pkey,
            lifetime: learned.lifetime,
        };
        self.put(writer, &entry, learned.source, now)?;
        Ok(Learned::Entered)
    }

    /// Changes an entry in place by what the network says; `None` if that takes another entry, or
    /// listeners are to be told. Any context.
    fn update(&self, stored: &Stored, learned: &LearnedEntry, now: u32) -> Option<Learned> {
        if stored.source().outranks(learned.source) {
            return Some(self.fill(stored, learned));
        }
        let has_qpn = |qpn| stored.last_known().qpn == Some(qpn);
        if !learned.is_of(stored) || !learned.qpn.is_none_or(has_qpn) {
            return None;
        }
        // A longer life needs no earlier look.
        stored.renew(now, learned.lifetime);
        Some(Learned::Renewed)
    }

    /// Gives an entry of higher rank the queue pair that it lacks. A port has another queue pair in
    /// each partition.
    fn fill(&self, stored: &Stored, learned: &LearnedEntry) -> Learned {
        let is_lacking = !stored.has_given_qpn() && learned.qpn.is_some();
        if stored.gid() == learned.gid && stored.is_in(learned.pkey) && is_lacking {
            stored.learn_qpn(learned.qpn);
            return Learned::Filled;
        }
        self.counters.count(Counter::Refused);
        Learned::Refused
    }

    /// Forgets the queue pair that the network said an address had, if the address has this GID
    /// still. Any context.
    pub(crate) fn forget_qpn(&self, address: IpAddr, gid: Gid) {
        // Without the writer's lock: the number is atomic, and RCU keeps the entry.
        self.table.get(&key(address), |stored| {
            if stored.gid() == gid {
                stored.learn_qpn(None);
            }
        });
    }

    /// Returns whether the cache has as many entries as it may have: of the administrator's, or
    /// of the network's, which never take the place of those.
    fn is_full(&self, state: &mut State, source: Source) -> bool {
        if source.is_network() {
            state.of_network() >= network_limit(self.limit)
        } else {
            state.configured() >= self.limit
        }
    }

    /// Enters one entry, with the lock held.
    pub(super) fn put(
        self: &Arc<Self>,
        writer: &mut Changing<'_>,
        entry: &Entry,
        source: Source,
        now: u32,
    ) -> Result {
        let key = key(entry.address);
        let before = writer.get(&key).map(|stored| stored.source());
        let is_one_more = before.is_none_or(|before| before.is_network() != source.is_network());
        if is_one_more && self.is_full(writer.state(), source) {
            return Err(ENOSPC);
        }
        let node = self.table.node(key, Stored::new(entry, source, now))?;
        let old = writer.put(node).map_err(|(error, _)| error)?;
        let old = old.as_ref().map(|old| old.value());
        let Some((state, new)) = writer.state_and(&key) else {
            return Ok(());
        };
        self.entered(state, &key, new, old, now);
        Ok(())
    }

    /// Counts an entry that has been entered, in the place of another perhaps, and tells
    /// listeners. With the lock held.
    pub(super) fn entered(
        self: &Arc<Self>,
        state: &mut State,
        key: &Key,
        new: &Stored,
        old: Option<&Stored>,
        now: u32,
    ) {
        if state.is_empty() {
            self.has_first.store(true, Release);
        }
        *state.number(new.source()) += 1;
        if let Some(old) = old {
            *state.number(old.source()) -= 1;
        }
        if let Some(ends) = new.ends_at() {
            self.expect_end(state, ends, now);
        }
        self.generation.fetch_add(1, Relaxed);
        if !old.is_some_and(|old| old.says_as(new, now)) {
            self.announce(key, new);
        }
    }

    /// Counts an entry that has been removed, and tells listeners. With the lock held.
    pub(super) fn removed(&self, state: &mut State, gone: &Retired<Stored>) {
        *state.number(gone.value().source()) -= 1;
        self.generation.fetch_add(1, Relaxed);
        netlink::announce_gone(&self.namespace, address(gone.key()), gone.value());
    }

    /// Tells listeners of netlink what an entry says now.
    fn announce(&self, key: &Key, stored: &Stored) {
        netlink::announce(&self.namespace, address(key), stored);
    }
}

static HANDLE: Handle<Cache> = Handle::new();

impl Member for Cache {
    type Shared = Arc<Slab<Stored>>;

    fn handle() -> &'static Handle<Self> {
        &HANDLE
    }

    fn new(slab: &Self::Shared, namespace: Arc<Namespace>) -> Result<Arc<Self>> {
        Cache::make(slab, namespace, options::entries())
    }

    fn leaving(self: &Arc<Self>) {
        work::disable(self);
    }
}
