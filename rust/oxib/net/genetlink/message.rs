// SPDX-License-Identifier: GPL-2.0-only

//! Messages, as they are written.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    fmt,
    prelude::*, //
};

use super::Protocol;
use crate::{
    bindings,
    net::extack::ExtendedAck, //
};

/// A packet that a message is to be written to.
///
/// # Invariants
///
/// The pointer is valid, and ours.
pub(super) struct Packet(NonNull<bindings::sk_buff>);

impl Packet {
    /// Allocates an empty packet. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        // SAFETY: A plain allocation.
        let raw = unsafe { bindings::oxib_genl_new() };
        // INVARIANT: Just allocated.
        NonNull::new(raw).map(Self).ok_or(ENOMEM)
    }

    /// Writes a message, with the headers of netlink and of the family.
    ///
    /// # Errors
    ///
    /// The errors of `fill`.
    ///
    /// # Safety
    ///
    /// `info` is null or that of the request to be answered; `family` is complete.
    pub(super) unsafe fn fill(
        &self,
        info: *const bindings::genl_info,
        family: *const bindings::genl_family,
        command: u8,
        fill: impl FnOnce(&mut Message<'_>) -> Result,
    ) -> Result {
        let skb = self.0.as_ptr();
        // SAFETY: By the type invariant the packet is valid and ours; the caller gives null or the
        // request to be answered, and a complete family.
        let header = unsafe { bindings::oxib_genl_put(skb, info, family, command, false) };
        if header.is_null() {
            return Err(EMSGSIZE);
        }
        fill(&mut Message(skb, PhantomData))?;
        // SAFETY: By the type invariant the packet is valid and ours; the header is that of the
        // message begun above.
        unsafe { bindings::oxib_genl_end(skb, header) };
        Ok(())
    }

    /// The packet, for the kernel to own.
    pub(super) fn into_raw(self) -> *mut bindings::sk_buff {
        core::mem::ManuallyDrop::new(self).0.as_ptr()
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::oxib_nlmsg_free(self.0.as_ptr()) };
    }
}

/// A message that attributes are written to. What does not fit fails with `EMSGSIZE`.
///
/// # Invariants
///
/// The pointer is valid for `'a`, and nobody else's.
pub(crate) struct Message<'a>(*mut bindings::sk_buff, PhantomData<&'a mut ()>);

impl Message<'_> {
    /// Writes attribute `number` with the bytes of `value`.
    pub(crate) fn put(&mut self, number: u16, value: &[u8]) -> Result {
        let length = i32::try_from(value.len()).map_err(|_| EMSGSIZE)?;
        // SAFETY: By the type invariant; the value is as long as that, and copied.
        to_result(unsafe {
            bindings::nla_put(self.0, number.into(), length, value.as_ptr().cast())
        })
    }

    /// Writes a number of one byte.
    pub(crate) fn put_u8(&mut self, number: u16, value: u8) -> Result {
        self.put(number, &[value])
    }

    /// Writes a number of two bytes.
    pub(crate) fn put_u16(&mut self, number: u16, value: u16) -> Result {
        self.put(number, &value.to_ne_bytes())
    }

    /// Writes a number of four bytes.
    pub(crate) fn put_u32(&mut self, number: u16, value: u32) -> Result {
        self.put(number, &value.to_ne_bytes())
    }

    /// Writes a number of eight bytes; `pad` is the number of attributes that align it.
    pub(crate) fn put_u64(&mut self, number: u16, value: u64, pad: u16) -> Result {
        let bytes = value.to_ne_bytes();
        // SAFETY: By the type invariant; the value is copied.
        to_result(unsafe {
            bindings::nla_put_64bit(self.0, number.into(), 8, bytes.as_ptr().cast(), pad.into())
        })
    }

    /// Writes text, with a NUL at its end.
    pub(crate) fn put_text(&mut self, number: u16, text: &CStr) -> Result {
        self.put(number, text.to_bytes_with_nul())
    }

    /// Writes an attribute with attributes in it.
    pub(crate) fn nest(
        &mut self,
        number: u16,
        fill: impl FnOnce(&mut Message<'_>) -> Result,
    ) -> Result {
        // SAFETY: By the type invariant.
        let nest = unsafe { bindings::oxib_nest_start(self.0, number) };
        if nest.is_null() {
            return Err(EMSGSIZE);
        }
        fill(&mut Message(self.0, PhantomData))?;
        // SAFETY: By the type invariant the packet is valid and nobody else's; the nest was begun
        // in it above.
        unsafe { bindings::oxib_nest_end(self.0, nest) };
        Ok(())
    }
}

