// SPDX-License-Identifier: GPL-2.0-only

//! Management datagrams (MADs): receiving those of a class, sending them.
//!
//! A [`Registration`] receives; while it lives, its handler's [`Sender`] is open. A closed sender
//! refuses to send, so that its holder need not know when the device goes.

use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    }, //
};

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        rcu,
        Arc, //
    }, //
};

use super::{
    device::Device,
    gid::Entry,
    port::PortNumber,
    route::AddressVector, //
};
use crate::{
    bindings,
    wire::{
        gid::Gid,
        grh::Grh, //
    }, //
};

/// Bytes of a management datagram (IBTA 13.4.2).
pub(crate) const LEN: usize = 256;

/// A class of management datagrams.
#[derive(Clone, Copy)]
pub(crate) struct Class {
    /// Management class (IBTA 13.4.4).
    pub(crate) class: u8,
    /// Version of the class.
    pub(crate) version: u8,
    /// The methods of the datagrams that are wanted.
    pub(crate) methods: &'static [u8],
}

/// A user of a class of management datagrams on a port.
pub(crate) trait Handler: Send + Sync + Sized + 'static {
    /// The handler's own sender, opened by its registration.
    fn sender(&self) -> &Sender<Self>;

    /// Handles a datagram of the class that came. Called in process context, one at a time for
    /// each port; the port receives nothing else until it returns.
    fn received(self: &Arc<Self>, mad: Received);
}

/// The reasons for which a class is not registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RegisterError {
    /// Another user has the class on this port.
    Taken,
    /// The MAD layer failed for another reason.
    Failed(Error),
}

impl From<Error> for RegisterError {
    fn from(error: Error) -> Self {
        // The parameters are right, so `EINVAL` says what `EBUSY` should.
        if error == EINVAL || error == EBUSY {
            Self::Taken
        } else {
            Self::Failed(error)
        }
    }
}

/// The registration of a class on a port. Dropping it closes the handler's sender, waits for the
/// end of all messages and until the handler is not running.
///
/// # Invariants
///
/// `agent` is registered, with `handler` for its context.
pub(crate) struct Registration<H: Handler> {
    agent: NonNull<bindings::ib_mad_agent>,
    handler: Arc<H>,
}

// SAFETY: The registration does nothing but live and end, in any thread.
unsafe impl<H: Handler> Send for Registration<H> {}
// SAFETY: A shared reference gives access to the handler at most, and `H: Sync`.
unsafe impl<H: Handler> Sync for Registration<H> {}

impl<H: Handler> Registration<H> {
    /// Registers `handler` for `class` on `port`, and opens its sender. Sleeps.
    ///
    /// # Errors
    ///
    /// [`RegisterError::Taken`] if another user has the class, or if the handler's sender is open
    /// already; the MAD layer's error.
    pub(crate) fn new(
        device: &Device,
        port: PortNumber,
        class: Class,
        handler: Arc<H>,
    ) -> Result<Self, RegisterError> {
        let mut request = bindings::ib_mad_reg_req {
            mgmt_class: class.class,
            mgmt_class_version: class.version,
            ..bindings::ib_mad_reg_req::default()
        };
        for &method in class.methods {
            let word = usize::from(method) / usize::BITS as usize;
            let mask = request.method_mask.get_mut(word).ok_or(ERANGE)?;
            *mask |= 1 << (usize::from(method) % usize::BITS as usize);
        }
        // SAFETY: The device is registered and has that port. The handler outlives the agent: the
        // value made below holds it until the agent was unregistered.
        let agent = unsafe {
            bindings::ib_register_mad_agent(
                device.as_raw(),
                port.get(),
                bindings::ib_qp_type_IB_QPT_GSI,
                &mut request,
                0,
                Some(sent),
                Some(received::<H>),
                Arc::as_ptr(&handler).cast_mut().cast(),
                0,
            )
        };
        let agent = kernel::error::from_err_ptr(agent)?;
        // INVARIANT: Just registered.
        let this = Self {
            agent: NonNull::new(agent).ok_or(ENOMEM)?,
            handler,
        };
        // INVARIANT (of `Sender`): Closed below, before the agent is unregistered.
        this.handler
            .sender()
            .agent
            .compare_exchange(
                core::ptr::null_mut(),
                agent,
                Ordering::Release,
                Ordering::Relaxed,
            )
            .map_err(|_| EBUSY)?;
        Ok(this)
    }
}

