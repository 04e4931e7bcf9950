// SPDX-License-Identifier: GPL-2.0-only

//! Cables: a net device whose frames are a port's packets.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};

use super::{
    frame::Frame,
    line::Line,
    notifier,
    rtnl::{
        self,
        Rtnl, //
    },
    signal::Signal, //
};
use crate::bindings;

/// The largest packet: 4096 bytes of data, all headers (IBTA 7.7.1) and room to spare.
const PACKET: u32 = 4096 + 128;

/// An owner of ports, which cables are plugged into.
pub(crate) trait Plug: Send + Sync + 'static {
    /// A packet came in at a port. In soft interrupt context.
    fn received(self: &Arc<Self>, port: u8, frame: Frame);

    /// The cable of a port has a live other end now, or has no longer. Any context.
    fn carrier(self: &Arc<Self>, port: u8, up: bool);

    /// The net device of a port goes away; the port has no cable any more. The RTNL lock is held.
    fn unplugged(self: &Arc<Self>, port: u8);
}

/// The reason for which a net device cannot be a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unfit {
    /// The net device carries no Ethernet frames.
    NoEthernet,
    /// Somebody else takes its frames.
    Taken,
}

impl Unfit {
    /// The error that it is to who wants it.
    pub(crate) fn error(self) -> Error {
        match self {
            Self::NoEthernet => EINVAL,
            Self::Taken => EBUSY,
        }
    }

    /// Returns the reason and the remedy, to follow the name of the device in a message.
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::NoEthernet => "is no Ethernet device, as a cable has to be: name another",
            Self::Taken => {
                "is another port's cable already, or part of a bridge, a bond or the like: take \
                 it from there first, or name another"
            }
        }
    }
}

/// A net device as somebody named it.
///
/// # Invariants
///
/// A reference to it is held.
pub(crate) struct NetDevice(core::ptr::NonNull<bindings::net_device>);

// SAFETY: Net devices are used from all threads.
unsafe impl Send for NetDevice {}
// SAFETY: The methods that take a shared reference call functions of the network stack that any
// thread may call.
unsafe impl Sync for NetDevice {}

impl NetDevice {
    /// Takes a net device, with a reference of its own.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the pointer is null.
    ///
    /// # Safety
    ///
    /// `device` is valid.
    pub(crate) unsafe fn from_raw(device: *mut bindings::net_device) -> Result<Self> {
        let device = core::ptr::NonNull::new(device).ok_or(ENODEV)?;
        // SAFETY: The caller gives a valid device, so that a reference can be taken.
        unsafe { bindings::softib_dev_hold(device.as_ptr()) };
        // INVARIANT: Just taken.
        Ok(Self(device))
    }

    /// Finds the net device of a name, in the network namespace of the caller's process.
    ///
    /// # Errors
    ///
    /// `ENODEV`.
    pub(crate) fn find(name: &CStr) -> Result<Self> {
        // SAFETY: The name ends with a zero; a reference comes with the device.
        let device = unsafe { bindings::softib_find_device(name.as_char_ptr()) };
        // INVARIANT: As above.
        core::ptr::NonNull::new(device).map(Self).ok_or(ENODEV)
    }

    /// The device, valid as long as `self`.
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.as_ptr()
    }

    /// Checks whether the net device can be a port's cable.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn check(&self) -> Result<(), Unfit> {
        // SAFETY: By the type invariant the device is valid.
        if !unsafe { bindings::softib_is_ethernet(self.as_raw()) } {
            return Err(Unfit::NoEthernet);
        }
        let _rtnl = rtnl::lock();
        // SAFETY: By the type invariant the device is valid; the RTNL lock is held, as it has to
        // be.
        if unsafe { bindings::netdev_is_rx_handler_busy(self.as_raw()) } {
            return Err(Unfit::Taken);
        }
        Ok(())
    }

    /// Returns the device's Ethernet address.
    pub(crate) fn address(&self) -> [u8; 6] {
        let mut address = [0; 6];
        // SAFETY: By the type invariant the device is valid; the buffer is as long as an address.
        unsafe { bindings::softib_hardware_address(self.as_raw(), address.as_mut_ptr()) };
        address
    }

    /// Makes a globally unique identifier of the Ethernet address, as RFC 4291 makes an
    /// interface's, with `number` for devices that have more than one.
    pub(crate) fn guid(&self, number: u8) -> u64 {
        let [a, b, c, d, e, f] = self.address();
        u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe ^ number, d, e, f])
    }
}

