// SPDX-License-Identifier: GPL-2.0-only

//! Links that `ip link add … type ipoib` makes, changes and shows: the rtnl kind.
//!
//! The kind has one name for all drivers of IPoIB, so one driver has it at a time. A device that
//! the stack allocated for such a request becomes a [`Device`] like any other; only its memory is
//! the stack's until the request has succeeded.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    }, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    device::{
        self,
        Device,
        Operations, //
    },
    extack::ExtendedAck,
    rtnl::Rtnl, //
};
use crate::bindings;

/// The attributes of a request about a link; `None` for those that it does not have.
#[derive(Clone, Copy, Default)]
pub(crate) struct Request {
    /// P_Key of the partition.
    pub(crate) pkey: Option<u16>,
    /// The mode: [`DATAGRAM`] or [`CONNECTED`].
    pub(crate) mode: Option<u16>,
    /// Whether groups that user space joined by itself are left alone.
    pub(crate) umcast: Option<u16>,
}

/// The number of datagram mode, in requests and answers.
pub(crate) const DATAGRAM: u16 = bindings::IPOIB_MODE_DATAGRAM as u16;

/// The number of connected mode.
pub(crate) const CONNECTED: u16 = bindings::IPOIB_MODE_CONNECTED as u16;

/// The settings of a link, as netlink shows them.
pub(crate) struct Settings {
    /// P_Key of the partition.
    pub(crate) pkey: u16,
    /// The mode: [`DATAGRAM`] or [`CONNECTED`].
    pub(crate) mode: u16,
    /// Whether groups that user space joined by itself are left alone.
    pub(crate) umcast: bool,
}

/// A driver with links that can be made, changed and shown by netlink.
pub(crate) trait Kind: Operations {
    /// The table of the kind, of which there is one.
    fn table() -> &'static Table<Self>;

    /// Makes what drives `device`, a child of `parent`, and is shown next.
    ///
    /// # Errors
    ///
    /// Any, said in `reply`; nothing that would use the device is left behind.
    fn make_child(
        parent: &Arc<Self>,
        rtnl: &mut Rtnl,
        device: &Device<Self>,
        request: Request,
        reply: &mut ExtendedAck<'_>,
    ) -> Result<Arc<Self>>;

    /// Changes those settings of the link that `request` names.
    ///
    /// # Errors
    ///
    /// Any, said in `reply`.
    fn change(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        request: Request,
        reply: &mut ExtendedAck<'_>,
    ) -> Result;

    /// Returns the settings of the link.
    fn settings(&self) -> Settings;

    /// Notes an attempt to delete a link that is not a child: it stays.
    fn stays(&self);
}

/// The C table of a kind, in a static.
///
/// # Invariants
///
/// `registered` tells whether the stack has the table; only [`Table::register`] and the drop of
/// what it returns change that, and the stack alone writes to the table then.
pub(crate) struct Table<T: Kind> {
    operations: UnsafeCell<bindings::rtnl_link_ops>,
    registered: AtomicBool,
    // Whether the registration is being dropped: the stack then deletes all links of the kind, as
    // if by request.
    ends: AtomicBool,
    _kind: PhantomData<fn(T)>,
}

// SAFETY: The table is written by the stack, under locks of its own, and by `register`, once.
unsafe impl<T: Kind> Sync for Table<T> {}

/// The registration of a kind. Dropping it removes all children.
pub(crate) struct Registration<T: Kind>(PhantomData<fn(T)>);

impl<T: Kind> Table<T> {
    /// A table that the stack does not have.
    pub(crate) const fn new() -> Self {
        let mut operations: bindings::rtnl_link_ops = pin_init::zeroed();
        operations.kind = c"ipoib".to_bytes_with_nul().as_ptr().cast();
        operations.priv_size = device::private_size::<T>();
        operations.setup = Some(device::setup::<T>);
        operations.netns_refund = true;
        operations.maxtype = bindings::OXIB_LINK_ATTRIBUTES;
        operations.newlink = Some(Self::newlink);
        operations.changelink = Some(Self::changelink);
        operations.dellink = Some(Self::dellink);
        operations.get_size = Some(Self::size);
        operations.fill_info = Some(Self::fill);
        operations.get_link_net = Some(Self::link_net);
        operations.get_num_tx_queues = Some(Self::queues);
        operations.get_num_rx_queues = Some(Self::queues);
        Self {
            operations: UnsafeCell::new(operations),
            registered: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            _kind: PhantomData,
        }
    }

