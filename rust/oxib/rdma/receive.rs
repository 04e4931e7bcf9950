// SPDX-License-Identifier: GPL-2.0-only

//! Rings of receive work requests.
//!
//! A ring holds prebuilt requests with their memory and posts them in chains, to a queue pair or
//! to a shared receive queue.
//!
//! The ring knows the owner of each request. From the post on the device owns it and may write
//! into its memory at any time. The completion returns it as a [`Done`], the only access to the
//! memory: to read it, to exchange it, and to post it again, once. A ring that ends while the
//! device owns requests frees no memory unless nothing can write into it any more
//! ([`ReceiveTarget::quiesce`]).
//!
//! A request may name several pieces of memory, so that a large message needs no large page and a
//! small one uses the first piece only.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    cq::Completion,
    dma::ReceiveMemory, //
};
use crate::bindings;

mod tests;

/// A queue that receives are posted to.
///
/// # Safety
///
/// - [`Self::as_raw`] is valid for [`Self::post_receive`] as long as the value lives.
/// - Once [`Self::quiesce`] has returned true, no device writes into memory of requests that were
///   posted before, and [`Self::takes_receives`] returns false until those requests are forgotten.
pub(crate) unsafe trait ReceiveTarget {
    /// The C type of the queue.
    type Raw;

    /// The C object, valid as long as `self`.
    fn as_raw(&self) -> *mut Self::Raw;

    /// The device's own function; `None` if it cannot receive so.
    fn post_receive(&self) -> Option<PostReceive<Self::Raw>>;

    /// The key of all memory.
    fn local_key(&self) -> u32;

    /// Returns whether requests may be posted now.
    fn takes_receives(&self) -> bool;

    /// Ends the queue's use by its ring. Returns whether the device has forgotten all that was
    /// posted.
    fn quiesce(&self) -> bool;

    /// Tells the administrator that the memory of so many requests was left to the device.
    fn report_left(&self, requests: usize);
}

/// A device's own function that receives are posted with.
pub(crate) type PostReceive<Raw> = unsafe extern "C" fn(
    *mut Raw,
    *const bindings::ib_recv_wr,
    *mut *const bindings::ib_recv_wr,
) -> i32;

/// A work request and its owner.
struct Slot {
    wr: bindings::ib_recv_wr,
    /// Whether the device owns it: from the post to the completion.
    is_given: bool,
}

/// The most requests of a ring: their numbers have 16 bits for the place.
const MOST: u32 = 1 << 16;

/// The bits of a request's number: the ring, how often the request was posted (modulo 65536), and
/// its place.
const RING_SHIFT: u32 = 32;
const TURN: u64 = 1 << 16;
const TURNS: u64 = 0xffff << 16;

/// The requests of a queue with their memory. The owner serialises it: changes take `&mut self`.
///
/// # Invariants
///
/// - `slots[i].wr.sg_list` points to the `pieces` elements of `places` from `i * pieces` on;
///   neither vector moves. The memory that they name is that of the same elements of `buffers`.
/// - `waiting` has each index at most once, and only those of slots that are not given.
pub(crate) struct ReceiveRing<B: ReceiveMemory, D: ReceiveTarget> {
    target: Arc<D>,
    post_receive: PostReceive<D::Raw>,
    pieces: usize,
    slots: KVVec<Slot>,
    places: KVVec<bindings::ib_sge>,
    buffers: KVVec<B>,
    /// Requests to be posted, in this order.
    waiting: KVVec<u32>,
}

// SAFETY: The raw pointers in the requests are into the ring's own vectors, which do not move with
// it. The buffers are sent as `B: Send`, the target is shared as `D: Send + Sync`.
unsafe impl<B: ReceiveMemory + Send, D: ReceiveTarget + Send + Sync> Send for ReceiveRing<B, D> {}

