// SPDX-License-Identifier: GPL-2.0-only

//! Packets: an owned `struct sk_buff`.

use core::{
    mem::ManuallyDrop,
    ops::Range,
    ptr::NonNull,
    slice, //
};

use kernel::prelude::*;

use super::{
    device::Device,
    napi::Context,
    page_pool::Buffer, //
};
use crate::{
    bindings,
    rdma::dma::Pieces, //
};

/// The receiver class of a packet that came in (`skb->pkt_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketType {
    /// Unicast to this device.
    Host,
    /// The link's broadcast group.
    Broadcast,
    /// Any other multicast group.
    Multicast,
}

/// Work on a packet that the stack has left to its sender.
#[derive(Clone, Copy)]
pub(crate) struct Wishes {
    /// The checksum of its protocol is to be computed.
    pub(crate) checksum: bool,
    /// The checksum is that of TCP or UDP right behind an IPv4 header.
    pub(crate) plain: bool,
    /// Sizes to cut the packet into TCP segments by; `None` if it is to be sent whole.
    pub(crate) segments: Option<Segments>,
}

/// The sizes by which a packet is to be cut.
#[derive(Clone, Copy)]
pub(crate) struct Segments {
    /// Bytes of headers, the encapsulation header included.
    pub(crate) headers: usize,
    /// Bytes of data in each segment, but for the last.
    pub(crate) size: usize,
}

impl Segments {
    /// Number of segments that a packet of `length` bytes is cut into.
    pub(crate) fn count(&self, length: usize) -> usize {
        length
            .saturating_sub(self.headers)
            .div_ceil(self.size.max(1))
    }
}

/// A packet that this value owns.
///
/// # Invariants
///
/// The pointer is a valid `sk_buff`, of which this value holds the reference that it was given.
/// Its linear part is `data .. data + (len - data_len)`.
#[repr(transparent)]
pub(crate) struct Skb(NonNull<bindings::sk_buff>);

// SAFETY: A packet is owned by one holder at a time and not tied to a thread.
unsafe impl Send for Skb {}
// SAFETY: A shared reference only reads.
unsafe impl Sync for Skb {}

impl Skb {
    /// Takes ownership of a packet.
    ///
    /// # Safety
    ///
    /// `skb` is valid and the caller gives up its reference.
    #[inline]
    pub(super) unsafe fn from_raw(skb: NonNull<bindings::sk_buff>) -> Self {
        // INVARIANT: The caller gives a valid packet, and its reference with it.
        Self(skb)
    }

    /// Gives up ownership without freeing the packet.
    #[inline]
    pub(super) fn into_raw(self) -> *mut bindings::sk_buff {
        ManuallyDrop::new(self).0.as_ptr()
    }

    #[inline(always)]
    fn fields(&self) -> &bindings::sk_buff {
        // SAFETY: By the type invariant the pointer is valid while `self` lives.
        unsafe { self.0.as_ref() }
    }

    #[inline(always)]
    fn fields_mut(&mut self) -> &mut bindings::sk_buff {
        // SAFETY: By the type invariant the pointer is valid; `&mut self` makes it exclusive.
        unsafe { self.0.as_mut() }
    }