impl<H: Handler> Drop for Registration<H> {
    fn drop(&mut self) {
        // Leaves a sender alone that belongs to another registration (the error path of `new`).
        let _ = self.handler.sender().agent.compare_exchange(
            self.agent.as_ptr(),
            core::ptr::null_mut(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        // SAFETY: Called outside of RCU read-side sections, as is all that may sleep. After it
        // nobody uses the agent by the pointer that was in the sender.
        unsafe { bindings::synchronize_rcu() };
        // SAFETY: By the type invariant registered. Messages hold references of their own, which
        // this waits for.
        unsafe { bindings::ib_unregister_mad_agent(self.agent.as_ptr()) };
    }
}

/// Sends a handler's messages, while it is registered.
///
/// # Invariants
///
/// Null, or an agent registered for `H`, which is unregistered an RCU grace period after this
/// became null.
pub(crate) struct Sender<H: Handler> {
    agent: AtomicPtr<bindings::ib_mad_agent>,
    _handler: PhantomData<fn(&H)>,
}

impl<H: Handler> Sender<H> {
    /// Makes one that is closed.
    pub(crate) const fn new() -> Self {
        // INVARIANT: Null.
        Self {
            agent: AtomicPtr::new(core::ptr::null_mut()),
            _handler: PhantomData,
        }
    }

    /// Runs `using` with the agent, which is registered meanwhile. `using` does not sleep.
    fn with_agent<R>(
        &self,
        using: impl FnOnce(NonNull<bindings::ib_mad_agent>) -> Result<R>,
    ) -> Result<R> {
        let _guard = rcu::read_lock();
        using(NonNull::new(self.agent.load(Ordering::Acquire)).ok_or(ENODEV)?)
    }

    /// The upper half of the transaction ids of messages that ask (IBTA 13.4.6.4), by which the
    /// MAD layer knows its users.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the sender is closed.
    pub(crate) fn transaction_prefix(&self) -> Result<u32> {
        // SAFETY: The agent is registered, and this does not change.
        self.with_agent(|agent| Ok(unsafe { (*agent.as_ptr()).hi_tid }))
    }

    /// Makes a message, all zeros, to queue pair `qpn` at `destination`. Does not sleep.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the sender is closed, `EINVAL` if `destination` is of another device; the
    /// device's error, `ENOMEM`.
    pub(crate) fn message(&self, destination: &AddressVector, qpn: u32) -> Result<Message<H>> {
        self.with_agent(|agent| {
            // SAFETY: The agent is registered; its device and queue pair live as long.
            let (device, pd) = unsafe {
                let agent = agent.as_ptr();
                ((*agent).device, (*(*agent).qp).pd)
            };
            // SAFETY: The protection domain is the port's own, which ends after all agents.
            let ah = unsafe { destination.create_handle(device, pd) }?;
            // SAFETY: The agent is registered.
            let buffer = unsafe {
                bindings::oxib_create_send_mad(agent.as_ptr(), qpn, destination.pkey_index())
            };
            let buffer = kernel::error::from_err_ptr(buffer)
                .and_then(|buffer| NonNull::new(buffer).ok_or(ENOMEM))
                .inspect_err(|_| {
                    // SAFETY: Just created, and named by nothing.
                    unsafe {
                        bindings::rdma_destroy_ah_user(ah.as_ptr(), 0, core::ptr::null_mut())
                    };
                })?;
            // SAFETY: The buffer is ours.
            unsafe { (*buffer.as_ptr()).ah = ah.as_ptr() };
            // INVARIANT: Just created, with an address handle of its own.
            Ok(Message {
                buffer,
                _handler: PhantomData,
            })
        })
    }
}

/// A message that is being written.
///
/// # Invariants
///
/// `buffer` is a send buffer of an agent registered for `H`, not posted, with an address handle
/// of its own. It holds a reference to the agent.
pub(crate) struct Message<H: Handler> {
    buffer: NonNull<bindings::ib_mad_send_buf>,
    _handler: PhantomData<fn(&H)>,
}

// SAFETY: Send buffers belong to no thread.
unsafe impl<H: Handler> Send for Message<H> {}

impl<H: Handler> Message<H> {
    /// The whole datagram, headers included.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; LEN] {
        // SAFETY: By the type invariant the buffer is valid and ours; the MAD layer allocates a
        // whole datagram for it.
        unsafe { &mut *(*self.buffer.as_ptr()).mad.cast() }
    }

    /// Sends it, once. Does not sleep. The caller does not learn whether it went out: callers
    /// that need an answer repeat their requests.
    ///
    /// # Errors
    ///
    /// The error of the MAD layer.
    pub(crate) fn post(self) -> Result {
        let buffer = self.buffer.as_ptr();
        // SAFETY: By the type invariant the buffer is valid and ours.
        unsafe {
            (*buffer).timeout_ms = 0;
            (*buffer).retries = 0;
        }
        // SAFETY: By the type invariant the buffer is valid and ours, and its agent is alive. If
        // posting it works it belongs to the MAD layer.
        kernel::error::to_result(unsafe {
            bindings::ib_post_send_mad(buffer, core::ptr::null_mut())
        })?;
        core::mem::forget(self);
        Ok(())
    }
}

impl<H: Handler> Drop for Message<H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the buffer is ours and not posted. Perhaps a lock is held.
        unsafe { free(self.buffer.as_ptr(), 0) };
    }
}

