// SPDX-License-Identifier: GPL-2.0-only

//! NAPI: a poll that runs after a device's event, and data that only the poll touches.

use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};

use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use super::{
    device::{
        Device,
        Operations, //
    },
    rtnl::Held,
    skb::Skb, //
};
use crate::bindings;

/// The poll function of a queue, with its state.
pub(crate) trait Poll: Send + Sized + 'static {
    /// Handles at most `budget` events (0: only what needs no budget) and returns how many it
    /// handled. If that is less than `budget`, it has called [`Context::complete`].
    ///
    /// From that call on another CPU may run the next poll. What follows it reads what no poll
    /// changes, as the reference to a completion queue to be armed, and changes nothing.
    fn poll(&mut self, context: &Context<'_>, budget: usize) -> usize;
}

/// The queue that a NAPI instance polls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    /// Receive queue of that number, which netlink shows it with. Its settings outlast it.
    Receive(u32),
    /// Receive completions of another queue, which netlink does not show.
    Arrivals,
    /// Completions of packets that were sent.
    Transmit,
}

impl Polled {
    fn queue(self) -> u32 {
        match self {
            Self::Receive(queue) => queue,
            Self::Arrivals | Self::Transmit => bindings::OXIB_NO_QUEUE,
        }
    }
}

/// Shows that the code runs in the poll of a NAPI instance.
///
/// # Invariants
///
/// The pointer is an instance; its poll runs, on this CPU, for `'a`.
pub(crate) struct Context<'a>(*mut bindings::napi_struct, PhantomData<&'a ()>);

impl Context<'_> {
    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.0
    }

    /// Ends the polling: the next event starts it again. Returns whether events should be armed.
    #[inline]
    pub(crate) fn complete(&self, done: usize) -> bool {
        // SAFETY: By the type invariant this is the running poll of a valid instance.
        unsafe { bindings::napi_complete_done(self.0, done as i32) }
    }

    /// Starts the poll again after [`Self::complete`], for events that came in between.
    pub(crate) fn reschedule(&self) {
        // SAFETY: By the type invariant the instance is valid.
        unsafe { bindings::oxib_napi_schedule(self.0) }
    }

    /// Hands a received packet to the stack, merged with others of its flow where possible.
    #[inline]
    pub(crate) fn receive(&self, packet: Skb) {
        // SAFETY: By the type invariant this is the running poll of a valid instance; the packet
        // is ours to give.
        unsafe { bindings::gro_receive_skb(bindings::oxib_napi_gro(self.0), packet.into_raw()) };
    }
}

/// An instance and what its poll works on.
///
/// # Invariants
///
/// `state` is touched by polls alone while the instance is enabled: by one at a time, but for what
/// [`Poll::poll`] allows after [`Context::complete`]. While the instance is disabled and all polls
/// have returned, it is touched by the owner alone (the one [`Napi`]).
#[pin_data]
pub(crate) struct Instance<P: Poll> {
    #[pin]
    napi: Opaque<bindings::napi_struct>,
    state: UnsafeCell<Option<P>>,
}

// SAFETY: By the type invariant one thread at a time changes `state`, while no other one reads what
// it changes. It may move between threads as `P: Send`; the C part is made for all CPUs.
unsafe impl<P: Poll> Sync for Instance<P> {}
// SAFETY: By the type invariant one thread at a time changes `state`, which may move between
// threads as `P: Send`; the C part is made for all CPUs.
unsafe impl<P: Poll> Send for Instance<P> {}

impl<P: Poll> Instance<P> {
    /// Starts the poll soon, on this CPU. Callable from any context, by any number of callers; a
    /// disabled instance ignores it.
    #[inline]
    pub(crate) fn schedule(&self) {
        // SAFETY: The instance was initialised by `Napi::new` and is valid while `self` is.
        unsafe { bindings::oxib_napi_schedule(self.napi.get()) }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.napi.get()
    }
}

/// The owner of a NAPI instance, in its disabled or enabled state.
///
/// The net device knows the instance while it is enabled: the stack wants those of a device to be
/// enabled in the order in which it got to know them.
///
/// # Invariants
///
/// If `enabled`, the instance is registered with `device` and enabled, else neither. This is its
/// only owner.
pub(crate) struct Napi<P: Poll, T: Operations> {
    instance: Arc<Instance<P>>,
    enabled: bool,
    polled: Polled,
    device: Device<T>,
}