    /// Length of the packet in bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.fields().len as usize
    }

    /// Returns whether all of the packet is in its linear part.
    #[inline(always)]
    pub(crate) fn is_linear(&self) -> bool {
        self.fields().data_len == 0
    }

    #[inline(always)]
    fn linear_len(&self) -> usize {
        let skb = self.fields();
        (skb.len - skb.data_len) as usize
    }

    /// The bytes of the linear part.
    #[inline(always)]
    pub(crate) fn data(&self) -> &[u8] {
        // SAFETY: By the type invariant the linear part is that long and stays while `self` does.
        unsafe { slice::from_raw_parts(self.fields().data, self.linear_len()) }
    }

    /// Returns whether it is one piece of memory, to be sent as it is.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        // SAFETY: By the type invariant the packet is valid.
        unsafe { bindings::oxib_skb_is_plain(self.0.as_ptr()) }
    }

    /// Returns the work that the stack has left to the sender of the packet, which starts with
    /// its encapsulation header.
    pub(crate) fn wishes(&self) -> Wishes {
        let mut wishes = bindings::oxib_wishes::default();
        // SAFETY: By the type invariant the packet is valid; the structure is ours.
        unsafe { bindings::oxib_skb_wishes(self.0.as_ptr(), &mut wishes) };
        Wishes {
            checksum: wishes.checksum,
            plain: wishes.plain,
            segments: (wishes.mss != 0).then_some(Segments {
                headers: wishes.headers as usize,
                size: wishes.mss as usize,
            }),
        }
    }

    /// Computes the checksum that the stack has left to the device.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL`; the packet cannot be sent then.
    pub(crate) fn complete_checksum(&mut self) -> Result {
        // SAFETY: By the type invariant the packet is valid and ours.
        kernel::error::to_result(unsafe { bindings::oxib_skb_checksum_help(self.0.as_ptr()) })
    }

    /// The ones' complement sum of some bytes, as 16-bit numbers in network order; zero if the
    /// packet does not have them.
    pub(crate) fn sum(&self, bytes: Range<usize>) -> u16 {
        if bytes.end > self.len() {
            return 0;
        }
        // SAFETY: By the type invariant the packet is valid, and it has those bytes.
        unsafe { bindings::oxib_skb_sum(self.0.as_ptr(), bytes.start as u32, bytes.len() as u32) }
    }

    /// Says that the device has found the packet's checksums right, of one received.
    pub(crate) fn is_checked(&mut self) {
        // SAFETY: By the type invariant the packet is valid and ours; its device is set.
        unsafe { bindings::oxib_skb_is_checked(self.0.as_ptr()) };
    }

    /// The first `length` bytes, or all if the packet has fewer, in its linear part, to be
    /// changed: they are not shared with clones of the packet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the packet is as it was.
    pub(crate) fn writable(&mut self, length: usize) -> Result<&mut [u8]> {
        let length = self.len().min(length);
        // SAFETY: By the type invariant the packet is valid and ours, and has that length.
        kernel::error::to_result(unsafe {
            bindings::skb_ensure_writable(self.0.as_ptr(), length as u32)
        })?;
        // SAFETY: By the type invariant the linear part is at least that long; that much of it is
        // shared with nobody.
        Ok(unsafe { slice::from_raw_parts_mut(self.fields().data, length) })
    }

    /// Returns another packet with the same bytes.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn duplicate(&self) -> Result<Self> {
        // SAFETY: By the type invariant the packet is valid.
        let copy = unsafe { bindings::oxib_skb_copy(self.0.as_ptr()) };
        // SAFETY: Just made, and ours.
        Ok(unsafe { Self::from_raw(NonNull::new(copy).ok_or(ENOMEM)?) })
    }

    /// Copies the whole packet into its linear part.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; the packet is as it was.
    pub(crate) fn linearize(&mut self) -> Result {
        // SAFETY: By the type invariant the pointer is valid and ours.
        kernel::error::to_result(unsafe { bindings::oxib_skb_linearize(self.0.as_ptr()) })
    }

    /// Returns whether others may write to its pieces: pages of a file, or of a program that
    /// sends without a copy.
    pub(crate) fn may_change(&self) -> bool {
        // SAFETY: By the type invariant the packet is valid.
        unsafe { bindings::oxib_skb_may_change(self.0.as_ptr()) }
    }

    /// Puts copies in place of its pieces; no other owner writes to the copies.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL`; the packet is as it was.
    pub(crate) fn copy_pieces(&mut self) -> Result {
        // SAFETY: By the type invariant the packet is valid and ours.
        kernel::error::to_result(unsafe {
            bindings::skb_copy_ubufs(self.0.as_ptr(), bindings::GFP_ATOMIC)
        })
    }

    /// Takes `n` bytes off the front.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the linear part is shorter; the packet is as it was.
    #[inline(always)]
    pub(crate) fn pull(&mut self, n: usize) -> Result {
        if self.linear_len() < n {
            return Err(EINVAL);
        }
        let skb = self.fields_mut();
        skb.len -= n as u32;
        // SAFETY: `n` is within the linear part, as checked above.
        skb.data = unsafe { skb.data.add(n) };
        Ok(())
    }

    /// Puts `header` in front.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if there is no room for it; the packet is as it was.
    #[inline(always)]
    pub(crate) fn push(&mut self, header: &[u8]) -> Result {
        let skb = self.fields_mut();
        if (skb.data as usize) - (skb.head as usize) < header.len() {
            return Err(ENOSPC);
        }
        skb.len += header.len() as u32;
        // SAFETY: The room between `head` and `data` was checked above; it belongs to the packet
        // and does not overlap `header`, which is borrowed from elsewhere.
        unsafe {
            skb.data = skb.data.sub(header.len());
            core::ptr::copy_nonoverlapping(header.as_ptr(), skb.data, header.len());
        }
        Ok(())
    }

    /// Sets what the packet carries: an EtherType, in host byte order.
    #[inline(always)]
    pub(crate) fn set_protocol(&mut self, ethertype: u16) {
        // SAFETY: The field is a plain integer at that offset.
        unsafe { self.set_field(bindings::OXIB_SKB_PROTOCOL, ethertype.to_be()) };
    }

    /// Notes the receive queue that a packet came by, from which the stack chooses a CPU or a
    /// transmit queue.
    #[inline(always)]
    pub(crate) fn set_receive_queue(&mut self, index: u16) {
        // SAFETY: The field is a plain integer at that offset; zero says that none was noted.
        unsafe { self.set_field(bindings::OXIB_SKB_QUEUE_MAPPING, index.saturating_add(1)) };
    }

    /// Sets the receiver class of a packet fresh from the device.
    #[inline(always)]
    pub(crate) fn set_packet_type(&mut self, kind: PacketType) {
        let value = match kind {
            // What a fresh packet says.
            PacketType::Host => return,
            PacketType::Broadcast => bindings::OXIB_PACKET_BROADCAST,
            PacketType::Multicast => bindings::OXIB_PACKET_MULTICAST,
        };
        // SAFETY: By the type invariant the pointer is valid and ours.
        unsafe { bindings::oxib_skb_set_pkt_type(self.0.as_ptr(), value as u8) };
    }

    /// Declares the `len` bytes at the front to be the link-layer header and takes them off.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the linear part is shorter.
    #[inline(always)]
    pub(crate) fn take_mac_header(&mut self, len: usize) -> Result {
        let skb = self.fields();
        let offset = (skb.data as usize - skb.head as usize) as u16;
        // SAFETY: The field is a plain integer at that offset.
        unsafe { self.set_field(bindings::OXIB_SKB_MAC_HEADER, offset) };
        self.pull(len)
    }

    /// Adds `len` bytes of a received buffer behind what the packet has, without a copy.
    ///
    /// The buffer's page returns to its pool when the packet is freed, so the packet has to have
    /// been made of one ([`Self::from_buffer`]). There is room for [`PIECES`] of them, the first
    /// included.
    ///
    /// # Errors
    ///
    /// The buffer back, if there is no more room or `len` is beyond it.
    ///
    /// [`PIECES`]: crate::rdma::rc_send::PIECES
    pub(crate) fn add(&mut self, buffer: Buffer, len: usize) -> core::result::Result<(), Buffer> {
        if self.frags() + 1 >= bindings::OXIB_SKB_PIECES as usize || len > buffer.usable() {
            return Err(buffer);
        }
        let (page, size) = (buffer.page(), buffer.size());
        // The packet owns the page now, and gives it back to the pool when it is freed.
        buffer.forget();
        // SAFETY: By the type invariant the packet is valid and ours, and there is a free place.
        unsafe { bindings::oxib_skb_add_page(self.0.as_ptr(), page, len as u32, size as u32) };
        Ok(())
    }

    /// Address and length in bytes of the linear part.
    #[inline(always)]
    fn memory(&self) -> (NonNull<u8>, usize) {
        // SAFETY: By the type invariant `data` points into the packet's head, so it is not null.
        let data = unsafe { NonNull::new_unchecked(self.fields().data) };
        (data, self.linear_len())
    }

    /// Pieces of memory beside the linear part.
    #[inline]
    fn frags(&self) -> usize {
        // SAFETY: By the type invariant the packet is valid.
        unsafe { bindings::oxib_skb_frags(self.0.as_ptr()) as usize }
    }

    /// Tells the route that the packet came by how much goes this way.
    pub(crate) fn update_path_mtu(&mut self, mtu: u32) {
        // SAFETY: By the type invariant the packet is valid and ours.
        unsafe { bindings::oxib_skb_update_pmtu(self.0.as_ptr(), mtu) };
    }

    /// Tells the packet's sender by ICMP that it is larger than `mtu`, and drops it. Not to be
    /// called with the lock of a transmit queue held: the message may go out by it.
    pub(crate) fn report_too_big(self, mtu: u32) {
        // SAFETY: By the type invariant the packet is valid and ours.
        unsafe { bindings::oxib_skb_too_big(self.0.as_ptr(), mtu) };
        drop(self);
    }

    /// Hands the packet to the stack again, as if just sent to the device that it is bound for.
    pub(crate) fn transmit_again(self) {
        // SAFETY: By the type invariant the packet is ours to give; `__dev_queue_xmit` consumes it
        // whatever it returns.
        unsafe { bindings::__dev_queue_xmit(self.into_raw(), core::ptr::null_mut()) };
    }

    /// Frees a packet that reached its destination (no drop is traced). `budget` is that of the
    /// poll that frees it, 0 outside of one.
    #[inline]
    pub(crate) fn consume(self, budget: i32) {
        // SAFETY: By the type invariant the packet is ours to give.
        unsafe {
            if budget == 0 {
                bindings::oxib_consume_skb(self.into_raw())
            } else {
                bindings::napi_consume_skb(self.into_raw(), budget)
            }
        };
    }

    /// Allocates a packet of `bytes`, copied, with `headroom` free bytes before them, for
    /// reception on `device`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[inline]
    pub(crate) fn copied<T: super::device::Operations>(
        context: &Context<'_>,
        device: &Device<T>,
        headroom: usize,
        bytes: &[u8],
    ) -> Result<Self> {
        // SAFETY: The context shows that this is the NAPI's own poll.
        let skb =
            unsafe { bindings::napi_alloc_skb(context.as_raw(), (headroom + bytes.len()) as u32) };
        let skb = NonNull::new(skb).ok_or(ENOMEM)?;
        // SAFETY: Freshly allocated and ours.
        let mut skb = unsafe { Self::from_raw(skb) };
        let fields = skb.fields_mut();
        // SAFETY: The allocation has room for `headroom + bytes.len()` after the head's own
        // reserve, and nothing else points into it.
        unsafe {
            fields.data = fields.data.add(headroom);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), fields.data, bytes.len());
        }
        fields.tail += (headroom + bytes.len()) as u32;
        fields.len = bytes.len() as u32;
        skb.set_device(device);
        Ok(skb)
    }

    /// Wraps a received buffer, without a copy: `len` bytes from `headroom` on.
    ///
    /// The buffer's page returns to its pool when the packet is freed.
    ///
    /// # Errors
    ///
    /// The buffer back, if the packet's head cannot be allocated or the length does not fit.
    #[inline]
    pub(crate) fn from_buffer<T: super::device::Operations>(
        device: &Device<T>,
        buffer: Buffer,
        headroom: usize,
        len: usize,
    ) -> core::result::Result<Self, Buffer> {
        let (address, size) = (buffer.address(), buffer.size());
        if headroom + len + bindings::OXIB_SKB_SHARED_INFO as usize > size {
            return Err(buffer);
        }
        // SAFETY: The buffer is `size` bytes of its own page, of which the packet leaves room for
        // the shared info at the end; on success the page belongs to the packet.
        let skb = unsafe { bindings::napi_build_skb(address.as_ptr().cast(), size as u32) };
        let Some(skb) = NonNull::new(skb) else {
            return Err(buffer);
        };
        // The packet owns the page now, and gives it back to the pool when it is freed.
        buffer.forget();
        // SAFETY: Freshly built and ours.
        let mut skb = unsafe { Self::from_raw(skb) };
        let fields = skb.fields_mut();
        // SAFETY: `headroom + len` fits, as checked above.
        fields.data = unsafe { fields.data.add(headroom) };
        fields.tail += (headroom + len) as u32;
        fields.len = len as u32;
        // SAFETY: The pointer is valid and ours, and its head came from a page pool.
        unsafe { bindings::oxib_skb_mark_for_recycle(skb.0.as_ptr()) };
        skb.set_device(device);
        Ok(skb)
    }

    #[inline(always)]
    fn set_device<T: super::device::Operations>(&mut self, device: &Device<T>) {
        // SAFETY: The field is a pointer at that offset; the stack keeps the device while packets
        // of its polls are on the way, and polls end before it is freed.
        unsafe { self.set_field(bindings::OXIB_SKB_DEV, device.as_raw()) };
    }

    /// Writes a field that the bindings hide in an anonymous union.
    ///
    /// # Safety
    ///
    /// There is a field of type `V` at `offset`, and the packet may have that value in it.
    #[inline(always)]
    unsafe fn set_field<V>(&mut self, offset: u32, value: V) {
        let skb: *mut u8 = self.0.as_ptr().cast();
        // SAFETY: By the type invariant the packet is valid, by the contract the field is there.
        unsafe { skb.add(offset as usize).cast::<V>().write(value) };
    }
}

