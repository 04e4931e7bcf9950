// SPDX-License-Identifier: GPL-2.0-only

//! The send side of a datagram queue pair: prebuilt work requests, chains, inline sends.
//!
//! Work requests live in a ring that is built once; sending fills in what differs. Requests are
//! chained and go to the device in one call of its own `post_send`, the last one signalled. A
//! chain of inline requests alone needs no completion: the device has copied the packets, so they
//! are done when they are posted, and a completion is asked for only now and then, to have their
//! slots again.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    ah::AddressHandle,
    cq::{
        Completion,
        Notify,
        Status, //
    },
    dma::{
        self,
        Pieces, //
    },
    qp::QueuePair,
    ring::{
        Ring,
        Span, //
    }, //
};
use crate::{
    bindings,
    wire::qpn::Qpn, //
};

mod pieces;
mod slot;

use pieces::Headers;
pub(crate) use pieces::{
    Cut,
    Work,
    HEADER, //
};
use slot::Slot;

/// Pieces of memory of most requests: headers, and data that lies at three places. What lies at
/// more is to be copied into one, but for what a device cuts.
pub(crate) const FEW: usize = 4;

/// Pieces of memory of a request that a device cuts, at most: as many as the stack's packets lie
/// in.
pub(crate) const MANY: usize = bindings::OXIB_SKB_PIECES as usize;

/// The share of the ring that may go by without a completion.
pub(super) const SIGNAL_SHARE: u32 = 4;

/// An address handle that a send queue knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HandleId(u16);

/// The destination of a packet.
#[derive(Clone, Copy)]
pub(crate) struct Destination {
    /// Address handle of the route there.
    pub(crate) handle: HandleId,
    /// The queue pair there.
    pub(crate) qpn: Qpn,
}

/// The reasons for which a packet is not queued; each gives it back.
pub(crate) enum Refused<B> {
    /// The ring has no free slot.
    Full(B),
    /// The packet lies in more pieces of memory than a request takes.
    Scattered(B),
    /// The packet could not be mapped, or the address handle is unknown.
    Failed(B),
}

/// The outcome of posting a chain.
#[derive(Clone, Copy, Default)]
pub(crate) struct Posted {
    /// Packets that the device took.
    pub(crate) packets: u32,
    /// Those of `packets` that were sent inline.
    pub(crate) inlined: u32,
    /// Packets that it refused; they are dropped.
    pub(crate) refused: u32,
    /// Bytes of the refused packets.
    pub(crate) refused_bytes: u32,
    /// Packets were taken without a request for their completion: it would have been the last
    /// one's.
    pub(crate) stuck: bool,
    /// The inline ones: they are done, no completion comes for them.
    pub(crate) done: Completed,
}

/// Packets that a completion ended.
#[derive(Clone, Copy, Default)]
pub(crate) struct Completed {
    /// Number of packets that are done.
    pub(crate) packets: u32,
    /// Their length on the wire, in bytes.
    pub(crate) bytes: u32,
}

