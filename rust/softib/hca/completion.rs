// SPDX-License-Identifier: GPL-2.0-only

//! Completion queues (IBTA 10.8).

use core::sync::atomic::{
    AtomicBool,
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

use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    provider::{
        completion::Handle,
        queue_pair,
        vector::Vector, //
    },
    transport::work::Status,
    wire::{
        immdt::ImmDt,
        qpn::Qpn, //
    },
    work, //
};

/// The operation that a completion reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Send,
    /// A send of a long segment as several.
    Cut,
    Write,
    Read,
    CompareSwap,
    FetchAdd,
    Register,
    Invalidate,
    Receive,
    /// A receive that an RDMA WRITE with immediate data took.
    ReceiveWrite,
}

/// Immediate data or a key that came with the last packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    Nothing,
    Immediate(ImmDt),
    /// A key that the peer had invalidated.
    Invalidated(u32),
}

/// The origin of a datagram, as its completion reports it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Origin {
    pub(crate) lid: u16,
    pub(crate) service_level: u8,
    pub(crate) path_bits: u8,
    pub(crate) pkey_index: u16,
    pub(crate) port: u8,
    /// Whether the first 40 bytes of the buffer are a global route header.
    pub(crate) global: bool,
    /// Whether checksums were looked at, and were right.
    pub(crate) checksum: bool,
}

/// The end of a work request.
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) request: u64,
    pub(crate) status: Status,
    pub(crate) kind: Kind,
    pub(crate) length: u32,
    pub(crate) extra: Extra,
    pub(crate) source: Qpn,
    pub(crate) origin: Origin,
    pub(crate) queue_pair: queue_pair::Handle,
}

/// The event that the next completion raises.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Armed {
    Nothing,
    /// An event, if it is solicited or an error.
    Solicited,
    /// An event, whatever the completion is.
    Any,
}

/// The entries of a queue: `first` to `first + count`, going around.
struct Ring {
    entries: KVVec<Completion>,
    first: usize,
    count: usize,
    capacity: usize,
    armed: Armed,
    overrun: bool,
    /// Whether the consumer may be at work on what it took: it has not asked for more since.
    in_hand: bool,
    /// Whether completions of different queue pairs overtake each other.
    overtaking: bool,
}

impl Ring {
    fn place(&self, offset: usize) -> usize {
        let place = self.first + offset;
        if place >= self.capacity {
            place - self.capacity
        } else {
            place
        }
    }

    /// Adds a completion; whether there was room.
    #[inline]
    fn push(&mut self, completion: &Completion) -> bool {
        let appended = self.append(completion);
        if self.overtaking && appended && self.count > 1 {
            self.overtake(self.place(self.count - 2), self.place(self.count - 1));
        }
        appended
    }

    #[inline]
    fn append(&mut self, completion: &Completion) -> bool {
        if self.count == self.capacity {
            return false;
        }
        let place = self.place(self.count);
        match self.entries.get_mut(place) {
            Some(entry) => *entry = *completion,
            // Not yet used; the room was made when the queue was.
            None => {
                if self.entries.push_within_capacity(*completion).is_err() {
                    return false;
                }
            }
        }
        self.count += 1;
        true
    }

    /// Lets the completion at `second` go before that at `first`, if they are of different queue
    /// pairs.
    fn overtake(&mut self, first: usize, second: usize) {
        let pair_of = |place: usize| self.entries.get(place).map(|entry| entry.queue_pair);
        let (Some(one), Some(other)) = (pair_of(first), pair_of(second)) else {
            return;
        };
        if one != other {
            self.entries.swap(first, second);
        }
    }

    /// Runs `take` on the oldest, which goes; whether there was one.
    #[inline]
    fn take(&mut self, take: impl FnOnce(&Completion)) -> bool {
        if self.count == 0 {
            return false;
        }
        if let Some(completion) = self.entries.get(self.first) {
            take(completion);
        }
        self.first = self.place(1);
        self.count -= 1;
        true
    }

    fn pop(&mut self) -> Option<Completion> {
        let mut popped = None;
        self.take(|completion| popped = Some(*completion));
        popped
    }

    /// Takes out the completions of a queue pair that ends.
    fn purge(&mut self, queue_pair: queue_pair::Handle) {
        // Taken out at one end and appended at the other, the others stay in their order.
        for _ in 0..self.count {
            if let Some(completion) = self.pop() {
                if completion.queue_pair != queue_pair {
                    self.append(&completion);
                }
            }
        }
    }

    /// Returns whether this completion raises an event; then no other does until the consumer
    /// asks again.
    fn fires(&mut self, completion: &Completion, solicited: bool) -> bool {
        let fires = match self.armed {
            Armed::Nothing => false,
            Armed::Solicited => solicited || completion.status != Status::Success,
            Armed::Any => true,
        };
        if fires {
            self.armed = Armed::Nothing;
        }
        fires
    }
}

/// A completion queue, and the work that calls its consumer.
#[pin_data]
pub(crate) struct CompletionQueue {
    #[pin]
    ring: IrqLock<Ring>,
    handle: Handle,
    pub(crate) vector: Vector,
    /// Whether the work is to call the consumer. The work cannot be queued while
    /// [`CompletionQueue::settle`] takes it out of its queue: that is seen here.
    owes: AtomicBool,
    #[pin]
    work: DelayedWork<CompletionQueue>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for CompletionQueue { self.work }
}

impl WorkItem for CompletionQueue {
    type Pointer = Arc<CompletionQueue>;

