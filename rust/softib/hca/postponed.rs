// SPDX-License-Identifier: GPL-2.0-only

//! Datagrams that are posted while the send queue is drained (SQD): they wait until the consumer
//! lets the queue pair go on, or are flushed with it (IBTA 10.3.1).

use kernel::{
    alloc::Flags,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    }, //
};

use super::{
    address::AddressVector,
    connection::BURST,
    datagram::gather_inline,
    queue_pair::{
        Chain,
        Datagram,
        Destination,
        QueuePair,
        State, //
    }, //
};
use crate::{
    provider::memory::Segment,
    wire::{
        immdt::ImmDt,
        offload::Cut,
        qpn::Qpn, //
    }, //
};

/// Returns the flags of an allocation in any context that is charged to the memory cgroup of the
/// consumer.
fn atomic_account() -> Flags {
    GFP_ATOMIC | (GFP_KERNEL_ACCOUNT & !GFP_KERNEL)
}

/// A datagram that waits, with copies of what its consumer may take back once it is posted.
struct Waiting {
    request: u64,
    signalled: bool,
    solicited: bool,
    immediate: Option<ImmDt>,
    /// Inline data, or the headers of a long segment.
    bytes: KVec<u8>,
    segments: KVec<Segment>,
    /// The number of bytes in the segments.
    length: usize,
    checksum: bool,
    /// The number of bytes of each piece of a long segment, or `None` if it is sent as it is.
    cut: Option<usize>,
    address: AddressVector,
    queue_pair: Qpn,
    qkey: u32,
    pkey_index: u16,
}

impl Waiting {
    /// Copies a datagram that is being posted. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(datagram: &Datagram<'_>) -> Result<KBox<Self>> {
        let mut bytes: KVec<u8> = KVec::new();
        let mut segments: KVec<Segment> = KVec::new();
        let mut length = datagram.length;
        if datagram.inline {
            bytes.resize(length, 0, atomic_account())?;
            gather_inline(datagram.segments, &mut bytes);
            length = 0;
        } else {
            segments.extend_from_slice(datagram.segments, atomic_account())?;
        }
        if let Some(cut) = &datagram.cut {
            bytes.extend_from_slice(cut.header(), atomic_account())?;
        }
        let to = &datagram.to;
        let waiting = Self {
            request: datagram.request,
            signalled: datagram.signalled,
            solicited: datagram.solicited,
            immediate: datagram.immediate,
            bytes,
            segments,
            length,
            checksum: datagram.checksum,
            cut: datagram.cut.as_ref().map(Cut::size),
            address: *to.address,
            queue_pair: to.queue_pair,
            qkey: to.qkey,
            pkey_index: to.pkey_index,
        };
        Ok(KBox::new(waiting, atomic_account())?)
    }

    /// Returns the datagram. Data that was inline has become its header.
    fn datagram(&self) -> Datagram<'_> {
        let bytes = self.bytes.as_slice();
        let none: &[u8] = &[];
        let (header, cut) = match self.cut {
            Some(size) => (none, Cut::new(bytes, size, self.length)),
            None => (bytes, None),
        };
        Datagram {
            request: self.request,
            signalled: self.signalled,
            solicited: self.solicited,
            immediate: self.immediate,
            inline: false,
            header,
            from: 0,
            length: self.length,
            segments: self.segments.as_slice(),
            checksum: self.checksum,
            cut,
            to: Destination {
                address: &self.address,
                queue_pair: self.queue_pair,
                qkey: self.qkey,
                pkey_index: self.pkey_index,
            },
        }
    }
}

/// Datagrams that wait, oldest first.
pub(crate) struct Postponed {
    waiting: KVVec<Option<KBox<Waiting>>>,
    first: usize,
    count: usize,
    /// Whether somebody is sending them.
    leaving: bool,
}