impl core::ops::AddAssign for Completed {
    fn add_assign(&mut self, other: Self) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

/// The fate of the packets that a completion ended.
#[derive(Clone, Copy, Default)]
pub(crate) struct Outcome {
    /// Those that were sent.
    pub(crate) sent: Completed,
    /// Those that were lost.
    pub(crate) lost: Completed,
}

impl Outcome {
    /// Creates the outcome of packets that have one fate.
    #[inline(always)]
    pub(crate) fn of(status: Status, ended: Completed) -> Self {
        let none = Completed::default();
        let (sent, lost) = match status {
            Status::Success => (ended, none),
            _ => (none, ended),
        };
        Self { sent, lost }
    }
}

/// The send side of a queue pair. Its owner serialises it: all changes take `&mut self`.
///
/// # Invariants
///
/// - `slots[i].wr.wr.next` points to the request of the slot after it, in a circle; the vector
///   never moves.
/// - A request between the ring's tail and head names an address handle that `handles` or
///   `retired` holds, and memory that `headers` or its slot holds, or, for a part of a packet,
///   the slot of the last part that the device was given; mapped, or (inline) until the post.
pub(crate) struct SendQueue<B: Pieces, S: Notify, R: Notify> {
    qp: Arc<QueuePair<S, R>>,
    post_send: PostSend,
    slots: KVVec<Slot<B>>,
    ring: Ring,
    /// Inline requests in the chain that waits for its post.
    inlined: u32,
    /// Requests posted since the last signalled one.
    unsignalled: u32,
    handles: KVec<Option<Arc<AddressHandle>>>,
    free_handles: KVec<u16>,
    retired: KVec<(u32, Arc<AddressHandle>)>,
    headers: Headers,
    inline_limit: usize,
    pieces: usize,
    virtual_dma: bool,
}

/// The device's own function.
type PostSend = unsafe extern "C" fn(
    *mut bindings::ib_qp,
    *const bindings::ib_send_wr,
    *mut *const bindings::ib_send_wr,
) -> i32;

// SAFETY: The raw pointers in the requests are into the queue's own memory and to objects that are
// used from all threads; the buffers may move as `B: Send`.
unsafe impl<B: Pieces + Send, S: Notify, R: Notify> Send for SendQueue<B, S, R> {}

impl<B: Pieces, S: Notify, R: Notify> SendQueue<B, S, R> {
    /// Makes a ring of `capacity` requests (a power of two) for `qp`, with room for `handles`
    /// address handles; all sends carry `qkey`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if the capacity is not a power of two; `ENOTSUPP` if the device cannot
    /// send.
    pub(crate) fn new(
        qp: &Arc<QueuePair<S, R>>,
        capacity: u32,
        handles: u16,
        qkey: u32,
    ) -> Result<Self> {
        let ring = Ring::new(capacity).ok_or(EINVAL)?;
        // SAFETY: The operations of a valid device do not change.
        let post_send = unsafe { (*qp.device().as_raw()).ops.post_send }.ok_or(ENOTSUPP)?;
        let mut slots = KVVec::with_capacity(capacity as usize, GFP_KERNEL)?;
        for _ in 0..capacity {
            let slot = Slot::new(qp.pd().local_key(), qkey, qp.pieces() as usize)?;
            slots.push(slot, GFP_KERNEL)?;
        }
        link(&mut slots);
        let mut table = KVec::with_capacity(usize::from(handles), GFP_KERNEL)?;
        let mut free_handles = KVec::with_capacity(usize::from(handles), GFP_KERNEL)?;
        for i in (0..handles).rev() {
            table.push(None, GFP_KERNEL)?;
            free_handles.push(i, GFP_KERNEL)?;
        }
        // Each packet in flight may be the last that names a handle.
        let retired = KVec::with_capacity(capacity as usize + usize::from(handles), GFP_KERNEL)?;
        Ok(Self {
            post_send,
            slots,
            ring,
            inlined: 0,
            unsignalled: 0,
            handles: table,
            free_handles,
            retired,
            headers: Headers::NONE,
            inline_limit: qp.inline_limit() as usize,
            pieces: qp.pieces() as usize,
            virtual_dma: qp.device().uses_virtual_dma(),
            qp: qp.clone(),
        })
    }

    /// Changes the key that all sends carry from now on.
    pub(crate) fn set_qkey(&mut self, qkey: u32) {
        for slot in &mut self.slots {
            slot.wr.remote_qkey = qkey;
        }
    }

    /// Makes an address handle known. `None` if there is no room: retire others first.
    pub(crate) fn install(&mut self, handle: Arc<AddressHandle>) -> Option<HandleId> {
        let id = self.free_handles.pop()?;
        *self.handles.get_mut(usize::from(id))? = Some(handle);
        Some(HandleId(id))
    }

    /// Returns whether [`Self::retire`] has room: too many handles may wait for sends to
    /// complete.
    pub(crate) fn can_retire(&self) -> bool {
        self.retired.len() < self.retired.capacity()
    }

    /// Forgets an address handle, and drops it as soon as no request in the ring names it.
    ///
    /// Does nothing unless [`Self::can_retire`].
    pub(crate) fn retire(&mut self, id: HandleId) {
        if !self.can_retire() {
            return;
        }
        if let Some(handle) = self
            .handles
            .get_mut(usize::from(id.0))
            .and_then(Option::take)
        {
            // Room for both was made at the start.
            let _ = self
                .retired
                .push_within_capacity((self.ring.next(), handle));
            let _ = self.free_handles.push_within_capacity(id.0);
        }
        self.drop_retired();
    }

    /// Drops retired address handles that no request names any more.
    fn drop_retired(&mut self) {
        let ring = self.ring;
        self.retired
            .retain(|(sequence, _)| !ring.is_past(*sequence));
    }

    /// Number of slots that are free.
    #[inline(always)]
    pub(crate) fn free(&self) -> u32 {
        self.ring.free()
    }

    /// Number of slots, free or not.
    pub(crate) fn capacity(&self) -> u32 {
        self.ring.capacity()
    }

