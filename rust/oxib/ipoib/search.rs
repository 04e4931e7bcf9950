// SPDX-License-Identifier: GPL-2.0-only

//! An interface's search for the path to its destinations, and their ageing.

use core::{
    ops::Deref,
    sync::atomic::Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::{
        Destinations,
        End,
        Handle,
        Reason,
        Ticket,
        Verdict,
        JUST_USED_SECS,
        SETTLING_SPREAD,
        SILENCE_SECS,
        STALE_BATCH,
        STALE_INTERVAL_MS, //
    },
    connected::Mode,
    interface::Interface, //
};
use crate::{
    acm::budget::SPREAD,
    net::skb::Skb,
    rdma::{
        ah::AddressHandle,
        management::random,
        sa::multicast::Share, //
    },
    wire::gid::Gid, //
};

/// Destinations handled under one hold of a lock, and looked for again at a time.
const BATCH: usize = 64;

/// Time between two batches that are looked for again, in milliseconds: 1280 a second.
const REVALIDATE_INTERVAL_MS: u32 = 50;

/// Time until a path is looked for again of which nothing could be learned, in milliseconds.
const SILENCE_MS: u32 = 1000 * SILENCE_SECS as u32;

/// Time until destinations that are not used make room after a search that found little of it, in
/// milliseconds. Long enough for the walk through the table to take little of the time, and short
/// enough for the room to last.
const CROWD_INTERVAL_MS: u32 = 1000;

/// An address handle as the interface's table keeps it. Queues share the handle alone, and may keep
/// it for long: a queue that sends nothing more hears of no completion. The membership ends when
/// the table forgets the path.
pub(super) struct KeptHandle {
    handle: Arc<AddressHandle>,
    /// Membership in the group that the handle leads to: without it the port may not send there.
    share: Option<Share>,
}

impl Handle for KeptHandle {
    type ForQueue = Arc<AddressHandle>;

    fn for_queue(&self) -> Arc<AddressHandle> {
        self.handle.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        *self.handle == *other.handle && self.share == other.share
    }
}

impl Deref for KeptHandle {
    type Target = AddressHandle;

    fn deref(&self) -> &AddressHandle {
        &self.handle
    }
}

/// A search for the path to a destination, which ends once: by [`Search::end`], or by its drop if
/// nothing can be said of the path.
pub(super) struct Search {
    interface: Arc<Interface>,
    gid: Gid,
    /// The ticket of the search; `None` once it has ended.
    ticket: Option<Ticket>,
}

impl Search {
    /// GID of the destination.
    pub(super) fn gid(&self) -> Gid {
        self.gid
    }

    /// The interface that searches.
    pub(super) fn interface(&self) -> &Arc<Interface> {
        &self.interface
    }

    /// Returns whether a path is known, and in use, while it is looked for again.
    pub(super) fn is_refresh(&self) -> bool {
        self.ticket.is_some_and(Ticket::is_refresh)
    }

    /// Returns whether the path is still wanted: an interface that goes away does not wait for
    /// peers that may not answer.
    pub(super) fn is_wanted(&self) -> bool {
        // Read a moment too early, it costs one search more: `gone` waits for all of them.
        let is_closing = self.interface.closing.load(Ordering::Acquire);
        let destinations = self.interface.destinations.lock();
        self.ticket
            .is_some_and(|ticket| !is_closing && destinations.is_wanted(&self.gid, ticket))
    }

    /// Ends the search: the packets that waited go on or are dropped. Not to be called with a
    /// transmit queue locked.
    pub(super) fn end(self, found: Result<AddressHandle>) {
        self.end_with(found.map(|handle| (handle, None)));
    }

    /// Ends the search for a group as [`Self::end`] does. The table keeps the share in the
    /// membership until it forgets the path.
    pub(super) fn end_for_group(self, found: Result<(AddressHandle, Share)>) {
        self.end_with(found.map(|(handle, share)| (handle, Some(share))));
    }

