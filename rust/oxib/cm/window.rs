// SPDX-License-Identifier: GPL-2.0-only

//! The limit of a port's requests that are unanswered at a time.
//!
//! A node that opens ten thousand connections at once would overrun its peers: a queue pair for
//! management has room for some hundred datagrams, and what is lost or answered late is repeated
//! and makes it worse. So a port has a number of slots, a request takes one until something
//! comes for it or should have come, and those that find none are queued. Their time, which the
//! consumer has chosen, begins when they are sent.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering, //
};

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

use super::id::Id;
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    work, //
};

/// Number of a port's slots: few enough for a peer's receive queue (512) when two ports send to
/// it, and more than the peer answers while queued requests are sent on.
const SLOTS: u32 = 256;

/// Number of slots that have to be free before queued requests are sent on: one thread wakes
/// for many of them. All slots become free some time, so no request waits for ever.
const BATCH: u32 = SLOTS / 4;

/// The slots of a port.
#[pin_data]
pub(super) struct Window {
    /// Slots that are taken. More than there are if memory was short.
    taken: AtomicU32,
    /// Number of queued requests: for a moment more than there are, never fewer.
    queued: AtomicU32,
    /// The port goes: requests do not wait any more.
    closed: AtomicBool,
    /// The requests that came last, the last one first.
    #[pin]
    newest: IrqLock<TurnList<Arc<Id>>>,
    /// The requests that came before them, the first one first. Only the work changes it.
    #[pin]
    oldest: IrqLock<TurnList<Arc<Id>>>,
    queue: Arc<work::Queue>,
    #[pin]
    work: DelayedWork<Window>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Window { self.work }
}

impl Window {
    /// Creates the window of a port. Its work is done on `queue`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(queue: &Arc<work::Queue>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                taken: AtomicU32::new(0),
                queued: AtomicU32::new(0),
                closed: AtomicBool::new(false),
                newest <- new_irq_lock!(TurnList::new(), "oxib_cm_newest"),
                oldest <- new_irq_lock!(TurnList::new(), "oxib_cm_oldest"),
                queue: queue.clone(),
                work <- new_delayed_work!("oxib_cm_window"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a slot for a request of `id`. Without one the identifier is queued:
    /// [`Id::turn_came`] is called later. Any context, also with the identifier's lock held.
    pub(super) fn enter(self: &Arc<Self>, id: &Arc<Id>) -> Option<Slot> {
        // While others wait, a slot that has become free is theirs: nobody overtakes them.
        if self.queued.load(Ordering::SeqCst) == 0 {
            if let Some(slot) = self.take() {
                return Some(slot);
            }
        }
        let turn = Turn {
            waiter: id.clone(),
            next: None,
        };
        let Ok(turn) = KBox::new(turn, GFP_ATOMIC) else {
            // One too many now is better than one never.
            return Some(self.take_in_any_case());
        };
        // Pairs with the drop of a slot: each side changes its own count, then reads the
        // other's. Without `SeqCst` both could read the old value, and nobody would wake the
        // work.
        self.queued.fetch_add(1, Ordering::SeqCst);
        self.newest.with(|list| list.push(turn));
        // A slot may have become free before the request was seen to be queued.
        self.wake();
        None
    }

    /// Sends on all requests that wait, now and later. The caller flushes the queue.
    pub(super) fn close(self: &Arc<Self>) {
        self.closed.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Returns whether it was closed: the port goes.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn take(self: &Arc<Self>) -> Option<Slot> {
        let closed = self.closed.load(Ordering::SeqCst);
        self.taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |taken| {
                (closed || taken < SLOTS).then(|| taken.saturating_add(1))
            })
            .ok()?;
        Some(Slot(self.clone()))
    }

    fn take_in_any_case(self: &Arc<Self>) -> Slot {
        self.taken.fetch_add(1, Ordering::SeqCst);
        Slot(self.clone())
    }

    /// Schedules the work that sends queued requests on, if there are any, and enough slots are
    /// free or the port goes.
    fn wake(self: &Arc<Self>) {
        let there_are_slots = self.taken.load(Ordering::SeqCst) <= SLOTS - BATCH
            || self.closed.load(Ordering::SeqCst);
        if there_are_slots && self.queued.load(Ordering::SeqCst) > 0 {
            // Requests are never sent from here: the caller may hold the lock of an identifier,
            // which `turn_came` takes.
            self.queue.schedule(self.clone(), 0);
        }
    }

    /// Returns a free slot and the identifier that is next in turn. For the work alone.
    fn next(self: &Arc<Self>) -> Option<(Slot, Arc<Id>)> {
        let slot = self.take()?;
        // The list may still be empty for a request that `enter` has counted and not yet pushed:
        // `enter` calls `wake` after that.
        let turn = self.first()?;
        self.queued.fetch_sub(1, Ordering::SeqCst);
        Some((slot, turn.waiter.clone()))
    }

    /// Takes the identifier that has waited longest. The list is reversed with no lock held:
    /// it may be long.
    fn first(&self) -> Option<KBox<Turn<Arc<Id>>>> {
        if let Some(turn) = self.oldest.with(TurnList::pop) {
            return Some(turn);
        }
        let newest = self.newest.with(core::mem::take);
        let mut reversed = newest.reversed();
        let turn = reversed.pop();
        // It was empty, and only the work fills it.
        self.oldest.with(|oldest| *oldest = reversed);
        turn
    }
}

impl WorkItem for Window {
    type Pointer = Arc<Window>;

