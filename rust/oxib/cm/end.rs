// SPDX-License-Identifier: GPL-2.0-only

//! The end of an identifier.

use kernel::sync::Arc;

use super::{
    id::{
        Id,
        Inner, //
    },
    machine::{
        source::Source,
        state::StateName, //
    }, //
};

impl Id {
    /// Ends the identifier for its consumer, which is not notified afterwards. Sleeps until
    /// the consumer's handler is not running. Not to be called by the handler: an error that
    /// it returns ends the identifier.
    ///
    /// A listener that others share goes on for those: then the result is false.
    pub(crate) fn destroy(self: &Arc<Self>) -> bool {
        if self.is_still_shared() {
            return false;
        }
        self.end(false, false);
        true
    }

    /// Ends it; `notified` says that this is the consumer's answer to a notice.
    pub(super) fn end(self: &Arc<Self>, no_memory: bool, notified: bool) {
        let (is_unused, leftovers) = self.with(|inner| {
            // The handler that failed has returned: this thread must not wait for itself below.
            inner.notifying &= !notified;
            inner.say_goodbye(self, no_memory);
            (inner.let_go(self), core::mem::take(&mut inner.waiting))
        });
        // Without the lock: a notice may hold the use of a listener, and its drop takes
        // the lock of that.
        drop(leftovers);
        self.unlist();
        if !is_unused {
            self.unused.wait_for_completion();
        }
        self.consumer.detach();
    }

    /// Ends it without a word to the peer.
    pub(super) fn forget(self: &Arc<Self>) {
        // No table leads to it and its consumer was told of no event, so there is no handler to
        // wait for.
        self.with(|inner| inner.let_go(self));
        self.unlist();
        self.consumer.detach();
    }

    fn unlist(self: &Arc<Self>) {
        self.manager
            .ids
            .remove_if(&self.local(), |id| Arc::ptr_eq(id, self));
    }
}

impl Inner {
    /// Says the last that the peer is told. Of a request that was kept back it has not heard: only
    /// that a connection ends it has to hear all the same.
    fn say_goodbye(&mut self, id: &Id, no_memory: bool) {
        let ends = self.machine.name() == StateName::DreqSent;
        let actions = self.machine.destroy(no_memory);
        match (self.waits, ends) {
            (false, _) => self.send(id, &actions, None),
            (true, true) => self.send_kept_back(id),
            (true, false) => {}
        }
    }

    /// Notes that the consumer has let the identifier go. Returns whether it is not in use any
    /// more.
    fn let_go(&mut self, id: &Arc<Id>) -> bool {
        self.gone = true;
        self.disarm(id);
        self.forget_names(id);
        self.forget_asker(id);
        if let Some(half_open) = &mut self.half_open {
            half_open.give_back();
        }
        self.request = None;
        self.waits = false;
        self.window_slot = None;
        self.is_unused()
    }

    /// Returns whether the consumer has let go and is not being told anything, and no request
    /// uses the identifier.
    pub(super) fn is_unused(&self) -> bool {
        self.gone && !self.notifying && self.users == 0
    }

    /// Takes the identifier out of the tables of remote names.
    pub(super) fn forget_names(&mut self, id: &Id) {
        let manager = &id.manager;
        self.claims
            .release(id.local(), &manager.remote_ids, &manager.remote_qpns);
    }

    /// Takes the identifier out of the tables of remote names if the peer has moved to `source`:
    /// the address that it had may be another node's next.
    pub(super) fn leave_address(&mut self, id: &Id, source: Source) {
        if self.claims.are_from_elsewhere(source) {
            self.forget_names(id);
        }
    }

    /// Takes it out of that of requests for resolution.
    pub(super) fn forget_asker(&mut self, id: &Id) {
        if let Some(request) = self.sidr_request.take() {
            id.manager
                .askers
                .remove_if(&request.name, |other| other.local() == id.local());
        }
    }
}
