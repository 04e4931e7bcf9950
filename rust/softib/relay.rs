// SPDX-License-Identifier: GPL-2.0-only

//! The part that switches and routers have in common: ports with cables, a decider, and packets
//! that pass on.

mod counters;

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
    workqueue::{
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    }, //
};

use crate::{
    fabric::{
        counters::PortCounts,
        events::Changes,
        port::Port,
        Cabled,
        Discard,
        Events,
        OUT_LEN, //
    },
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    net::{
        cable::{
            Cable,
            NetDevice,
            Plug, //
        },
        crc::crc32,
        frame::Frame,
        line::Line, //
    },
    wire::{
        packet::{
            Head,
            Packet,
            ETHERNET_MIN, //
        },
        smp::port::Physical, //
    },
    work, //
};

pub(crate) use counters::Cause;
use counters::PortCounters;

/// A node that decides where packets go.
pub(crate) trait Decide: Cabled + Send + Unpin + 'static {
    /// Passes a packet on. Runs in soft interrupt context.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    fn pass(relay: &Arc<Relay<Self>>, port: u8, frame: Frame) -> Result<(), Cause>;
}

/// A switch or a router with its cables.
#[pin_data]
pub(crate) struct Relay<D: Decide> {
    #[pin]
    decider: IrqLock<D>,
    /// The sending sides of the ports' cables, port 1 first.
    lines: KVec<Arc<Line>>,
    counters: KVec<PortCounters>,
    queue: work::Queue,
    epoch: Instant<Monotonic>,
    #[pin]
    traps: DelayedWork<Relay<D>>,
}

impl_has_delayed_work! {
    impl{D: Decide} HasDelayedWork<Self> for Relay<D> { self.traps }
}

impl<D: Decide> WorkItem for Relay<D> {
    type Pointer = Arc<Relay<D>>;

    fn run(this: Arc<Relay<D>>) {
        this.send_traps();
    }
}

/// A relay that is switched on. Dropping it takes it from its cables.
pub(crate) struct Running<D: Decide> {
    relay: Arc<Relay<D>>,
    cables: KVec<Pin<KBox<Cable<Relay<D>>>>>,
}

impl<D: Decide> Running<D> {
    /// Switches a node on, with these net devices for cables, in order. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EBUSY` if a net device is something's part already.
    pub(crate) fn new(decider: D, devices: &[NetDevice]) -> Result<Self> {
        let mut lines = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
        let mut counters = KVec::with_capacity(devices.len(), GFP_KERNEL)?;
        for _ in devices {
            lines.push(Line::new()?, GFP_KERNEL)?;
            counters.push(PortCounters::new(), GFP_KERNEL)?;
        }
        let relay = Arc::pin_init(
            try_pin_init!(Relay {
                decider <- new_irq_lock!(decider, "softib_relay"),
                lines,
                counters,
                queue: work::Queue::new()?,
                epoch: Instant::now(),
                traps <- new_delayed_work!("softib_relay_traps"),
            }? Error),
            GFP_KERNEL,
        )?;
        // If one of the cables fails, the drop of this takes those before it out again.
        let mut this = Self {
            relay,
            cables: KVec::with_capacity(devices.len(), GFP_KERNEL)?,
        };
        for (place, device) in devices.iter().enumerate() {
            let line = this.relay.lines.get(place).ok_or(EINVAL)?.clone();
            let cable = Cable::new(device, line, this.relay.clone(), place as u8 + 1)?;
            this.cables.push(cable, GFP_KERNEL)?;
        }
        Ok(this)
    }
}

impl<D: Decide> Running<D> {
    /// Returns the relay that runs.
    pub(crate) fn relay(&self) -> &Arc<Relay<D>> {
        &self.relay
    }
}

impl<D: Decide> Drop for Running<D> {
    fn drop(&mut self) {
        // The cables first: their events schedule the work that is disabled next.
        self.cables.clear();
        work::disable::<_, 0>(&self.relay);
    }
}

