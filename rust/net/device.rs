// SPDX-License-Identifier: GPL-2.0-only

//! Net devices of link-layer type InfiniBand.
//!
//! A [`Device`] is allocated first, then given to what drives it, and shown to the world by
//! [`Registration::new`]; dropping the registration takes it away again. Each transmit queue carries
//! data of the driver ([`Operations::TxQueue`]) that only opens to the holder of the queue's lock.

use core::{
    cell::UnsafeCell,
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
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
    queue::Queue,
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

/// Smallest MTU: IPv4's.
const MIN_MTU: u32 = 68;

/// Largest MTU of any port: 4096 less the encapsulation header. The driver knows its port's.
const MAX_MTU: u32 = 4096 - encap::LEN as u32;

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
struct Private<T: Operations> {
    /// Set from before the registration until after its end; read by the stack's callbacks, which
    /// come in between.
    driver: UnsafeCell<Option<Arc<T>>>,
    queues: KVec<UnsafeCell<Option<T::TxQueue>>>,
    /// A registration of the device exists, or existed.
    registered: AtomicBool,
    /// The RDMA device below.
    parent: ARef<RdmaDevice>,
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
fn private<T: Operations>(device: *mut bindings::net_device) -> *mut Private<T> {
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
                Some(setup::<T>),
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
    fn private(&self) -> &Private<T> {
        // SAFETY: By the invariant of `Allocation` the area is initialised, and only shared
        // references to it exist.
        unsafe { &*private::<T>(self.as_raw()) }
    }

    /// The driver of a registered device, for the C tables.
    ///
    /// # Safety
    ///
    /// As [`driver`].
    pub(super) unsafe fn driver_of<'a>(device: *mut bindings::net_device) -> Option<&'a Arc<T>> {
        // SAFETY: The caller's promise.
        unsafe { driver::<T>(device) }
    }

    /// The name of the RDMA device below.
    ///
    /// # Safety
    ///
    /// As [`driver`].
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
        // INVARIANT: Locked in the line above.
        Ok(QueueGuard {
            cell,
            queue,
            disable_bh,
            _not_send: core::marker::PhantomData,
        })
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

    /// Sets the largest MTU that the stack accepts.
    pub(crate) fn set_max_mtu(&self, max: u32) {
        // SAFETY: A plain integer of a valid device, of which the stack reads either value.
        unsafe { bindings::oxib_store_max_mtu(self.as_raw(), max.max(MIN_MTU)) }
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

/// The lock of a transmit queue, and the driver's data of it.
///
/// # Invariants
///
/// The lock of `queue` is held; `cell` is the queue's.
pub(crate) struct QueueGuard<'a, T: Operations> {
    cell: &'a UnsafeCell<Option<T::TxQueue>>,
    queue: *mut bindings::netdev_queue,
    disable_bh: bool,
    _not_send: kernel::types::NotThreadSafe,
}

impl<T: Operations> QueueGuard<'_, T> {
    /// Uses the driver's data and the stack's side of the queue together.
    #[inline]
    pub(crate) fn with_queue<R>(
        &mut self,
        use_both: impl FnOnce(Option<&mut T::TxQueue>, Queue<'_>) -> R,
    ) -> R {
        // SAFETY: The lock is held while `self` lives.
        let queue = unsafe { Queue::from_raw(self.queue) };
        use_both(self.as_mut(), queue)
    }
}

impl<T: Operations> Deref for QueueGuard<'_, T> {
    type Target = Option<T::TxQueue>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        // SAFETY: By the type invariant the lock is held, and the data is touched under it alone.
        unsafe { &*self.cell.get() }
    }
}

impl<T: Operations> DerefMut for QueueGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: As in `deref`.
        unsafe { &mut *self.cell.get() }
    }
}

impl<T: Operations> Drop for QueueGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariant the lock is held.
        unsafe { bindings::oxib_tx_unlock(self.queue, self.disable_bh) }
    }
}

/// A device that the world sees. Dropping it takes the device down and away.
pub(crate) struct Registration<T: Operations>(Device<T>);

