// SPDX-License-Identifier: GPL-2.0-only

//! Net devices of link-layer type InfiniBand.
//!
//! A [`Device`] is allocated first, then given to what drives it, and shown to the world by
//! [`Registration::new`]; dropping the registration takes it away again. Each transmit queue carries
//! data of the driver ([`Operations::TxQueue`]) that only opens to the holder of the queue's lock.

use core::{
    cell::UnsafeCell,
    ptr::NonNull,
    sync::atomic::AtomicBool, //
};

use kernel::{
    fmt,
    prelude::*,
    str::{
        BStr,
        CStr, //
    },
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::{
    ethtool,
    napi::Context,
    queue::{
        Queue,
        QueueGuard, //
    },
    rtnl::Rtnl,
    skb::Skb, //
};
use crate::{
    bindings,
    rdma::device::Device as RdmaDevice,
    wire::{
        encap,
        hwaddr::HwAddr, //
    }, //
};

mod registration;
mod table;

pub(crate) use registration::Registration;

/// Smallest MTU: IPv4's.
pub(super) const MIN_MTU: u32 = 68;

/// Largest MTU of any port: 4096 less the encapsulation header. The driver knows its port's.
pub(super) const MAX_MTU: u32 = 4096 - encap::LEN as u32;

/// What drives a net device. Called by the stack.
pub(crate) trait Operations: Send + Sync + Sized + 'static {
    /// Data of one transmit queue while the device is up.
    type TxQueue: Send;

    /// Brings the device up. On an error it stays down, and nothing is left behind.
    fn open(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result;

    /// Takes the device down.
    fn stop(self: &Arc<Self>, rtnl: &mut Rtnl);

    /// Sends a packet on a queue whose lock is held.
    fn transmit(&self, data: &mut Self::TxQueue, queue: Queue<'_>, packet: Skb);

    /// Changes the MTU; checked against the device's bounds already.
    ///
    /// # Errors
    ///
    /// Any; the MTU stays as it is.
    fn change_mtu(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result;

    /// The list of multicast addresses has changed. Called with bottom halves disabled.
    fn multicast_changed(self: &Arc<Self>);

    /// A queue has been stopped for longer than the watchdog's time.
    fn transmit_timeout(self: &Arc<Self>, queue: u32);

    /// Names of the driver's statistics, for `ethtool -S`.
    const STATISTICS: &'static [&'static CStr];

    /// Their values, in the order of the names; `values` is as long as [`Self::STATISTICS`].
    fn statistics(&self, values: &mut [u64]);

    /// Lengths of the send and receive rings, for `ethtool -g`.
    fn rings(&self) -> ethtool::Rings;
}

/// Our part of the net device's memory.
pub(super) struct Private<T: Operations> {
    /// Set from before the registration until after its end; read by the stack's callbacks, which
    /// come in between.
    pub(super) driver: UnsafeCell<Option<Arc<T>>>,
    pub(super) queues: KVec<UnsafeCell<Option<T::TxQueue>>>,
    /// A registration of the device exists, or existed.
    pub(super) registered: AtomicBool,
    /// The RDMA device below.
    pub(super) parent: ARef<RdmaDevice>,
}

/// The memory of a net device, freed with the last reference.
///
/// # Invariants
///
/// The pointer is a net device made by [`Device::new`] whose private area is an initialised
/// `Private<T>`. `queues` has an element per transmit queue, touched under that queue's lock alone.
struct Allocation<T: Operations>(NonNull<bindings::net_device>, core::marker::PhantomData<T>);

// SAFETY: Net devices are used from all threads; `Private` holds `Arc<T>` (`T: Send + Sync`) and
// queue data that is serialised by the queues' locks (`T::TxQueue: Send`).
unsafe impl<T: Operations> Send for Allocation<T> {}
// SAFETY: As above.
unsafe impl<T: Operations> Sync for Allocation<T> {}

impl<T: Operations> Drop for Allocation<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the private area is initialised; nobody uses it any more.
        unsafe { core::ptr::drop_in_place(private::<T>(self.0.as_ptr())) };
        // SAFETY: The device is not registered: a registration holds a reference.
        unsafe { bindings::free_netdev(self.0.as_ptr()) };
    }
}

/// A net device, registered or not. Clones share it.
pub(crate) struct Device<T: Operations>(Arc<Allocation<T>>);

impl<T: Operations> Clone for Device<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The private area.
#[inline(always)]
pub(super) fn private<T: Operations>(device: *mut bindings::net_device) -> *mut Private<T> {
    // SAFETY: Only the address is taken; the area is inside the device's allocation.
    unsafe {
        device
            .cast::<u8>()
            .add(bindings::OXIB_NETDEV_PRIV as usize)
            .cast()
    }
}

