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
    machine::{
        actions::Outgoing,
        time::Time, //
    },
    message::{
        Extra,
        Room, //
    },
    port,
    round_trip::{
        RoundTrip,
        UNHEARD, //
    },
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
    fn asked_kind(&self) -> Kind {
        match &self.request {
            Some(request) => port::kind(request).unwrap_or(Kind::Req),
            None => Kind::Dreq,
        }
    }

    /// Returns what the port knows of how long answers to the unanswered request take.
    pub(super) fn round_trip(&self) -> Option<&RoundTrip> {
        let port = self.port()?;
        Some(port.round_trips.of(self.asked_kind()))
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
        self.request = None;
        Ok(())
    }

    /// The time of the next look at an identifier that is due later: sooner if its request keeps
    /// others waiting, or was sent before it was known how long answers take.
    pub(super) fn next_look(&self, due: Time, now: Time) -> Time {
        let soon = u64::from(UNHEARD);
        let asked = self.machine.asked_at();
        let round_trip = asked.and_then(|_| self.round_trip());
        let is_unmeasured = round_trip.is_some_and(|round_trip| !round_trip.is_known());
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
        let is_overdue = match (self.round_trip(), self.machine.asked_at()) {
            (Some(round_trip), Some(asked)) => round_trip.is_overdue(asked, now),
            _ => true,
        };
        if is_overdue {
            self.window_slot = None;
        }
    }

    /// Sends the request that was kept back. That it cannot be sent is as if it had been lost.
    pub(super) fn send_kept_back(&self, id: &Id) {
        let _ = self.send_asked(id);
    }

    /// Sends the unanswered request once more.
    ///
    /// # Errors
    ///
    /// The error of the sending.
    pub(super) fn send_again(&self, id: &Id) -> Result {
        self.send_asked(id)?;
        let to = self.destination(id)?;
        to.port().count_repeated(self.asked_kind());
        Ok(())
    }

    /// Sends the unanswered request, of which there is one: all are kept but a DREQ without private
    /// data, and `follow` forgets them when they are answered.
    fn send_asked(&self, id: &Id) -> Result {
        match &self.request {
            Some(request) => self.destination(id)?.post_built(request),
            None => self.send_bare_dreq(id),
        }
    }

    /// Sends a DREQ without private data.
    fn send_bare_dreq(&self, id: &Id) -> Result {
        self.send_new(id, Outgoing::Dreq, &Extra::default())
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
