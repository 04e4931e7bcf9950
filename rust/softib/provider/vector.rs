// SPDX-License-Identifier: GPL-2.0-only

//! Completion vectors: the processors on which a completion queue's events run.

use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::{
        HasWork,
        RawWorkItem,
        WorkItem, //
    }, //
};

use crate::bindings;

/// A completion vector, and the processor of its events.
#[derive(Clone, Copy)]
pub(crate) struct Vector {
    pub(super) number: u32,
    /// Its processor, if events are to run there.
    processor: Option<u32>,
}

impl Vector {
    /// The vector of that number; with `affinity`, it is a processor's.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such vector.
    pub(super) fn new(number: u32, affinity: bool) -> Result<Self> {
        // SAFETY: Reads which processors there are.
        let processor = unsafe { bindings::softib_processor(number) };
        let processor = u32::try_from(processor).map_err(|_| EINVAL)?;
        Ok(Self {
            number,
            processor: affinity.then_some(processor),
        })
    }

    /// Returns whether an event can run on the processor that asks. With preemption off.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.processor.is_none_or(|processor| {
            // SAFETY: Reads this processor's number, and whether the other is on.
            unsafe { bindings::softib_may_run_here(processor) }
        })
    }

    /// Runs `owner`'s work in a soft interrupt of the vector's processor, soon, unless it waits
    /// already or was disabled. Any context.
    pub(crate) fn run<T, const ID: u64>(self, owner: Arc<T>)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasWork<T, ID> + Send + Sync + 'static,
    {
        // -1 for the one that asks.
        let processor = self.processor.map_or(-1, |processor| processor as i32);
        // SAFETY: The work is put into a queue, and the answer is whether it was. It takes a
        // reference along.
        let queued = unsafe {
            owner.__enqueue(|work| bindings::softib_queue_work_on(processor, work.cast()))
        };
        // A work that waits has its own reference; this one goes.
        drop(queued);
    }
}