    /// Gives the stack the kind.
    ///
    /// # Errors
    ///
    /// `EEXIST` if another driver has it, and the stack's error.
    pub(crate) fn register(&'static self) -> Result<Registration<T>> {
        if self.registered.load(Ordering::Acquire) {
            return Err(EBUSY);
        }
        let table = self.operations.get();
        // SAFETY: Not registered, so the table is ours; it lives as long as the module.
        kernel::error::to_result(unsafe {
            (*table).policy = (&raw const bindings::oxib_link_policy).cast();
            bindings::rtnl_link_register(table)
        })?;
        // INVARIANT: Registered in the lines above.
        self.registered.store(true, Ordering::Release);
        Ok(Registration(PhantomData))
    }

    /// The table as devices refer to it; null if it is not registered.
    pub(super) fn as_raw(&self) -> *const bindings::rtnl_link_ops {
        if self.registered.load(Ordering::Acquire) {
            self.operations.get()
        } else {
            core::ptr::null()
        }
    }

    /// The driver of `device`, if it is one of this kind.
    ///
    /// # Safety
    ///
    /// Null, or a registered device that stays so for `'a`.
    unsafe fn driver<'a>(device: *mut bindings::net_device) -> Option<&'a Arc<T>> {
        // SAFETY: The caller gives null, or a registered device that stays so for `'a`.
        let kind = unsafe { device.as_ref() }?.rtnl_link_ops;
        if kind.is_null() || kind != T::table().as_raw() {
            return None;
        }
        // SAFETY: The kind says that the device was made by `Device::<T>`; it stays registered for
        // `'a`, as the caller guarantees.
        unsafe { Device::<T>::driver_of(device) }
    }

    /// Reads what a request asks.
    ///
    /// # Safety
    ///
    /// `attributes` is null or an array for the kind's numbers.
    unsafe fn read(attributes: *mut *mut bindings::nlattr) -> Request {
        let value = |number| {
            let mut value = 0;
            // SAFETY: The caller gives null, or an array for the kind's numbers; this is one of
            // them.
            unsafe { bindings::oxib_attribute(attributes, number, &mut value) }.then_some(value)
        };
        Request {
            pkey: value(bindings::IFLA_IPOIB_PKEY),
            mode: value(bindings::IFLA_IPOIB_MODE),
            umcast: value(bindings::IFLA_IPOIB_UMCAST),
        }
    }

