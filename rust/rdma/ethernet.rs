// SPDX-License-Identifier: GPL-2.0-only

//! The Ethernet device below a RoCE port: its MTU, its IPv4 groups.
//!
//! A RoCE group's packets arrive only if the Ethernet device's IP layer is a member of the IPv4
//! group too; IGMP then tells the switches.

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::aref::ARef,
    types::Opaque, //
};

use super::{
    device::Device,
    port::PortNumber, //
};
use crate::{
    bindings,
    net::rtnl::Rtnl, //
};

/// Whether to be a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Membership {
    /// From now on.
    Join,
    /// No more.
    Leave,
}

/// A reference to an Ethernet device.
///
/// # Invariants
///
/// The pointer is a valid net device, whose reference this value holds.
struct Ethernet(NonNull<bindings::net_device>);

impl Ethernet {
    /// That of `port`.
    fn of(device: &Device, port: PortNumber) -> Option<Self> {
        // SAFETY: By its type invariant the device is valid. The net device comes with a reference.
        let ethernet = unsafe { bindings::ib_device_get_netdev(device.as_raw(), port.get()) };
        NonNull::new(ethernet).map(Self)
    }
}

impl Drop for Ethernet {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the reference is ours.
        unsafe { bindings::oxib_dev_put(self.0.as_ptr()) };
    }
}

impl Device {
    /// Largest payload in bytes of one RoCE packet on the Ethernet device of `port`.
    pub(crate) fn ethernet_mtu(&self, port: PortNumber) -> Option<u32> {
        let ethernet = Ethernet::of(self, port)?;
        // SAFETY: The net device is valid.
        u32::try_from(unsafe { bindings::oxib_roce_mtu(ethernet.0.as_ptr()) }).ok()
    }

    /// Joins or leaves the IPv4 `group` on the Ethernet device of `port`.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there is no Ethernet device or it has no IPv4 (any more: leaving is done then).
    pub(crate) fn set_membership(
        &self,
        _rtnl: &mut Rtnl,
        port: PortNumber,
        group: [u8; 4],
        membership: Membership,
    ) -> Result {
        let ethernet = Ethernet::of(self, port).ok_or(ENODEV)?;
        let group = u32::from_ne_bytes(group);
        // SAFETY: The net device is valid, and the RTNL is held (`_rtnl`).
        unsafe {
            let ip = bindings::oxib_in_dev_get(ethernet.0.as_ptr());
            if ip.is_null() {
                return Err(ENODEV);
            }
            match membership {
                Membership::Join => bindings::ip_mc_inc_group(ip, group),
                Membership::Leave => bindings::oxib_ip_mc_dec_group(ip, group),
            }
        }
        Ok(())
    }
}

/// What wants to hear that the MTU of a port's Ethernet device has changed. Called with the RTNL
/// held.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// It has.
    fn mtu_changed(&self);
}

/// A watcher's registration. Dropping it waits until the watcher is not running.
#[pin_data(PinnedDrop)]
pub(crate) struct Watch<W: Watcher> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    watcher: W,
    device: ARef<Device>,
    port: PortNumber,
}

// SAFETY: The registration does nothing but live and end, in any thread.
unsafe impl<W: Watcher> Send for Watch<W> {}
// SAFETY: As above.
unsafe impl<W: Watcher> Sync for Watch<W> {}

impl<W: Watcher> Watch<W> {
    /// Watches the Ethernet device of `port`. Takes the RTNL.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: &Device, port: PortNumber, watcher: W) -> Result<Pin<KBox<Self>>> {
        let device = ARef::from(device);
        KBox::try_pin_init(
            try_pin_init!(Self {
                watcher,
                device,
                port,
                block <- Opaque::try_ffi_init(|slot: *mut bindings::notifier_block| {
                    // SAFETY: All-zero is a valid value of this C structure, the slot is ours. It
                    // is pinned, inside a `Watch<W>` whose other fields are set by now, and
                    // unregistered before its end.
                    kernel::error::to_result(unsafe {
                        slot.write(core::mem::zeroed());
                        (*slot).notifier_call = Some(notify::<W>);
                        bindings::register_netdevice_notifier(slot)
                    })
                }),
            }? Error),
            GFP_KERNEL,
        )
    }
}

#[pinned_drop]
impl<W: Watcher> PinnedDrop for Watch<W> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::unregister_netdevice_notifier(self.block.get()) };
    }
}

/// The C face of [`Watcher::mtu_changed`].
///
/// # Safety
///
/// Called by the stack with the block inside a [`Watch<W>`] and a valid notification.
unsafe extern "C" fn notify<W: Watcher>(
    block: *mut bindings::notifier_block,
    event: c_ulong,
    info: *mut c_void,
) -> i32 {
    if event == bindings::netdev_cmd_NETDEV_CHANGEMTU as c_ulong {
        // SAFETY: By the contract; unregistering waits for us.
        let this = unsafe {
            let block = Opaque::cast_from(block);
            &*kernel::container_of!(block.cast_mut(), Watch<W>, block)
        };
        // SAFETY: By the contract.
        let changed = unsafe { bindings::oxib_notified_device(info) };
        if Ethernet::of(&this.device, this.port).is_some_and(|own| own.0.as_ptr() == changed) {
            this.watcher.mtu_changed();
        }
    }
    bindings::NOTIFY_DONE as i32
}
