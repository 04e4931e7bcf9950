// SPDX-License-Identifier: GPL-2.0-only

//! Neighbours: what the network stack knows of them, and what it is told.

use core::{
    marker::PhantomData,
    net::{
        IpAddr,
        Ipv6Addr, //
    }, //
};

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::device::{
    Device,
    Operations, //
};
use crate::{
    bindings,
    wire::hwaddr::HwAddr, //
};

/// Tells the devices of driver `T` of their neighbours that failed
/// ([`Operations::neighbour_failed`]), for as long as it lives.
#[pin_data(PinnedDrop)]
pub(crate) struct Notifier<T: Operations> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    _driver: PhantomData<fn(T)>,
}

// SAFETY: The registration does nothing but live and end, in any thread.
unsafe impl<T: Operations> Send for Notifier<T> {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl<T: Operations> Sync for Notifier<T> {}

impl<T: Operations> Notifier<T> {
    /// Registers with the stack's chain of netevents.
    ///
    /// # Errors
    ///
    /// The error of the stack.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            block <- Opaque::try_ffi_init(|slot: *mut bindings::notifier_block| {
                // SAFETY: The slot is ours.
                unsafe { slot.write(pin_init::zeroed()) };
                // SAFETY: The slot is ours, and was written in the line above.
                unsafe { (*slot).notifier_call = Some(happened::<T>) };
                // SAFETY: The structure is complete, pinned, and unregistered before its end.
                to_result(unsafe { bindings::oxib_register_netevents(slot) })
            }),
            _driver: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: Operations> PinnedDrop for Notifier<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::oxib_unregister_netevents(self.block.get()) };
    }
}

impl<T: Operations> Device<T> {
    /// Gives the stack a datagram of this type as if it had come to the device. Any context.
    /// False without memory, or if the stack has no room for it.
    pub(crate) fn inject(&self, ethertype: u16, datagram: &[u8]) -> bool {
        // SAFETY: The device is valid, and the datagram is as long as said; it is copied.
        unsafe {
            bindings::oxib_inject(
                self.as_raw(),
                ethertype,
                datagram.as_ptr(),
                datagram.len() as u32,
            )
        }
    }

    /// The address that the device, or the bond that it is in, sends from to this one. `None` if
    /// the device is not registered: its namespace may have gone. Any context.
    pub(crate) fn source_for(&self, address: IpAddr) -> Option<IpAddr> {
        let find = |to: &[u8], from: &mut [u8]| {
            // SAFETY: The device is valid; both addresses are as long as one of the family.
            unsafe {
                bindings::oxib_source_address(
                    self.as_raw(),
                    to.as_ptr(),
                    to.len() as u32,
                    from.as_mut_ptr(),
                )
            }
        };
        match address {
            IpAddr::V4(address) => {
                let mut from = [0; 4];
                find(&address.octets(), &mut from).then(|| IpAddr::from(from))
            }
            IpAddr::V6(address) => {
                let mut from = [0; 16];
                find(&address.octets(), &mut from).then(|| IpAddr::from(from))
            }
        }
    }

    /// Returns whether the device's namespace sends packets to this address to a gateway, if they
    /// leave by the device, or by the bond that it is in. False if the device is not registered:
    /// its namespace may have gone. Process context.
    pub(crate) fn has_gateway_to(&self, address: IpAddr) -> bool {
        let find = |to: &[u8]| {
            // SAFETY: The device is valid; the address is as long as one of its family.
            unsafe { bindings::oxib_has_gateway(self.as_raw(), to.as_ptr(), to.len() as u32) }
        };
        match address {
            IpAddr::V4(address) => find(&address.octets()),
            IpAddr::V6(address) => find(&address.octets()),
        }
    }

    /// Milliseconds since something last showed the stack that the neighbour with this address
    /// receives its packets; `None` if the stack sends it nothing: it knows no such neighbour, or
    /// has had no use for it for a while.
    pub(crate) fn unconfirmed(&self, address: IpAddr) -> Option<u64> {
        let of = |bytes: &[u8]| {
            // SAFETY: The device is valid; the address is as long as one of its family.
            unsafe {
                bindings::oxib_neighbour_unconfirmed(
                    self.as_raw(),
                    bytes.as_ptr(),
                    bytes.len() as u32,
                )
            }
        };
        let age = match address {
            IpAddr::V4(address) => of(&address.octets()),
            IpAddr::V6(address) => of(&address.octets()),
        };
        u64::try_from(age).ok()
    }

