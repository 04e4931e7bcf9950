// SPDX-License-Identifier: GPL-2.0-only

//! The receive side of a datagram queue pair: prebuilt work requests, given back in chains.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    cq::Notify,
    dma::ReceiveMemory,
    qp::QueuePair, //
};
use crate::bindings;

/// A work request with its one piece of memory, at a place of its own for good.
#[repr(C)]
#[derive(pin_init::Zeroable)]
struct Request {
    wr: bindings::ib_recv_wr,
    sge: bindings::ib_sge,
}

/// The requests that wait to be posted: linked from `first` to `last`.
#[derive(Clone, Copy)]
struct Chain {
    first: usize,
    last: usize,
    length: u32,
}

/// The receive side of a queue pair. Its owner serialises it: all changes take `&mut self`.
///
/// # Invariants
///
/// `requests[i].wr.sg_list` points to `requests[i].sge`; the vector never moves. A posted request's
/// memory is that of `buffers[i]`.
pub(crate) struct ReceiveQueue<B: ReceiveMemory, S: Notify, R: Notify> {
    qp: Arc<QueuePair<S, R>>,
    post_recv: PostReceive,
    requests: KVVec<Request>,
    buffers: KVVec<Option<B>>,
    chain: Option<Chain>,
}

/// The device's own function.
type PostReceive = unsafe extern "C" fn(
    *mut bindings::ib_qp,
    *const bindings::ib_recv_wr,
    *mut *const bindings::ib_recv_wr,
) -> i32;

// SAFETY: As for the send side.
unsafe impl<B: ReceiveMemory + Send, S: Notify, R: Notify> Send for ReceiveQueue<B, S, R> {}

impl<B: ReceiveMemory, S: Notify, R: Notify> ReceiveQueue<B, S, R> {
    /// Makes a ring of `capacity` requests without buffers.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENOTSUPP` if the device cannot receive.
    pub(crate) fn new(qp: &Arc<QueuePair<S, R>>, capacity: u32) -> Result<Self> {
        // SAFETY: The operations of a valid device do not change.
        let post_recv = unsafe { (*qp.device().as_raw()).ops.post_recv }.ok_or(ENOTSUPP)?;
        let mut requests = KVVec::with_capacity(capacity as usize, GFP_KERNEL)?;
        let mut buffers = KVVec::with_capacity(capacity as usize, GFP_KERNEL)?;
        for id in 0..capacity {
            requests.push(Request::new(qp.pd().local_key(), id), GFP_KERNEL)?;
            buffers.push(None, GFP_KERNEL)?;
        }
        // INVARIANT: The vector has its final size and place.
        for request in &mut requests {
            request.wr.sg_list = &raw mut request.sge;
        }
        Ok(Self {
            qp: qp.clone(),
            post_recv,
            requests,
            buffers,
            chain: None,
        })
    }

    /// Number of requests.
    pub(crate) fn capacity(&self) -> usize {
        self.requests.len()
    }

    /// Leaves the buffers to a device that may still write into them: they are never freed.
    #[cold]
    pub(crate) fn abandon(&mut self) {
        self.buffers
            .iter_mut()
            .filter_map(Option::take)
            .for_each(core::mem::forget);
    }

    /// Ends a ring of which the device took a part, and refused another: the queue pair is reset, or has the buffers for
    /// good.
    #[cold]
    pub(crate) fn withdraw(&mut self) {
        if self.qp.reset().is_err() {
            self.abandon();
        }
    }

    /// Bytes of memory that the ring takes, without its buffers.
    pub(crate) fn memory(&self) -> usize {
        self.requests.capacity() * size_of::<Request>()
            + self.buffers.capacity() * size_of::<Option<B>>()
    }

    /// Gives slot `index` a buffer and chains it to be posted.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such slot.
    #[inline]
    pub(crate) fn supply(&mut self, index: usize, buffer: B) -> Result {
        let request = self.requests.get_mut(index).ok_or(EINVAL)?;
        request.sge.addr = buffer.dma_address();
        request.sge.length = buffer.length() as u32;
        *self.buffers.get_mut(index).ok_or(EINVAL)? = Some(buffer);
        self.link(index);
        Ok(())
    }