    fn end_with(mut self, found: Result<(AddressHandle, Option<Share>)>) {
        let found = found.and_then(|(handle, share)| {
            let handle = Arc::new(handle, GFP_KERNEL)?;
            Ok(KeptHandle { handle, share })
        });
        self.finish(found);
    }

    fn finish(&mut self, found: Result<KeptHandle>) {
        // Taken out, so that the drop of a search that has ended does nothing.
        let Some(ticket) = self.ticket.take() else {
            return;
        };
        if let Some(again) = self.interface.end_search(self.gid, ticket, found) {
            self.interface.start_search(self.gid, again);
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        // Where packets wait, with a transmit queue locked perhaps: those are dropped, not sent.
        self.finish(Err(EAGAIN));
    }
}

impl Interface {
    /// Asks for the path of `packet` to `gid`, and starts a search if there is none yet.
    pub(super) fn request(
        self: &Arc<Self>,
        gid: Gid,
        packet: Skb,
    ) -> Verdict<Arc<AddressHandle>, Skb> {
        let errand = self.errand(&gid, &packet);
        let may_search = |source| self.link().may_search_for(source);
        // Lock order: a transmit queue's lock, the destinations, the link's budgets
        // (`may_search`).
        let mut destinations = self.destinations.lock();
        let verdict = destinations.request((gid, errand), packet, may_search, self.now());
        let is_crowded = destinations.is_crowded();
        // A search that cannot be queued ends in `start_search`, and its end takes this lock.
        drop(destinations);
        match verdict {
            Verdict::Search(ticket) => {
                if is_crowded {
                    // Before the table is full. The first of many searches plans the run.
                    self.revalidate_soon(CROWD_INTERVAL_MS);
                }
                self.start_search(gid, ticket);
            }
            // What can be forgotten is, for the next one.
            Verdict::Drop(_, Reason::NoMemory) => self.revalidate_soon(SILENCE_MS),
            _ => {}
        }
        verdict
    }

    fn start_search(self: &Arc<Self>, gid: Gid, ticket: Ticket) {
        self.link().resolve(Search {
            interface: self.clone(),
            gid,
            ticket: Some(ticket),
        });
    }

    /// Notes the result of a search; the packets that waited go on or are dropped. Returns the
    /// ticket of the next search if the port has changed since.
    ///
    /// Also called with a transmit queue locked, but then nothing was found and no path was known:
    /// it does not lock one.
    fn end_search(
        self: &Arc<Self>,
        gid: Gid,
        ticket: Ticket,
        found: Result<KeptHandle>,
    ) -> Option<Ticket> {
        let is_found = found.is_ok();
        let mut destinations = self.destinations.lock();
        let waited = match destinations.resolved(&gid, ticket, found, self.now()) {
            End::Settled(waited) => waited,
            // The lock is released first: `for_each_queue` takes those of transmit queues, which
            // come before it.
            End::Changed => {
                drop(destinations);
                // What the queues know of it is old now.
                self.for_each_queue(|queue| queue.forget(&[gid]));
                self.path_changed(gid);
                return None;
            }
            End::Again(ticket) => return Some(ticket),
        };
        // Under the lock, which makes this the only writer.
        let statistics = self.statistics();
        if is_found {
            statistics.address_resolved.add(1);
        } else {
            statistics.address_failed.add(1);
            statistics.tx_drop_unreachable.add(waited.len() as u64);
        }
        drop(destinations);
        if !is_found {
            // If a path is known, it is looked for again.
            self.revalidate_soon(SILENCE_MS);
        }
        for packet in waited {
            if is_found {
                // By the stack, not straight into the ring: the queue may be stopped, and is not
                // locked here.
                packet.transmit_again();
            } else {
                self.device().count_send_dropped();
                drop(packet);
            }
        }
        None
    }