/// Returns the number of a new ring. A number comes again after 2^32 rings.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<B: ReceiveMemory, D: ReceiveTarget> ReceiveRing<B, D> {
    /// Makes a ring of `entries` requests of `pieces` pieces of memory each, which `supply` gives
    /// by their place in a request. All wait to be posted.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` for more than 65536 entries; `ENOTSUPP` if the device cannot receive so;
    /// the error of `supply`.
    pub(crate) fn new(
        target: &Arc<D>,
        entries: u32,
        pieces: u32,
        mut supply: impl FnMut(usize) -> Result<B>,
    ) -> Result<Self> {
        let post_receive = target.post_receive().ok_or(ENOTSUPP)?;
        if entries > MOST {
            return Err(EINVAL);
        }
        let (count, pieces) = (entries as usize, pieces.max(1) as usize);
        let mut slots = KVVec::with_capacity(count, GFP_KERNEL)?;
        let mut places = KVVec::with_capacity(count * pieces, GFP_KERNEL)?;
        let mut buffers = KVVec::with_capacity(count * pieces, GFP_KERNEL)?;
        let mut waiting = KVVec::with_capacity(count, GFP_KERNEL)?;
        for index in 0..count * pieces {
            let buffer = supply(index % pieces)?;
            places.push(place(target.local_key(), &buffer), GFP_KERNEL)?;
            buffers.push(buffer, GFP_KERNEL)?;
        }
        let number = u64::from(next_number()) << RING_SHIFT;
        // INVARIANT: The vector of places has its final size and place, and a chunk for each
        // request. None is given.
        for (index, chunk) in places.chunks_exact_mut(pieces).enumerate() {
            slots.push(Slot::new(number | index as u64, chunk), GFP_KERNEL)?;
            waiting.push(index as u32, GFP_KERNEL)?;
        }
        Ok(Self {
            target: target.clone(),
            post_receive,
            pieces,
            slots,
            places,
            buffers,
            waiting,
        })
    }

    /// Bytes of memory that the ring takes, without its buffers.
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.places.capacity() * size_of::<bindings::ib_sge>()
            + self.buffers.capacity() * size_of::<B>()
            + self.waiting.capacity() * size_of::<u32>()
    }

    /// Takes back the request that a completion ends. `None` if the completion is of another ring,
    /// of an earlier post, or of a request that the device does not own.
    #[inline(always)]
    pub(crate) fn complete(&mut self, completion: &Completion) -> Option<Done<'_, B>> {
        self.take_back(completion.id())
    }

    #[inline(always)]
    fn take_back(&mut self, id: u64) -> Option<Done<'_, B>> {
        let index = id as u16;
        let slot = self.slots.get_mut(usize::from(index))?;
        if slot.id() != id || !core::mem::replace(&mut slot.is_given, false) {
            return None;
        }
        let first = usize::from(index) * self.pieces;
        let range = first..first + self.pieces;
        Some(Done {
            index: index.into(),
            places: self.places.get_mut(range.clone())?,
            buffers: self.buffers.get_mut(range)?,
            waiting: &mut self.waiting,
        })
    }

    /// The number of requests that wait for [`Self::post`].
    #[inline(always)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives the requests that wait to the device.
    ///
    /// # Errors
    ///
    /// The device's error; the requests that it refused wait for the next call. `EPIPE` if the
    /// target takes no requests, as a queue pair in Reset.
    pub(crate) fn post(&mut self) -> Result {
        if !self.target.takes_receives() {
            return Err(EPIPE);
        }
        let first = self.link();
        if first.is_null() {
            return Ok(());
        }
        let mut bad: *const bindings::ib_recv_wr = core::ptr::null();
        // SAFETY: The target is valid. The requests are linked, the last one to null. They are
        // noted as given, so that their memory stays until the completion.
        let result = unsafe { (self.post_receive)(self.target.as_raw(), first, &mut bad) };
        match kernel::error::to_result(result) {
            Ok(()) => {
                self.waiting.clear();
                Ok(())
            }
            Err(error) => {
                self.keep(bad);
                Err(error)
            }
        }
    }

    /// Links the requests that wait, notes them as given, and gives them new numbers. Returns the
    /// first one, or null.
    #[inline(always)]
    fn link(&mut self) -> *const bindings::ib_recv_wr {
        let mut next: *mut bindings::ib_recv_wr = core::ptr::null_mut();
        for index in self.waiting.iter().rev() {
            if let Some(slot) = self.slots.get_mut(*index as usize) {
                slot.give();
                slot.wr.next = next;
                next = &raw mut slot.wr;
            }
        }
        next
    }

    /// Keeps the requests that the device refused, from `bad` on. A device that names none of the
    /// chain may have taken any of it, so all of it counts as given.
    #[cold]
    fn keep(&mut self, bad: *const bindings::ib_recv_wr) {
        let slots = &mut self.slots;
        let is_bad = |index: &u32| {
            let slot = slots.get(*index as usize);
            slot.is_some_and(|slot| core::ptr::eq(&slot.wr, bad))
        };
        let refused = self.waiting.iter().position(is_bad);
        let taken = refused.unwrap_or(self.waiting.len());
        let mut position = 0;
        self.waiting.retain(|index| {
            position += 1;
            let is_refused = position > taken;
            if let Some(slot) = slots.get_mut(*index as usize).filter(|_| is_refused) {
                slot.is_given = false;
            }
            is_refused
        });
    }
}

