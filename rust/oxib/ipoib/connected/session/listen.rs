// SPDX-License-Identifier: GPL-2.0-only

//! Listeners of a session: one at each number that peers may know us by.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::Session;
use crate::{
    ipoib::connected::passive::Listener,
    wire::qpn::Qpn, //
};

impl Session {
    /// Listens, unless that is done; returns whether it listens.
    pub(super) fn listen(self: &Arc<Self>) -> bool {
        if !self.members.lock().listeners.is_empty() {
            return true;
        }
        match self.begin_to_listen() {
            Ok(()) => {
                self.settle(true);
                true
            }
            Err(error) => {
                self.cannot_listen(error);
                false
            }
        }
    }

    /// Notes an attempt to listen that failed. If that goes on, peers are told that they cannot
    /// connect.
    fn cannot_listen(&self, error: Error) {
        if self.attempts.count(error) {
            self.advise(error);
            self.settle(false);
        }
    }

    /// Notes whether peers can connect: the address says so from now on, and the interface may have
    /// carrier.
    fn settle(&self, listens: bool) {
        // Under the lock by which `close` ends the session: no old one settles the next one's
        // address.
        let members = self.members.lock();
        let is_news = members.open && self.interface.connected.settle(listens);
        drop(members);
        if is_news {
            self.interface.kick();
        }
    }

    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::manager`] and of [`Listener::new`]; `ENODEV` if the session is
    /// closed, `EAGAIN` if there are fewer numbers meanwhile.
    fn begin_to_listen(self: &Arc<Self>) -> Result {
        let manager = self.manager()?;
        let mut listeners = KVec::new();
        // Without the members' lock: a request may come at once, and its handler takes that lock.
        for address in &self.addresses()? {
            let listener = Listener::new(self, &manager, *address)
                .and_then(|listener| Ok(listeners.push(listener, GFP_KERNEL)?));
            if let Err(error) = listener {
                close_all(&listeners);
                return Err(error);
            }
        }
        self.admit_listeners(listeners)
    }

    /// Returns a copy of the numbers of the queue pairs that peers may know us by.
    fn addresses(&self) -> Result<KVec<Qpn>> {
        let mut addresses = KVec::new();
        let members = self.members.lock();
        addresses.extend_from_slice(&members.addresses, GFP_KERNEL)?;
        Ok(addresses)
    }

    fn admit_listeners(&self, listeners: KVec<Arc<Listener>>) -> Result {
        let error = {
            let mut members = self.members.lock();
            if !members.open {
                // `close` has been here since: nobody would close these listeners.
                ENODEV
            } else if members.addresses.len() != listeners.len() {
                // `retire` has been here since.
                EAGAIN
            } else {
                members.listeners = listeners;
                return Ok(());
            }
        };
        // Without the lock: the end of a listener waits for its handler.
        close_all(&listeners);
        Err(error)
    }

    /// Stops listening at `address`, the number of a queue pair that goes: an interface that gets
    /// the number next has to be able to listen there. Sleeps.
    ///
    /// The caller holds the RTNL, as with [`Session::close`]: so the listener has ended before the
    /// use of the connection manager can end.
    pub(in crate::ipoib) fn retire(&self, address: Qpn) {
        let mut members = self.members.lock();
        dismiss(&mut members.addresses, |other| *other == address);
        let listener = dismiss(&mut members.listeners, |other| other.is_for(address));
        drop(members);
        // Without the lock: the end of a listener waits for its handler.
        if let Some(listener) = listener {
            listener.close();
        }
    }
}

/// Takes an element out of a list. The order of the list means nothing.
fn dismiss<T>(list: &mut KVec<T>, is_it: impl Fn(&T) -> bool) -> Option<T> {
    let index = list.iter().position(is_it)?;
    let last = list.len() - 1;
    list.swap(index, last);
    list.pop()
}

/// Closes each listener. Sleeps.
pub(super) fn close_all(listeners: &[Arc<Listener>]) {
    listeners.iter().for_each(|listener| listener.close());
}
