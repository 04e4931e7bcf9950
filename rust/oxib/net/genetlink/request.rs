// SPDX-License-Identifier: GPL-2.0-only

//! A request: what it says, and answers to it.

use core::marker::PhantomData;

use kernel::{
    error::to_result,
    fmt,
    prelude::*,
    sync::Arc, //
};

use super::{
    message::{
        Message,
        Packet, //
    },
    Protocol, //
};
use crate::{
    bindings,
    net::{
        extack::ExtendedAck,
        namespace::{
            Handle,
            Member, //
        }, //
    }, //
};

/// A request of generic netlink.
///
/// # Invariants
///
/// `info` and `header` are those of a request that the kernel has checked, valid for `'a`.
pub(crate) struct Request<'a, P: Protocol> {
    info: *const bindings::genl_info,
    header: *const bindings::nlmsghdr,
    extack: ExtendedAck<'a>,
    raw_extack: *mut bindings::netlink_ext_ack,
    _protocol: PhantomData<&'a P>,
}

impl<'a, P: Protocol> Request<'a, P> {
    /// Wraps a request for one answer.
    ///
    /// # Safety
    ///
    /// A request that the kernel hands over, valid for `'a`.
    pub(super) unsafe fn of_do(info: *mut bindings::genl_info) -> Self {
        // INVARIANT: The caller gives a request that the kernel has checked and hands over, valid
        // for `'a`.
        // SAFETY: The request is valid for `'a`, and so are its header and its extack, which this
        // thread alone uses.
        unsafe {
            Self {
                info,
                header: (*info).nlhdr,
                extack: ExtendedAck::from_raw((*info).extack),
                raw_extack: (*info).extack,
                _protocol: PhantomData,
            }
        }
    }

    /// Wraps a request for many messages.
    ///
    /// # Safety
    ///
    /// A dump that the kernel begins, valid for `'a`.
    pub(super) unsafe fn of_dump(callback: *mut bindings::netlink_callback) -> Self {
        // INVARIANT: The caller gives the callback of a dump that the kernel begins, valid for
        // `'a`.
        // SAFETY: The callback is valid for `'a`, and so are its header and its extack, which this
        // thread alone uses.
        unsafe {
            Self {
                info: bindings::oxib_genl_dump_info(callback),
                header: (*callback).nlh,
                extack: ExtendedAck::from_raw((*callback).extack),
                raw_extack: (*callback).extack,
                _protocol: PhantomData,
            }
        }
    }

    /// The operation's number (`cmd` of the generic netlink header).
    pub(crate) fn command(&self) -> u8 {
        // SAFETY: By the type invariant.
        unsafe { bindings::oxib_genl_command(self.info) }
    }

    /// The bytes of the attributes, which the kernel has checked against the policy.
    pub(crate) fn attributes(&self) -> &'a [u8] {
        let mut length = 0;
        // SAFETY: By the type invariant; the message is as long as it says, and nobody writes to
        // it.
        unsafe {
            let first = bindings::oxib_genl_attributes(self.header, &mut length);
            core::slice::from_raw_parts(first.cast(), length as usize)
        }
    }

    /// The member of the namespace that the request came from.
    pub(crate) fn member<M: Member>(&self) -> Option<Arc<M>> {
        let _rcu = kernel::sync::rcu::read_lock();
        // SAFETY: By the type invariant; the socket keeps its namespace.
        unsafe { Handle::with(bindings::oxib_genl_net(self.info), Arc::clone) }
    }

    /// Returns the state of the request's socket, which lasts until the socket is closed. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn socket(&self) -> Result<Arc<P::Socket>> {
        // SAFETY: By the type invariant.
        let socket = unsafe {
            let net = bindings::oxib_genl_net(self.info);
            (net.addr(), (*self.info).snd_portid)
        };
        P::family().sockets().ok_or(EINVAL)?.get(socket)
    }

    /// Says why the request is refused with `error`, which is returned.
    pub(crate) fn refuse(&mut self, error: Error, text: fmt::Arguments<'_>) -> Error {
        self.extack.refuse(error, text)
    }

    /// Says something of a request that succeeds.
    pub(crate) fn note(&mut self, text: fmt::Arguments<'_>) {
        self.extack.note(text);
    }

    /// Says which attribute is at fault: where it begins, counted from the first.
    pub(crate) fn blame(&mut self, offset: usize) {
        if offset < self.attributes().len() {
            // SAFETY: By the type invariant; inside of the message.
            unsafe { bindings::oxib_extack_at(self.raw_extack, self.header, offset as u32) };
        }
    }

    /// Says which attribute is missing.
    pub(crate) fn miss(&mut self, number: u16) {
        // SAFETY: By the type invariant.
        unsafe { bindings::oxib_extack_missing(self.raw_extack, number) };
    }

    /// Answers with one message, of the request's own number.
    ///
    /// # Errors
    ///
    /// The errors of `fill`; `ENOMEM`; the kernel's error.
    pub(crate) fn reply(&self, fill: impl FnOnce(&mut Message<'_>) -> Result) -> Result {
        let packet = Packet::new()?;
        let family = P::family().raw.get();
        // SAFETY: By the type invariant; the family is registered while it is asked.
        unsafe { packet.fill(self.info, family, self.command(), fill) }?;
        // SAFETY: By the type invariant; the packet is the kernel's from now on.
        to_result(unsafe { bindings::oxib_genl_reply(packet.into_raw(), self.info) })
    }
}