    /// The hardware address that the stack knows of the neighbour with this address.
    pub(crate) fn neighbour(&self, address: IpAddr) -> Option<HwAddr> {
        let find = |bytes: &[u8], hardware: &mut [u8; HwAddr::LEN]| {
            // SAFETY: The device is valid; the address is as long as one of its family, and there
            // is room for the other one.
            unsafe {
                bindings::oxib_neighbour_address(
                    self.as_raw(),
                    bytes.as_ptr(),
                    bytes.len() as u32,
                    hardware.as_mut_ptr(),
                )
            }
        };
        let mut hardware = [0; HwAddr::LEN];
        let is_known = match address {
            IpAddr::V4(address) => find(&address.octets(), &mut hardware),
            IpAddr::V6(address) => find(&address.octets(), &mut hardware),
        };
        is_known.then(|| HwAddr::from_bytes(hardware))
    }

    /// Calls `use_it` for each neighbour that the stack knows, with its hardware address and the
    /// milliseconds since something last showed that it receives its packets. Sleeps. Without
    /// memory some are left out.
    pub(crate) fn for_each_confirmed<F: FnMut(&HwAddr, u64)>(&self, mut use_it: F) {
        let context: *mut F = &mut use_it;
        // SAFETY: The device is valid; the function is called with the context before we return.
        unsafe {
            bindings::oxib_for_each_confirmed(self.as_raw(), Some(confirmed::<F>), context.cast());
        }
    }

    /// Makes the stack probe the neighbour with this address, if it knows one.
    pub(crate) fn verify_neighbour(&self, address: IpAddr) {
        let verify = |bytes: &[u8]| {
            // SAFETY: The device is valid; the address is as long as one of its family.
            unsafe {
                bindings::oxib_verify_neighbour(self.as_raw(), bytes.as_ptr(), bytes.len() as u32)
            }
        };
        match address {
            IpAddr::V4(address) => verify(&address.octets()),
            IpAddr::V6(address) => verify(&address.octets()),
        }
    }

    /// Makes `rdma_cm` look again at the addresses that it waits for. Nothing happens if the
    /// device has no IPv4. Any context.
    pub(crate) fn wake_resolvers(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_wake_resolvers(self.as_raw()) }
    }

    /// Returns whether the neighbour with this address is known to be a router.
    pub(crate) fn is_router(&self, address: Ipv6Addr) -> bool {
        // SAFETY: The device is valid; the address is as long as one of IPv6.
        unsafe { bindings::oxib_neighbour_is_router(self.as_raw(), address.octets().as_ptr()) }
    }
}

/// The C face of what [`Device::for_each_confirmed`] calls.
///
/// # Safety
///
/// Called with an `F`, which nobody else uses, and a hardware address.
unsafe extern "C" fn confirmed<F: FnMut(&HwAddr, u64)>(
    context: *mut c_void,
    hardware: *const u8,
    milliseconds: u32,
) {
    // SAFETY: `for_each_confirmed` lends its `F`, which nobody else uses meanwhile; `hardware` is
    // a whole hardware address.
    let (use_it, hardware) = unsafe { (&mut *context.cast::<F>(), &*hardware.cast()) };
    use_it(HwAddr::from_ref(hardware), milliseconds.into());
}

/// Finds the driver of a neighbour's device.
///
/// # Safety
///
/// Called by the stack with an event and what it is about. A neighbour's device is registered
/// until we return.
unsafe extern "C" fn happened<T: Operations>(
    _: *mut bindings::notifier_block,
    event: usize,
    subject: *mut c_void,
) -> i32 {
    let mut address = [0; 32];
    // SAFETY: The stack gives an event and what it is about; an address is no longer than the
    // room.
    let device = unsafe { bindings::oxib_failed_neighbour(event, subject, address.as_mut_ptr()) };
    // SAFETY: A neighbour's device is registered until we return; the pointer is null if the event
    // is about something else.
    let driver = unsafe { Device::<T>::driver_of_any(device) };
    if let (Some(driver), Some((address, _))) = (driver, address.split_first_chunk()) {
        driver.neighbour_failed(HwAddr::from_ref(address));
    }
    bindings::NOTIFY_DONE as i32
}
