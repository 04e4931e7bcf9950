// SPDX-License-Identifier: GPL-2.0-only

//! Frames: an owned `struct sk_buff` that holds one InfiniBand packet.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull,
    slice, //
};

use kernel::{
    prelude::*,
    types::Opaque, //
};

use super::{
    crc::crc32,
    signal::Signal, //
};
use crate::{
    bindings,
    wire::{
        lrh::{
            Lrh,
            Next, //
        },
        packet, //
    }, //
};

/// The virtual lane of subnet management.
pub(crate) const VL15: u8 = 15;

/// The switches of one subnet that a packet may come to. A subnet manager finds none that is more
/// than 63 hops away, and a path is hardly longer than the way to and from the manager.
const MAX_SWITCHES: u8 = 128;

/// Frames that may wait in one place for their turn: of the longest these are 32 MiB.
pub(crate) const MOST_WAITING: u32 = 4096;

/// An InfiniBand packet, from the local route header to the invariant CRC, with headroom for the
/// net device.
///
/// # Invariants
///
/// The pointer is a valid `sk_buff` that nobody else holds, all of it in its linear part; its
/// control block is a `struct softib_frame`.
#[repr(transparent)]
pub(crate) struct Frame(NonNull<bindings::sk_buff>);

// SAFETY: A packet is owned by one holder at a time and not tied to a thread.
unsafe impl Send for Frame {}
// SAFETY: A shared reference only reads.
unsafe impl Sync for Frame {}