impl Drop for Skb {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the reference is ours to drop.
        unsafe {
            bindings::dev_kfree_skb_any_reason(
                self.0.as_ptr(),
                bindings::skb_drop_reason_SKB_DROP_REASON_NOT_SPECIFIED,
            )
        };
    }
}

// SAFETY: Neither the linear part nor the pages move or go away while the packet is owned, and
// nobody else changes them: the owner sends it as it is.
unsafe impl Pieces for Skb {
    #[inline]
    fn pieces(&self) -> usize {
        if self.is_linear() {
            1
        } else {
            1 + self.frags()
        }
    }

    #[inline]
    fn piece(&self, index: usize) -> (NonNull<u8>, usize) {
        let (first, length) = self.memory();
        let Some(frag) = index.checked_sub(1) else {
            return (first, length);
        };
        if frag >= self.frags() {
            return (first, 0);
        }
        let mut length = 0;
        // SAFETY: By the type invariant the packet is valid, and it has that piece.
        let address = unsafe { bindings::oxib_skb_frag(self.0.as_ptr(), frag as u32, &mut length) };
        match NonNull::new(address.cast()) {
            Some(address) => (address, length as usize),
            None => (first, 0),
        }
    }

    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    #[inline]
    fn done(self, budget: i32) {
        self.consume(budget)
    }

    #[cold]
    fn leave(self) {
        // SAFETY: By the type invariant the packet is ours to give.
        unsafe { bindings::oxib_skb_leave(self.into_raw()) };
    }
}