impl Postponed {
    /// Makes room for as many as a send queue holds. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn with_room(sends: u32) -> Result<KBox<Self>> {
        let places = sends.max(1) as usize;
        let mut waiting = KVVec::with_capacity(places, GFP_KERNEL_ACCOUNT)?;
        for _ in 0..places {
            waiting.push(None, GFP_KERNEL_ACCOUNT)?;
        }
        let postponed = Self {
            waiting,
            first: 0,
            count: 0,
            leaving: false,
        };
        Ok(KBox::new(postponed, GFP_KERNEL_ACCOUNT)?)
    }

    fn place(&self, offset: usize) -> usize {
        let place = self.first + offset;
        if place >= self.waiting.len() {
            place - self.waiting.len()
        } else {
            place
        }
    }

    /// Puts a datagram at the end.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full.
    fn push(&mut self, datagram: KBox<Waiting>) -> Result {
        if self.count == self.waiting.len() {
            return Err(ENOMEM);
        }
        let place = self.place(self.count);
        *self.waiting.get_mut(place).ok_or(EINVAL)? = Some(datagram);
        self.count += 1;
        Ok(())
    }

    /// Takes the oldest datagram.
    fn pop(&mut self) -> Option<KBox<Waiting>> {
        let datagram = self.waiting.get_mut(self.first)?.take()?;
        self.first = self.place(1);
        self.count -= 1;
        Some(datagram)
    }
}

impl QueuePair {
    /// Lets a datagram of a chain wait behind those that wait already. Returns whether it does:
    /// if none waits any more, the chain is one of datagrams that are sent at once from now on.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full, too.
    #[cold]
    pub(super) fn postpone(&self, chain: &mut Chain, datagram: &Datagram<'_>) -> Result<bool> {
        let waiting = Waiting::new(datagram)?;
        self.inner.with(|inner| {
            if let Some(postponed) = &mut inner.postponed {
                return postponed.push(waiting).map(|()| true);
            }
            chain.follow(inner);
            Ok(false)
        })
    }

    /// Sends the datagrams that wait, or flushes them, as the state demands; in SQD they go on
    /// waiting. One thread at a time does it, so that they leave in order. After a burst the queue
    /// pair's own work goes on: others may post as fast as they leave.
    pub(super) fn send_postponed(self: &Arc<Self>) {
        let reset_count = self.inner.with(|inner| {
            let is_drained = inner.state == State::SendQueueDrained;
            match &mut inner.postponed {
                Some(postponed) if !is_drained && !postponed.leaving => {
                    postponed.leaving = true;
                    Some(inner.reset_count)
                }
                _ => None,
            }
        });
        let Some(reset_count) = reset_count else {
            return;
        };
        for _ in 0..BURST {
            let Some((waiting, mut chain)) = self.take_postponed(reset_count) else {
                return;
            };
            // As for a chain that is posted: the end of a peer's queue pair waits for this section.
            let _guard = rcu::read_lock();
            // A state that sends none is one in which nothing waits.
            let _ = self.send_next(&mut chain, &waiting.datagram());
            self.end_chain(chain);
        }
        self.inner.with(|inner| {
            let is_same = inner.reset_count == reset_count;
            if let Some(postponed) = inner.postponed.as_mut().filter(|_| is_same) {
                postponed.leaving = false;
            }
        });
        self.resume(0);
    }

    /// Takes the oldest datagram that waits, with a chain for it alone. `None` if none is left, is
    /// to leave now, or the queue pair was reset since the caller read `reset_count`.
    fn take_postponed(&self, reset_count: u32) -> Option<(KBox<Waiting>, Chain)> {
        self.inner.with(|inner| {
            // After a reset there may be others, and another one who sends them.
            if inner.reset_count != reset_count {
                return None;
            }
            let is_drained = inner.state == State::SendQueueDrained;
            let postponed = inner.postponed.as_mut()?;
            if is_drained {
                postponed.leaving = false;
                return None;
            }
            match postponed.pop() {
                Some(waiting) => Some((waiting, inner.begin_chain())),
                None => {
                    // Under the lock: what is posted after this is sent at once, and behind these.
                    // A poster may hold its locks, and to free a large queue sleeps.
                    inner.emptied = inner.postponed.take();
                    None
                }
            }
        })
    }

    /// Frees the queue of datagrams that waited, once all have left. Sleeps.
    pub(super) fn free_emptied(&self) {
        let emptied = self.inner.with(|inner| inner.emptied.take());
        // Without the lock.
        drop(emptied);
    }
}
