// SPDX-License-Identifier: GPL-2.0-only

//! Requests: sent now or, where the port has no slot for one more, when their turn comes.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    id::{
        Id,
        Inner, //
    },
    machine::time::Time,
    message::Room,
    port,
    round_trip::UNHEARD,
    window::Slot, //
};
use crate::{
    rdma::mad,
    wire::{
        cm::{
            BuildError,
            Kind, //
        },
        mad::Blank, //
    }, //
};

impl Inner {
    /// Returns the kind of the unanswered request.
    pub(super) fn asked(&self) -> Kind {
        if self.bare_dreq {
            return Kind::Dreq;
        }
        let kind = self
            .request
            .as_ref()
            .and_then(|request| port::kind(request));
        kind.unwrap_or(Kind::Req)
    }

    /// Sends the request that `write` writes, now or when its turn comes, and keeps it in `memory`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it cannot be built; the error of the sending.
    pub(super) fn ask(
        &mut self,
        id: &Arc<Id>,
        kind: Kind,
        memory: Room,
        write: impl FnOnce(&Self, Blank<'_>) -> core::result::Result<(), BuildError>,
    ) -> Result {
        let to = self.destination(id)?;
        // The window's work may run at once, but waits for the identifier's lock, and so sees
        // `waits`.
        let slot = to.port().window.enter(id);
        let request = match slot {
            Some(_) => to.post_kept(kind, memory, |out| write(self, out))?,
            None => {
                let mut request = memory.write([0; mad::LEN]);
                write(self, Blank::zeroed(&mut request)).map_err(|_| EINVAL)?;
                request
            }
        };
        self.waits = slot.is_none();
        self.window_slot = slot;
        self.request = Some(request);
        Ok(())
    }

    /// Sends a DREQ without private data, now or when its turn comes. It is not kept: all of it is
    /// known as long as it may be repeated.
    ///
    /// # Errors
    ///
    /// The error of the sending.
    pub(super) fn ask_to_disconnect(&mut self, id: &Arc<Id>) -> Result {
        let slot = self.destination(id)?.port().window.enter(id);
        if slot.is_some() {
            self.send_bare_dreq(id)?;
        }
        self.waits = slot.is_none();
        self.window_slot = slot;
        self.bare_dreq = true;
        Ok(())
    }

    /// The time of the next look at an identifier that is due later: sooner if its request keeps
    /// others waiting, or was sent before it was known how long answers take.
    pub(super) fn next_look(&self, due: Time, now: Time) -> Time {
        let soon = u64::from(UNHEARD);
        let asked = self.machine.asked_at();
        let port = asked.and(self.port());
        let is_unmeasured = port.is_some_and(|port| !port.round_trips.of(self.asked()).is_known());
        match self.window_slot {
            Some(_) => due.min(now.after(soon)),
            None if is_unmeasured => {
                let waited = asked.map_or(0, |asked| now.since(asked));
                due.min(now.after(waited.max(soon)))
            }
            None => due,
        }
    }

    /// Gives the request's slot to others if no answer is to be expected any more.
    pub(super) fn let_others_in(&mut self, now: Time) {
        let is_overdue = match (self.port(), self.machine.asked_at()) {
            (Some(port), Some(asked)) => {
                let round_trip = port.round_trips.of(self.asked());
                round_trip.is_overdue(asked, now)
            }
            _ => true,
        };
        if is_overdue {
            self.window_slot = None;
        }
    }

    /// Sends the request that was kept back. That it cannot be sent is as if it had been lost.
    pub(super) fn send_kept_back(&self, id: &Id) {
        if self.bare_dreq {
            let _ = self.send_bare_dreq(id);
        } else if let (Ok(to), Some(request)) = (self.destination(id), &self.request) {
            let _ = to.post_built(request);
        }
    }
}

impl Id {
    /// Sends the request that was kept back, as its turn has come.
    pub(super) fn turn_came(self: &Arc<Self>, slot: Slot) {
        let now = self.manager.now();
        self.with(|inner| {
            // It was answered before it was sent, by a peer with the same wish, or given up.
            if !core::mem::take(&mut inner.waits) {
                return;
            }
            // The consumer's time-outs count from here, not from its call.
            let actions = inner.machine.sent(now);
            inner.window_slot = Some(slot);
            inner.send_kept_back(self);
            let _ = inner.follow(self, &actions, now, None);
        });
    }
}
