// SPDX-License-Identifier: GPL-2.0-only

//! Shared receive queues: one ring of buffers for the queue pairs of many peers.
//!
//! A message goes to several pieces of memory, so that a large one needs no large page and a small
//! one takes no more than the first of them away.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    device::Device,
    dma::ReceiveMemory,
    pd::ProtectionDomain, //
};
use crate::{
    bindings,
    linux::device_limit, //
};

/// A shared receive queue.
///
/// # Invariants
///
/// The pointer is a valid shared receive queue in `pd`.
pub(crate) struct SharedReceiveQueue {
    srq: NonNull<bindings::ib_srq>,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: Shared receive queues are used from all threads.
unsafe impl Send for SharedReceiveQueue {}
// SAFETY: As above.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    /// Makes a queue of `entries` requests of `pieces` pieces of memory each.
    ///
    /// # Errors
    ///
    /// What the device says: `EOPNOTSUPP` if it has no such queues.
    pub(crate) fn new(pd: &Arc<ProtectionDomain>, entries: u32, pieces: u32) -> Result<Arc<Self>> {
        let mut attributes: bindings::ib_srq_init_attr = pin_init::zeroed();
        attributes.srq_type = bindings::ib_srq_type_IB_SRQT_BASIC;
        attributes.attr.max_wr = entries;
        attributes.attr.max_sge = pieces;
        // SAFETY: The protection domain is valid and outlives the queue.
        let srq = unsafe {
            bindings::ib_create_srq_user(
                pd.as_raw(),
                &mut attributes,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        };
        let srq = NonNull::new(kernel::error::from_err_ptr(srq)?).ok_or(ENOMEM)?;
        // INVARIANT: Just created in `pd`.
        Ok(Arc::new(
            Self {
                srq,
                pd: pd.clone(),
            },
            GFP_KERNEL,
        )?)
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_srq {
        self.srq.as_ptr()
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariant valid; the queue pairs that use it hold it and are gone.
        unsafe { bindings::ib_destroy_srq_user(self.as_raw(), core::ptr::null_mut()) };
    }
}

impl Device {
    /// Most pieces of memory of a request in a shared receive queue; 0 if it has none.
    pub(crate) fn max_shared_pieces(&self) -> u32 {
        // SAFETY: A constant of a valid device.
        device_limit(unsafe { (*self.as_raw()).attrs.max_srq_sge })
    }

    /// Most requests of a shared receive queue.
    pub(crate) fn max_shared_requests(&self) -> u32 {
        // SAFETY: A constant of a valid device.
        device_limit(unsafe { (*self.as_raw()).attrs.max_srq_wr })
    }
}

/// The requests of a shared receive queue with their memory. Its owner serialises it: all changes
/// take `&mut self`.
///
/// # Invariants
///
/// `requests[i].sg_list` points to the `pieces` elements of `places` from `i * pieces` on; neither
/// vector moves. The memory of a posted request is that of the same elements of `buffers`.
pub(crate) struct SharedRing<B: ReceiveMemory> {
    srq: Arc<SharedReceiveQueue>,
    post_recv: PostReceive,
    pieces: usize,
    requests: KVVec<bindings::ib_recv_wr>,
    places: KVVec<bindings::ib_sge>,
    buffers: KVVec<Option<B>>,
    /// Requests to be posted.
    waiting: KVVec<u32>,
}

/// The device's own function.
type PostReceive = unsafe extern "C" fn(
    *mut bindings::ib_srq,
    *const bindings::ib_recv_wr,
    *mut *const bindings::ib_recv_wr,
) -> i32;

// SAFETY: The pointers in the requests are into the ring's own memory; the buffers may move as
// `B: Send`.
unsafe impl<B: ReceiveMemory + Send> Send for SharedRing<B> {}

impl<B: ReceiveMemory> SharedRing<B> {
    /// Makes the requests of `srq`, which was made with as many `entries` and `pieces`, without memory.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENOTSUPP` if the device cannot receive so.
    pub(crate) fn new(srq: &Arc<SharedReceiveQueue>, entries: u32, pieces: u32) -> Result<Self> {
        // SAFETY: The operations of a valid device do not change.
        let post_recv = unsafe { (*srq.pd.device().as_raw()).ops.post_srq_recv }.ok_or(ENOTSUPP)?;
        let count = entries as usize;
        let each = pieces as usize;
        let mut requests = KVVec::with_capacity(count, GFP_KERNEL)?;
        let mut places = KVVec::with_capacity(count * each, GFP_KERNEL)?;
        let mut buffers = KVVec::with_capacity(count * each, GFP_KERNEL)?;
        for _ in 0..count * each {
            let place = bindings::ib_sge {
                lkey: srq.pd.local_key(),
                ..bindings::ib_sge::default()
            };
            places.push(place, GFP_KERNEL)?;
            buffers.push(None, GFP_KERNEL)?;
        }
        // INVARIANT: The vector of places has its final size and place, and a chunk for each request.
        for (id, chunk) in places.chunks_exact_mut(each.max(1)).enumerate() {
            let mut request: bindings::ib_recv_wr = pin_init::zeroed();
            request.__bindgen_anon_1.wr_id = id as u64;
            request.sg_list = chunk.as_mut_ptr();
            request.num_sge = pieces as i32;
            requests.push(request, GFP_KERNEL)?;
        }
        Ok(Self {
            srq: srq.clone(),
            post_recv,
            pieces: each,
            requests,
            places,
            buffers,
            waiting: KVVec::with_capacity(count, GFP_KERNEL)?,
        })
    }

    /// Number of requests.
    pub(crate) fn capacity(&self) -> usize {
        self.requests.len()
    }

    /// Bytes of memory that the ring takes, without its buffers.
    pub(crate) fn memory(&self) -> usize {
        self.requests.capacity() * size_of::<bindings::ib_recv_wr>()
            + self.places.capacity() * size_of::<bindings::ib_sge>()
            + self.buffers.capacity() * size_of::<Option<B>>()
            + self.waiting.capacity() * size_of::<u32>()
    }

    fn place(&self, index: usize, piece: usize) -> Option<usize> {
        (index < self.requests.len() && piece < self.pieces).then(|| index * self.pieces + piece)
    }

    /// The memory of a piece of a completed request. `None` if it has none.
    #[inline]
    pub(crate) fn buffer(&mut self, index: usize, piece: usize) -> Option<&mut B> {
        let place = self.place(index, piece)?;
        self.buffers.get_mut(place)?.as_mut()
    }

    /// Gives a piece of a completed request other memory; returns what it had.
    #[inline]
    pub(crate) fn exchange(&mut self, index: usize, piece: usize, buffer: B) -> Option<B> {
        let place = self.place(index, piece)?;
        let element = self.places.get_mut(place)?;
        element.addr = buffer.dma_address();
        element.length = buffer.length() as u32;
        self.buffers.get_mut(place)?.replace(buffer)
    }

    /// Has a completed request posted again by the next [`Self::post`].
    #[inline]
    pub(crate) fn repost(&mut self, index: usize) {
        if index < self.requests.len() {
            // Each request is there at most once, so there is room.
            let _ = self.waiting.push_within_capacity(index as u32);
        }
    }

    /// How many requests wait for [`Self::post`].
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives the requests that wait to the device.
    ///
    /// # Errors
    ///
    /// What the device says. The requests that it refused wait for the next call.
    pub(crate) fn post(&mut self) -> Result {
        let mut first: *mut bindings::ib_recv_wr = core::ptr::null_mut();
        for index in self.waiting.iter().rev() {
            if let Some(request) = self.requests.get_mut(*index as usize) {
                request.next = first;
                first = request;
            }
        }
        if first.is_null() {
            return Ok(());
        }
        let mut bad: *const bindings::ib_recv_wr = core::ptr::null();
        // SAFETY: The requests are linked, the last one to null; by the type invariant their memory
        // stays until the completion. The queue is valid.
        let result = unsafe { (self.post_recv)(self.srq.as_raw(), first, &mut bad) };
        let posted = kernel::error::to_result(result);
        if posted.is_ok() {
            self.waiting.clear();
        } else {
            self.keep(bad);
        }
        posted
    }

    /// Keeps what the device refused, from `bad` on. A device that names none has taken none.
    #[cold]
    fn keep(&mut self, bad: *const bindings::ib_recv_wr) {
        let requests = &self.requests;
        let taken = self.waiting.iter().position(|index| {
            let request = requests.get(*index as usize);
            request.is_some_and(|request| core::ptr::eq(request, bad))
        });
        let taken = taken.unwrap_or(0);
        let mut position = 0;
        self.waiting.retain(|_| {
            position += 1;
            position > taken
        });
    }

    /// Leaves the memory to a device that may still write into it: it is never freed.
    #[cold]
    pub(crate) fn abandon(&mut self) {
        self.buffers
            .iter_mut()
            .filter_map(Option::take)
            .for_each(core::mem::forget);
    }
}
