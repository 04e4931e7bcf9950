// SPDX-License-Identifier: GPL-2.0-only

//! Host channel adapters: what an InfiniBand device does between the verbs and the cable.
//!
//! Locks are taken in this order: queue pair, shared receive queue, port, tables; a completion queue's with any of
//! them. None is held when a consumer is called or a frame is sent.

use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    workqueue::{
        self,
        Work,
        WorkItem, //
    }, //
};

use crate::net::{
    cable::Plug,
    frame::{
        Frame,
        Queue, //
    },
    line::Line, //
};

pub(crate) mod address;
pub(crate) mod completion;
pub(crate) mod counters;
mod datagram;
mod groups;
pub(crate) mod limits;
pub(crate) mod port;
pub(crate) mod queue_pair;
mod queue_pairs;
pub(crate) mod receive;
pub(crate) mod region;

use counters::Counters;
use groups::Groups;
use port::Ports;
use queue_pairs::QueuePairs;
use region::Regions;

/// What better or worse hardware a device stands for.
#[derive(Clone)]
pub(crate) struct Options {
    /// Bytes of a send that may stand in the request itself.
    pub(crate) max_inline: u32,
}

impl Options {
    pub(crate) const DEFAULT: Self = Self { max_inline: 256 };
}

/// A host channel adapter.
#[pin_data]
pub(crate) struct Hca {
    pub(crate) options: Options,
    pub(crate) device: crate::provider::device::Handle,
    #[pin]
    pub(crate) ports: Ports,
    /// Of each port, from the first.
    lines: KVec<Arc<Line>>,
    #[pin]
    pub(crate) queue_pairs: QueuePairs,
    #[pin]
    pub(crate) groups: Groups,
    #[pin]
    pub(crate) regions: Regions,
    pub(crate) counters: Counters,
    /// Packets of a port to itself.
    #[pin]
    loopback: Queue,
    #[pin]
    loopback_work: Work<Hca, 0>,
}

impl_has_work! {
    impl HasWork<Self, 0> for Hca { self.loopback_work }
}

impl WorkItem<0> for Hca {
    type Pointer = Arc<Hca>;

    fn run(this: Arc<Hca>) {
        while let Some(frame) = this.loopback.pop() {
            // As a packet from a net device comes.
            let _guard = rcu::read_lock();
            this.receive(1, &frame);
        }
    }
}

impl Hca {
    /// Makes one with a port for each line.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(
        options: Options,
        _name: &CStr,
        guids: &[u64],
        lines: KVec<Arc<Line>>,
    ) -> Result<Arc<Self>> {
        let counters = Counters::new();
        Arc::try_pin_init(
            try_pin_init!(Self {
                options,
                device: crate::provider::device::Handle::new(),
                ports <- Ports::new(guids)?,
                lines,
                queue_pairs <- QueuePairs::new(),
                groups <- Groups::new(),
                regions <- Regions::new(),
                counters,
                loopback <- Queue::new(),
                loopback_work <- new_work!("softib_loopback"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// How many ports there are.
    pub(crate) fn ports(&self) -> u8 {
        self.lines.len() as u8
    }

    /// What the port of that place, from 0, sends on.
    pub(crate) fn line(&self, place: usize) -> Option<Arc<Line>> {
        self.lines.get(place).cloned()
    }

    /// Ends what runs by itself. Sleeps.
    pub(crate) fn stop(self: &Arc<Self>) {}

    /// Sends a frame on a port's cable. Any context.
    pub(crate) fn transmit(&self, port: u8, frame: Frame) {
        let line = usize::from(port)
            .checked_sub(1)
            .and_then(|place| self.lines.get(place));
        if let Some(line) = line {
            line.send(frame);
        }
    }

    /// Lets a port receive its own frame. Any context.
    pub(crate) fn loop_back(self: &Arc<Self>, frame: Frame) {
        self.loopback.push(frame);
        // If it waits already it will see this frame too.
        let _ = workqueue::system_bh().enqueue::<_, 0>(self.clone());
    }
}

impl Plug for Hca {
    fn received(self: &Arc<Self>, port: u8, frame: Frame) {
        self.receive(port, &frame);
    }

    fn carrier(self: &Arc<Self>, port: u8, up: bool) {
        self.ports.carrier(self, port, up);
    }

    fn unplugged(self: &Arc<Self>, port: u8) {
        self.ports.carrier(self, port, false);
        self.device.unregister_soon();
    }
}
