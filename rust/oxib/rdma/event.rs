// SPDX-License-Identifier: GPL-2.0-only

//! Events of an RDMA device's ports.

use kernel::{
    prelude::*,
    sync::aref::ARef,
    types::Opaque, //
};

use super::device::Device;
use crate::bindings;

/// Asynchronous events of a device or a port, as far as listeners need them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// The port went down, or its P_Keys or speed changed.
    Port(u32),
    /// The port went up, or has another LID.
    Subnet(u32),
    /// The port's subnet has another subnet manager, or the port's clients have to register
    /// again. All ports of the subnet report this at once.
    Handover(u32),
    /// The port's GID table changed.
    Gids(u32),
    /// The device failed as a whole.
    Device,
}

/// A receiver of a device's events. Called in process context.
pub(crate) trait Listener: Send + Sync + 'static {
    /// An event of the device.
    fn event(&self, event: Event);
}

/// A listener's registration. Dropping it waits until the listener is not running.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<L: Listener> {
    #[pin]
    handler: Opaque<bindings::ib_event_handler>,
    listener: L,
    _device: ARef<Device>,
}

// SAFETY: The registration does nothing but live and end, in any thread.
unsafe impl<L: Listener> Send for Registration<L> {}
// SAFETY: A shared reference gives access to the listener at most, and `L: Sync`.
unsafe impl<L: Listener> Sync for Registration<L> {}

impl<L: Listener> Registration<L> {
    /// Registers `listener` for the events of `device`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: &Device, listener: L) -> Result<Pin<KBox<Self>>> {
        let device = ARef::from(device);
        let this = KBox::pin_init(
            pin_init!(Self {
                handler <- Opaque::ffi_init(|slot: *mut bindings::ib_event_handler| {
                    // SAFETY: The slot is ours.
                    unsafe { slot.write(pin_init::zeroed()) };
                }),
                listener,
                _device: device,
            }),
            GFP_KERNEL,
        )?;
        let handler = this.handler.get();
        // SAFETY: Pinned and ours; the list head is made by the registration.
        unsafe {
            (*handler).device = this._device.as_raw();
            (*handler).handler = Some(handle::<L>);
            bindings::ib_register_event_handler(handler);
        }
        Ok(this)
    }
}

#[pinned_drop]
impl<L: Listener> PinnedDrop for Registration<L> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`, and the device is still there.
        unsafe { bindings::ib_unregister_event_handler(self.handler.get()) };
    }
}

/// The C face of [`Listener::event`].
///
/// # Safety
///
/// Called by `ib_core` with the handler inside a [`Registration<L>`] and a valid event.
unsafe extern "C" fn handle<L: Listener>(
    handler: *mut bindings::ib_event_handler,
    event: *mut bindings::ib_event,
) {
    // SAFETY: `ib_core` gives the handler inside a `Registration<L>`; unregistering waits for us.
    let this = unsafe {
        let handler = Opaque::cast_from(handler);
        &*kernel::container_of!(handler.cast_mut(), Registration<L>, handler)
    };
    // SAFETY: `ib_core` gives a valid event.
    let (kind, port) = unsafe { ((*event).event, (*event).element.port_num) };
    let event = match kind {
        bindings::ib_event_type_IB_EVENT_PORT_ERR
        | bindings::ib_event_type_IB_EVENT_PKEY_CHANGE
        | bindings::ib_event_type_IB_EVENT_DEVICE_SPEED_CHANGE => Event::Port(port),
        bindings::ib_event_type_IB_EVENT_PORT_ACTIVE
        | bindings::ib_event_type_IB_EVENT_LID_CHANGE => Event::Subnet(port),
        bindings::ib_event_type_IB_EVENT_SM_CHANGE
        | bindings::ib_event_type_IB_EVENT_CLIENT_REREGISTER => Event::Handover(port),
        bindings::ib_event_type_IB_EVENT_GID_CHANGE => Event::Gids(port),
        bindings::ib_event_type_IB_EVENT_DEVICE_FATAL => Event::Device,
        _ => return,
    };
    this.listener.event(event);
}
