// SPDX-License-Identifier: GPL-2.0-only

//! The send side of a reliable connected queue pair: as that of datagrams ([`send`](super::send)),
//! but with one peer, and a packet in several pieces of memory.
//!
//! A chain of inline packets may go unsignalled: nobody needs its completion but the ring. Errors
//! are reported of any request.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    cq::{
        Completion,
        Notify, //
    },
    dma::{
        self,
        Pieces, //
    },
    rc::QueuePair,
    ring::{
        Ring,
        Span, //
    },
    send::{
        Completed,
        Outcome,
        Posted,
        Refused,
        SIGNAL_SHARE, //
    }, //
};
use crate::bindings;

/// Most pieces of memory of a packet.
pub(crate) const PIECES: usize = bindings::OXIB_SKB_PIECES as usize;

/// The flag of a send of memory that the device copies when it is posted.
const INLINE: bindings::ib_send_flags = bindings::ib_send_flags_IB_SEND_INLINE;

/// A work request with its pieces of memory, at a place of its own for good.
struct Slot<B> {
    wr: bindings::ib_send_wr,
    sges: [bindings::ib_sge; PIECES],
    /// Length of the packet, and one: none once it was counted.
    bytes: u32,
    packets: u32,
    /// The memory, unless it went inline and is free already.
    buffer: Option<B>,
}

/// The number that tells a connection's completions from others of the same queue. Not zero: that
/// is datagrams'.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag(pub(crate) u32);

impl Tag {
    /// Splits the number `id` of a completion into the connection's tag and the part that the
    /// connection chose itself; `None` if it is a datagram's.
    #[inline(always)]
    pub(crate) fn of(id: u64) -> Option<(Self, u32)> {
        let tag = (id >> 32) as u32;
        (tag != 0).then_some((Self(tag), id as u32))
    }

    fn number(self, sequence: u32) -> u64 {
        u64::from(self.0) << 32 | u64::from(sequence)
    }
}

/// The send side of a connection. Its owner serialises it: all changes take `&mut self`.
///
/// # Invariants
///
/// - `slots[i].wr.sg_list` points to `slots[i].sges`; the vector never moves.
/// - A request between the ring's tail and head names memory that its slot holds, mapped or
///   (inline) until the post.
pub(crate) struct SendRing<B: Pieces, S: Notify, R: Notify> {
    qp: Arc<QueuePair<S, R>>,
    post_send: PostSend,
    tag: Tag,
    slots: KVVec<Slot<B>>,
    ring: Ring,
    /// Inline requests in the chain that waits for its post.
    inlined: u32,
    /// Requests posted since the last signalled one.
    unsignalled: u32,
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

// SAFETY: The raw pointers in the requests are into the ring's own memory; the buffers may move as
// `B: Send`.
unsafe impl<B: Pieces + Send, S: Notify, R: Notify> Send for SendRing<B, S, R> {}

impl<B: Pieces, S: Notify, R: Notify> SendRing<B, S, R> {
    /// Makes a ring of `capacity` requests (a power of two) for `qp`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if the capacity is not a power of two; `ENOTSUPP` if the device cannot
    /// send.
    pub(crate) fn new(qp: &Arc<QueuePair<S, R>>, capacity: u32, tag: Tag) -> Result<Self> {
        let ring = Ring::new(capacity).ok_or(EINVAL)?;
        // SAFETY: The operations of a valid device do not change.
        let post_send = unsafe { (*qp.device().as_raw()).ops.post_send }.ok_or(ENOTSUPP)?;
        let mut slots: KVVec<Slot<B>> = KVVec::with_capacity(capacity as usize, GFP_KERNEL)?;
        for _ in 0..capacity {
            slots.push(Slot::new(qp.pd().local_key()), GFP_KERNEL)?;
        }
        // INVARIANT: The vector has its final size and place.
        for slot in &mut slots {
            slot.wr.sg_list = slot.sges.as_mut_ptr();
        }
        Ok(Self {
            post_send,
            tag,
            slots,
            ring,
            inlined: 0,
            unsignalled: 0,
            inline_limit: qp.inline_limit() as usize,
            pieces: qp.pieces() as usize,
            virtual_dma: qp.device().uses_virtual_dma(),
            qp: qp.clone(),
        })
    }

