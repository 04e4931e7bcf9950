// SPDX-License-Identifier: GPL-2.0-only

//! Net devices of link-layer type InfiniBand.
//!
//! A [`Device`] is allocated first, then given to what drives it, and shown to the world by
//! [`Device::show`]; [`remove`] takes it away again, as does the stack itself when a link is
//! deleted. Each transmit queue carries data of the driver ([`Operations::TxQueue`]) that only
//! opens to the holder of the queue's lock.

use core::{
    cell::UnsafeCell,
    ptr::NonNull,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
};

use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Completion, //
    }, //
};

use super::{
    link,
    napi::Context,
    queue::QueueGuard,
    rtnl::Rtnl, //
};
use crate::{
    bindings,
    rdma::{
        device::Device as RdmaDevice,
        port::PortNumber, //
    },
    wire::connected, //
};

mod driver;
mod interface_name;
mod registration;
mod settings;
mod table;
mod virtual_function;

pub(crate) use driver::Operations;
pub(crate) use interface_name::Name;
pub(crate) use registration::remove;
pub(super) use table::setup;

/// Smallest MTU in bytes: that of IPv4 (RFC 791).
pub(super) const MIN_MTU: u32 = 68;

/// Largest MTU, that of connected mode. The driver knows its port's and its mode's.
pub(super) const MAX_MTU: u32 = connected::MAX_MTU;

/// Our part of the net device's memory.
pub(super) struct Private<T: Operations> {
    /// Set from before the registration until after its end; read by the stack's callbacks, which
    /// come in between.
    pub(super) driver: UnsafeCell<Option<Arc<T>>>,
    pub(super) queues: KVec<UnsafeCell<Option<T::TxQueue>>>,
    /// The device is shown, or was.
    pub(super) shown: AtomicBool,
}

/// Bytes that the stack has to allocate for the driver with a device of `T`.
pub(super) const fn private_size<T: Operations>() -> usize {
    size_of::<Private<T>>()
}

/// The memory of a net device, freed with the last reference.
///
/// # Invariants
///
/// `device` is a net device set up by [`table::setup`], and its private area is an initialised
/// `Private<T>`, in which `queues` has no more elements than the device has transmit queues, each
/// touched under that queue's lock alone. If `lender` is there, the memory is the stack's, which
/// waits for it to be completed, as long as `lent`; else it is ours.
struct Allocation<T: Operations> {
    device: NonNull<bindings::net_device>,
    lender: Option<Arc<Completion>>,
    lent: AtomicBool,
    _driver: core::marker::PhantomData<T>,
}

/// A device in the stack's memory.
pub(super) struct Lent(Arc<Completion>);

impl Lent {
    /// Waits until no [`Device`] refers to it any more.
    pub(super) fn wait_until_unused(self) {
        self.0.wait_for_completion();
    }
}

// SAFETY: Net devices are used from all threads; `Private` holds `Arc<T>` (`T: Send + Sync`) and
// queue data that is serialised by the queues' locks (`T::TxQueue: Send`).
unsafe impl<T: Operations> Send for Allocation<T> {}
// SAFETY: Threads share `Arc<T>` (`T: Send + Sync`), and reach queue data under the queues' locks
// alone (`T::TxQueue: Send`).
unsafe impl<T: Operations> Sync for Allocation<T> {}

impl<T: Operations> Drop for Allocation<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the private area is initialised; nobody uses it any more.
        unsafe { core::ptr::drop_in_place(private::<T>(self.device.as_ptr())) };
        if !self.lent.load(Ordering::Acquire) {
            // SAFETY: By the type invariant ours. It is not registered: the stack's side of a
            // registered one has the driver, which holds it.
            unsafe { bindings::free_netdev(self.device.as_ptr()) };
        }
        if let Some(lender) = &self.lender {
            lender.complete_all();
        }
    }
}

/// A net device, registered or not. Clones share it.
pub(crate) struct Device<T: Operations>(Arc<Allocation<T>>);