impl<T: Operations> Device<T> {
    /// Allocates a device named `ib%d` on `port` of `parent`, with `queues` transmit queues, in
    /// the network namespace of `parent`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(parent: &RdmaDevice, port: u32, queues: u32) -> Result<Self> {
        let mut cells = KVec::with_capacity(queues as usize, GFP_KERNEL)?;
        for _ in 0..queues {
            cells.push(UnsafeCell::new(None), GFP_KERNEL)?;
        }
        // SAFETY: The name is a format with one `%d`, as the stack wants it; `setup` fills what a
        // fresh device needs.
        let device = unsafe {
            bindings::alloc_netdev_mqs(
                size_of::<Private<T>>() as i32,
                c"ib%d".as_char_ptr(),
                bindings::NET_NAME_ENUM as u8,
                Some(table::setup::<T>),
                queues,
                1,
            )
        };
        let device = NonNull::new(device).ok_or(ENOMEM)?;
        let area = private::<T>(device.as_ptr());
        // SAFETY: The area was allocated with the size of `Private<T>`; net device memory is
        // aligned to 32 bytes at least, which `Private` does not exceed.
        unsafe {
            area.write(Private {
                driver: UnsafeCell::new(None),
                queues: cells,
                registered: AtomicBool::new(false),
                parent: ARef::from(parent),
            })
        };
        // INVARIANT: Made here, with its private area initialised.
        let allocation = Arc::new(Allocation(device, core::marker::PhantomData), GFP_KERNEL)?;
        // SAFETY: The device is not registered, so nobody else sees these fields; the parent
        // lives longer than the registration.
        unsafe {
            bindings::oxib_netdev_set_parent(device.as_ptr(), parent.as_raw(), port - 1);
        }
        Ok(Self(allocation))
    }

    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::net_device {
        self.0 .0.as_ptr()
    }

    #[inline(always)]
    pub(super) fn private(&self) -> &Private<T> {
        // SAFETY: By the invariant of `Allocation` the area is initialised, and only shared
        // references to it exist.
        unsafe { &*private::<T>(self.as_raw()) }
    }

    /// The driver of a registered device, for the C tables.
    ///
    /// # Safety
    ///
    /// As [`table::driver`].
    pub(super) unsafe fn driver_of<'a>(device: *mut bindings::net_device) -> Option<&'a Arc<T>> {
        // SAFETY: The caller's promise.
        unsafe { table::driver::<T>(device) }
    }

    /// The name of the RDMA device below.
    ///
    /// # Safety
    ///
    /// As [`table::driver`].
    pub(super) unsafe fn parent_name<'a>(device: *mut bindings::net_device) -> &'a CStr {
        // SAFETY: By the caller's promise the private area is initialised and stays for `'a`.
        unsafe { (*private::<T>(device)).parent.name() }
    }

    /// The interface's name, as it is now (`ib0`).
    pub(crate) fn name(&self) -> Name {
        // SAFETY: The name is in the device's memory. A rename at the same time can garble the copy.
        Name(unsafe {
            (&raw const (*self.as_raw()).name)
                .cast::<[u8; Name::LEN]>()
                .read_volatile()
        })
    }

    /// Number of transmit queues.
    pub(crate) fn queues(&self) -> u32 {
        self.private().queues.len() as u32
    }

    /// Takes the lock of transmit queue `index`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue.
    pub(crate) fn lock_queue(&self, index: u32) -> Result<QueueGuard<'_, T>> {
        self.lock(index, true)
    }

    /// As [`Self::lock_queue`], in a poll: bottom halves are off already.
    #[inline]
    pub(crate) fn lock_queue_in_poll<'a>(
        &'a self,
        _context: &Context<'_>,
        index: u32,
    ) -> Result<QueueGuard<'a, T>> {
        self.lock(index, false)
    }

    #[inline]
    fn lock(&self, index: u32, disable_bh: bool) -> Result<QueueGuard<'_, T>> {
        let cell = self.private().queues.get(index as usize).ok_or(EINVAL)?;
        // SAFETY: By the invariant of `Allocation` there is a queue per element.
        let queue = unsafe { (*self.as_raw())._tx.add(index as usize) };
        // SAFETY: The queue is valid while `self` is.
        unsafe { bindings::oxib_tx_lock(queue, disable_bh) };
        // SAFETY: Locked in the line above, and `cell` is the queue's.
        Ok(unsafe { QueueGuard::new(cell, queue, disable_bh) })
    }

    /// Counts packets given to the device below, per CPU.
    #[inline(always)]
    pub(crate) fn count_sent(&self, packets: u32, bytes: u32) {
        // SAFETY: The device is valid; its per-CPU statistics exist while it is registered, and
        // nothing is sent or received otherwise.
        unsafe { bindings::oxib_count_tx(self.as_raw(), packets, bytes) }
    }

    /// Counts packets received, per CPU.
    #[inline(always)]
    pub(crate) fn count_received(&self, packets: u32, bytes: u32) {
        // SAFETY: As in `count_sent`.
        unsafe { bindings::oxib_count_rx(self.as_raw(), packets, bytes) }
    }

    /// Counts a packet received for a multicast group.
    pub(crate) fn count_multicast(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_count_multicast(self.as_raw()) }
    }

    /// Counts a packet that was not sent.
    pub(crate) fn count_send_dropped(&self) {
        // SAFETY: The device is valid; the stack allocates the counters when first used.
        unsafe { bindings::oxib_count_tx_dropped(self.as_raw()) }
    }

    /// Counts a packet that was received and thrown away.
    pub(crate) fn count_receive_dropped(&self) {
        // SAFETY: As in `count_send_dropped`.
        unsafe { bindings::oxib_count_rx_dropped(self.as_raw()) }
    }

    /// Reports whether the link can carry packets.
    pub(crate) fn set_carrier(&self, _rtnl: &mut Rtnl, on: bool) {
        // SAFETY: The device is valid; both calls do nothing if the state is the same.
        unsafe {
            if on {
                bindings::netif_carrier_on(self.as_raw())
            } else {
                bindings::netif_carrier_off(self.as_raw())
            }
        }
    }

    /// Lets the stack send on all queues.
    pub(crate) fn start_queues(&self, _rtnl: &mut Rtnl) {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_start_queues(self.as_raw()) }
    }

    /// Stops the stack from sending and waits until no transmit is under way.
    pub(crate) fn stop_queues(&self, _rtnl: &mut Rtnl) {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_stop_queues(self.as_raw()) }
    }

    /// The hardware address.
    pub(crate) fn address(&self) -> HwAddr {
        let mut bytes = [0u8; HwAddr::LEN];
        // SAFETY: `dev_addr` of such a device is 20 bytes, and its memory stays while registered.
        unsafe {
            core::ptr::copy_nonoverlapping((*self.as_raw()).dev_addr, bytes.as_mut_ptr(), 20)
        };
        HwAddr::from_bytes(bytes)
    }

    /// Changes the hardware address and tells the stack.
    pub(crate) fn set_address(&self, _rtnl: &mut Rtnl, address: &HwAddr) {
        // SAFETY: The device is valid, the RTNL held; the address has the length of the device's.
        unsafe { bindings::oxib_set_address(self.as_raw(), address.as_bytes().as_ptr()) }
    }

    /// Sets the address that reaches all nodes of the link, before the device is registered.
    pub(crate) fn set_broadcast(&self, address: &HwAddr) {
        // SAFETY: `broadcast` is 32 bytes, of which such a device uses 20.
        unsafe {
            core::ptr::copy_nonoverlapping(
                address.as_bytes().as_ptr(),
                (*self.as_raw()).broadcast.as_mut_ptr(),
                HwAddr::LEN,
            )
        }
    }

    /// The MTU.
    pub(crate) fn mtu(&self) -> u32 {
        // SAFETY: A plain integer at that offset of a valid device; the stack reads it without a lock,
        // too.
        unsafe {
            self.as_raw()
                .cast::<u8>()
                .add(bindings::OXIB_NETDEV_MTU as usize)
                .cast::<u32>()
                .read_volatile()
        }
    }

    /// Writes the MTU down, in [`Operations::change_mtu`] or before the device is registered.
    pub(crate) fn store_mtu(&self, mtu: u32) {
        // SAFETY: A plain integer of a valid device, of which the stack reads either value.
        unsafe { bindings::oxib_store_mtu(self.as_raw(), mtu) }
    }

    /// Changes the MTU as an administrator does: [`Operations::change_mtu`] is called and all who
    /// listen are told.
    ///
    /// # Errors
    ///
    /// That function's, or a listener's.
    pub(crate) fn request_mtu(&self, _rtnl: &mut Rtnl, mtu: u32) -> Result {
        // SAFETY: The device is registered, the RTNL held.
        kernel::error::to_result(unsafe { bindings::dev_set_mtu(self.as_raw(), mtu as i32) })
    }

    /// The multicast addresses that the stack wants, other than the broadcast address.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn multicast_addresses(&self) -> Result<KVec<HwAddr>> {
        let mut list = KVec::new();
        // Sizes it first: no memory is allocated under the address lock.
        // SAFETY: The device is valid.
        let expected = unsafe { bindings::oxib_mc_count(self.as_raw()) } as usize + 16;
        list.reserve(expected, GFP_KERNEL)?;
        // SAFETY: The device is valid; the callback gets the list that it expects, and runs
        // before the call returns.
        unsafe {
            bindings::oxib_for_each_mc(
                self.as_raw(),
                Some(push_address),
                (&raw mut list).cast::<c_void>(),
            )
        };
        Ok(list)
    }
}

/// Collects one address for [`Device::multicast_addresses`].
///
/// # Safety
///
/// `address` is 20 bytes, `list` a `KVec<HwAddr>` that nobody else uses.
unsafe extern "C" fn push_address(list: *mut c_void, address: *const u8) {
    // SAFETY: By the contract.
    let (list, bytes) = unsafe {
        (
            &mut *list.cast::<KVec<HwAddr>>(),
            *address.cast::<[u8; HwAddr::LEN]>(),
        )
    };
    // Addresses that came since the list was sized are left for the next change's call.
    let _ = list.push_within_capacity(HwAddr::from_bytes(bytes));
}

/// An interface's name.
pub(crate) struct Name([u8; Name::LEN]);

impl Name {
    /// With the NUL at its end.
    const LEN: usize = bindings::IFNAMSIZ as usize;
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        fmt::Display::fmt(BStr::from_bytes(name), f)
    }
}