    pub(crate) fn queue_pair(&self) -> &Arc<QueuePair<S, R>> {
        &self.qp
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

    /// Requests that were posted and will not complete unless one is signalled after them.
    #[inline(always)]
    pub(crate) fn unsignalled(&self) -> u32 {
        self.unsignalled
    }

    /// Most pieces of memory of a packet: others are to be copied into fewer.
    #[inline(always)]
    pub(crate) fn pieces(&self) -> usize {
        self.pieces
    }

    /// Adds a packet to the chain.
    ///
    /// # Errors
    ///
    /// The packet back, with the reason; the chain is as it was.
    pub(crate) fn push(&mut self, buffer: B) -> core::result::Result<(), Refused<B>> {
        let Some(sequence) = self.ring.vacancy() else {
            return Err(Refused::Full(buffer));
        };
        // The ring is as long as the vector: a vacancy has a slot.
        let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) else {
            return Err(Refused::Full(buffer));
        };
        let count = buffer.pieces();
        if count > self.pieces {
            return Err(Refused::Failed(buffer));
        }
        let inline = buffer.length() <= self.inline_limit;
        let mapper = (!inline && !self.virtual_dma).then(|| self.qp.device());
        if slot.fill(&buffer, count, mapper).is_err() {
            return Err(Refused::Failed(buffer));
        }
        slot.bytes = buffer.length() as u32;
        slot.packets = 1;
        slot.wr.__bindgen_anon_1.wr_id = self.tag.number(sequence);
        slot.wr.send_flags = if inline { INLINE } else { 0 };
        slot.buffer = Some(buffer);
        self.inlined += u32::from(inline);
        self.ring.push();
        Ok(())
    }

    /// Gives the chain to the device, its last request signalled unless it may go `quietly`: all
    /// are inline, and the ring has room.
    pub(crate) fn post(&mut self, quietly: bool) -> Posted {
        let chain = self.ring.unposted();
        let pending = self.unsignalled + chain.len();
        let signalled = !quietly
            || self.inlined != chain.len()
            || pending >= self.ring.capacity() / SIGNAL_SHARE;
        let first = self.link(chain, signalled);
        if first.is_null() {
            return Posted::default();
        }
        let mut bad: *const bindings::ib_send_wr = core::ptr::null();
        // SAFETY: The requests are linked, the last one to null; by the type invariant their
        // memory stays until the completion. The queue pair is valid.
        let result = unsafe { (self.post_send)(self.qp.as_raw(), first, &mut bad) };
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

    /// Links the requests of a chain, the last one signalled or not; the first one, or null.
    fn link(&mut self, chain: Span, signalled: bool) -> *const bindings::ib_send_wr {
        let mut next: *mut bindings::ib_send_wr = core::ptr::null_mut();
        for offset in (0..chain.len()).rev() {
            let sequence = self.ring.next().wrapping_sub(chain.len() - offset);
            if let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) {
                if next.is_null() && signalled {
                    slot.wr.send_flags |= bindings::ib_send_flags_IB_SEND_SIGNALED;
                }
                slot.wr.next = next;
                next = &raw mut slot.wr;
            }
        }
        next
    }

    /// Drops the part of a chain that the device refused, from `bad` on. A device that names none
    /// of the chain may have taken any of it, so nothing is dropped.
    #[cold]
    fn take_back(&mut self, chain: Span, bad: *const bindings::ib_send_wr, posted: &mut Posted) {
        let named = chain.iter().position(|sequence| {
            let slot = self.slots.get(self.ring.slot(sequence));
            slot.is_some_and(|slot| core::ptr::eq(&slot.wr, bad))
        });
        let taken = named.map_or(chain.len(), |position| position as u32);
        let refused = self.ring.refuse(taken);
        let ended = self.release(refused, 0);
        posted.packets = taken;
        posted.refused = ended.packets;
        posted.refused_bytes = ended.bytes;
        posted.stuck = taken != 0;
    }

    /// Ends the inline packets among the first `count` of a chain: the device has copied them.
    fn free_inlined(&mut self, chain: Span, count: u32) -> Completed {
        let mut done = Completed::default();
        for sequence in chain.iter().take(count as usize) {
            let slot = self.slots.get_mut(self.ring.slot(sequence));
            if let Some(slot) = slot.filter(|slot| slot.is_inline()) {
                done += slot.end(0);
            }
        }
        done
    }