/// Frees a send buffer and its address handle.
///
/// # Safety
///
/// The buffer belongs to the caller, as does its address handle, which is ended as `flags` say.
unsafe fn free(buffer: *mut bindings::ib_mad_send_buf, flags: u32) {
    // SAFETY: The caller gives the buffer and its address handle. The address handle ends first:
    // the buffer's reference to the agent keeps its protection domain.
    unsafe {
        bindings::rdma_destroy_ah_user((*buffer).ah, flags, core::ptr::null_mut());
        bindings::ib_free_send_mad(buffer);
    }
}

/// Frees a message that went out, or will not.
///
/// # Safety
///
/// Called by the MAD layer in process context, for a message of [`Message::post`], which belongs
/// to us now.
unsafe extern "C" fn sent(
    _agent: *mut bindings::ib_mad_agent,
    completion: *mut bindings::ib_mad_send_wc,
) {
    // SAFETY: The MAD layer gives us the buffer of a message that is over; this is process
    // context.
    unsafe {
        let buffer = (*completion).send_buf;
        free(
            buffer,
            bindings::rdma_destroy_ah_flags_RDMA_DESTROY_AH_SLEEPABLE,
        );
    }
}

/// The C face of [`Handler::received`].
///
/// # Safety
///
/// Called by the MAD layer in process context, with an agent registered for `H`, and a datagram
/// that belongs to us now.
unsafe extern "C" fn received<H: Handler>(
    agent: *mut bindings::ib_mad_agent,
    _asked: *mut bindings::ib_mad_send_buf,
    completion: *mut bindings::ib_mad_recv_wc,
) {
    let Some(completion) = NonNull::new(completion) else {
        return;
    };
    // SAFETY: The MAD layer gives an agent registered for `H`. By the invariant of `Registration`
    // the context is the handler, which outlives the agent. The reference that is made here is not
    // given up: it is the registration's.
    let handler = unsafe { Arc::from_raw((*agent).context.cast::<H>().cast_const()) };
    let handler = ManuallyDrop::new(handler);
    // INVARIANT: The MAD layer gives a valid datagram, which belongs to us now.
    handler.received(Received(completion));
}

