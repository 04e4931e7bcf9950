// SPDX-License-Identifier: GPL-2.0-only

//! Lanes: messages that came, on their way to identifiers.
//!
//! The MAD layer delivers the messages of a port one after another. A lane keeps the
//! messages of one exchange in order; different lanes are handled in parallel on all CPUs.
//! The sender's communication ID selects the lane: every message carries it, even a REJ
//! that follows the sender's own REQ before our ID is known.

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    workqueue::{
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    }, //
};

use super::{
    arrive,
    notice::{
        Chain,
        Notice, //
    },
    table, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    wire::cm::CommId,
    work, //
};

/// The most lanes there are: no more work than this is done at a time.
const MOST: usize = 16;

/// How many there are: two for each CPU, as consumers may sleep, and no more, as each that has something to do wakes a
/// thread.
fn number() -> usize {
    (2 * kernel::cpu::nr_cpu_ids() as usize).min(MOST)
}

/// All lanes.
pub(super) struct Lanes {
    lanes: KVec<Arc<Lane>>,
}

/// One lane.
#[pin_data]
struct Lane {
    #[pin]
    chain: IrqLock<Chain>,
    #[pin]
    work: DelayedWork<Lane>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Lane { self.work }
}

impl Lanes {
    /// Makes the lanes.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let number = number();
        let mut lanes = KVec::with_capacity(number, GFP_KERNEL)?;
        for _ in 0..number {
            let lane = Arc::pin_init(
                pin_init!(Lane {
                    chain <- new_irq_lock!(Chain::new(), "oxib_cm_lane"),
                    work <- new_delayed_work!("oxib_cm_lane"),
                }),
                GFP_KERNEL,
            )?;
            lanes.push(lane, GFP_KERNEL)?;
        }
        Ok(Self { lanes })
    }

    /// Queues a notice on the lane of the exchange with the peer's communication ID
    /// `theirs`, to be handled on `queue`. Any context.
    pub(super) fn push(&self, queue: &work::Queue, theirs: CommId, notice: KBox<Notice>) {
        let lane = table::hash(&theirs) as usize % self.lanes.len().max(1);
        let Some(lane) = self.lanes.get(lane) else {
            return;
        };
        let was_empty = lane.chain.with(|chain| {
            let was_empty = chain.is_empty();
            chain.push(notice);
            was_empty
        });
        // Otherwise it is scheduled: it takes all that is there when it runs.
        if was_empty {
            queue.schedule(lane.clone(), 0);
        }
    }
}

impl WorkItem for Lane {
    type Pointer = Arc<Lane>;

    fn run(lane: Arc<Lane>) {
        // Peers decide how many there are: they are put in order with no lock held.
        let notices = lane.chain.with(core::mem::take);
        for notice in notices.in_order() {
            arrive::handle(notice);
        }
    }
}