    fn run(this: Arc<CompletionQueue>) {
        // First: an event that is owed from here on has this work run again.
        this.owes.store(false, Ordering::SeqCst);
        this.handle.notify();
    }
}

/// An event that a completion queue owes its consumer.
#[must_use]
pub(crate) struct Event<'a>(Option<&'a Arc<CompletionQueue>>);

impl<'a> Event<'a> {
    /// The value for no event.
    pub(crate) const NONE: Self = Self(None);

    /// Puts two events of one queue together.
    pub(crate) fn merge(&mut self, other: Event<'a>) {
        self.0 = self.0.or(other.0);
    }

    /// Calls the consumer, on the processor of its completion vector. Soft interrupt context, no
    /// lock held.
    pub(crate) fn raise(self) {
        match self.0 {
            Some(queue) if queue.vector.is_here() => queue.handle.notify(),
            _ => self.raise_later(),
        }
    }

    /// Calls the consumer soon. Any context.
    #[inline(always)]
    pub(crate) fn raise_later(self) {
        if let Some(queue) = self.0 {
            queue.notify_later();
        }
    }
}

impl CompletionQueue {
    /// Makes one for `capacity` completions, with events that run where `vector` says. With
    /// `overtaking`, completions of different queue pairs overtake each other.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(
        handle: Handle,
        vector: Vector,
        capacity: usize,
        overtaking: bool,
    ) -> Result<Arc<Self>> {
        let ring = Ring {
            entries: KVVec::with_capacity(capacity, GFP_KERNEL_ACCOUNT)?,
            first: 0,
            count: 0,
            capacity,
            armed: Armed::Nothing,
            overrun: false,
            in_hand: false,
            overtaking,
        };
        Arc::pin_init(
            pin_init!(Self {
                ring <- new_irq_lock!(ring, "softib_completions"),
                handle,
                vector,
                owes: AtomicBool::new(false),
                work <- new_delayed_work!("softib_completions"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Calls the consumer soon, on the processor of the queue's vector. Any context.
    #[inline(never)]
    pub(crate) fn notify_later(self: &Arc<Self>) {
        self.owes.store(true, Ordering::SeqCst);
        self.vector.run::<_, 0>(self.clone());
    }

    /// Adds a completion. The event that is owed is raised without the caller's locks.
    pub(crate) fn push(self: &Arc<Self>, completion: &Completion, solicited: bool) -> Event<'_> {
        let (fires, overran) = self.ring.with(|ring| {
            if ring.push(completion) {
                return (ring.fires(completion, solicited), false);
            }
            // IBTA 11.6.3.2: what does not fit is lost, and the consumer sized the queue wrongly.
            (false, !core::mem::replace(&mut ring.overrun, true))
        });
        // Without the lock of the ring, which the report takes for itself.
        if overran {
            self.report_overrun();
        }
        Event(fires.then_some(self))
    }

    /// Tells a program by an event (IBTA 11.6.3.2), and of a consumer in the kernel the kernel's
    /// log. The caller may hold the lock of a queue pair.
    #[cold]
    fn report_overrun(&self) {
        if !self.handle.tell_program_of_overrun() {
            let capacity = self.ring.with(|ring| ring.capacity);
            pr_err!(
                "a completion queue of {capacity} entries overran; completions are lost: its \
                 consumer posts more than it made room for\n"
            );
        }
    }

    /// Takes the oldest completions, as long as `take` wants more.
    pub(crate) fn poll(&self, wanted: usize, mut take: impl FnMut(&Completion)) -> usize {
        self.ring.with(|ring| {
            let mut taken = 0;
            while taken < wanted && ring.take(&mut take) {
                taken += 1;
            }
            ring.in_hand = taken > 0;
            taken
        })
    }

    /// Asks for an event with the next completion, or the next solicited one. Returns whether
    /// there are completions already.
    pub(crate) fn arm(&self, solicited: bool) -> bool {
        self.ring.with(|ring| {
            ring.in_hand = false;
            // A request for solicited events does not weaken one for all that is still to be met.
            if !solicited {
                ring.armed = Armed::Any;
            } else if ring.armed == Armed::Nothing {
                ring.armed = Armed::Solicited;
            }
            ring.count != 0
        })
    }

    /// Returns whether the consumer may be at work on completions that it took. A consumer in the
    /// kernel that has done with them polls again, or asks for an event.
    pub(crate) fn is_in_hand(&self) -> bool {
        self.ring.with(|ring| ring.in_hand)
    }

    /// Forgets the completions of a queue pair that ends.
    pub(crate) fn purge(&self, queue_pair: queue_pair::Handle) {
        self.ring.with(|ring| ring.purge(queue_pair));
    }

    /// Raises the event that is still to be raised, if there is one, and waits until the consumer
    /// has been called. Sleeps.
    ///
    /// The consumer expects no event when the last queue pair on a queue has gone: `ib_free_cq`
    /// stops its own work before it tells the device.
    pub(crate) fn settle(self: &Arc<Self>) {
        let _ = work::cancel_sync::<_, 0>(self);
        // Not what `cancel_sync` says: an event of another queue pair that came meanwhile found the
        // work taken out, and nobody else calls the consumer for it.
        if self.owes.swap(false, Ordering::SeqCst) {
            self.handle.notify_from_process();
        }
    }

    /// Ends the events. Sleeps.
    pub(crate) fn stop(self: &Arc<Self>) {
        work::disable::<_, 0>(self);
    }
}
