// SPDX-License-Identifier: GPL-2.0-only

//! What a consumer has of its identifier.
//!
//! The identifier has the consumer and the consumer has the identifier, until that has ended. Who takes
//! it out here is the one to end it: the consumer by what it answers when it is told something, others
//! by [`Identifier::close`]. So it ends once, however many want it to.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::id::Id;

/// An identifier that has not ended, if there is one.
#[pin_data]
pub(crate) struct Identifier {
    #[pin]
    id: Mutex<Option<Arc<Id>>>,
}

impl Identifier {
    /// None yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            id <- new_mutex!(None),
        })
    }

    /// The identifier is there.
    pub(crate) fn attach(&self, id: &Arc<Id>) {
        *self.id.lock() = Some(id.clone());
    }

    /// It has ended.
    pub(crate) fn detach(&self) {
        let id = self.id.lock().take();
        // Without the lock. Whoever ends it has a reference of his own.
        drop(id);
    }

    /// The identifier.
    ///
    /// # Errors
    ///
    /// `ENOENT` if it has ended, or is being ended.
    pub(crate) fn get(&self) -> Result<Arc<Id>> {
        self.id.lock().clone().ok_or(ENOENT)
    }

    /// Ends it, unless that is being done. Sleeps. Not from what the consumer is told.
    pub(crate) fn close(&self) {
        let id = self.id.lock().take();
        if let Some(id) = id {
            id.destroy();
        }
    }

    /// Ends it by the answer to what the consumer is told, unless that is being done: this is the answer.
    ///
    /// # Errors
    ///
    /// Any: it ends.
    pub(crate) fn over(&self) -> Result {
        match self.id.lock().take() {
            Some(_) => Err(ENOENT),
            None => Ok(()),
        }
    }
}