/// A datagram that was received, with what its completion says of its way.
///
/// # Invariants
///
/// The pointer is a valid receive of the MAD layer's, which belongs to this value.
pub(crate) struct Received(NonNull<bindings::ib_mad_recv_wc>);

// SAFETY: Receives belong to no thread.
unsafe impl Send for Received {}
// SAFETY: What is shared is read only.
unsafe impl Sync for Received {}

impl Received {
    /// The whole datagram, headers included.
    pub(crate) fn bytes(&self) -> &[u8; LEN] {
        // SAFETY: By the type invariant valid; the MAD layer's buffers have room for a whole
        // datagram and are zeroed.
        unsafe { &*(*self.0.as_ptr()).recv_buf.__bindgen_anon_1.mad.cast() }
    }

    pub(super) fn completion(&self) -> &bindings::ib_wc {
        // SAFETY: By the type invariant valid; it does not change.
        unsafe { &*(*self.0.as_ptr()).wc }
    }

    pub(super) fn grh_ptr(&self) -> *const bindings::ib_grh {
        // SAFETY: By the type invariant valid.
        unsafe { (*self.0.as_ptr()).recv_buf.grh }
    }

    /// The sender's LID; on RoCE 0.
    pub(crate) fn slid(&self) -> u32 {
        self.completion().slid
    }

    /// The service level it came by.
    pub(crate) fn sl(&self) -> u8 {
        self.completion().sl
    }

    /// The low bits of the LID that it came to.
    pub(crate) fn dlid_path_bits(&self) -> u8 {
        self.completion().dlid_path_bits
    }

    /// Index of the datagram's P_Key in the port's table.
    pub(crate) fn pkey_index(&self) -> u16 {
        self.completion().pkey_index
    }

    /// The sender's GID, if it came with a global route header, or on RoCE an IP header.
    pub(crate) fn source(&self) -> Option<Gid> {
        let mut gid = bindings::ib_gid::default();
        // SAFETY: By the type invariant valid; the GID is ours.
        let is_known =
            unsafe { bindings::oxib_source_gid(self.completion(), self.grh_ptr(), &mut gid) };
        // SAFETY: `raw` is the union's plain view.
        is_known.then(|| Gid::from_bytes(unsafe { gid.raw }))
    }

    /// The entry of the GID table of `port` of `device` that it was sent to, on RoCE.
    ///
    /// # Errors
    ///
    /// `EPROTOTYPE` without a header, `ENOENT` if the port does not have such a GID (any more).
    pub(super) fn destination_entry(
        &self,
        device: &Device,
        port: PortNumber,
    ) -> Result<ARef<Entry>> {
        // SAFETY: By the type invariant valid; the device is registered and has that port.
        let entry = unsafe {
            bindings::oxib_roce_destination(
                device.as_raw(),
                port.get(),
                self.completion(),
                self.grh_ptr(),
            )
        };
        let entry = kernel::error::from_err_ptr(entry.cast_mut())?;
        // SAFETY: A valid entry of the device; its count was raised for us.
        Ok(unsafe { Entry::from_counted(device, NonNull::new(entry).ok_or(ENOENT)?) })
    }

    /// Returns whether it came with a global route header, as always on RoCE.
    pub(crate) fn has_grh(&self) -> bool {
        self.completion().wc_flags as u32 & bindings::ib_wc_flags_IB_WC_GRH != 0
    }

    /// The bytes where a global route header is, if there is one. On RoCE v2 over IPv4 they are
    /// none, but an IPv4 header in the last 20 bytes: there [`Received::source`] knows the
    /// address.
    pub(crate) fn grh(&self) -> Option<&Grh> {
        if !self.has_grh() {
            return None;
        }
        // SAFETY: By the type invariant valid; all receives have 40 bytes for the header.
        Some(Grh::from_bytes(unsafe { &*self.grh_ptr().cast() }))
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // SAFETY: By the type invariant it is ours.
        unsafe { bindings::ib_free_recv_mad(self.0.as_ptr()) };
    }
}