impl<T: Operations> Clone for Device<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Returns the address of the driver's part of a net device's memory.
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
    /// Allocates a device with `queues` transmit queues. Its `name` may have one `%d` for a
    /// number.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` if the name is too long.
    pub(crate) fn new(name: &CStr, queues: u32) -> Result<Self> {
        // The stack takes a longer one for a bug, and stops the machine.
        if name.to_bytes_with_nul().len() > Name::LEN {
            return Err(EINVAL);
        }
        let assigned = if name.to_bytes().contains(&b'%') {
            bindings::NET_NAME_ENUM
        } else {
            bindings::NET_NAME_USER
        };
        // SAFETY: The name fits into a device; the stack copies it, and checks the format when the
        // device is registered. `setup` fills what a fresh device needs.
        let device = unsafe {
            bindings::alloc_netdev_mqs(
                private_size::<T>() as i32,
                name.as_char_ptr(),
                assigned as u8,
                Some(table::setup::<T>),
                queues,
                queues,
            )
        };
        let device = NonNull::new(device).ok_or(ENOMEM)?;
        // SAFETY: Just made, and ours.
        unsafe { Self::from_fresh(device, None) }.inspect_err(|_| {
            // SAFETY: Nobody else has it.
            unsafe { bindings::free_netdev(device.as_ptr()) }
        })
    }

    /// Takes a device that the stack allocated and frees itself, unless it is shown.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    ///
    /// # Safety
    ///
    /// `device` was just allocated with [`private_size`] bytes for the driver and [`setup`], and
    /// lives until the second value was waited for, if it is not shown.
    pub(super) unsafe fn borrow(device: *mut bindings::net_device) -> Result<(Self, Lent)> {
        let device = NonNull::new(device).ok_or(ENOMEM)?;
        let lender = Arc::pin_init(Completion::new(), GFP_KERNEL)?;
        // SAFETY: The caller gives a device that was just allocated with room for the private
        // area, so no other `Device` refers to it.
        let this = unsafe { Self::from_fresh(device, Some(lender.clone())) }?;
        Ok((this, Lent(lender)))
    }

    /// Initialises the private area of a device that was just allocated. `lender` completes when
    /// the stack may have the memory back; `None` if the memory is ours.
    ///
    /// # Safety
    ///
    /// `device` is valid, has room for the private area, and no other `Device` refers to it.
    unsafe fn from_fresh(
        device: NonNull<bindings::net_device>,
        lender: Option<Arc<Completion>>,
    ) -> Result<Self> {
        // SAFETY: The caller gives a valid device.
        let count = unsafe { (*device.as_ptr()).num_tx_queues }.min(T::MAX_QUEUES);
        let mut queues = KVec::with_capacity(count as usize, GFP_KERNEL)?;
        for _ in 0..count {
            queues.push(UnsafeCell::new(None), GFP_KERNEL)?;
        }
        let memory = kernel::sync::UniqueArc::<Allocation<T>>::new_uninit(GFP_KERNEL)?;
        let area = private::<T>(device.as_ptr());
        // SAFETY: The caller promises room for a `Private<T>`; net device memory is aligned to 32
        // bytes at least, which `Private` does not exceed.
        unsafe {
            area.write(Private {
                driver: UnsafeCell::new(None),
                queues,
                shown: AtomicBool::new(false),
            })
        };
        let lent = AtomicBool::new(lender.is_some());
        // INVARIANT: Set up, by the contract, with its private area initialised above.
        Ok(Self(
            memory
                .write(Allocation {
                    device,
                    lender,
                    lent,
                    _driver: core::marker::PhantomData,
                })
                .into(),
        ))
    }

    /// Puts the device on `port`, before it is shown, or with `None`, as `ib_ipoib` does with
    /// children, on none: the stack reports number 0 of it then (`dev_port`, `dev_id`). The device
    /// tree has it below the adapter of `rdma`, or with `None` below none.
    pub(crate) fn set_place(&self, rdma: Option<&RdmaDevice>, port: Option<PortNumber>) {
        let rdma = rdma.map_or(core::ptr::null_mut(), RdmaDevice::as_raw);
        let number = port.map_or(0, |port| port.get() - 1);
        // SAFETY: The device is not registered, so nobody else sees these fields; what drives it
        // holds the RDMA device.
        unsafe { bindings::oxib_netdev_set_place(self.as_raw(), rdma, number) }
    }

    /// Puts the device into the network namespace of `rdma`, before it is shown.
    pub(crate) fn join_namespace_of_rdma(&self, rdma: &RdmaDevice) {
        // SAFETY: The device is not registered; the namespace is kept by what is in it.
        unsafe {
            bindings::oxib_netdev_set_net(self.as_raw(), bindings::oxib_rdma_net(rdma.as_raw()))
        }
    }

    /// Puts the device into the network namespace of another, before it is shown.
    pub(crate) fn join_namespace_of(&self, _rtnl: &mut Rtnl, other: &Self) {
        // SAFETY: This device is not registered. `other` keeps its namespace, and does not change
        // it while the RTNL is held.
        unsafe {
            bindings::oxib_netdev_set_net(self.as_raw(), bindings::oxib_netdev_net(other.as_raw()))
        }
    }

    /// Makes the device one of a kind that netlink knows, before it is shown.
    pub(crate) fn set_kind(&self)
    where
        T: link::Kind,
    {
        // SAFETY: The device is not registered, so nobody else sees the field; the table lives as
        // long as the module.
        unsafe { (*self.as_raw()).rtnl_link_ops = T::table().as_raw() }
    }

    /// Says how many of the transmit queues are used.
    ///
    /// # Errors
    ///
    /// The error of the stack.
    pub(crate) fn use_queues(&self, _rtnl: &mut Rtnl, count: u32) -> Result {
        // SAFETY: The device is valid, and the RTNL held if it is registered.
        kernel::error::to_result(unsafe {
            bindings::netif_set_real_num_tx_queues(self.as_raw(), count)
        })?;
        self.spread();
        Ok(())
    }

    /// Gives each processor a transmit queue to send on, as far as there are enough (XPS), once
    /// the device is registered. An administrator can change that by `xps_cpus` of the queues.
    fn spread(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_netdev_spread(self.as_raw()) };
    }

    /// Says how many of the receive queues are used.
    ///
    /// # Errors
    ///
    /// The error of the stack.
    pub(crate) fn use_receive_queues(&self, _rtnl: &mut Rtnl, count: u32) -> Result {
        // SAFETY: The device is valid, and the RTNL held if it is registered.
        kernel::error::to_result(unsafe {
            bindings::netif_set_real_num_rx_queues(self.as_raw(), count)
        })
    }

    /// Waits for the receive polls that are running: they have given the stack what they took.
    /// Sleeps.
    pub(crate) fn wait_for_receivers(&self, _rtnl: &mut Rtnl) {
        // SAFETY: May sleep, as holders of the RTNL may.
        unsafe { bindings::synchronize_net() };
    }

    /// Offers the stack to take packets in pieces, without checksums, and longer than the MTU if
    /// they are to be cut into at most `segments` of TCP; and, if `checks`, to report which
    /// checksums were found right. To be called before the device is registered.
    pub(crate) fn offer(&self, checks: bool, segments: u32) {
        // SAFETY: The device is valid, and nobody else sees these fields before it is registered.
        unsafe { bindings::oxib_netdev_offer(self.as_raw(), checks, segments) }
    }

    #[inline(always)]
    pub(super) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.device.as_ptr()
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
    /// The requirements of [`table::driver`] hold.
    pub(super) unsafe fn driver_of<'a>(device: *mut bindings::net_device) -> Option<&'a Arc<T>> {
        // SAFETY: The caller meets the requirements of `table::driver`: `device` is a registered
        // one of `T`, and stays so for `'a`.
        unsafe { table::driver::<T>(device) }
    }

    /// The driver of `device` if that is one of its devices.
    ///
    /// # Safety
    ///
    /// `device` is null or registered, and stays so for `'a`.
    pub(super) unsafe fn driver_of_any<'a>(
        device: *mut bindings::net_device,
    ) -> Option<&'a Arc<T>> {
        // SAFETY: A device that is not null is registered for `'a`, as the caller guarantees;
        // `Device::<T>::new` made each device with our operations.
        unsafe {
            (!device.is_null() && table::is_ours::<T>(device))
                .then(|| table::driver::<T>(device))?
        }
    }

    /// The interface's name, as it is now (`ib0`).
    pub(crate) fn name(&self) -> Name {
        // SAFETY: The name is in the device's memory. A rename at the same time can garble the
        // copy.
        Name(unsafe {
            (&raw const (*self.as_raw()).name)
                .cast::<[u8; Name::LEN]>()
                .read_volatile()
        })
    }

    /// Returns whether it is in the network namespace that the kernel starts with.
    pub(crate) fn is_in_first_namespace(&self, _rtnl: &Rtnl) -> bool {
        // SAFETY: The device is valid; it changes its namespace with the RTNL held alone.
        let namespace = unsafe { (*self.as_raw()).nd_net.net };
        core::ptr::eq(namespace, &raw const bindings::init_net)
    }

    /// Most transmit queues.
    pub(crate) fn queues(&self) -> u32 {
        self.private().queues.len() as u32
    }

    /// Most receive queues, no more than transmit queues.
    pub(crate) fn receive_queues(&self) -> u32 {
        // SAFETY: The device is valid, and the stack sets the number when it allocates it.
        let count = unsafe { (*self.as_raw()).num_rx_queues };
        count.min(self.queues())
    }

    /// Takes the lock of transmit queue `index`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such queue.
    pub(crate) fn lock_queue(&self, index: u32) -> Result<QueueGuard<'_, T>> {
        self.lock(index, true)
    }

    /// Takes a queue's lock as [`Self::lock_queue`] does, in a poll: bottom halves are off
    /// already.
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
        // SAFETY: The device is valid; its per-CPU statistics exist while it is registered, and
        // nothing is sent or received otherwise.
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
        // SAFETY: The device is valid; the stack allocates the counters when first used.
        unsafe { bindings::oxib_count_rx_dropped(self.as_raw()) }
    }

    /// Makes the stack tell all nodes of the link what addresses this one has, those of the bond
    /// that uses the device included.
    pub(crate) fn announce(&self, _rtnl: &mut Rtnl) {
        // SAFETY: The device is registered, the RTNL held.
        unsafe { bindings::oxib_announce(self.as_raw()) }
    }

    /// Returns the number of the stack's neighbours on the link, of the bond that uses the device
    /// included.
    pub(crate) fn count_neighbours(&self, _rtnl: &mut Rtnl) -> u32 {
        // SAFETY: The device is registered, the RTNL held.
        unsafe { bindings::oxib_count_neighbours(self.as_raw()) }
    }

    /// Makes the stack probe neighbours on the link by unicast; the probes tell them the address of
    /// this device. For a device in a bond, the bond's neighbours are probed. Each neighbour is in
    /// one of `parts`, and stays there; those of part number `part` are probed.
    pub(crate) fn verify_neighbours(&self, _rtnl: &mut Rtnl, (part, parts): (u32, u32)) {
        // SAFETY: The device is registered, the RTNL held; there is a part at least.
        unsafe { bindings::oxib_verify_neighbours(self.as_raw(), part, parts.max(1)) }
    }

    /// The stack's number for it; 0 before it is shown.
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_netdev_ifindex(self.as_raw()) }.unsigned_abs()
    }
}