    /// Invalidates the paths to all destinations; traffic goes on over them until better ones are
    /// known. Does not sleep long: the searches are spread.
    pub(super) fn invalidate_destinations(self: &Arc<Self>) {
        // Without memory the order is not the best.
        let _ = self.note_used(self.now());
        self.destinations.lock().invalidate_all();
        // What is under way may never be answered.
        self.link().subnet_changed();
        self.revalidate_soon(0);
    }

    /// Marks the paths to all destinations stale: another manager has the subnet, and hears now
    /// from all of its ports. Traffic goes on; paths that are seen to lead there are not asked
    /// for.
    pub(super) fn mark_destinations_stale(self: &Arc<Self>) {
        let now = self.now();
        // Notes from here on what is used. Without memory some are asked for that need not be.
        let _ = self.note_used(now);
        let since = now + u64::from(random() % SETTLING_SPREAD);
        self.destinations.lock().mark_all_stale(since);
        // What is under way may never be answered.
        self.link().subnet_changed();
        self.revalidate_soon(random() % SPREAD);
    }

    /// Invalidates the path to `gid`: it is looked for again, if one is known.
    pub(super) fn invalidate_destination(self: &Arc<Self>, gid: &Gid) {
        // The shared paths first: the search must not be answered with the path in doubt.
        self.forget_paths_to(gid);
        if self.destinations.lock().invalidate(gid) {
            self.revalidate_soon(0);
        }
    }

    /// Looks again for some of the destinations of which that is due, the most used first, and
    /// forgets those that are invalid and not in use, or were not used for long. There is a next
    /// time if there may be more.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: some were left as they are.
    pub(super) fn revalidate(self: &Arc<Self>) -> Result {
        let now = self.now();
        self.expire(now)?;
        if self.refresh_due(now)? == BATCH {
            self.revalidate_soon(REVALIDATE_INTERVAL_MS);
        } else if self.refresh_stale(now)? + self.follow_move_hints(now)? >= STALE_BATCH {
            self.revalidate_soon(STALE_INTERVAL_MS);
        } else if self.destinations.lock().is_due_soon(now) {
            self.revalidate_soon(SILENCE_MS);
        }
        Ok(())
    }

    /// Forgets the path to `gid`.
    pub(super) fn forget_destination(&self, gid: &Gid) {
        // The table first: a queue that misses after it has forgotten must not find the path
        // again.
        let forgotten = self.destinations.lock().forget(gid);
        drop(forgotten);
        self.for_each_queue(|queue| queue.forget(&[*gid]));
    }

    /// Notes which destinations are in use: those that the queues' caches were asked for, and the
    /// peers to which packets went by connections. A path to such a peer that is known stays known,
    /// so that it is seen when the peer moves.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: not all are noted.
    fn note_used(&self, now: u64) -> Result {
        self.note_used_by_datagrams(now)?;
        if self.mode() == Mode::Connected {
            // No use of a moment ago: see `note_used_by_datagrams`.
            self.note_used_by_connections(now.saturating_sub(JUST_USED_SECS + 1))?;
        }
        Ok(())
    }

    /// Notes which destinations the queues' caches were asked for. These are used just now
    /// ([`JUST_USED_SECS`]); whether packets by a connection arrive, the connection knows.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: not all are noted.
    pub(super) fn note_used_by_datagrams(&self, now: u64) -> Result {
        // Room for all entries of a queue's cache, made before a lock forbids to sleep.
        let mut used = KVec::with_capacity(super::cache::ENTRIES, GFP_KERNEL)?;
        for index in 0..self.device().queues() {
            used.clear();
            if let Some(queue) = self.device().lock_queue(index)?.as_mut() {
                queue.take_used(&mut used);
            }
            // The queue's lock is released by here: its packets do not wait for the walk.
            let mut destinations = self.destinations.lock();
            for gid in &used {
                destinations.used(gid, now);
            }
        }
        Ok(())
    }

