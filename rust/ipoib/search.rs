// SPDX-License-Identifier: GPL-2.0-only

//! An interface's search for the way to its destinations, and their ageing.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::{
        End,
        Ticket,
        Verdict, //
    },
    interface::Interface, //
};
use crate::{
    net::skb::Skb,
    rdma::ah::AddressHandle,
    wire::gid::Gid, //
};

/// Destinations handled under one hold of a lock.
const BATCH: usize = 64;

impl Interface {
    /// Asks for the way of `packet` to `gid`, and starts a search if there is none yet.
    pub(super) fn request(
        self: &Arc<Self>,
        gid: Gid,
        packet: Skb,
    ) -> Verdict<Arc<AddressHandle>, Skb> {
        let verdict = self.destinations.lock().request(gid, packet, self.now());
        if let Verdict::Search(ticket) = verdict {
            self.start_search(gid, ticket);
        }
        verdict
    }

    fn start_search(self: &Arc<Self>, gid: Gid, ticket: Ticket) {
        let this = self.clone();
        if self
            .searches
            .spawn(move || this.search(gid, ticket))
            .is_err()
        {
            // Nothing to search again with: `Again` comes only of a search that ran.
            self.end_search(gid, ticket, Err(ENOMEM));
        }
    }

    /// Finds the way to `gid`. Sleeps.
    fn search(self: &Arc<Self>, gid: Gid, mut ticket: Ticket) {
        loop {
            let found = self.find(gid, ticket);
            match self.end_search(gid, ticket, found) {
                Some(again) => ticket = again,
                None => break,
            }
        }
        if ticket.is_refresh() {
            // What the queues know of it is old now.
            self.for_each_queue(|queue| queue.forget(&[gid]));
        }
    }

    fn find(&self, gid: Gid, ticket: Ticket) -> Result<Arc<AddressHandle>> {
        // An interface that goes away does not wait for peers that may not answer.
        if self.closing.load(Ordering::Acquire) {
            return Err(ENODEV);
        }
        if !self.destinations.lock().is_wanted(&gid, ticket) {
            return Err(ENODEV);
        }
        Ok(Arc::new(self.link().resolve(gid)?, GFP_KERNEL)?)
    }

    /// Notes the result of a search; the packets that waited go on or are dropped. Returns the
    /// ticket of the next search if the port has changed since.
    ///
    /// Also called with a transmit queue locked, so it must not lock one.
    fn end_search(
        &self,
        gid: Gid,
        ticket: Ticket,
        found: Result<Arc<AddressHandle>>,
    ) -> Option<Ticket> {
        let is_found = found.is_ok();
        let mut destinations = self.destinations.lock();
        let waited = match destinations.resolved(&gid, ticket, found, self.now()) {
            End::Settled(waited) => waited,
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
        for packet in waited {
            if is_found {
                packet.transmit_again();
            } else {
                self.device().count_send_dropped();
                drop(packet);
            }
        }
        None
    }

    /// Looks anew for destinations in use, and forgets those that were not used for long.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: some were left as they are.
    pub(super) fn age(self: &Arc<Self>) -> Result {
        let now = self.now();
        self.note_used(now)?;
        self.refresh_ways(now)?;
        self.expire(now)
    }

    /// Takes down which destinations the queues' caches were asked for.
    fn note_used(&self, now: u64) -> Result {
        let mut used = KVec::with_capacity(super::cache::ENTRIES, GFP_KERNEL)?;
        for index in 0..self.device().queues() {
            used.clear();
            if let Some(queue) = self.device().lock_queue(index)?.as_mut() {
                queue.take_used(&mut used);
            }
            let mut destinations = self.destinations.lock();
            for gid in &used {
                destinations.used(gid, now);
            }
        }
        Ok(())
    }

    fn refresh_ways(self: &Arc<Self>, now: u64) -> Result {
        let mut stale = KVec::with_capacity(BATCH, GFP_KERNEL)?;
        loop {
            stale.clear();
            let ticket = self.destinations.lock().take_stale(now, &mut stale);
            for gid in &stale {
                self.start_search(*gid, ticket);
            }
            if stale.len() < BATCH {
                return Ok(());
            }
        }
    }

    fn expire(&self, now: u64) -> Result {
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

    /// Forgets all destinations: their ways are no use any more.
    pub(super) fn forget_destinations(&self) {
        // The table first: a queue that misses from now on waits for a new search.
        let forgotten = self.destinations.lock().forget_settled();
        drop(forgotten);
        self.for_each_queue(|queue| queue.forget_all());
    }
}
