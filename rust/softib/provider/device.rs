// SPDX-License-Identifier: GPL-2.0-only

//! RDMA devices: making, registering and ending them.

use core::{
    ptr::null_mut,
    sync::atomic::{
        AtomicPtr,
        Ordering, //
    }, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    link,
    object::Object,
    operations,
    parent, //
};
use crate::{
    bindings,
    configfs::options::Taken,
    hca::{
        options::Options,
        peer::Membership,
        Hca, //
    },
    net::{
        cable::{
            Cable,
            NetDevice, //
        },
        line::Line, //
    }, //
};

/// The provider's part of an RDMA device.
struct Part {
    hca: Arc<Hca>,
    membership: Membership,
    cables: KVec<Pin<KBox<Cable<Hca>>>>,
    /// The hold on the device's options, which cannot be changed as long as it is there.
    _taken: Taken,
}

impl Part {
    /// Ends the device: nobody else has it afterwards, and nothing runs for it. Sleeps.
    fn end(self) {
        let Self {
            hca,
            membership,
            cables,
            ..
        } = self;
        // Work that this starts is ended below.
        drop(membership);
        // A device that found this one as its peer has let it go after the grace period.
        // SAFETY: Called where one may sleep.
        unsafe { bindings::synchronize_rcu() };
        drop(cables);
        hca.stop();
        hca.device.0.store(null_mut(), Ordering::Release);
    }
}

type Device = Object<bindings::ib_device, Part>;

/// The adapter of a device.
///
/// # Safety
///
/// `device` is one of ours, which is not freed during `'a`.
#[inline(always)]
pub(super) unsafe fn hca<'a>(device: *mut bindings::ib_device) -> &'a Arc<Hca> {
    // SAFETY: `device` is one of ours, so its part is there, for `'a`.
    unsafe { &Device::part(device).hca }
}

/// The kernel's device, as its adapter knows it.
///
/// # Invariants
///
/// Null, or a device that is not freed yet: it is nulled when all that could use it has ended.
/// Those are the works of the adapter, its cables, the verbs, a peer, and files that the
/// administrator writes to, which hold the lock that the end of its membership takes.
pub(crate) struct Handle(AtomicPtr<bindings::ib_device>);

/// An event of a device or a port that the kernel is told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    PortActive,
    PortDown,
    Lid,
    Pkeys,
    Gids,
    SubnetManager,
    Reregister,
    Fatal,
}

impl Event {
    fn number(self) -> bindings::ib_event_type {
        match self {
            Self::PortActive => bindings::ib_event_type_IB_EVENT_PORT_ACTIVE,
            Self::PortDown => bindings::ib_event_type_IB_EVENT_PORT_ERR,
            Self::Lid => bindings::ib_event_type_IB_EVENT_LID_CHANGE,
            Self::Pkeys => bindings::ib_event_type_IB_EVENT_PKEY_CHANGE,
            Self::Gids => bindings::ib_event_type_IB_EVENT_GID_CHANGE,
            Self::SubnetManager => bindings::ib_event_type_IB_EVENT_SM_CHANGE,
            Self::Reregister => bindings::ib_event_type_IB_EVENT_CLIENT_REREGISTER,
            Self::Fatal => bindings::ib_event_type_IB_EVENT_DEVICE_FATAL,
        }
    }
}

impl Handle {
    pub(crate) const fn new() -> Self {
        // INVARIANT: Null.
        Self(AtomicPtr::new(null_mut()))
    }

    /// Tells the kernel what happened to a port, while the device is registered. Any context.
    pub(crate) fn dispatch(&self, port: u8, event: Event) {
        let device = self.0.load(Ordering::Acquire);
        // SAFETY: By the type invariant the device is valid. The reference that is taken keeps it
        // registered, and what the event starts ends before the device does.
        unsafe {
            if device.is_null() || !bindings::softib_device_try_get(device) {
                return;
            }
            let mut message = bindings::ib_event {
                device,
                event: event.number(),
                ..Default::default()
            };
            message.element.port_num = port.into();
            bindings::ib_dispatch_event(&message);
            bindings::ib_device_put(device);
        }
    }

    /// Lets the kernel unregister the device soon. Returns `false` if the kernel cannot be asked
    /// just now: the device is not registered yet, or no longer, or is on its way to another
    /// network namespace.
    pub(crate) fn unregister(&self) -> bool {
        let device = self.0.load(Ordering::Acquire);
        // SAFETY: By the type invariant the device is valid. The reference that is taken keeps it
        // registered meanwhile; to unregister a device that another caller unregisters does
        // nothing.
        unsafe {
            if device.is_null() || !bindings::softib_device_try_get(device) {
                return false;
            }
            bindings::ib_unregister_device_queued(device);
            bindings::ib_device_put(device);
        }
        true
    }
}