    fn note_used_by_connections(&self, now: u64) -> Result {
        let mut used = KVec::with_capacity(super::cache::ENTRIES, GFP_KERNEL)?;
        for index in 0..self.device().queues() {
            let mut next = Some(0);
            while let Some(from) = next {
                used.clear();
                let mut queue = self.device().lock_queue(index)?;
                next = queue
                    .as_mut()
                    .and_then(|queue| queue.take_connected(from, &mut used));
                drop(queue);
                let mut destinations = self.destinations.lock();
                for gid in &used {
                    destinations.used_by_connection(gid, now);
                }
            }
        }
        Ok(())
    }

    /// Starts searches for a batch of the destinations of which that is due. Returns how many.
    fn refresh_due(self: &Arc<Self>, now: u64) -> Result<usize> {
        let mut due = KVec::with_capacity(BATCH, GFP_KERNEL)?;
        let in_use = Destinations::<KeptHandle, Skb>::in_use_since(now);
        let ticket = {
            let mut destinations = self.destinations.lock();
            // First what was used by datagrams since the last look, which `expire` has just noted
            // as used at `now`. A use by a connection is noted as some seconds older.
            destinations.take_due(now, now, &mut due);
            destinations.take_due(now, in_use, &mut due)
        };
        for gid in &due {
            self.start_search(*gid, ticket);
        }
        Ok(due.len())
    }

    /// Starts searches for some of the destinations with paths that are stale and used, or of
    /// which nothing was learned. Returns how many.
    fn refresh_stale(self: &Arc<Self>, now: u64) -> Result<usize> {
        if !self.destinations.lock().has_stale() {
            return Ok(0);
        }
        self.device().for_each_confirmed(|address, age| {
            // Rounded up: a confirmation from before the event must not count as one after it.
            let at = now.saturating_sub(age.div_ceil(1000));
            self.destinations.lock().confirm(&address.gid(), at);
        });
        let mut stale = KVec::with_capacity(STALE_BATCH, GFP_KERNEL)?;
        let may_ask = || self.link().may_ask_again();
        let mut destinations = self.destinations.lock();
        let ticket = destinations.take_stale(now, may_ask, &mut stale);
        drop(destinations);
        for gid in &stale {
            self.start_search(*gid, ticket);
        }
        Ok(stale.len())
    }

    /// Starts searches for some of the destinations that are reported elsewhere. Returns how
    /// many.
    fn follow_move_hints(self: &Arc<Self>, now: u64) -> Result<usize> {
        let mut hints = KVec::with_capacity(STALE_BATCH, GFP_KERNEL)?;
        let take_query_token = || self.link().take_query_token();
        let mut destinations = self.destinations.lock();
        let ticket = destinations.take_move_hints(now, take_query_token, &mut hints);
        drop(destinations);
        for gid in &hints {
            // Before the search: the path that the hint contradicts may be a shared one.
            self.forget_paths_to(gid);
            self.start_search(*gid, ticket);
        }
        Ok(hints.len())
    }

    /// Expires neighbours: forgets destinations that are not used. Those in use are noted before:
    /// a machine that stood still for minutes has not done so in time, and goes on with what it
    /// sends.
    fn expire(&self, now: u64) -> Result {
        self.note_used(now)?;
        loop {
            let mut gids = KVec::with_capacity(BATCH, GFP_KERNEL)?;
            let mut handles = KVec::with_capacity(BATCH, GFP_KERNEL)?;
            self.destinations
                .lock()
                .expire(now, &mut gids, &mut handles);
            if gids.is_empty() {
                return Ok(());
            }
            self.for_each_queue(|queue| queue.forget(&gids));
        }
    }

    /// Forgets all destinations: their paths are no use any more.
    pub(super) fn forget_destinations(&self) {
        // The table first: a queue that misses from now on waits for a new search.
        let forgotten = self.destinations.lock().forget_settled();
        drop(forgotten);
        self.for_each_queue(|queue| queue.forget_all());
    }
}