impl Frame {
    /// Makes one of `length` bytes that are to be written. Any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(length: usize) -> Result<Self> {
        let length = u32::try_from(length)?;
        // SAFETY: A plain allocation.
        let skb = unsafe { bindings::softib_frame_alloc(length) };
        // INVARIANT: New, and not paged.
        NonNull::new(skb).map(Self).ok_or(ENOMEM)
    }

    /// Takes a packet that came by a cable.
    ///
    /// # Safety
    ///
    /// `skb` is valid and linear. Only the caller holds it, and gives it up. Its control block is
    /// ours.
    #[inline]
    pub(super) unsafe fn from_raw(skb: *mut bindings::sk_buff) -> Self {
        // INVARIANT: The caller's promise.
        // SAFETY: The caller gives a valid buffer, so not null.
        Self(unsafe { NonNull::new_unchecked(skb) })
    }

    /// Returns our notes on the packet, which are in the control block.
    #[inline]
    fn state(&self) -> *mut bindings::softib_frame {
        // SAFETY: By the type invariant valid, and the control block is ours.
        unsafe { &raw mut (*self.0.as_ptr()).cb }.cast()
    }

    pub(super) fn as_raw(&self) -> *mut bindings::sk_buff {
        self.0.as_ptr()
    }

    /// Gives up ownership of the `sk_buff`.
    pub(super) fn into_raw(self) -> *mut bindings::sk_buff {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Returns the bytes of the packet.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the type invariant the linear part is the whole packet, and stays while
        // `self` is borrowed.
        unsafe {
            let skb = self.0.as_ref();
            slice::from_raw_parts(skb.data, skb.len as usize)
        }
    }

    /// The packet, to be written.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if others read the same bytes (a capture, a copy) and there is no memory for a
    /// copy of our own.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        // SAFETY: By the type invariant ours.
        kernel::error::to_result(unsafe { bindings::softib_frame_writable(self.0.as_ptr()) })?;
        // SAFETY: By the type invariant the linear part is the whole packet;
        // `softib_frame_writable` has made it ours alone.
        Ok(unsafe {
            let skb = self.0.as_mut();
            slice::from_raw_parts_mut(skb.data, skb.len as usize)
        })
    }

    /// Cuts off what is behind `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        if let Ok(length) = u32::try_from(length) {
            // SAFETY: By the type invariant ours.
            unsafe { bindings::softib_frame_shrink(self.0.as_ptr(), length) };
        }
    }

    /// Notes the port that it is for, while it is in one of our queues.
    #[inline]
    pub(crate) fn set_port(&mut self, port: u8) {
        // SAFETY: Ours, and initialised since the frame was made or came.
        unsafe { (*self.state()).port = port };
    }

    /// The port that was noted.
    #[inline]
    pub(crate) fn port(&self) -> u8 {
        // SAFETY: `state` points to the notes in the control block, which only the frame's holder
        // uses.
        unsafe { (*self.state()).port }
    }

    /// Counts a switch that the packet has come to. Returns whether it may go on from there: if
    /// not, the switches lead it in a circle. A packet that comes out of the network stack is
    /// counted anew.
    #[inline]
    pub(crate) fn come_to_switch(&mut self) -> bool {
        // SAFETY: `state` points to the notes in the control block, and the frame is borrowed
        // mutably.
        let switches = unsafe { &mut (*self.state()).switches };
        *switches = switches.saturating_add(1);
        *switches <= MAX_SWITCHES
    }

    /// Notes that a router has passed the packet on: the switches of the next subnet are counted
    /// anew.
    pub(crate) fn leave_subnet(&mut self) {
        // SAFETY: `state` points to the notes in the control block, and the frame is borrowed
        // mutably.
        unsafe { (*self.state()).switches = 0 };
    }

    /// Returns whether it was made here, and nobody else has had it since: then it is not
    /// damaged.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        // SAFETY: `state` points to the notes in the control block, which only the frame's holder
        // uses.
        unsafe { (*self.state()).own }
    }

    /// Notes that it is a packet of a connection (RC or UC).
    #[inline]
    pub(crate) fn set_connected(&mut self) {
        // SAFETY: `state` points to the notes in the control block, and the frame is borrowed
        // mutably.
        unsafe { (*self.state()).connected = true };
    }

    /// Returns whether it was made as a packet of a connection.
    #[inline]
    pub(crate) fn is_connected(&self) -> bool {
        // SAFETY: `state` points to the notes in the control block, which only the frame's holder
        // uses.
        unsafe { (*self.state()).connected }
    }

    /// Returns whether it is taken however many frames wait: a signal of the cable, or a packet of
    /// the virtual lane of management.
    pub(crate) fn is_urgent(&self) -> bool {
        let bytes = self.bytes();
        // The virtual lane is the high half of a packet's first byte (IBTA 7.7.1).
        Signal::read(bytes).is_some() || bytes.first().is_some_and(|byte| byte >> 4 == VL15)
    }

    /// Leaves the invariant CRC to [`Frame::close`].
    #[inline]
    pub(crate) fn leave_open(&mut self) {
        // SAFETY: `state` points to the notes in the control block, and the frame is borrowed
        // mutably.
        unsafe { (*self.state()).open = true };
    }

    /// Writes the invariant CRC, if that was left to this: before others get the packet.
    ///
    /// # Errors
    ///
    /// The errors of [`Frame::bytes_mut`].
    pub(super) fn close(&mut self) -> Result {
        // SAFETY: `state` points to the notes in the control block, and the frame is borrowed
        // mutably.
        if unsafe { (*self.state()).open } {
            let bytes = self.bytes_mut()?;
            let global = Lrh::parse(bytes).is_ok_and(|(lrh, _)| lrh.next() == Next::Global);
            // The packet has all its headers.
            let _ = packet::seal(bytes, global, crc32);
            // SAFETY: `state` points to the notes in the control block, and the frame is borrowed
            // mutably.
            unsafe { (*self.state()).open = false };
        }
        Ok(())
    }

    /// A second one with the same bytes, which both only read.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        // SAFETY: By the type invariant valid.
        let skb = unsafe { bindings::skb_clone(self.0.as_ptr(), bindings::GFP_ATOMIC) };
        // INVARIANT: The clone is ours; that its bytes are shared is what `bytes_mut` looks at.
        NonNull::new(skb).map(Self).ok_or(ENOMEM)
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: By the type invariant ours.
        unsafe { bindings::softib_frame_free(self.0.as_ptr()) }
    }
}

