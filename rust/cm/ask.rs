// SPDX-License-Identifier: GPL-2.0-only

//! Requests: sent now or, where the port has no place for one more, when their turn comes.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    id::{
        Id,
        Inner, //
    },
    message::Bytes,
    port,
    window::Place, //
};
use crate::wire::cm::Kind;

impl Inner {
    /// Which request is unanswered.
    pub(super) fn asked(&self) -> Kind {
        let kind = self
            .request
            .as_ref()
            .and_then(|request| port::kind(request));
        kind.unwrap_or(Kind::Req)
    }

    /// Sends a request, now or when its turn comes, and keeps it.
    ///
    /// # Errors
    ///
    /// What sending says.
    pub(super) fn ask(&mut self, id: &Arc<Id>, request: KBox<Bytes>) -> Result {
        let (port, address) = self.way()?;
        let place = port.window.enter(id);
        if place.is_some() {
            port.post_built(address, &request)?;
        }
        self.waits = place.is_none();
        self.place = place;
        self.request = Some(request);
        Ok(())
    }

    /// Sends the request that was kept back. That it cannot be sent is as if it had been lost.
    pub(super) fn send_kept_back(&self) {
        if let (Ok((port, address)), Some(request)) = (self.way(), &self.request) {
            let _ = port.post_built(address, request);
        }
    }
}

impl Id {
    /// The turn of the request has come that was kept back.
    pub(super) fn turn_came(self: &Arc<Self>, place: Place) {
        let now = self.manager.now();
        self.with(|inner| {
            // It was answered before it was sent, by a peer with the same wish, or given up.
            if !core::mem::take(&mut inner.waits) {
                return;
            }
            let actions = inner.machine.sent(now);
            inner.place = Some(place);
            inner.send_kept_back();
            let _ = inner.follow(self, &actions, now, None);
        });
    }
}
