// SPDX-License-Identifier: GPL-2.0-only

//! Receive buffers from a page pool.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    device::{
        Device,
        Operations, //
    },
    napi::{
        Instance,
        Poll, //
    }, //
};
use crate::{
    bindings,
    rdma::{
        device::Device as RdmaDevice,
        dma::ReceiveMemory, //
    }, //
};

/// Pages that wait in a pool for their next use, beside its small cache.
const SPARE: u32 = 64;

/// A pool of pages for one receive queue, mapped for the RDMA device once and recycled.
///
/// # Invariants
///
/// The pointer is a valid page pool.
pub(crate) struct Pool<P: Poll> {
    pool: NonNull<bindings::page_pool>,
    shape: Shape,
    virtual_dma: bool,
    /// The pool knows the poll, to recycle without a lock there.
    _poll: Arc<Instance<P>>,
}

// SAFETY: A pool is used by one poll at a time, on whatever thread that runs: its users hold
// `&mut` or a poll's context.
unsafe impl<P: Poll> Send for Pool<P> {}

/// A buffer of a pool: all of one page (of the pool's order).
///
/// # Invariants
///
/// `page` is a page of `pool` that this value owns, at `address`; `pool` is valid while a page of
/// it is out, also after it was destroyed: `page_pool_destroy` frees it when the last page is
/// back, and does nothing to a pool of which a page was left to a device.
pub(crate) struct Buffer {
    page: NonNull<bindings::page>,
    pool: NonNull<bindings::page_pool>,
    address: NonNull<u8>,
    dma: u64,
    shape: Shape,
    virtual_dma: bool,
}

/// The layout of a pool's buffers.
#[derive(Clone, Copy)]
struct Shape {
    /// Order of the page: it has two to the power of this times the size of a page.
    order: u32,
    /// Free bytes before those that a device writes.
    headroom: usize,
    /// Bytes after those, which the device does not write either.
    tail: usize,
}

// SAFETY: A buffer is plain memory with one owner.
unsafe impl Send for Buffer {}

impl<P: Poll> Pool<P> {
    /// Makes a pool for the queue that `poll` serves. In each buffer a device may write at least
    /// `size` bytes, after `headroom` bytes and before the space that a packet's shared info
    /// takes.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if the size is beyond what pages allow.
    pub(crate) fn new<T: Operations>(
        rdma: &RdmaDevice,
        device: &Device<T>,
        poll: &Arc<Instance<P>>,
        headroom: usize,
        size: usize,
    ) -> Result<Self> {
        let shape = Shape {
            order: order_for(headroom + size),
            headroom,
            tail: shared_info(),
        };
        Self::shaped(rdma, device, poll, shape, SPARE)
    }

    /// Makes a pool of whole pages of `order`, for what does not fit into the buffers of another
    /// one; `spare` pages wait for their next use.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn of_pages<T: Operations>(
        rdma: &RdmaDevice,
        device: &Device<T>,
        poll: &Arc<Instance<P>>,
        order: u32,
        spare: u32,
    ) -> Result<Self> {
        let shape = Shape {
            order,
            headroom: 0,
            tail: 0,
        };
        Self::shaped(rdma, device, poll, shape, spare)
    }

    fn shaped<T: Operations>(
        rdma: &RdmaDevice,
        device: &Device<T>,
        poll: &Arc<Instance<P>>,
        shape: Shape,
        spare: u32,
    ) -> Result<Self> {
        let virtual_dma = rdma.uses_virtual_dma();
        let mut params: bindings::page_pool_params = pin_init::zeroed();
        // SAFETY: Both variants of each union are the same plain fields.
        let fast = unsafe { &mut params.__bindgen_anon_1.__bindgen_anon_1 };
        fast.order = shape.order;
        fast.pool_size = spare;
        fast.nid = bindings::NUMA_NO_NODE;
        fast.napi = poll.as_raw();
        fast.dma_dir = bindings::dma_data_direction_DMA_FROM_DEVICE;
        fast.max_len = (kernel::page::PAGE_SIZE as u32) << shape.order;
        if !virtual_dma {
            fast.dev = rdma.dma_device();
        }
        // SAFETY: Both variants of each union are the same plain fields.
        let slow = unsafe { &mut params.__bindgen_anon_2.__bindgen_anon_1 };
        slow.netdev = device.as_raw();
        if !virtual_dma {
            slow.flags = bindings::OXIB_PP_DMA;
        }
        // SAFETY: The parameters are complete, and the device outlives the pool's use.
        let pool = unsafe { bindings::page_pool_create(&params) };
        let pool = kernel::error::from_err_ptr(pool)?;
        // INVARIANT: A fresh, valid pool.
        Ok(Self {
            pool: NonNull::new(pool).ok_or(ENOMEM)?,
            shape,
            virtual_dma,
            _poll: poll.clone(),
        })
    }

    /// Takes a buffer, recycled if one is there. Does not sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(crate) fn take(&mut self) -> Result<Buffer> {
        self.allocate(bindings::GFP_ATOMIC | bindings::__GFP_NOWARN)
    }

    /// Takes a buffer. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn take_sleeping(&mut self) -> Result<Buffer> {
        self.allocate(bindings::GFP_KERNEL)
    }

    #[inline]
    fn allocate(&mut self, flags: bindings::gfp_t) -> Result<Buffer> {
        // SAFETY: By the type invariant the pool is valid; `&mut self` makes this its only user.
        let page = unsafe { bindings::page_pool_alloc_pages(self.pool.as_ptr(), flags) };
        let page = NonNull::new(page).ok_or(ENOMEM)?;
        // SAFETY: The page is valid, ours, and in the kernel's direct map.
        let address = unsafe { bindings::oxib_page_address(page.as_ptr()) };
        let address = NonNull::new(address.cast::<u8>()).ok_or(ENOMEM)?;
        let dma = if self.virtual_dma {
            address.as_ptr() as u64
        } else {
            // SAFETY: The page is valid and was mapped by its pool.
            unsafe { bindings::oxib_page_pool_dma_addr(page.as_ptr()) }
        };
        // INVARIANT: The page was just taken from the pool.
        Ok(Buffer {
            page,
            pool: self.pool,
            address,
            dma,
            shape: self.shape,
            virtual_dma: self.virtual_dma,
        })
    }

    /// Bytes of memory that the pool has taken and not given back: buffers in use, in packets on
    /// their way, and spare.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        // SAFETY: By the type invariant the pool is valid.
        let pages = unsafe { bindings::oxib_page_pool_pages(self.pool.as_ptr()) };
        pages as usize * (kernel::page::PAGE_SIZE << self.shape.order)
    }
}