impl<T: Operations> Registration<T> {
    /// Shows `device`, driven by `driver`.
    ///
    /// # Errors
    ///
    /// Whatever the stack says; `EBUSY` if the device was shown before.
    pub(crate) fn new(device: &Device<T>, driver: Arc<T>) -> Result<Self> {
        if device.private().registered.swap(true, Ordering::AcqRel) {
            return Err(EBUSY);
        }
        // SAFETY: Never registered before, so no callback reads the field and nobody else writes it.
        unsafe { *device.private().driver.get() = Some(driver) };
        // SAFETY: The device is complete and not registered.
        let result = unsafe { bindings::register_netdev(device.as_raw()) };
        if let Err(error) = kernel::error::to_result(result) {
            // SAFETY: Not registered.
            unsafe { release_driver(device) };
            return Err(error);
        }
        Ok(Self(device.clone()))
    }
}

/// Breaks the circle of device, driver and device.
///
/// # Safety
///
/// The device is not registered (any more): no callback reads its driver.
unsafe fn release_driver<T: Operations>(device: &Device<T>) {
    // SAFETY: The caller's promise.
    drop(unsafe { (*device.private().driver.get()).take() });
}

impl<T: Operations> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::unregister_netdev(self.0.as_raw()) };
        // SAFETY: No longer registered.
        unsafe { release_driver(&self.0) };
    }
}

/// The driver of a registered device.
///
/// # Safety
///
/// `device` was made by [`Device::<T>::new`] and is registered; it stays so for `'a`.
#[inline(always)]
unsafe fn driver<'a, T: Operations>(device: *mut bindings::net_device) -> Option<&'a Arc<T>> {
    // SAFETY: By the contract the private area is initialised and shared.
    unsafe { (*(*private::<T>(device)).driver.get()).as_ref() }
}

/// Fills a fresh device.
///
/// # Safety
///
/// `device` is being allocated.
unsafe extern "C" fn setup<T: Operations>(device: *mut bindings::net_device) {
    // SAFETY: By the contract the device is valid and nobody else has it.
    let device = unsafe { &mut *device };
    device.netdev_ops = &Table::<T>::NET;
    device.header_ops = &Table::<T>::HEADER;
    device.ethtool_ops = &ethtool::Table::<T>::OPERATIONS;
    device.watchdog_timeo = 10 * bindings::HZ as i32;
    device.flags |=
        bindings::net_device_flags_IFF_BROADCAST | bindings::net_device_flags_IFF_MULTICAST;
    device.hard_header_len = encap::HARD_LEN as u16;
    device.addr_len = HwAddr::LEN as u8;
    device.type_ = bindings::ARPHRD_INFINIBAND as u16;
    device.tx_queue_len = 1000;
    device.min_mtu = MIN_MTU;
    device.max_mtu = MAX_MTU;
    // SAFETY: Sets fields that Rust sees as bit fields.
    unsafe { bindings::oxib_netdev_setup(device) };
}

/// The C tables of operations for a driver `T`.
struct Table<T>(core::marker::PhantomData<T>);

impl<T: Operations> Table<T> {
    const NET: bindings::net_device_ops = bindings::net_device_ops {
        ndo_open: Some(Self::open),
        ndo_stop: Some(Self::stop),
        ndo_start_xmit: Some(Self::start_xmit),
        ndo_change_mtu: Some(Self::change_mtu),
        ndo_set_rx_mode: Some(Self::set_rx_mode),
        ndo_tx_timeout: Some(Self::tx_timeout),
        // SAFETY: Null function pointers are `None`, valid for each slot.
        ..unsafe { core::mem::zeroed() }
    };