impl<B: ReceiveMemory, D: ReceiveTarget> Drop for ReceiveRing<B, D> {
    fn drop(&mut self) {
        let given = self.slots.iter().filter(|slot| slot.is_given).count();
        if given == 0 || self.target.quiesce() {
            return;
        }
        // A device may still write there: the memory is lost, neither freed nor unmapped.
        for slot in self.slots.iter().rev() {
            let first = self.buffers.len().saturating_sub(self.pieces);
            while self.buffers.len() > first {
                match self.buffers.pop() {
                    Some(buffer) if slot.is_given => buffer.leave(),
                    _ => {}
                }
            }
        }
        self.target.report_left(given);
    }
}

/// A request that the device is done with. Dropping it leaves it to the ring, unposted.
#[must_use = "a request that is not posted again receives nothing"]
pub(crate) struct Done<'r, B> {
    index: u32,
    places: &'r mut [bindings::ib_sge],
    buffers: &'r mut [B],
    waiting: &'r mut KVVec<u32>,
}

impl<B: ReceiveMemory> Done<'_, B> {
    /// A piece of its memory. `None` if it has no such piece.
    ///
    /// The reference is not `&mut B`: the request names this piece; another one takes its place by
    /// [`Self::exchange`] only.
    #[inline(always)]
    pub(crate) fn buffer(&self, piece: usize) -> Option<&B> {
        self.buffers.get(piece)
    }

    /// The bytes of a piece, to be written: at most `len` from `offset` on. `None` if there is no
    /// such piece.
    #[inline(always)]
    pub(crate) fn bytes_mut(
        &mut self,
        piece: usize,
        offset: usize,
        len: usize,
    ) -> Option<&mut [u8]> {
        Some(self.buffers.get_mut(piece)?.bytes_mut(offset, len))
    }

    /// Replaces a piece of its memory, and returns the old one. `None`, with `buffer` dropped, if
    /// it has no such piece.
    #[inline(always)]
    pub(crate) fn exchange(&mut self, piece: usize, buffer: B) -> Option<B> {
        let (has, place) = (self.buffers.get_mut(piece)?, self.places.get_mut(piece)?);
        place.addr = buffer.dma_address();
        place.length = buffer.length() as u32;
        Some(core::mem::replace(has, buffer))
    }

    /// Queues it for the next [`ReceiveRing::post`].
    #[inline(always)]
    pub(crate) fn repost(self) {
        // Each request waits at most once, so there is room.
        let _ = self.waiting.push_within_capacity(self.index);
    }
}

impl Slot {
    fn new(id: u64, places: &mut [bindings::ib_sge]) -> Self {
        let mut wr: bindings::ib_recv_wr = pin_init::zeroed();
        wr.__bindgen_anon_1.wr_id = id;
        wr.sg_list = places.as_mut_ptr();
        wr.num_sge = places.len() as i32;
        Self {
            wr,
            is_given: false,
        }
    }

    /// The number that its completion has.
    #[inline(always)]
    fn id(&self) -> u64 {
        // SAFETY: Both variants of the union are plain data of 64 bits; `wr_id` is the one in use.
        unsafe { self.wr.__bindgen_anon_1.wr_id }
    }

    /// Makes it the device's, with a number that no completion of an earlier post has.
    #[inline(always)]
    fn give(&mut self) {
        let id = self.id();
        let turn = id.wrapping_add(TURN) & TURNS;
        self.wr.__bindgen_anon_1.wr_id = id & !TURNS | turn;
        self.is_given = true;
    }
}

/// The entry of a work request that names `buffer`.
fn place(local_key: u32, buffer: &impl ReceiveMemory) -> bindings::ib_sge {
    bindings::ib_sge {
        addr: buffer.dma_address(),
        length: buffer.length() as u32,
        lkey: local_key,
    }
}
