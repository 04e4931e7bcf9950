// SPDX-License-Identifier: GPL-2.0-only

//! Lanes: messages that came, on their way to identifiers.
//!
//! The MAD layer delivers the messages of a port one after another. A lane keeps the
//! messages of one exchange in order; different lanes are handled in parallel on all CPUs.
//! The sender's communication ID selects the lane: every message carries it, even a REJ
//! that follows the sender's own REQ before our ID is known.
//!
//! Lanes have a queue of their own: consumers may sleep in it, and timers do not wait for that.

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
    machine::{
        inflow::Inflow,
        source::Source, //
    },
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
    rdma::management::random,
    wire::cm::CommId,
    work, //
};

/// The most lanes there are: no more work than this is done at a time.
const MOST: usize = 16;

/// The number of messages for which all lanes together have room. As many more are being handled,
/// as a lane is emptied before its messages are.
const ROOM: u32 = 1 << 14;

/// Returns the number of lanes: two for each CPU, as consumers may sleep, and no more, as each
/// that has something to do wakes a thread.
fn number() -> usize {
    (2 * kernel::cpu::nr_cpu_ids() as usize).min(MOST)
}

/// The lanes of the node, with their queue of work.
pub(super) struct Lanes {
    lanes: KVec<Arc<Lane>>,
    /// A key for the hashes of communication IDs and of senders, so that no peer can choose to have
    /// the lane or the hash of another.
    seed: u32,
    queue: work::Queue,
}

/// A lane, with the work that empties it.
#[pin_data]
struct Lane {
    #[pin]
    waiting: IrqLock<Waiting>,
    #[pin]
    work: DelayedWork<Lane>,
}

/// Notices that wait in a lane.
struct Waiting {
    chain: Chain,
    inflow: Inflow,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Lane { self.work }
}

impl Lanes {
    /// Makes empty lanes, as many as the CPUs can use.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        let number = number();
        let room = ROOM / u32::try_from(number).unwrap_or(1).max(1);
        let mut lanes = KVec::with_capacity(number, GFP_KERNEL)?;
        for _ in 0..number {
            let lane = Arc::pin_init(
                pin_init!(Lane {
                    waiting <- new_irq_lock!(
                        Waiting {
                            chain: Chain::new(),
                            inflow: Inflow::new(room),
                        },
                        "oxib_cm_lane"
                    ),
                    work <- new_delayed_work!("oxib_cm_lane"),
                }),
                GFP_KERNEL,
            )?;
            lanes.push(lane, GFP_KERNEL)?;
        }
        Ok(Self {
            lanes,
            seed: random(),
            queue: work::Queue::new()?,
        })
    }

    /// Queues a notice of our own on the lane of the exchange with the peer's communication ID
    /// `theirs`. Any context.
    pub(super) fn push(&self, theirs: CommId, notice: KBox<Notice>) {
        // Notices of our own are not limited, and there is always a lane: nothing is given back.
        let _ = self.enter(theirs, notice, |_, _| true);
    }

    /// Queues a message on the lane of the exchange with the communication ID `theirs`, or gives
    /// it back if there is no room for it. Its source is asked for only when many messages wait.
    /// Any context.
    pub(super) fn push_message(
        &self,
        theirs: CommId,
        message: KBox<Notice>,
        source: impl FnOnce(&Notice) -> Option<Source>,
    ) -> core::result::Result<(), KBox<Notice>> {
        let hash = |message: &Notice| {
            // The GID can be forged on InfiniBand, so it gives a sender no share beyond that of
            // its LID.
            let sender = source(message).map(Source::without_claims);
            table::hash(&(self.seed, sender))
        };
        self.enter(theirs, message, |inflow, message| {
            inflow.admits(|| hash(message))
        })
    }

    fn enter(
        &self,
        theirs: CommId,
        notice: KBox<Notice>,
        admits: impl FnOnce(&mut Inflow, &Notice) -> bool,
    ) -> core::result::Result<(), KBox<Notice>> {
        let lane = table::hash(&(self.seed, theirs)) as usize % self.lanes.len().max(1);
        let Some(lane) = self.lanes.get(lane) else {
            return Err(notice);
        };
        let was_empty = lane.waiting.with(|waiting| {
            if !admits(&mut waiting.inflow, &notice) {
                return Err(notice);
            }
            let was_empty = waiting.chain.is_empty();
            waiting.chain.push(notice);
            Ok(was_empty)
        })?;
        // Otherwise it is scheduled: it takes all that is there when it runs.
        if was_empty {
            // The lane's lock is released: the work takes it as soon as it runs.
            self.queue.schedule(lane.clone(), 0);
        }
        Ok(())
    }

    /// Waits until all is handled that was queued before. Sleeps.
    pub(super) fn flush(&self) {
        self.queue.flush();
    }
}

impl WorkItem for Lane {
    type Pointer = Arc<Lane>;

    fn run(lane: Arc<Lane>) {
        // Peers decide how many there are: they are put in order with no lock held.
        let notices = lane.waiting.with(|waiting| {
            waiting.inflow.clear();
            core::mem::take(&mut waiting.chain)
        });
        for notice in notices.in_order() {
            arrive::handle(notice);
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_lane)]
mod tests {
    use super::super::machine::{
        actions::Report,
        inflow::FREE, //
    };
    use super::*;

    #[test]
    fn a_lane_has_room_for_others() -> Result {
        let lanes = Lanes::new()?;
        for lane in &lanes.lanes {
            // Nothing is taken out.
            work::disable(lane);
        }
        let theirs = CommId::new(1);
        let room = ROOM / u32::try_from(lanes.lanes.len()).map_err(|_| EINVAL)?;
        let let_in = |lid| -> Result<u32> {
            let source = |_: &Notice| Some(Source::new(lid, 0, None));
            for count in 0..=room {
                let message = Notice::new(Report::ReqReceived, GFP_KERNEL)?;
                if lanes.push_message(theirs, message, source).is_err() {
                    return Ok(count);
                }
            }
            Err(EINVAL)
        };
        assert_eq!(let_in(1)?, FREE + (room - FREE) / 2);
        // A sender whose hash meets the first one's has no share of its own.
        let mut others = (2..32).map(let_in);
        let share = others
            .find(|share| !matches!(share, Ok(0)))
            .ok_or(EINVAL)??;
        assert_eq!(share, (room - FREE) / 4);
        // Our own notices find room in any case.
        lanes.push(theirs, Notice::new(Report::UserEstablished, GFP_KERNEL)?);
        Ok(())
    }
}