    /// Length of the chain that waits for [`Self::post`].
    #[inline(always)]
    pub(crate) fn chained(&self) -> u32 {
        self.ring.unposted().len()
    }

    /// Bytes of memory that the ring takes.
    pub(crate) fn memory(&self) -> usize {
        let more = match self.pieces > FEW {
            true => self.slots.len() * self.pieces * size_of::<bindings::ib_sge>(),
            false => 0,
        };
        self.slots.capacity() * size_of::<Slot<B>>()
            + more
            + self.headers.memory()
            + self.handles.capacity() * size_of::<Option<Arc<AddressHandle>>>()
            + self.free_handles.capacity() * size_of::<u16>()
            + self.retired.capacity() * size_of::<(u32, Arc<AddressHandle>)>()
    }

    #[inline(always)]
    fn handle(&self, id: HandleId) -> Option<*mut bindings::ib_ah> {
        let handle = self.handles.get(usize::from(id.0))?.as_ref()?;
        Some(handle.as_raw())
    }

    /// Adds a packet to the chain that is one piece of memory, to be sent as it is. Returns its
    /// length on the wire, in bytes.
    ///
    /// # Errors
    ///
    /// The packet back, with the reason; the chain is as it was.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        to: Destination,
        buffer: B,
    ) -> core::result::Result<u32, Refused<B>> {
        let Some(handle) = self.handle(to.handle) else {
            return Err(Refused::Failed(buffer));
        };
        let Some(sequence) = self.ring.vacancy() else {
            return Err(Refused::Full(buffer));
        };
        // The ring is as long as the vector: a vacancy has a slot.
        let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) else {
            return Err(Refused::Full(buffer));
        };
        let (address, length) = buffer.piece(0);
        let inline = length <= self.inline_limit;
        let address = if inline || self.virtual_dma {
            address.as_ptr() as u64
        } else {
            // SAFETY: The slot keeps the buffer until the completion, where the mapping ends.
            match unsafe { dma::map(self.qp.device(), address, length) } {
                Ok(mapped) => mapped,
                Err(_) => return Err(Refused::Failed(buffer)),
            }
        };
        slot.set_whole(address, length as u32);
        slot.address(handle, to.qpn, sequence, inline);
        slot.buffer = Some(buffer);
        self.inlined += u32::from(inline);
        self.ring.push();
        Ok(length as u32)
    }

    /// Gives the chain to the device, its last request signalled. A chain of inline requests
    /// needs a completion only to have its slots free again: it is signalled only now and then,
    /// and if `wait` says that the completion is waited for.
    #[inline(always)]
    pub(crate) fn post(&mut self, wait: bool) -> Posted {
        let chain = self.ring.unposted();
        let first = self.ring.slot(self.ring.next().wrapping_sub(chain.len()));
        let last = self.ring.slot(self.ring.next().wrapping_sub(1));
        let Some(first) = self.slots.get(first).map(Slot::request) else {
            return Posted::default();
        };
        let Some(last) = self.slots.get_mut(last).filter(|_| chain.len() != 0) else {
            return Posted::default();
        };
        let pending = self.unsignalled + chain.len();
        let signalled = self.inlined != chain.len()
            || pending >= self.ring.capacity() / SIGNAL_SHARE
            || !self.retired.is_empty()
            || wait;
        if signalled {
            last.wr.wr.send_flags |= bindings::ib_send_flags_IB_SEND_SIGNALED;
        }
        // The chain ends here for the time of the post: the device copies what it reads.
        let next = core::mem::replace(&mut last.wr.wr.next, core::ptr::null_mut());
        let mut bad: *const bindings::ib_send_wr = core::ptr::null();
        // SAFETY: By the type invariant the requests are linked, up to the null above, and their
        // memory and address handles stay until the completion. The queue pair is valid.
        let result = unsafe { (self.post_send)(self.qp.as_raw(), first, &mut bad) };
        last.wr.wr.next = next;
        let mut posted = Posted {
            packets: chain.len(),
            inlined: self.inlined,
            ..Posted::default()
        };
        if result == 0 {
            self.ring.post();
            self.unsignalled = if signalled { 0 } else { pending };
        } else {
            self.take_back(chain, bad, &mut posted);
        }
        if core::mem::take(&mut self.inlined) != 0 {
            posted.done = self.free_inlined(chain, posted.packets);
        }
        posted
    }

    /// Drops the part of a chain that the device refused, from `bad` on. A device that names none
    /// of the chain may have taken any of it, so nothing is dropped.
    #[cold]
    fn take_back(&mut self, chain: Span, bad: *const bindings::ib_send_wr, posted: &mut Posted) {
        let named = chain.iter().position(|sequence| {
            let slot = self.slots.get(self.ring.slot(sequence));
            slot.is_some_and(|slot| slot.request() == bad)
        });
        let taken = named.map_or(chain.len(), |position| position as u32);
        let refused = self.ring.refuse(taken);
        self.keep_memory(taken, refused);
        let ended = self.release(refused, 0);
        posted.packets = taken;
        posted.refused = ended.packets;
        posted.refused_bytes = ended.bytes;
        posted.stuck = taken != 0;
    }

    /// Moves the memory of a packet of which the device took a part to the last one of that.
    fn keep_memory(&mut self, taken: u32, refused: Span) {
        let last = self.ring.slot(self.ring.next().wrapping_sub(1));
        if taken == 0 || !self.slots.get(last).is_some_and(Slot::goes_on) {
            return;
        }
        let buffer = refused.iter().find_map(|sequence| {
            let slot = self.slots.get_mut(self.ring.slot(sequence))?;
            slot.buffer.take()
        });
        if let Some(slot) = self.slots.get_mut(last) {
            slot.buffer = buffer;
        }
    }

    /// Ends the inline packets among the first `count` of a chain: the device has copied them.
    #[inline(always)]
    fn free_inlined(&mut self, chain: Span, count: u32) -> Completed {
        let mut done = Completed::default();
        for sequence in chain.iter().take(count as usize) {
            if let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) {
                if slot.is_inline() {
                    done.packets += core::mem::take(&mut slot.packets);
                    done.bytes += core::mem::take(&mut slot.bytes);
                    if let Some(buffer) = slot.buffer.take() {
                        buffer.done(0);
                    }
                }
            }
        }
        done
    }

    /// Ends the requests that a completion stands for. `budget` is that of the poll. `None` if it
    /// is of no request with the device.
    #[inline]
    pub(crate) fn complete(&mut self, completion: &Completion, budget: i32) -> Option<Completed> {
        if completion.queue_pair() != self.qp.address() {
            return None;
        }
        let span = self.ring.complete(u32::try_from(completion.id()).ok()?)?;
        let ended = self.release(span, budget);
        if !self.retired.is_empty() {
            self.drop_retired();
        }
        Some(ended)
    }

    /// Ends all requests. Unless the queue pair is in Reset, a device may still read their memory:
    /// it is neither freed nor unmapped.
    pub(crate) fn clear(&mut self) -> Completed {
        let span = self.ring.clear();
        self.unsignalled = 0;
        if span.len() != 0 && !self.qp.is_in_reset() {
            self.leave_memory();
        }
        let ended = self.release(span, 0);
        self.drop_retired();
        ended
    }

    /// Leaves the memory of all requests to the device. The ring forgets its address handles and
    /// has no place for others, so that it takes no packets any more: it would not map them.
    #[cold]
    fn leave_memory(&mut self) {
        // As of a device for which nothing is mapped.
        self.virtual_dma = true;
        self.handles.iter_mut().for_each(|handle| *handle = None);
        self.free_handles.clear();
        let mut left = 0;
        for slot in &mut self.slots {
            if let Some(buffer) = slot.buffer.take() {
                buffer.leave();
                left += 1;
            }
        }
        core::mem::replace(&mut self.headers, Headers::NONE).leave();
        if left != 0 {
            self.qp.device().report_left("sends", left);
        }
    }

    #[inline]
    fn release(&mut self, span: Span, budget: i32) -> Completed {
        let mut ended = Completed::default();
        for sequence in span.iter() {
            let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) else {
                continue;
            };
            ended.bytes = ended.bytes.wrapping_add(slot.bytes);
            ended.packets = ended.packets.wrapping_add(slot.packets);
            if !self.virtual_dma && !slot.is_inline() {
                slot.unmap(self.qp.device());
            }
            slot.narrow();
            if let Some(buffer) = slot.buffer.take() {
                buffer.done(budget);
            }
        }
        ended
    }
}

impl<B: Pieces, S: Notify, R: Notify> Drop for SendQueue<B, S, R> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Points each request to its memory and to the request after it. The vector must not move any
/// more.
fn link<B: Pieces>(slots: &mut [Slot<B>]) {
    let first = slots.first().map_or(core::ptr::null(), Slot::request);
    let mut next = first.cast_mut();
    for slot in slots.iter_mut().rev() {
        next = slot.link(next);
    }
}

impl HandleId {
    /// A handle for tests of tables, which do not look behind it.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn for_test(id: u16) -> Self {
        Self(id)
    }
}
