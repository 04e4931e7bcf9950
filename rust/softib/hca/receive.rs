// SPDX-License-Identifier: GPL-2.0-only

//! Receive queues, a queue pair's own and shared ones (IBTA 10.2.9).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    provider::{
        memory::Segment,
        pd::Domain,
        shared_receive::Handle, //
    }, //
};

/// A receive that was posted: its name, and how many segments it has.
#[derive(Clone, Copy)]
struct Posted {
    request: u64,
    segments: usize,
}

/// Receives that were posted, oldest first.
pub(crate) struct ReceiveQueue {
    posted: KVVec<Posted>,
    /// The segments of all requests, `segments_each` for each.
    segments: KVVec<Segment>,
    segments_each: usize,
    first: usize,
    count: usize,
}

/// A receive that was taken out of its queue and is being filled.
pub(crate) struct Held {
    pub(crate) request: u64,
    segments: KVec<Segment>,
}

impl Held {
    /// Makes room for a receive of so many segments.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(segments: usize) -> Result<Self> {
        Ok(Self {
            request: 0,
            segments: KVec::with_capacity(segments, GFP_KERNEL_ACCOUNT)?,
        })
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl ReceiveQueue {
    /// Makes one for so many receives of so many segments.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(capacity: usize, segments_each: usize) -> Result<Self> {
        let none = Posted {
            request: 0,
            segments: 0,
        };
        Ok(Self {
            posted: KVVec::from_elem(none, capacity, GFP_KERNEL_ACCOUNT)?,
            segments: KVVec::from_elem(
                Segment::NONE,
                capacity * segments_each,
                GFP_KERNEL_ACCOUNT,
            )?,
            segments_each,
            first: 0,
            count: 0,
        })
    }

    /// Returns the number of receives that wait.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn place(&self, offset: usize) -> usize {
        let place = self.first + offset;
        if place >= self.posted.len() {
            place - self.posted.len()
        } else {
            place
        }
    }

    /// Puts a receive at the end.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full, `EINVAL` if there are too many segments.
    pub(crate) fn post(&mut self, request: u64, segments: &[Segment]) -> Result {
        if self.count == self.posted.len() {
            return Err(ENOMEM);
        }
        if segments.len() > self.segments_each {
            return Err(EINVAL);
        }
        let place = self.place(self.count);
        let start = place * self.segments_each;
        let room = self
            .segments
            .get_mut(start..start + segments.len())
            .ok_or(EINVAL)?;
        room.copy_from_slice(segments);
        *self.posted.get_mut(place).ok_or(EINVAL)? = Posted {
            request,
            segments: segments.len(),
        };
        self.count += 1;
        Ok(())
    }

    /// The oldest receive, which stays until [`ReceiveQueue::advance`].
    #[inline(always)]
    pub(crate) fn front(&self) -> Option<(u64, &[Segment])> {
        if self.count == 0 {
            return None;
        }
        let start = self.first * self.segments_each;
        let posted = self.posted.get(self.first)?;
        let segments = self.segments.get(start..start + posted.segments)?;
        Some((posted.request, segments))
    }

    /// Lets the oldest receive go.
    #[inline]
    pub(crate) fn advance(&mut self) {
        if self.count != 0 {
            self.first = self.place(1);
            self.count -= 1;
        }
    }

    /// Takes the oldest receive; whether there was one.
    pub(crate) fn take(&mut self, held: &mut Held) -> bool {
        let Some((request, segments)) = self.front() else {
            return false;
        };
        // A copy: the slot may be posted to again while the receive is being filled.
        held.request = request;
        held.segments.clear();
        for segment in segments {
            // There is room for as many as the queue allows.
            if held.segments.push_within_capacity(*segment).is_err() {
                break;
            }
        }
        self.advance();
        true
    }

    /// Drops all receives, without a completion.
    pub(crate) fn clear(&mut self) {
        self.first = 0;
        self.count = 0;
    }
}

/// The part of a shared receive queue that is under its lock.
struct Shared {
    queue: ReceiveQueue,
    /// An event is wanted when fewer than so many are left; 0 for none.
    limit: u32,
}

/// A receive queue that queue pairs share.
#[pin_data]
pub(crate) struct SharedReceiveQueue {
    pub(crate) domain: Domain,
    pub(crate) capacity: u32,
    pub(crate) segments_each: u32,
    handle: Handle,
    #[pin]
    shared: IrqLock<Shared>,
}

impl SharedReceiveQueue {
    /// Makes a queue for `capacity` receives of at most `segments_each` segments.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(
        domain: Domain,
        handle: Handle,
        capacity: u32,
        segments_each: u32,
    ) -> Result<Arc<Self>> {
        let shared = Shared {
            queue: ReceiveQueue::new(capacity as usize, segments_each as usize)?,
            limit: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                domain,
                capacity,
                segments_each,
                handle,
                shared <- new_irq_lock!(shared, "softib_srq"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Puts a receive at the end.
    ///
    /// # Errors
    ///
    /// The errors of [`ReceiveQueue::post`].
    pub(crate) fn post(&self, request: u64, segments: &[Segment]) -> Result {
        self.shared
            .with(|shared| shared.queue.post(request, segments))
    }

    /// Runs `critical` with the queue locked.
    pub(crate) fn with<R>(&self, critical: impl FnOnce(&mut ReceiveQueue) -> R) -> R {
        self.shared.with(|shared| critical(&mut shared.queue))
    }

    /// Takes the oldest receive; whether there was one. The limit's event is raised later, by
    /// [`SharedReceiveQueue::raise_limit`].
    pub(crate) fn take(&self, held: &mut Held) -> bool {
        self.shared.with(|shared| shared.queue.take(held))
    }

    /// Tells the consumer if fewer receives are left than its limit. Soft interrupt context, no
    /// lock held.
    pub(crate) fn raise_limit(&self) {
        let reached = self.shared.with(|shared| {
            let reached = (shared.queue.len() as u64) < u64::from(shared.limit);
            if reached {
                // An event for each time that the consumer sets a limit.
                shared.limit = 0;
            }
            reached
        });
        if reached {
            self.handle.limit_reached();
        }
    }

    /// Asks for an event when fewer receives than so many are left.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the queue does not hold that many.
    pub(crate) fn set_limit(&self, limit: u32) -> Result {
        if limit > self.capacity {
            return Err(EINVAL);
        }
        self.shared.with(|shared| shared.limit = limit);
        Ok(())
    }

    /// The limit, 0 for none.
    pub(crate) fn limit(&self) -> u32 {
        self.shared.with(|shared| shared.limit)
    }
}