/// The part of a long answer that messages are written to, as many as fit.
///
/// # Invariants
///
/// Both pointers are those of a part of a dump, valid for `'a`.
pub(crate) struct Messages<'a, P> {
    skb: *mut bindings::sk_buff,
    callback: *mut bindings::netlink_callback,
    number: usize,
    is_paused: bool,
    _protocol: PhantomData<&'a mut P>,
}

impl<P: Protocol> Messages<'_, P> {
    /// Wraps a part of a dump that has no messages yet.
    ///
    /// # Safety
    ///
    /// `skb` and `callback` are those that the kernel gives to a part of a dump.
    pub(super) unsafe fn new(
        skb: *mut bindings::sk_buff,
        callback: *mut bindings::netlink_callback,
    ) -> Self {
        // INVARIANT: The caller gives both pointers as the kernel gave them to a part of a dump.
        Self {
            skb,
            callback,
            number: 0,
            is_paused: false,
            _protocol: PhantomData,
        }
    }

    /// Number of messages that were written to this part.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Ends this part after its messages, of which there is at least one: what is still to be said
    /// comes with the next part, when the requester has read this one.
    pub(crate) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Returns whether another part is to follow, although there may be room in this one.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Says why the answer ends with `error`, which is returned.
    pub(crate) fn refuse(&mut self, error: Error, text: fmt::Arguments<'_>) -> Error {
        // SAFETY: By the type invariant the callback is valid; the kernel sets its extack for this
        // part, which this thread alone writes.
        let mut extack = unsafe { ExtendedAck::from_raw((*self.callback).extack) };
        extack.refuse(error, text)
    }

    /// Bytes of this part.
    pub(super) fn length(&self) -> i32 {
        // SAFETY: By the type invariant.
        unsafe { (*self.skb).len as i32 }
    }

    /// Sets the generation of the data that the messages show. If it differs from that of earlier
    /// parts, the reader is told that the answer is inconsistent (`NLM_F_DUMP_INTR`).
    pub(crate) fn show_generation(&mut self, generation: u32) {
        // SAFETY: By the type invariant. Zero stands for none.
        unsafe { (*self.callback).seq = generation.max(1) };
    }

    /// Writes a message. Does not sleep.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` if it does not fit: nothing of it is written.
    pub(crate) fn message(
        &mut self,
        command: u8,
        fill: impl FnOnce(&mut Message<'_>) -> Result,
    ) -> Result {
        let family = P::family().raw.get();
        // SAFETY: By the type invariant; the family is registered while it is asked.
        let header = unsafe {
            let info = bindings::oxib_genl_dump_info(self.callback);
            bindings::oxib_genl_put(self.skb, info, family, command, true)
        };
        if header.is_null() {
            return Err(EMSGSIZE);
        }
        // SAFETY: By the type invariant the callback is valid; the header is this message's.
        unsafe { bindings::oxib_genl_check_consistent(self.callback, header) };
        if let Err(error) = fill(&mut Message(self.skb, PhantomData)) {
            // SAFETY: By the type invariant the packet is valid; the header is that of the message
            // in it.
            unsafe { bindings::oxib_genl_cancel(self.skb, header) };
            return Err(error);
        }
        // SAFETY: By the type invariant the packet is valid; the header is that of the message in
        // it.
        unsafe { bindings::oxib_genl_end(self.skb, header) };
        self.number += 1;
        Ok(())
    }
}