impl<P: Poll> Drop for Pool<P> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the pool is valid, and `&mut self` says that nobody takes
        // pages any more. The poll no longer runs, as its queue drops the pool. A pool of which a
        // page was left to a device stays, so it must forget the poll first.
        unsafe {
            bindings::page_pool_disable_direct_recycling(self.pool.as_ptr());
            bindings::page_pool_destroy(self.pool.as_ptr());
        }
    }
}

/// The smallest order of a page that holds `size` bytes and a packet's shared info.
fn order_for(size: usize) -> u32 {
    let mut order = 0;
    while (kernel::page::PAGE_SIZE << order) < size + shared_info() {
        order += 1;
    }
    order
}

/// Bytes at the end of a buffer that `build_skb` uses.
#[inline(always)]
fn shared_info() -> usize {
    bindings::OXIB_SKB_SHARED_INFO as usize
}

impl Buffer {
    /// All bytes of the buffer's page.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        kernel::page::PAGE_SIZE << self.shape.order
    }

    /// Bytes that may hold a packet.
    #[inline(always)]
    pub(crate) fn usable(&self) -> usize {
        self.size() - self.shape.tail
    }

    /// Says that the device wrote `length` bytes after the headroom, before they are read.
    #[inline(always)]
    pub(crate) fn arrived(&self, length: usize) {
        if self.virtual_dma {
            return;
        }
        let offset = self.shape.headroom;
        let length = core::cmp::min(length, self.length());
        // SAFETY: By the type invariant the page is ours and of this pool, which mapped it.
        unsafe {
            bindings::oxib_page_pool_sync_for_cpu(
                self.pool.as_ptr(),
                self.page.as_ptr(),
                offset as u32,
                length as u32,
            )
        };
    }

    /// Says that the device may write again, after the bytes were read.
    #[inline(always)]
    pub(crate) fn departs(&self) {
        if self.virtual_dma {
            return;
        }
        // SAFETY: By the type invariant the page is ours and of this pool, which mapped it.
        unsafe {
            bindings::oxib_page_pool_sync_for_device(
                self.pool.as_ptr(),
                self.page.as_ptr(),
                self.shape.headroom as u32,
                self.length() as u32,
            )
        };
    }

    #[inline(always)]
    pub(super) fn page(&self) -> *mut bindings::page {
        self.page.as_ptr()
    }

    #[inline(always)]
    pub(super) fn address(&self) -> NonNull<u8> {
        self.address
    }

    /// The bytes that the device has written, `len` from `offset` on; fewer if there are fewer.
    ///
    /// The caller has the buffer back from the device: a completion said so.
    #[inline(always)]
    pub(crate) fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let end = core::cmp::min(offset + len, self.usable());
        let offset = core::cmp::min(offset, end);
        // SAFETY: The range is inside the page, which this value owns; pages of a pool are always
        // initialised memory to the kernel's eye: the device or an earlier owner wrote them.
        unsafe { core::slice::from_raw_parts(self.address.as_ptr().add(offset), end - offset) }
    }

    /// Lets go of the page: a packet owns it now.
    #[inline(always)]
    pub(super) fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the page is ours and of this pool.
        unsafe { bindings::oxib_page_pool_put(self.pool.as_ptr(), self.page.as_ptr()) }
    }
}

// SAFETY: The page neither moves nor goes away while the buffer is owned, and is mapped at `dma`
// for as long. `leave` keeps the page and a user's reference of its pool, without which
// `page_pool_destroy` would unmap it.
unsafe impl ReceiveMemory for Buffer {
    #[inline(always)]
    fn dma_address(&self) -> u64 {
        self.dma + self.shape.headroom as u64
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.usable() - self.shape.headroom
    }

    #[inline(always)]
    fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let end = core::cmp::min(offset + len, self.usable());
        let offset = core::cmp::min(offset, end);
        // SAFETY: As in `bytes`: the range is inside the page, which this value owns. `&mut self`
        // makes the access exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.address.as_ptr().add(offset), end - offset) }
    }

    /// A pool that is destroyed unmaps all its pages, also those that are not back. So this one
    /// never is.
    #[cold]
    fn leave(self) {
        // SAFETY: By the type invariant the pool is valid.
        unsafe { bindings::oxib_page_pool_get(self.pool.as_ptr()) };
        self.forget();
    }
}
