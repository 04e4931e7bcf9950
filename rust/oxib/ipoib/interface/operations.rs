// SPDX-License-Identifier: GPL-2.0-only

//! Operations of the net device.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    Interface,
    AGE_WORK,
    ANNOUNCE_WORK,
    CONTROL_WORK,
    NOTIFY_WORK,
    RETIRE_WORK,
    RETRY_WORK,
    REVALIDATE_WORK,
    WATCH_WORK, //
};
use crate::{
    ipoib::{
        options::MAX_TX_QUEUES,
        statistics::Statistics,
        transmit::TransmitQueue, //
    },
    net::{
        device::{
            Device,
            Operations, //
        },
        ethtool::{
            self,
            Moderation, //
        },
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
    wire::hwaddr::HwAddr,
    work, //
};

impl Operations for Interface {
    type TxQueue = TransmitQueue;

    const MAX_QUEUES: u32 = MAX_TX_QUEUES;

    const STATISTICS: &'static [&'static CStr] = Statistics::NAMES;

    #[inline(always)]
    fn device(&self) -> &Device<Self> {
        &self.device
    }

    fn place(&self) -> (&RdmaDevice, PortNumber) {
        (self.link().rdma(), self.port)
    }

    fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    fn shown(self: &Arc<Self>, _rtnl: &mut Rtnl) {
        self.join_parent();
        self.shown.store(true, Ordering::Release);
        dev_info!(
            self.rdma(),
            "port {}: IPoIB interface {}\n",
            self.port.get(),
            self.title()
        );
        // Events before were not heard.
        self.kick();
        self.schedule_age();
    }

    fn leaving(self: &Arc<Self>, rtnl: &mut Rtnl) {
        self.closing.store(true, Ordering::Release);
        self.leave_parent();
        // Waits for the listener, which takes no RTNL: it sets flags and schedules work.
        let events = self.control.get(rtnl).events.take();
        drop(events);
    }

    fn gone(self: &Arc<Self>) {
        // These wait for runs that may take the RTNL: it is not held, or no work was ever begun.
        work::disable::<_, RETRY_WORK>(self);
        work::disable::<_, CONTROL_WORK>(self);
        work::disable::<_, AGE_WORK>(self);
        work::disable::<_, REVALIDATE_WORK>(self);
        work::disable::<_, ANNOUNCE_WORK>(self);
        work::disable::<_, NOTIFY_WORK>(self);
        work::disable::<_, RETIRE_WORK>(self);
        work::disable::<_, WATCH_WORK>(self);
        self.link().close();
        self.remove_files();
        // The last of what holds the interface: its queues go with it, and must not do so in one of
        // their tasks. Searches come last, as tasks of the other queues may begin some.
        self.connects.flush();
        self.removals.flush();
        self.searches.flush();
        // A task that ended a connection may have let it drain.
        self.drains.flush();
        self.searches.flush();
        // After the flushes: a task of a queue may have started the service.
        self.connected.stop_service();
        self.exchange.end();
    }

    fn open(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result {
        self.bring_up(rtnl)?;
        self.children_follow();
        Ok(())
    }

    fn stop(self: &Arc<Self>, rtnl: &mut Rtnl) {
        self.take_down(rtnl);
        // One that leaves has no say any more: its children go by themselves.
        if self.is_alive() {
            self.children_follow();
        }
    }

    #[inline(always)]
    fn transmit(&self, data: &mut TransmitQueue, queue: Queue<'_>, packet: Skb) {
        data.transmit(&self.device, queue, packet);
    }

    fn select_queue(&self, address: &HwAddr) -> u32 {
        Interface::select_queue(self, address)
    }

    fn change_mtu(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result {
        Interface::change_mtu(self, rtnl, mtu)
    }

    fn set_mac_address(self: &Arc<Self>, rtnl: &mut Rtnl, address: HwAddr) -> Result {
        Interface::set_mac_address(self, rtnl, address)
    }

    fn set_rx_mode(self: &Arc<Self>) {
        // The stack holds the lock of the address lists here; joining sleeps, so work does it.
        self.kick();
    }

    fn neighbour_failed(self: &Arc<Self>, address: &HwAddr) {
        Interface::neighbour_failed(self, &address.gid());
    }

    fn tx_timeout(self: &Arc<Self>, queue: u32) {
        Interface::tx_timeout(self, queue);
    }

    fn statistics(&self, values: &mut [u64]) {
        values.fill(0);
        let count = self.destinations.lock().len();
        self.statistics.address_count.set(count as u64);
        self.statistics.add_to(values);
        self.connected_statistics.add_to(values);
        let queues = [&self.transmit_statistics, &self.receive_statistics];
        for queue in queues.into_iter().flatten() {
            queue.add_to(values);
        }
    }

    fn received(&self, queue: u32) -> Received {
        let statistics = self.receive_statistics(queue as usize);
        statistics.map_or(Received::default(), |statistics| statistics.received())
    }

    fn received_otherwise(&self) -> Received {
        self.connected_statistics.received()
    }

    fn sent(&self, queue: u32) -> Sent {
        let statistics = self.transmit_statistics(queue as usize);
        statistics.map_or(Sent::default(), |statistics| statistics.sent())
    }

    fn rings(&self) -> ethtool::Rings {
        Interface::rings(self)
    }

    fn set_rings(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        send: u32,
        receive: u32,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        Interface::set_rings(self, rtnl, send, receive, reply)
    }

    fn channels(&self) -> ethtool::Channels {
        Interface::channels(self)
    }

    fn set_channels(self: &Arc<Self>, rtnl: &mut Rtnl, transmit: u32, receive: u32) -> Result {
        Interface::set_channels(self, rtnl, transmit, receive)
    }

    fn coalesce(&self, rtnl: &mut Rtnl) -> Moderation {
        Interface::coalesce(self, rtnl)
    }

    fn set_coalesce(
        self: &Arc<Self>,
        rtnl: &mut Rtnl,
        moderation: Moderation,
        reply: &mut ExtendedAck<'_>,
    ) -> Result {
        Interface::set_coalesce(self, rtnl, moderation, reply)
    }
}