    /// Ends the requests that a completion stands for; the packets among them that had not ended
    /// with their post. `budget` is that of the poll. `None` if it is of no request with the
    /// device.
    pub(crate) fn complete(&mut self, completion: &Completion, budget: i32) -> Option<Outcome> {
        let (tag, sequence) = Tag::of(completion.id())?;
        if completion.queue_pair() != self.qp.address() || tag != self.tag {
            return None;
        }
        let fates = self.ring.complete(sequence)?.fates(completion.status());
        Some(Outcome {
            sent: self.release(fates.sent, budget),
            lost: self.release(fates.lost, budget),
        })
    }

    /// Ends all requests. Unless the queue pair is in Reset, a device may still read their memory:
    /// it is neither freed nor unmapped.
    pub(crate) fn clear(&mut self) -> Completed {
        let span = self.ring.clear();
        if span.len() != 0 && !self.qp.is_in_reset() {
            self.leave_memory();
        }
        self.release(span, 0)
    }

    /// Leaves the memory of all requests to the device. The ring takes no packets any more.
    #[cold]
    fn leave_memory(&mut self) {
        self.pieces = 0;
        // As of a device for which nothing is mapped.
        self.virtual_dma = true;
        let mut left = 0;
        for slot in &mut self.slots {
            if let Some(buffer) = slot.buffer.take() {
                buffer.leave();
                left += 1;
            }
        }
        if left != 0 {
            self.qp.device().report_left("sends of a connection", left);
        }
    }

    fn release(&mut self, span: Span, budget: i32) -> Completed {
        let mut ended = Completed::default();
        for sequence in span.iter() {
            let Some(slot) = self.slots.get_mut(self.ring.slot(sequence)) else {
                continue;
            };
            if !self.virtual_dma && !slot.is_inline() {
                slot.unmap(slot.wr.num_sge as usize, self.qp.device());
            }
            ended += slot.end(budget);
        }
        ended
    }
}

impl<B: Pieces, S: Notify, R: Notify> Drop for SendRing<B, S, R> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<B: Pieces> Slot<B> {
    fn new(local_key: u32) -> Self {
        let (mut wr, mut sges): (bindings::ib_send_wr, [bindings::ib_sge; PIECES]) =
            pin_init::zeroed();
        wr.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
        for sge in &mut sges {
            sge.lkey = local_key;
        }
        Self {
            wr,
            sges,
            bytes: 0,
            packets: 0,
            buffer: None,
        }
    }

    fn is_inline(&self) -> bool {
        self.wr.send_flags & INLINE != 0
    }

    /// Ends the packet: what is counted of it, once.
    fn end(&mut self, budget: i32) -> Completed {
        if let Some(buffer) = self.buffer.take() {
            buffer.done(budget);
        }
        Completed {
            packets: core::mem::take(&mut self.packets),
            bytes: core::mem::take(&mut self.bytes),
        }
    }

    /// Names the memory of `buffer`, mapped by `mapper` if there is one.
    fn fill(&mut self, buffer: &B, count: usize, mapper: Option<&super::device::Device>) -> Result {
        for index in 0..count {
            let (address, length) = buffer.piece(index);
            let Some(sge) = self.sges.get_mut(index) else {
                return Err(EINVAL);
            };
            sge.length = length as u32;
            let Some(device) = mapper else {
                sge.addr = address.as_ptr() as u64;
                continue;
            };
            // SAFETY: The slot gets the buffer and keeps it until the completion, where the
            // mapping ends; or it ends just below.
            match unsafe { dma::map(device, address, length) } {
                Ok(mapped) => sge.addr = mapped,
                Err(error) => {
                    self.unmap(index, device);
                    return Err(error);
                }
            }
        }
        self.wr.num_sge = count as i32;
        Ok(())
    }

    /// Ends the mappings of the first `count` pieces.
    fn unmap(&self, count: usize, device: &super::device::Device) {
        for sge in self.sges.iter().take(count) {
            // SAFETY: Mapped in `fill` with this length; the device is done with it.
            unsafe { dma::unmap(device, sge.addr, sge.length as usize) };
        }
    }
}
