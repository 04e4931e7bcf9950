// SPDX-License-Identifier: GPL-2.0-only

//! Completion queues (IBTA 10.8).

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::{
    impl_has_delayed_work,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
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

/// Entries that are looked at in one go for those of a queue pair that ends.
const PIECE: usize = 256;

/// Entries that were taken out between others, and are not yet at the end of the queue.
#[derive(Clone, Copy, Default)]
struct Gap {
    /// The number of entries before it. None of them is of the queue pair that ends.
    offset: usize,
    /// The number of entries in it.
    length: usize,
}

/// The entries of a queue: `first` to `first + count`, going around, but for those in `gap`.
struct Ring {
    entries: KVVec<Completion>,
    first: usize,
    count: usize,
    gap: Gap,
    capacity: usize,
    armed: Armed,
    overrun: bool,
    /// Whether the consumer may be at work on what it took: it has not asked for more since.
    in_hand: bool,
    /// Whether completions of different queue pairs overtake each other.
    overtaking: bool,
}

impl Ring {
    /// Makes one for `capacity` completions.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(capacity: usize, overtaking: bool) -> Result<Self> {
        Ok(Self {
            entries: KVVec::with_capacity(capacity, GFP_KERNEL_ACCOUNT)?,
            first: 0,
            count: 0,
            gap: Gap::default(),
            capacity,
            armed: Armed::Nothing,
            overrun: false,
            in_hand: false,
            overtaking,
        })
    }

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
        // What is in a gap stays there.
        if self.overtaking && appended && self.count > 1 && self.gap.length == 0 {
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
        if self.gap.length != 0 && self.gap.offset == 0 {
            self.skip_gap();
        }
        if self.count == 0 {
            return false;
        }
        if let Some(completion) = self.entries.get(self.first) {
            take(completion);
        }
        self.first = self.place(1);
        self.count -= 1;
        self.gap.offset = self.gap.offset.saturating_sub(1);
        true
    }

    /// Goes on behind a gap that nothing is before.
    #[cold]
    fn skip_gap(&mut self) {
        self.first = self.place(self.gap.length);
        self.count -= self.gap.length;
        self.gap = Gap::default();
    }

    /// Returns whether there is no completion to take.
    fn is_empty(&self) -> bool {
        self.count == self.gap.length
    }

    /// Takes out the completions of a queue pair that ends, in the next piece of the queue. Returns
    /// whether that was the last piece. Until then no other queue pair may be taken out.
    fn purge(&mut self, queue_pair: queue_pair::Handle) -> bool {
        for _ in 0..PIECE {
            let behind = self.gap.offset + self.gap.length;
            if behind >= self.count {
                self.count -= self.gap.length;
                self.gap = Gap::default();
                return true;
            }
            let (from, to) = (self.place(behind), self.place(self.gap.offset));
            let known = self.entries.get(from).copied();
            match known.filter(|completion| completion.queue_pair != queue_pair) {
                Some(completion) => {
                    if let Some(entry) = self.entries.get_mut(to) {
                        *entry = completion;
                    }
                    self.gap.offset += 1;
                }
                None => self.gap.length += 1,
            }
        }
        false
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
    /// Held while the completions of a queue pair are taken out.
    #[pin]
    purging: Mutex<()>,
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
        let ring = Ring::new(capacity, overtaking)?;
        Arc::pin_init(
            pin_init!(Self {
                ring <- new_irq_lock!(ring, "softib_completions"),
                purging <- new_mutex!((), "softib_purging"),
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
            !ring.is_empty()
        })
    }

    /// Returns whether the consumer may be at work on completions that it took. A consumer in the
    /// kernel that has done with them polls again, or asks for an event.
    pub(crate) fn is_in_hand(&self) -> bool {
        self.ring.with(|ring| ring.in_hand)
    }

    /// Forgets the completions of a queue pair that ends. Sleeps.
    pub(crate) fn purge(&self, queue_pair: queue_pair::Handle) {
        let _one_at_a_time = self.purging.lock();
        // In pieces: a queue may have very many completions, and interrupts are off meanwhile.
        while !self.ring.with(|ring| ring.purge(queue_pair)) {}
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

#[kernel::prelude::kunit_tests(softib_completion_ring)]
mod tests {
    use super::*;

    fn completion(request: usize, queue_pair: queue_pair::Handle) -> Completion {
        Completion {
            request: request as u64,
            status: Status::Success,
            kind: Kind::Receive,
            length: 0,
            extra: Extra::Nothing,
            source: Qpn::from_bytes([0; 3]),
            origin: Origin::default(),
            queue_pair,
        }
    }

    /// Takes the oldest completion, which is to be of this request; whether there was one.
    fn takes(ring: &mut Ring, request: usize) -> bool {
        ring.take(|completion| assert_eq!(completion.request, request as u64))
    }

    #[test]
    fn a_queue_pair_goes_in_pieces_and_others_stay_in_order() -> Result {
        const EVERY: usize = 3;
        const COUNT: usize = EVERY * PIECE;
        let (stays, goes) = (
            queue_pair::Handle::numbered(1)?,
            queue_pair::Handle::numbered(2)?,
        );
        let mut ring = Ring::new(COUNT, false)?;
        for request in 0..COUNT {
            let pair = if request % EVERY == 0 { stays } else { goes };
            assert!(ring.push(&completion(request, pair)));
        }
        let (mut oldest, mut next, mut pieces) = (0, COUNT, 1);
        // Completions are taken and added meanwhile.
        while !ring.purge(goes) {
            assert!(takes(&mut ring, oldest));
            oldest += EVERY;
            assert!(ring.push(&completion(next, stays)));
            next += EVERY;
            pieces += 1;
        }
        assert!(pieces > COUNT / PIECE);
        assert_eq!(ring.count, PIECE);
        while takes(&mut ring, oldest) {
            oldest += EVERY;
        }
        assert_eq!(oldest, next);
        assert!(ring.is_empty());
        Ok(())
    }

    #[test]
    fn a_gap_before_all_others_is_skipped() -> Result {
        let (stays, goes) = (
            queue_pair::Handle::numbered(1)?,
            queue_pair::Handle::numbered(2)?,
        );
        let mut ring = Ring::new(2 * PIECE, false)?;
        for request in 0..2 * PIECE {
            let pair = if request < PIECE { goes } else { stays };
            assert!(ring.push(&completion(request, pair)));
        }
        assert!(!ring.purge(goes));
        assert!(takes(&mut ring, PIECE));
        assert!(ring.purge(goes));
        for request in PIECE + 1..2 * PIECE {
            assert!(takes(&mut ring, request));
        }
        assert!(ring.is_empty() && !ring.take(|_| ()));
        Ok(())
    }

    #[test]
    fn a_queue_of_one_queue_pair_is_empty_after_it() -> Result {
        let goes = queue_pair::Handle::numbered(2)?;
        let mut ring = Ring::new(PIECE, false)?;
        for request in 0..PIECE {
            assert!(ring.push(&completion(request, goes)));
        }
        assert!(!ring.is_empty() && !ring.purge(goes));
        // All of them are in the gap.
        assert!(ring.is_empty() && ring.purge(goes));
        assert!(!ring.take(|_| ()));
        assert_eq!(ring.count, 0);
        Ok(())
    }
}