impl<D: Decide> Relay<D> {
    /// Returns the nanoseconds since it was switched on.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(0)
    }

    /// Runs `ask` on the decider, under its lock.
    #[inline]
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&mut D) -> R) -> R {
        self.decider.with(ask)
    }

    /// The counters of a port.
    fn counters_of(&self, port: u8) -> Option<&PortCounters> {
        self.counters.get(usize::from(port).checked_sub(1)?)
    }

    /// Returns the counters of a port that its performance agent reports.
    pub(crate) fn counts_of(&self, port: u8) -> PortCounts {
        self.counters_of(port)
            .map_or(PortCounts::default(), PortCounters::read)
    }

    /// Tells the number of packets that all ports have dropped, by cause: a name and a number for
    /// each cause.
    pub(crate) fn drops(&self, mut tell: impl FnMut(&str, u64)) {
        let sum = |of: &dyn Fn(&PortCounters) -> u64| self.counters.iter().map(of).sum();
        tell("malformed", sum(&PortCounters::malformed));
        tell("no_memory", sum(&PortCounters::no_memory));
        for discard in Discard::ALL {
            tell(discard.name(), sum(&|port| port.discarded(discard)));
        }
    }

    fn line(&self, port: u8) -> Option<&Arc<Line>> {
        self.lines.get(usize::from(port).checked_sub(1)?)
    }

    /// Sends a packet by a port.
    pub(crate) fn send(&self, port: u8, frame: Frame) {
        let Some(line) = self.line(port) else {
            return;
        };
        if let Some(counters) = self.counters_of(port) {
            counters.sent.count(frame.bytes());
        }
        // What there is no room for is lost, as in a switch whose buffers are full.
        let _ = line.send(frame);
    }

    /// Sends a packet that is complete.
    pub(crate) fn send_bytes(&self, port: u8, bytes: &[u8]) {
        let Ok(mut frame) = Frame::new(bytes.len()) else {
            return;
        };
        if let Ok(room) = frame.bytes_mut() {
            room.copy_from_slice(bytes);
            self.send(port, frame);
        }
    }

    /// Serves a packet for the node itself.
    ///
    /// # Errors
    ///
    /// Why it is dropped.
    pub(crate) fn serve(self: &Arc<Self>, port: u8, frame: &Frame) -> Result<(), Cause> {
        let packet = Packet::parse(frame.bytes())?;
        // A frame that was made on this node and never left to others cannot be damaged.
        if !frame.is_own() && !packet.head.is_intact(crc32) {
            return Err(Cause::Malformed);
        }
        let mut out = [0; OUT_LEN];
        let now = self.now();
        let counters = |port: u8| self.counts_of(port);
        let received = self
            .decider
            .with(|decider| decider.receive(port, &packet, now, &counters, &mut out));
        // No lock is held while a frame is sent: the other end may take it at once.
        if let Some(bytes) = received.answer.and_then(|answer| out.get(..answer.len)) {
            let port = received.answer.map_or(port, |answer| answer.port);
            self.send_bytes(port, bytes);
        }
        self.follow(&received.events);
        match received.discard {
            Some(discard) => Err(discard.into()),
            None => Ok(()),
        }
    }

    /// Carries out what a change has started.
    pub(crate) fn follow(self: &Arc<Self>, events: &Events) {
        if events.changes.contains(Changes::TRAP) {
            // The lock keeps calls for this work one at a time, as `reschedule` wants them.
            self.decider
                .with(|_decider| self.queue.reschedule::<_, 0>(self, 0));
        }
        let (Some(command), Some(line)) = (events.link, self.line(events.port)) else {
            return;
        };
        if line.command(command) {
            self.set_carrier(events.port, true);
        }
    }

    fn send_traps(self: &Arc<Self>) {
        let mut out = [0; OUT_LEN];
        loop {
            let now = self.now();
            let polled = self.decider.with(|decider| {
                let polled = decider.poll(now, &mut out);
                if let (None, Some(next)) = (polled.send, polled.next) {
                    let delay = next.saturating_sub(now).div_ceil(1_000_000);
                    let delay = u32::try_from(delay).unwrap_or(u32::MAX);
                    self.queue.reschedule::<_, 0>(self, msecs_to_jiffies(delay));
                }
                polled
            });
            let Some(answer) = polled.send else {
                return;
            };
            if let Some(bytes) = out.get(..answer.len) {
                self.send_bytes(answer.port, bytes);
            }
        }
    }

    fn set_carrier(self: &Arc<Self>, port: u8, up: bool) {
        let now = self.now();
        let events = self.decider.with(|decider| decider.carrier(port, up, now));
        let downed = !up && events.changes.contains(Changes::STATE);
        if let (true, Some(counters)) = (downed, self.counters_of(port)) {
            counters.count_link_downed();
        }
        self.follow(&events);
        // A port that a subnet manager disabled does not want the cable that was put in.
        let is_disabled = |port: &Port| port.info().physical() == Physical::Disabled;
        let ask = |decider: &mut D| decider.node().port(port).is_some_and(is_disabled);
        if let (true, Some(line)) = (up && self.decider.with(ask), self.line(port)) {
            line.refuse();
        }
    }
}

impl<D: Decide> Plug for Relay<D> {
    fn received(self: &Arc<Self>, port: u8, mut frame: Frame) {
        let Some(counters) = self.counters_of(port) else {
            return;
        };
        counters.received.count(frame.bytes());
        // Padding of short frames by Ethernet goes no further.
        if frame.bytes().len() <= ETHERNET_MIN {
            let packet = Head::parse(frame.bytes()).map(|head| head.bytes.len());
            if let Ok(length) = packet {
                frame.truncate(length);
            }
        }
        if let Err(cause) = D::pass(self, port, frame) {
            counters.count_drop(&cause);
        }
    }

    fn carrier(self: &Arc<Self>, port: u8, up: bool) {
        self.set_carrier(port, up);
    }

    fn unplugged(self: &Arc<Self>, port: u8) {
        self.set_carrier(port, false);
    }
}