/// Frames in order, put in and taken out in any context.
///
/// The locks of all queues are one class to lockdep. That hides nothing, and is no false alarm:
/// no lock is taken, and nothing is freed, while one of these is held.
#[pin_data(PinnedDrop)]
pub(crate) struct Queue {
    #[pin]
    head: Opaque<bindings::sk_buff_head>,
}

// SAFETY: The queue has a lock of its own, and frames may go to any thread.
unsafe impl Send for Queue {}
// SAFETY: A shared reference takes the queue's own lock for whatever it does.
unsafe impl Sync for Queue {}

impl Queue {
    /// Creates an empty queue.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            // SAFETY: The slot is ours to initialise.
            head <- Opaque::ffi_init(|slot| unsafe { bindings::softib_queue_init(slot) }),
        })
    }

    /// Puts a frame at the end.
    pub(crate) fn push(&self, frame: Frame) {
        // SAFETY: The queue is initialised and has a lock; the frame's ownership goes to it.
        unsafe { bindings::skb_queue_tail(self.head.get(), frame.into_raw()) }
    }

    /// Takes the first frame.
    pub(crate) fn pop(&self) -> Option<Frame> {
        // SAFETY: The queue is initialised and has a lock.
        let skb = unsafe { bindings::skb_dequeue(self.head.get()) };
        // INVARIANT: Only frames were put in, and with it comes its ownership.
        NonNull::new(skb).map(Frame)
    }

    /// Runs `each` on the first frames, of which it takes `most` at the most: others may put frames
    /// in as fast as they go. Returns how many it took.
    pub(crate) fn take(&self, most: usize, mut each: impl FnMut(Frame)) -> usize {
        let mut taken = 0;
        while taken < most {
            let Some(frame) = self.pop() else {
                break;
            };
            each(frame);
            taken += 1;
        }
        taken
    }

    /// Returns how many frames there were a moment ago.
    pub(crate) fn len(&self) -> u32 {
        // SAFETY: The queue is initialised.
        unsafe { bindings::softib_queue_length(self.head.get()) }
    }

    /// Returns whether there was no frame a moment ago.
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: The queue is initialised.
        unsafe { bindings::softib_queue_is_empty(self.head.get()) }
    }
}

#[pinned_drop]
impl PinnedDrop for Queue {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The queue is initialised and what is in it is its own.
        unsafe { bindings::softib_queue_purge(self.head.get()) }
    }
}

#[kernel::prelude::kunit_tests(softib_frame)]
mod tests {
    use super::*;

    /// Returns the number of further switches that a frame passes.
    fn passed(frame: &mut Frame) -> usize {
        (0..1000).take_while(|_| frame.come_to_switch()).count()
    }

    #[test]
    fn a_circle_of_switches_has_an_end() -> Result {
        let most = usize::from(MAX_SWITCHES);
        let mut frame = Frame::new(64)?;
        assert!(frame.come_to_switch());
        // A packet to a group is copied in a switch.
        let mut copy = frame.try_clone()?;
        assert_eq!(passed(&mut frame), most - 1);
        assert!(!frame.come_to_switch());
        assert_eq!(passed(&mut copy), most - 1);
        drop((frame, copy));
        assert_eq!(passed(&mut Frame::new(64)?), most);
        Ok(())
    }

    #[test]
    fn a_queue_that_is_filled_meanwhile_is_left() -> Result {
        let queue = KBox::pin_init(Queue::new(), GFP_KERNEL)?;
        queue.push(Frame::new(64)?);
        // Each frame that is taken is put in again, but not for ever.
        let mut left = 1000;
        let taken = queue.take(8, |frame| {
            if left > 0 {
                left -= 1;
                queue.push(frame);
            }
        });
        assert_eq!(taken, 8);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.take(8, drop), 1);
        assert!(queue.is_empty());
        Ok(())
    }
}