    /// Implements `newlink` with `Kind::make_child`.
    ///
    /// # Safety
    ///
    /// Called by the stack with the RTNL held, with a device that it has just allocated for the
    /// kind, and a valid request.
    unsafe extern "C" fn newlink(
        device: *mut bindings::net_device,
        params: *mut bindings::rtnl_newlink_params,
        extack: *mut bindings::netlink_ext_ack,
    ) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack holds the RTNL, and gives a valid request with attributes of the
            // kind; `extack` is null or this thread's.
            let (mut rtnl, mut reply, request) = unsafe {
                (
                    Rtnl::assume_held(),
                    ExtendedAck::from_raw(extack),
                    Self::read((*params).data),
                )
            };
            // SAFETY: The stack gives a valid request; a link is only looked for if the request
            // names one.
            let below = unsafe {
                if !bindings::oxib_newlink_names_link(params) {
                    let text = fmt!("give the interface to be the child of, with \"link\"");
                    return Err(reply.refuse(EINVAL, text));
                }
                bindings::oxib_newlink_link(params)
            };
            if below.is_null() {
                return Err(reply.refuse(ENODEV, fmt!("the parent (link) does not exist")));
            }
            // SAFETY: Registered, and stays so while the RTNL is held.
            let Some(parent) = (unsafe { Self::driver(below) }) else {
                let text = fmt!("the parent (link) is not an interface of oxib's");
                return Err(reply.refuse(EINVAL, text));
            };
            // SAFETY: The stack has just allocated the device for this kind. If it is not shown,
            // the stack frees it after we return, and so after `lent` was waited for.
            let (device, lent) = unsafe { Device::<T>::borrow(device) }?;
            let made = T::make_child(parent, &mut rtnl, &device, request, &mut reply)
                .and_then(|driver| device.show(&mut rtnl, driver));
            drop(device);
            match made {
                Ok(()) => Ok(0),
                Err(error) => {
                    // The stack frees it next.
                    lent.wait_until_unused();
                    Err(error)
                }
            }
        })
    }

    /// Implements `changelink` with `Kind::change`.
    ///
    /// # Safety
    ///
    /// Called by the stack with the RTNL held, on a registered device of the kind.
    unsafe extern "C" fn changelink(
        device: *mut bindings::net_device,
        _tb: *mut *mut bindings::nlattr,
        data: *mut *mut bindings::nlattr,
        extack: *mut bindings::netlink_ext_ack,
    ) -> i32 {
        kernel::error::from_result(|| {
            // SAFETY: The stack calls this on a registered device of the kind with the RTNL held;
            // `data` is null or has the kind's attributes, and `extack` is null or this thread's.
            let (mut rtnl, mut reply, request, driver) = unsafe {
                (
                    Rtnl::assume_held(),
                    ExtendedAck::from_raw(extack),
                    Self::read(data),
                    Self::driver(device),
                )
            };
            driver
                .ok_or(ENODEV)?
                .change(&mut rtnl, request, &mut reply)?;
            Ok(0)
        })
    }

    /// Implements `dellink`: children are removed, a port's own device stays.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::changelink`] hold; `head` is a list of devices to be removed.
    unsafe extern "C" fn dellink(
        device: *mut bindings::net_device,
        head: *mut bindings::list_head,
    ) {
        // SAFETY: The stack calls this on a registered device of the kind, with the RTNL held.
        match unsafe { Self::driver(device) } {
            // SAFETY: The device is registered, the RTNL held, and `head` a list of devices to be
            // removed.
            Some(driver) if driver.parent().is_some() => unsafe {
                bindings::unregister_netdevice_queue(device, head)
            },
            Some(driver) if !T::table().ends.load(Ordering::Acquire) => driver.stays(),
            _ => {}
        }
    }

    /// Implements `get_size`: the room for [`Self::fill`], in bytes.
    ///
    /// # Safety
    ///
    /// Called by the stack.
    unsafe extern "C" fn size(_device: *const bindings::net_device) -> usize {
        bindings::OXIB_LINK_INFO_SIZE as usize
    }

    /// Implements `fill_info` with `Kind::settings`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::changelink`] hold; `skb` is the answer being made.
    unsafe extern "C" fn fill(
        skb: *mut bindings::sk_buff,
        device: *const bindings::net_device,
    ) -> i32 {
        // SAFETY: The stack calls this on a registered device of the kind, with the RTNL held.
        let Some(driver) = (unsafe { Self::driver(device.cast_mut()) }) else {
            return 0;
        };
        let settings = driver.settings();
        for (number, value) in [
            (bindings::IFLA_IPOIB_PKEY, settings.pkey),
            (bindings::IFLA_IPOIB_MODE, settings.mode),
            (bindings::IFLA_IPOIB_UMCAST, u16::from(settings.umcast)),
        ] {
            // SAFETY: `skb` is the answer that the stack is making.
            let result = unsafe { bindings::oxib_put_attribute(skb, number, value) };
            if result != 0 {
                return result;
            }
        }
        0
    }

    /// The network namespace of the parent.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::changelink`] hold, but RCU may be held instead of the RTNL.
    unsafe extern "C" fn link_net(device: *const bindings::net_device) -> *mut bindings::net {
        // SAFETY: The device is a registered one of the kind, and stays so while the stack holds
        // the RTNL or RCU.
        let driver = unsafe { Self::driver(device.cast_mut()) };
        let below = driver.and_then(|driver| driver.parent());
        let device = below.map_or(device, |parent| parent.device().as_raw().cast_const());
        // SAFETY: The device itself, or its parent, which it holds.
        unsafe { bindings::oxib_netdev_net(device) }
    }

    /// Implements `get_num_tx_queues` and `get_num_rx_queues`.
    ///
    /// # Safety
    ///
    /// Called by the stack.
    unsafe extern "C" fn queues() -> u32 {
        kernel::cpu::nr_cpu_ids().min(T::MAX_QUEUES)
    }
}

impl<T: Kind> Drop for Registration<T> {
    fn drop(&mut self) {
        let table = T::table();
        table.ends.store(true, Ordering::Release);
        // SAFETY: Registered by `Table::register`.
        unsafe { bindings::rtnl_link_unregister(table.operations.get()) };
        // INVARIANT: Ended in the line above.
        table.registered.store(false, Ordering::Release);
        table.ends.store(false, Ordering::Release);
    }
}