    fn run(window: Arc<Window>) {
        while let Some((slot, id)) = window.next() {
            id.turn_came(slot);
        }
    }
}

/// A slot that a request has taken. Dropping it, in any context, gives it to the next.
pub(super) struct Slot(Arc<Window>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        self.0.wake();
    }
}

/// A part of the requests that wait, one behind the other.
struct TurnList<T> {
    head: Option<KBox<Turn<T>>>,
}

/// An identifier that waits.
struct Turn<T> {
    waiter: T,
    next: Option<KBox<Turn<T>>>,
}

impl<T> TurnList<T> {
    const fn new() -> Self {
        Self { head: None }
    }

    fn push(&mut self, mut turn: KBox<Turn<T>>) {
        turn.next = self.head.take();
        self.head = Some(turn);
    }

    fn pop(&mut self) -> Option<KBox<Turn<T>>> {
        let mut turn = self.head.take()?;
        self.head = turn.next.take();
        Some(turn)
    }

    /// Returns the list in the opposite order.
    fn reversed(mut self) -> Self {
        let mut reversed = Self::new();
        while let Some(turn) = self.pop() {
            reversed.push(turn);
        }
        reversed
    }
}

impl<T> Default for TurnList<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Drops a long list without a call for each link.
impl<T> Drop for TurnList<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_window)]
mod tests {
    use super::*;

    fn push(list: &mut TurnList<u32>, waiter: u32) -> Result {
        list.push(KBox::new(Turn { waiter, next: None }, GFP_KERNEL)?);
        Ok(())
    }

    fn pop(list: &mut TurnList<u32>) -> Option<u32> {
        list.pop().map(|turn| turn.waiter)
    }

    #[test]
    fn reversed_the_first_comes_first() -> Result {
        let mut list = TurnList::new();
        assert_eq!(pop(&mut list), None);
        for waiter in 0..5 {
            push(&mut list, waiter)?;
        }
        let mut list = list.reversed();
        for waiter in 0..5 {
            assert_eq!(pop(&mut list), Some(waiter));
        }
        assert_eq!(pop(&mut list), None);
        Ok(())
    }

    #[test]
    fn long_lists_end() -> Result {
        let mut list = TurnList::new();
        for waiter in 0..20_000 {
            push(&mut list, waiter)?;
        }
        let mut list = list.reversed();
        assert_eq!(pop(&mut list), Some(0));
        Ok(())
    }
}