impl<P: Poll, T: Operations> Napi<P, T> {
    /// Makes a disabled instance.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: &Device<T>, polled: Polled) -> Result<Self> {
        let instance = Arc::pin_init(
            pin_init!(Instance::<P> {
                napi <- Opaque::ffi_init(|slot: *mut bindings::napi_struct| {
                    // SAFETY: The slot is valid for writes.
                    unsafe { bindings::oxib_napi_init(slot) }
                }),
                state: UnsafeCell::new(None),
            }),
            GFP_KERNEL,
        )?;
        // INVARIANT: Just made.
        Ok(Self {
            instance,
            enabled: false,
            polled,
            device: device.clone(),
        })
    }

    /// The instance, for whatever schedules it.
    pub(crate) fn instance(&self) -> &Arc<Instance<P>> {
        &self.instance
    }

    /// Gives the poll its state and lets it run, once at once and then after each event.
    pub(crate) fn enable(&mut self, held: Held<'_>, state: P) {
        self.disable(held);
        // SAFETY: Disabled, so by the type invariant of `Instance` the owner may touch the state.
        unsafe { *self.instance.state.get() = Some(state) };
        let (device, napi) = (self.device.as_raw(), self.instance.as_raw());
        // SAFETY: The device is valid and lives until the instance is deleted (`device`), and the
        // instance is pinned in its `Arc`, initialised and not registered, by the type invariant.
        // `poll::<P>` expects just this container. The RTNL is held.
        unsafe {
            match self.polled {
                Polled::Transmit => bindings::oxib_napi_start_tx(device, napi, Some(poll::<P>)),
                polled => bindings::oxib_napi_start(device, napi, Some(poll::<P>), polled.queue()),
            }
        }
        // INVARIANT: Done above.
        self.enabled = true;
        // Events that came while it was disabled were not heard.
        self.instance.schedule();
    }

    /// Waits for the end of the poll, stops it for good and takes its state back. Sleeps.
    pub(crate) fn disable(&mut self, _held: Held<'_>) -> Option<P> {
        if self.enabled {
            // SAFETY: The instance is registered and enabled, the RTNL held. The call waits until a
            // running poll is completed, and then, by a grace period, until it has returned and
            // nobody uses the instance.
            unsafe { bindings::oxib_napi_end(self.instance.as_raw(), self.polled.queue()) };
            // INVARIANT: Done above.
            self.enabled = false;
        }
        // SAFETY: Disabled, so by the type invariant of `Instance` the owner may touch the state.
        unsafe { (*self.instance.state.get()).take() }
    }

    /// Stops the poll for the time of `change`; the net device goes on knowing it, with its
    /// settings. Sleeps; `change` runs with the device's lock held.
    pub(crate) fn update(&mut self, _held: Held<'_>, change: impl FnOnce(&mut P)) {
        if !self.enabled {
            return;
        }
        // SAFETY: The instance is registered and enabled, the RTNL held. The call waits until a
        // running poll is completed, and then until it has returned: polls run with bottom halves
        // off, for which a grace period waits.
        unsafe { bindings::oxib_napi_pause(self.instance.as_raw()) };
        // SAFETY: Disabled, and all polls have returned, so by the type invariant of `Instance` the
        // owner may touch the state.
        if let Some(state) = unsafe { &mut *self.instance.state.get() } {
            change(state);
        }
        // SAFETY: The instance is registered, and `oxib_napi_pause` was called above.
        unsafe { bindings::oxib_napi_resume(self.instance.as_raw()) };
        // Events that came while it was disabled were not heard.
        self.instance.schedule();
    }
}

impl<P: Poll, T: Operations> Drop for Napi<P, T> {
    fn drop(&mut self) {
        if self.enabled {
            // Not without the RTNL: the device keeps what it knows.
            core::mem::forget((self.instance.clone(), self.device.clone()));
        }
    }
}

/// The C face of [`Poll::poll`].
///
/// # Safety
///
/// `napi` is the one inside an [`Instance<P>`], and its poll runs.
unsafe extern "C" fn poll<P: Poll>(napi: *mut bindings::napi_struct, budget: i32) -> i32 {
    // SAFETY: The stack polls the `napi` inside an `Instance<P>`; `Opaque` is transparent.
    let instance: *mut Instance<P> =
        unsafe { kernel::container_of!(Opaque::cast_from(napi).cast_mut(), Instance<P>, napi) };
    // SAFETY: The instance is enabled, as its poll runs; so by its invariant polls alone touch the
    // state. The next one begins once this one has called `complete` at the earliest, and from then
    // on this one only reads what none changes.
    let state = unsafe { &mut *(*instance).state.get() };
    // INVARIANT: This is the poll of `napi`.
    let context = Context(napi, PhantomData);
    match state {
        Some(state) => state.poll(&context, budget as usize) as i32,
        None => {
            context.complete(0);
            0
        }
    }
}