    const HEADER: bindings::header_ops = bindings::header_ops {
        create: Some(Self::create_header),
        // SAFETY: As above.
        ..unsafe { core::mem::zeroed() }
    };

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours, with the RTNL held.
    unsafe extern "C" fn open(device: *mut bindings::net_device) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: By the contract, for both.
            let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
            driver.ok_or(ENODEV)?.open(&mut rtnl)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`Self::open`].
    unsafe extern "C" fn stop(device: *mut bindings::net_device) -> i32 {
        // SAFETY: By the contract, for both.
        let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
        if let Some(driver) = driver {
            driver.stop(&mut rtnl);
        }
        0
    }

    /// # Safety
    ///
    /// As [`Self::open`].
    unsafe extern "C" fn change_mtu(device: *mut bindings::net_device, mtu: i32) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: By the contract, for both.
            let (driver, mut rtnl) = unsafe { (driver::<T>(device), Rtnl::assume_held()) };
            driver.ok_or(ENODEV)?.change_mtu(&mut rtnl, mtu as u32)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours.
    unsafe extern "C" fn set_rx_mode(device: *mut bindings::net_device) {
        // SAFETY: By the contract.
        if let Some(driver) = unsafe { driver::<T>(device) } {
            driver.multicast_changed();
        }
    }

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours.
    unsafe extern "C" fn tx_timeout(device: *mut bindings::net_device, queue: u32) {
        // SAFETY: By the contract.
        if let Some(driver) = unsafe { driver::<T>(device) } {
            driver.transmit_timeout(queue);
        }
    }

    /// # Safety
    ///
    /// Called by the stack on a registered device of ours, with the lock of the packet's queue
    /// held; the packet is given.
    unsafe extern "C" fn start_xmit(
        skb: *mut bindings::sk_buff,
        device: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: By the contract the packet is valid and ours now.
        let (packet, index) = unsafe {
            let index = (*skb).queue_mapping as usize;
            (Skb::from_raw(NonNull::new_unchecked(skb)), index)
        };
        // SAFETY: By the contract the private area is initialised, and shared.
        let private = unsafe { &*private::<T>(device) };
        // SAFETY: The device is registered, so the driver is there and stays.
        let driver = unsafe { (*private.driver.get()).as_ref() };
        if let (Some(driver), Some(cell)) = (driver, private.queues.get(index)) {
            // SAFETY: The stack holds the lock of queue `index`, under which alone this is touched.
            if let Some(data) = unsafe { &mut *cell.get() } {
                // SAFETY: The device has that queue; its lock is held until we return.
                let queue = unsafe { Queue::from_raw((*device)._tx.add(index)) };
                driver.transmit(data, queue, packet);
                return bindings::netdev_tx_NETDEV_TX_OK;
            }
        }
        // SAFETY: The device is valid.
        unsafe { bindings::oxib_count_tx_dropped(device) };
        // A packet that found no queue was freed by its drop.
        bindings::netdev_tx_NETDEV_TX_OK
    }

    /// Builds the link-layer header in front of a packet: destination address, then encapsulation.
    ///
    /// # Safety
    ///
    /// Called by the stack; `destination` is 20 bytes or null.
    unsafe extern "C" fn create_header(
        skb: *mut bindings::sk_buff,
        _device: *mut bindings::net_device,
        ethertype: c_ushort,
        destination: *const c_void,
        _source: *const c_void,
        _len: c_uint,
    ) -> i32 {
        let mut header = [0u8; encap::HARD_LEN];
        let (address, rest) = header.split_at_mut(HwAddr::LEN);
        if destination.is_null() {
            // Not complete: the stack does not send it.
            return -(encap::HARD_LEN as i32);
        }
        // SAFETY: By the contract the address has the length of the device's addresses.
        address.copy_from_slice(unsafe { &*destination.cast::<[u8; HwAddr::LEN]>() });
        rest[..2].copy_from_slice(&ethertype.to_be_bytes());
        // SAFETY: The packet is valid; the borrow ends with this function.
        let packet = unsafe {
            &mut *core::mem::ManuallyDrop::new(Skb::from_raw(NonNull::new_unchecked(skb)))
        };
        match packet.push(&header) {
            Ok(()) => encap::HARD_LEN as i32,
            Err(_) => -(encap::HARD_LEN as i32),
        }
    }
}