/// Compares the devices: one may have two names.
impl PartialEq for NetDevice {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Drop for NetDevice {
    fn drop(&mut self) {
        // SAFETY: By the type invariant a reference is held.
        unsafe { bindings::softib_dev_put(self.as_raw()) };
    }
}

/// A cable in a port. Dropping it takes it out; nothing of the owner runs for it afterwards.
///
/// # Invariants
///
/// While `plugged`, the device's receive handler is ours with a pointer to this, and the notifier
/// knows this. `end` is the first of its fields.
#[repr(C)]
#[pin_data(PinnedDrop)]
pub(crate) struct Cable<P: Plug> {
    end: bindings::softib_end,
    device: *mut bindings::net_device,
    plugged: AtomicBool,
    line: Arc<Line>,
    owner: Arc<P>,
    port: u8,
}

// SAFETY: The device pointer is used with the RTNL lock held only, for comparing and while plugged.
unsafe impl<P: Plug> Send for Cable<P> {}
// SAFETY: A shared reference reads the device pointer with the RTNL lock held only; `plugged` is
// atomic.
unsafe impl<P: Plug> Sync for Cable<P> {}

impl<P: Plug> Cable<P> {
    /// Makes `device` the cable of `owner`'s port, whose packets go out on `line`. Sleeps; takes
    /// the RTNL lock.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the net device is part of something already (a bridge's, or another port's
    /// cable); `ENODEV` if it is going away.
    pub(crate) fn new(
        device: &NetDevice,
        line: Arc<Line>,
        owner: Arc<P>,
        port: u8,
    ) -> Result<Pin<KBox<Self>>> {
        let this = KBox::pin(
            Self {
                end: bindings::softib_end {
                    receive: Some(received::<P>),
                },
                device: device.as_raw(),
                plugged: AtomicBool::new(false),
                line,
                owner,
                port,
            },
            GFP_KERNEL,
        )?;
        // The lock is free again when a cable that could not be plugged in is dropped.
        let plugged = this.plug(&mut rtnl::lock());
        plugged.map(|()| this)
    }

    fn plug(&self, rtnl: &mut Rtnl) -> Result {
        // SAFETY: The caller of `new` holds the device.
        if !unsafe { bindings::softib_is_registered(self.device) } {
            return Err(ENODEV);
        }
        // SAFETY: The drop of `self` takes it out.
        unsafe { notifier::listen(rtnl, self.device, self) }?;
        // SAFETY: The caller of `new` holds the device, and the RTNL lock is held. `self` is
        // pinned and takes the handler away before its end; it begins with the `softib_end` that
        // the handler looks for.
        to_result(unsafe {
            bindings::netdev_rx_handler_register(
                self.device,
                Some(bindings::softib_take_frame),
                core::ptr::from_ref(self).cast_mut().cast(),
            )
        })
        .inspect_err(|_| notifier::ignore(rtnl, self))?;
        self.plugged.store(true, Ordering::Relaxed);
        // SAFETY: The device is held, and the RTNL lock with it; no data under that lock is
        // borrowed here.
        unsafe {
            bindings::softib_raise_mtu(self.device, PACKET);
            self.line.connect(self.device);
        }
        self.look_for_carrier();
        self.line.tell(Signal::Up);
        Ok(())
    }

    /// Takes the cable out.
    fn unplug(&self, rtnl: &mut Rtnl) {
        if self.plugged.swap(false, Ordering::Relaxed) {
            notifier::ignore(rtnl, self);
            self.line.set_up(false);
            // SAFETY: By the type invariant the handler is ours, and the line holds the device.
            // Both calls wait for users under RCU, so also for senders on the line, and for
            // frames that are being taken.
            self.line.disconnect(|device| unsafe {
                bindings::netdev_rx_handler_unregister(device);
                bindings::softib_crossing_forget(device);
            });
        }
    }

    /// Looks whether the net device carries frames. The RTNL lock is held.
    fn look_for_carrier(&self) {
        // SAFETY: The line holds the device while it is plugged in.
        let up = unsafe { bindings::softib_has_carrier(self.device) };
        // As long as it goes on carrying, only the other end knows whether it is live.
        if self.line.set_up(up) {
            self.owner.carrier(self.port, up);
        }
    }
}

impl<P: Plug> notifier::Listener for Cable<P> {
    fn event(&self, event: u32) {
        match event {
            bindings::netdev_cmd_NETDEV_UNREGISTER => {
                // SAFETY: The lock is held, and nobody uses what it protects during this call.
                self.unplug(&mut unsafe { Rtnl::assume_held() });
                self.owner.unplugged(self.port);
            }
            bindings::netdev_cmd_NETDEV_UP
            | bindings::netdev_cmd_NETDEV_DOWN
            | bindings::netdev_cmd_NETDEV_CHANGE => self.look_for_carrier(),
            _ => (),
        }
    }
}

#[pinned_drop]
impl<P: Plug> PinnedDrop for Cable<P> {
    fn drop(self: Pin<&mut Self>) {
        self.line.stop();
        let mut rtnl = rtnl::lock();
        // The net device still carries, but this end is gone. An end that comes later says so,
        // too.
        if self.plugged.load(Ordering::Relaxed) {
            self.line.say_farewell();
        }
        self.unplug(&mut rtnl);
    }
}

/// Takes a frame that came by a cable.
///
/// # Safety
///
/// Called with the beginning of a [`Cable`] that is plugged in, by the handler of its net device
/// or in its place, in soft interrupt context and under RCU; `skb` is valid, linear, and the
/// callee's alone.
unsafe extern "C" fn received<P: Plug>(
    end: *mut bindings::softib_end,
    skb: *mut bindings::sk_buff,
) {
    // SAFETY: `end` begins a cable that is plugged in, which takes the handler away and waits
    // before it ends; `skb` is valid, linear, and ours alone.
    let (cable, frame) = unsafe { (&*end.cast::<Cable<P>>(), Frame::from_raw(skb)) };
    match Signal::read(frame.bytes()) {
        None => cable.owner.received(cable.port, frame),
        Some(signal) => {
            cable.line.heard(signal);
            cable.owner.carrier(cable.port, signal == Signal::Up);
        }
    }
}
