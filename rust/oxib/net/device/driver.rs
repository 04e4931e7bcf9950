// SPDX-License-Identifier: GPL-2.0-only

//! Drivers of net devices: the calls that the stack makes.

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

use super::Device;
use crate::{
    net::{
        ethtool,
        extack::ExtendedAck,
        queue::Queue,
        queue_statistics::{
            Received,
            Sent, //
        },
        rtnl::Rtnl,
        skb::Skb, //
    },
    rdma::{
        device::Device as RdmaDevice,
        port::PortNumber, //
    },
    wire::hwaddr::HwAddr, //
};

/// A driver of a net device, called by the stack.
pub(crate) trait Operations: Send + Sync + Sized + 'static {
    /// Data of one transmit queue while the device is up.
    type TxQueue: Send;

    /// Most transmit queues of a device.
    const MAX_QUEUES: u32;

    /// The device that is driven.
    fn device(&self) -> &Device<Self>;

    /// The RDMA device and the port below.
    fn place(&self) -> (&RdmaDevice, PortNumber);

    /// The driver of the device's parent; `None` if the device is not a child.
    fn parent(&self) -> Option<&Arc<Self>>;

    /// Begins the driver's work: the device is visible from now on.
    fn shown(self: &Arc<Self>, rtnl: &mut Rtnl);

    /// Begins nothing new from now on: the device goes away, or could not be shown. It is down.
    fn leaving(self: &Arc<Self>, rtnl: &mut Rtnl);

    /// Waits for the driver's own work, which may take the RTNL: the stack has let go of the
    /// device. Sleeps. Only a driver that was shown has work.
    fn gone(self: &Arc<Self>);

    /// Brings the device up. On an error it stays down, and nothing is left behind.
    fn open(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result;

    /// Takes the device down.
    fn stop(self: &Arc<Self>, rtnl: &mut Rtnl);

    /// Sends a packet on a queue with its lock held.
    fn transmit(&self, data: &mut Self::TxQueue, queue: Queue<'_>, packet: Skb);

    /// The transmit queue of a packet to `address`, on a device that chooses itself
    /// ([`Device::set_connected`]).
    fn select_queue(&self, address: &HwAddr) -> u32;

    /// Changes the MTU; checked against the device's bounds already.
    ///
    /// # Errors
    ///
    /// Any; the MTU stays as it is.
    fn change_mtu(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result;

    /// Changes the hardware address.
    ///
    /// # Errors
    ///
    /// Any; the address stays as it is.
    fn set_mac_address(self: &Arc<Self>, rtnl: &mut Rtnl, address: HwAddr) -> Result;

    /// Handles a change of the list of multicast addresses. Called with bottom halves disabled.
    fn set_rx_mode(self: &Arc<Self>);

    /// Handles a queue that has been stopped for longer than the watchdog's time.
    fn tx_timeout(self: &Arc<Self>, queue: u32);

    /// Takes note that no neighbour answers any more at this address. Called in any context.
    fn neighbour_failed(self: &Arc<Self>, address: &HwAddr);

    /// Names of the driver's statistics, for `ethtool -S`.
    const STATISTICS: &'static [&'static CStr];

    /// Writes the values of the statistics, in the order of the names; `values` is as long as
    /// [`Self::STATISTICS`].
    fn statistics(&self, values: &mut [u64]);

    /// Returns the counts of receive queue `queue` since the device was made.
    fn received(&self, queue: u32) -> Received;

    /// Returns the counts of packets that came by none of the receive queues.
    fn received_otherwise(&self) -> Received;

    /// Returns the counts of transmit queue `queue` since the device was made.
    fn sent(&self, queue: u32) -> Sent;

    /// Lengths of the send and receive rings, for `ethtool -g`.
    fn rings(&self) -> ethtool::Rings;

    /// Changes the lengths of the rings, for `ethtool -G`.
    ///
    /// # Errors
    ///
    /// Any, said in `reply`; the rings stay as they are if they can.
    fn set_rings(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        send: u32,
        receive: u32,
        reply: &mut ExtendedAck<'_>,
    ) -> Result;

    /// Numbers of queues, for `ethtool -l`.
    fn channels(&self) -> ethtool::Channels;

    /// Changes the numbers of queues, for `ethtool -L`.
    ///
    /// # Errors
    ///
    /// Any; the queues stay as they are if they can.
    fn set_channels(self: &Arc<Self>, rtnl: &mut Rtnl, transmit: u32, receive: u32) -> Result;

    /// Moderation of receive completions, for `ethtool -c`.
    fn coalesce(&self, rtnl: &mut Rtnl) -> ethtool::Moderation;

    /// Changes the moderation of receive completions, for `ethtool -C`.
    ///
    /// # Errors
    ///
    /// Any, said in `reply`.
    fn set_coalesce(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        moderation: ethtool::Moderation,
        reply: &mut ExtendedAck<'_>,
    ) -> Result;
}