/// Makes a device of a name, cables its ports to the net devices, and registers it. Sleeps.
///
/// # Errors
///
/// `EBUSY` if a net device is in use; `EEXIST` and others that `ib_core` has.
pub(super) fn add(name: &CStr, options: Options, taken: Taken, devices: &[NetDevice]) -> Result {
    let first = devices.first().ok_or(EINVAL)?;
    let mut lines = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
    let mut guids = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
    for device in devices {
        lines.push(Line::new()?, GFP_KERNEL)?;
        guids.push(device.guid(0), GFP_KERNEL)?;
    }
    let hca = Hca::new(options, name, &guids, lines)?;
    let cables = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
    let part = Part {
        hca: hca.clone(),
        // Last: a peer may use the device from now on, so it has to be ended as a whole.
        membership: Membership::new(name, &hca)?,
        cables,
        _taken: taken,
    };
    // SAFETY: The net device is valid, and with it its namespace.
    let device = unsafe {
        bindings::_ib_alloc_device(
            core::mem::size_of::<Device>(),
            bindings::softib_dev_net(first.as_raw()),
        )
    };
    if device.is_null() {
        part.end();
        return Err(ENOMEM);
    }
    // SAFETY: New, and ours.
    unsafe {
        Device::create(device, part);
        describe(&mut *device, name, &guids);
        operations::set(device);
    }
    // INVARIANT: Nulled by `deallocate`.
    hca.device.0.store(device, Ordering::Release);
    // SAFETY: Made above, complete, not registered yet.
    let registered = unsafe { plug_and_register(device, name, devices) };
    registered.inspect_err(|_| {
        // SAFETY: Not registered; it ends here.
        unsafe { bindings::ib_dealloc_device(device) }
    })
}

/// Fills in what the kernel has to know of a device.
fn describe(device: &mut bindings::ib_device, name: &CStr, guids: &[u64]) {
    device.node_type = bindings::RDMA_NODE_IB_CA as u8;
    device.phys_port_cnt = guids.len() as u32;
    device.local_dma_lkey = crate::hca::region::ALL_MEMORY;
    device.node_guid = guids.first().copied().unwrap_or(0).to_be();
    device.link_ops = link::operations();
    for (place, byte) in device.node_desc.iter_mut().zip(name.to_bytes()) {
        *place = *byte;
    }
    // SAFETY: The device is valid and not registered yet; the parent is registered longer than
    // any HCA.
    unsafe { bindings::softib_fill_device(device, parent::as_raw()) };
}

/// Plugs in the cables, then registers the device.
///
/// # Safety
///
/// `device` is one of ours that nobody else knows yet.
unsafe fn plug_and_register(
    device: *mut bindings::ib_device,
    name: &CStr,
    devices: &[NetDevice],
) -> Result {
    // A reference of its own: the part that has the other one is changed below.
    // SAFETY: `device` is one of ours, and is not freed during this call.
    let hca = unsafe { hca(device) }.clone();
    for (place, net_device) in devices.iter().enumerate() {
        let port = place as u8 + 1;
        let line = hca.line(port).ok_or(EINVAL)?.clone();
        let cable = Cable::new(net_device, line, hca.clone(), port)?;
        // SAFETY: The device is one of ours, and is not registered. Others may know its address by
        // now, but reach the part by verbs alone, so there is no other reference to that.
        unsafe { Device::part_mut(device) }
            .cables
            .push(cable, GFP_KERNEL)?;
    }
    let dma_device = match hca.options.dma {
        true => parent::dma_device(),
        false => null_mut(),
    };
    // SAFETY: The device is complete, and its name ends in zero. The parent is registered longer
    // than any HCA.
    to_result(unsafe { bindings::ib_register_device(device, name.as_char_ptr(), dma_device) })
}

/// Ends a device (`dealloc_driver`).
///
/// # Safety
///
/// Called by `ib_core` with a device of ours that is not registered, for the last time.
pub(super) unsafe extern "C" fn deallocate(device: *mut bindings::ib_device) {
    // SAFETY: `ib_core` gives a device of ours, whose part `Device::create` wrote; nothing uses it
    // after this call.
    unsafe { Device::destroy(device) }.end();
}
