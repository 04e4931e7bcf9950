// SPDX-License-Identifier: GPL-2.0-only

//! An interface's search for the way to its destinations, and their ageing.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::Verdict,
    interface::Interface, //
};
use crate::{
    net::skb::Skb,
    rdma::ah::AddressHandle,
    wire::gid::Gid, //
};

/// Destinations forgotten under one hold of a lock.
const BATCH: usize = 64;

impl Interface {
    /// Asks for the way of `packet` to `gid`, and starts a search if there is none yet.
    pub(super) fn request(
        self: &Arc<Self>,
        gid: Gid,
        packet: Skb,
    ) -> Verdict<Arc<AddressHandle>, Skb> {
        let verdict = self.destinations.lock().request(gid, packet, self.now());
        if let Verdict::Search = verdict {
            self.start_search(gid);
        }
        verdict
    }

    fn start_search(self: &Arc<Self>, gid: Gid) {
        let this = self.clone();
        if self.queue.spawn(move || this.search(gid)).is_err() {
            self.end_search(gid, None);
        }
    }

    /// Finds the way to `gid`. Sleeps.
    fn search(self: &Arc<Self>, gid: Gid) {
        let found = self
            .link()
            .resolve(gid)
            .and_then(|handle| Ok(Arc::new(handle, GFP_KERNEL)?));
        self.end_search(gid, found.ok());
        // What the queues know of it is old now.
        self.for_each_queue(|queue| queue.forget(&[gid]));
    }

    /// Notes the result of a search; the packets that waited go on or are dropped. Also called with
    /// a transmit queue locked, so it must not lock one.
    fn end_search(&self, gid: Gid, found: Option<Arc<AddressHandle>>) {
        let is_found = found.is_some();
        let mut destinations = self.destinations.lock();
        let waited = destinations.resolved(&gid, found, self.now());
        drop(destinations);
        let statistics = self.statistics();
        if is_found {
            statistics.address_resolved.add(1);
            for packet in waited {
                packet.transmit_again();
            }
        } else {
            statistics.address_failed.add(1);
            for packet in waited {
                statistics.tx_drop_unreachable.add(1);
                self.device().count_send_dropped();
                drop(packet);
            }
        }
    }

    /// Looks anew for destinations in use, and forgets those that were not used for long.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: some were left as they are.
    pub(super) fn age(self: &Arc<Self>) -> Result {
        let now = self.now();
        self.note_used(now)?;
        let mut stale = KVec::with_capacity(BATCH, GFP_KERNEL)?;
        self.destinations.lock().take_stale(now, &mut stale);
        for gid in &stale {
            self.start_search(*gid);
        }
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
