// SPDX-License-Identifier: GPL-2.0-only

//! Statistics of a device's queues, as netlink shows them (the family `netdev`, request
//! `qstats-get`).

use super::device::{
    Device,
    Operations, //
};
use crate::bindings;

/// Counts of a receive queue, or of several.
#[derive(Clone, Copy, Default)]
pub(crate) struct Received {
    /// Packets that the stack got.
    pub(crate) packets: u64,
    /// Bytes of these packets.
    pub(crate) bytes: u64,
    /// Packets lost for want of memory.
    pub(crate) no_memory: u64,
}

/// Counts of a transmit queue, or of several.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    /// Packets that the device has sent.
    pub(crate) packets: u64,
    /// Bytes of these packets.
    pub(crate) bytes: u64,
    /// Times that the stack was told to stop.
    pub(crate) stops: u64,
    /// Packets that were cut into segments below the stack.
    pub(crate) long: u64,
    /// Segments that they were cut into.
    pub(crate) parts: u64,
}

impl core::ops::AddAssign for Received {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.no_memory += other.no_memory;
    }
}

impl core::ops::AddAssign for Sent {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.stops += other.stops;
        self.long += other.long;
        self.parts += other.parts;
    }
}

impl Received {
    fn write_to(self, out: &mut bindings::netdev_queue_stats_rx) {
        out.packets = self.packets;
        out.bytes = self.bytes;
        out.alloc_fail = self.no_memory;
    }
}

impl Sent {
    fn write_to(self, out: &mut bindings::netdev_queue_stats_tx) {
        out.packets = self.packets;
        out.bytes = self.bytes;
        out.stop = self.stops;
        out.hw_gso_packets = self.long;
        out.hw_gso_wire_packets = self.parts;
    }
}

/// The C table for a driver `T`.
pub(super) struct Table<T>(core::marker::PhantomData<T>);

impl<T: Operations> Table<T> {
    pub(super) const OPERATIONS: bindings::netdev_stat_ops = bindings::netdev_stat_ops {
        get_queue_stats_rx: Some(Self::receive_queue),
        get_queue_stats_tx: Some(Self::transmit_queue),
        get_base_stats: Some(Self::others),
    };

    /// Implements `get_queue_stats_rx` with `Operations::received`.
    ///
    /// # Safety
    ///
    /// Called by the stack on a registered device of ours, with the RTNL held; `out` is valid.
    unsafe extern "C" fn receive_queue(
        device: *mut bindings::net_device,
        queue: i32,
        out: *mut bindings::netdev_queue_stats_rx,
    ) {
        // SAFETY: The stack calls this on a registered device of ours with the RTNL held; `out` is
        // valid.
        let (driver, out) = unsafe { (Device::<T>::driver_of(device), &mut *out) };
        if let Some(driver) = driver {
            driver.received(queue as u32).write_to(out);
        }
    }

    /// Implements `get_queue_stats_tx` with `Operations::sent`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::receive_queue`] hold.
    unsafe extern "C" fn transmit_queue(
        device: *mut bindings::net_device,
        queue: i32,
        out: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: The stack calls this on a registered device of ours with the RTNL held; `out` is
        // valid.
        let (driver, out) = unsafe { (Device::<T>::driver_of(device), &mut *out) };
        if let Some(driver) = driver {
            driver.sent(queue as u32).write_to(out);
        }
    }

    /// Implements `get_base_stats`: the counts that belong to no queue that is shown.
    ///
    /// # Safety
    ///
    /// The requirements of [`Self::receive_queue`] hold.
    unsafe extern "C" fn others(
        device: *mut bindings::net_device,
        received: *mut bindings::netdev_queue_stats_rx,
        sent: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: The stack calls this on a registered device of ours with the RTNL held;
        // `received` and `sent` are valid.
        let (driver, received, sent) =
            unsafe { (Device::<T>::driver_of(device), &mut *received, &mut *sent) };
        let Some(driver) = driver else {
            return;
        };
        let channels = driver.channels();
        let queues = driver.device().queues();
        let mut rest = driver.received_otherwise();
        for queue in channels.receive..queues {
            rest += driver.received(queue);
        }
        rest.write_to(received);
        let mut rest = Sent::default();
        for queue in channels.transmit..queues {
            rest += driver.sent(queue);
        }
        rest.write_to(sent);
    }
}