    /// The buffer of a completed request. `None` if the slot has none.
    #[inline(always)]
    pub(crate) fn buffer(&mut self, index: usize) -> Option<&mut B> {
        self.buffers.get_mut(index)?.as_mut()
    }

    /// Takes the buffer of a completed request away. `None` if the slot has none.
    #[inline]
    pub(crate) fn take(&mut self, index: usize) -> Option<B> {
        self.buffers.get_mut(index)?.take()
    }

    /// Gives a buffer back that was taken, without posting it.
    pub(crate) fn put_back(&mut self, index: usize, buffer: B) {
        if let Some(slot) = self.buffers.get_mut(index) {
            *slot = Some(buffer);
        }
    }

    /// Chains a completed request to be posted again with the buffer that it has.
    #[inline(always)]
    pub(crate) fn repost(&mut self, index: usize) {
        if self.buffers.get(index).is_some_and(Option::is_some) {
            self.link(index);
        }
    }

    #[inline(always)]
    fn link(&mut self, index: usize) {
        let Some(request) = self.requests.get_mut(index) else {
            return;
        };
        request.wr.next = core::ptr::null_mut();
        let wr: *mut bindings::ib_recv_wr = &raw mut request.wr;
        let chain = match self.chain {
            None => Chain {
                first: index,
                last: index,
                length: 1,
            },
            Some(chain) => {
                if let Some(last) = self.requests.get_mut(chain.last) {
                    last.wr.next = wr;
                }
                Chain {
                    last: index,
                    length: chain.length + 1,
                    ..chain
                }
            }
        };
        self.chain = Some(chain);
    }

    /// Length of the chain that waits for [`Self::post`].
    #[inline(always)]
    pub(crate) fn chained(&self) -> u32 {
        self.chain.map_or(0, |chain| chain.length)
    }

    /// Gives the chain to the device.
    ///
    /// # Errors
    ///
    /// What the device says. The requests that it refused stay chained for the next call.
    #[inline]
    pub(crate) fn post(&mut self) -> Result {
        let Some(chain) = self.chain.take() else {
            return Ok(());
        };
        let Some(first) = self.requests.get(chain.first) else {
            return Ok(());
        };
        let mut bad: *const bindings::ib_recv_wr = core::ptr::null();
        // SAFETY: The chain is linked and ends with a null `next` (`link`); by the type invariant
        // its memory stays until the completion. The queue pair is valid.
        let result = unsafe { (self.post_recv)(self.qp.as_raw(), &raw const first.wr, &mut bad) };
        kernel::error::to_result(result).inspect_err(|_| self.keep(chain, bad))
    }

    /// Keeps the part of a chain that the device refused, from `bad` on.
    #[cold]
    fn keep(&mut self, chain: Chain, bad: *const bindings::ib_recv_wr) {
        let mut first = chain.first;
        let mut length = chain.length;
        // A device that names none has taken none.
        while length > 1 && !bad.is_null() {
            match self.requests.get(first) {
                Some(request) if !core::ptr::eq(&request.wr, bad) => {
                    // The next request by its number, which is its slot.
                    let next = request.wr.next;
                    let Some(next) = self
                        .requests
                        .iter()
                        .position(|r| core::ptr::eq(&r.wr, next))
                    else {
                        return;
                    };
                    first = next;
                    length -= 1;
                }
                _ => break,
            }
        }
        self.chain = Some(Chain {
            first,
            length,
            ..chain
        });
    }
}

impl Request {
    fn new(local_key: u32, id: u32) -> Self {
        let mut this: Self = pin_init::zeroed();
        this.wr.__bindgen_anon_1.wr_id = u64::from(id);
        this.wr.num_sge = 1;
        this.sge.lkey = local_key;
        this
    }
}
