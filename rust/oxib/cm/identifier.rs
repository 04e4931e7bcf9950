// SPDX-License-Identifier: GPL-2.0-only

//! A consumer's reference to its identifier.
//!
//! The identifier refers to the consumer and the consumer to the identifier, until the identifier
//! has ended. The thread that takes the reference out here is the one to end the identifier: the
//! consumer by the result of its handler, others by [`Identifier::close`]. So the identifier ends
//! once, however many threads want it to.

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
    /// Creates a reference to no identifier.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            id <- new_mutex!(None),
        })
    }

    /// Keeps a reference to the consumer's new identifier.
    pub(crate) fn attach(&self, id: &Arc<Id>) {
        *self.id.lock() = Some(id.clone());
    }

    /// Drops the reference, as the identifier has ended.
    pub(crate) fn detach(&self) {
        let id = self.id.lock().take();
        // Without the lock. The thread that ends it has a reference of its own.
        drop(id);
    }

    /// Returns the identifier with a reference of its own.
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

    /// Ends the identifier by the result of the consumer's handler, unless it is being ended
    /// already. The handler returns this result.
    ///
    /// # Errors
    ///
    /// Any: it ends.
    pub(crate) fn over(&self) -> Result {
        let id = self.id.lock().take();
        // Dropped without the lock, as in `detach`.
        id.map_or(Ok(()), |_| Err(ENOENT))
    }
}
