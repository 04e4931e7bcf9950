// SPDX-License-Identifier: GPL-2.0-only

//! Host channel adapters: what an InfiniBand device does between the verbs and the cable.
//!
//! Lock order: queue pair, shared receive queue, port, tables. The lock of a completion queue may
//! be taken under any of them. No lock is held while a consumer is called or a frame is sent.
//!
//! Memory of an object whose size its consumer chooses (queues, regions) is charged to the memory
//! cgroup of the consumer (`GFP_KERNEL_ACCOUNT`); that of a device and its tables is not. Of other
//! objects there is a limited number.

use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    task::might_sleep,
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta,
        Instant,
        Monotonic, //
    },
    workqueue::{
        self,
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    }, //
};

use crate::{
    net::{
        cable::Plug,
        frame::Frame,
        line::Line,
        signal::Signal, //
    },
    provider::{
        device::Event,
        memory::direct_map, //
    },
    transport::time::Time,
    wire::qpn::Qpn,
    work, //
};

pub(crate) mod address;
mod answers;
mod arrival;
mod closing;
pub(crate) mod completion;
mod connection;
pub(crate) mod counters;
mod datagram;
pub(crate) mod faults;
mod groups;
mod handover;
pub(crate) mod limits;
mod link;
mod loopback;
pub(crate) mod management;
mod offload;
pub(crate) mod options;
pub(crate) mod peer;
pub(crate) mod port;
mod postponed;
mod progress;
pub(crate) mod queue_pair;
mod queue_pairs;
pub(crate) mod receive;
pub(crate) mod region;
pub(crate) mod runs;
pub(crate) mod send;
mod vectors;

use connection::Pause;
use counters::{
    Counter,
    Counters, //
};
use faults::Faults;
use groups::Groups;
use limits::Quota;
use loopback::Loopback;
use options::Options;
use peer::Far;
use port::Ports;
use queue_pairs::QueuePairs;
use region::Regions;
use vectors::Vectors;

/// A host channel adapter.
#[pin_data]
pub(crate) struct Hca {
    pub(crate) options: Options,
    pub(crate) device: crate::provider::device::Handle,
    #[pin]
    pub(crate) ports: Ports,
    /// The sending sides of the ports' cables, port 1 first.
    lines: KVec<Arc<Line>>,
    #[pin]
    far: Far,
    #[pin]
    pub(crate) queue_pairs: QueuePairs,
    #[pin]
    pub(crate) groups: Groups,
    pub(crate) completion_queues: Quota,
    pub(crate) shared_queues: Quota,
    /// Address handles and protection domains of programs.
    pub(crate) address_handles: Quota,
    pub(crate) domains: Quota,
    #[pin]
    pub(crate) regions: Regions,
    pub(crate) counters: Counters,
    pub(crate) vectors: Vectors,
    /// The work queue on which timers run.
    pub(crate) queue: work::Queue,
    epoch: Instant<Monotonic>,
    /// Whether commands to the device fail.
    failed: AtomicBool,
    /// Whether management datagrams stay unanswered, as the device goes.
    silent: AtomicBool,
    /// Other failures, which are switched on and off while the device is there.
    pub(crate) faults: Faults,
    /// Packets of a port to itself, and of a peer in memory, each with the port noted in it.
    #[pin]
    loopback: Loopback,
    #[pin]
    loopback_work: DelayedWork<Hca, LOOPBACK>,
    #[pin]
    traps: DelayedWork<Hca, { management::TRAPS }>,
    #[pin]
    removal: DelayedWork<Hca, REMOVAL>,
    #[pin]
    closing: DelayedWork<Hca, { closing::CLOSING }>,
}

/// The works of a device, besides [`management::TRAPS`] and [`closing::CLOSING`].
const LOOPBACK: u64 = 0;
const REMOVAL: u64 = 2;

/// Packets that a device takes from itself in one go; then others have a turn.
const BURST: usize = 64;

/// Time after which the kernel is asked again to unregister a device that it could not
/// unregister, in milliseconds.
const REMOVAL_RETRY_MS: u32 = 50;

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 0> for Hca { self.loopback_work }
    impl HasDelayedWork<Self, 2> for Hca { self.removal }
}

impl WorkItem<LOOPBACK> for Hca {
    type Pointer = Arc<Hca>;

    fn run(this: Arc<Hca>) {
        for _ in 0..BURST {
            let Some(frame) = this.loopback.pop() else {
                return;
            };
            // As a packet from a net device comes.
            let _guard = rcu::read_lock();
            this.take(frame.port(), &frame);
        }
        this.take_loopback();
    }
}

impl WorkItem<REMOVAL> for Hca {
    type Pointer = Arc<Hca>;

    fn run(this: Arc<Hca>) {
        // Not while the device is being registered, or moves to another namespace: then later.
        if !this.device.unregister() {
            let delay = msecs_to_jiffies(REMOVAL_RETRY_MS);
            this.queue.schedule::<_, REMOVAL>(this.clone(), delay);
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
        name: &CStr,
        guids: &[u64],
        lines: KVec<Arc<Line>>,
    ) -> Result<Arc<Self>> {
        let counters = Counters::new();
        let ports = Ports::new(name, guids, &options)?;
        let base = match options.dma {
            true => direct_map(),
            false => 0,
        };
        Arc::try_pin_init(
            try_pin_init!(Self {
                options,
                device: crate::provider::device::Handle::new(),
                ports <- ports,
                lines,
                far <- Far::new(),
                queue_pairs <- QueuePairs::new(),
                groups <- Groups::new(),
                completion_queues: Quota::new(limits::COMPLETION_QUEUES),
                shared_queues: Quota::new(limits::SHARED_QUEUES),
                address_handles: Quota::new(limits::ADDRESS_HANDLES),
                domains: Quota::new(limits::DOMAINS),
                regions <- Regions::new(base),
                counters,
                vectors: Vectors::new(),
                queue: work::Queue::new()?,
                epoch: Instant::now(),
                failed: AtomicBool::new(false),
                silent: AtomicBool::new(false),
                faults: Faults::default(),
                loopback <- Loopback::new(),
                loopback_work <- new_delayed_work!("softib_loopback"),
                traps <- new_delayed_work!("softib_traps"),
                removal <- new_delayed_work!("softib_removal"),
                closing <- new_delayed_work!("softib_closing"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Takes the time of a command. Sleeps.
    pub(crate) fn take_time(&self) {
        // Also where it takes none: hardware would.
        might_sleep();
        self.counters.add(peer::PORT, Counter::Commands, 1);
        if self.options.command_ms != 0 {
            fsleep(Delta::from_millis(self.options.command_ms.into()));
        }
    }

    /// Takes in a command. Sleeps.
    ///
    /// # Errors
    ///
    /// `EIO` from a device that has failed.
    pub(crate) fn begin_command(&self) -> Result {
        self.take_time();
        self.check()
    }

    /// Checks whether the device works.
    ///
    /// # Errors
    ///
    /// `EIO` from a device that has failed.
    pub(crate) fn check(&self) -> Result {
        match self.has_failed() {
            true => Err(EIO),
            false => Ok(()),
        }
    }

    /// Returns whether commands to the device fail.
    pub(crate) fn has_failed(&self) -> bool {
        // Relaxed: a command that runs meanwhile may see either, as with hardware that fails.
        self.failed.load(Ordering::Relaxed)
    }

    /// Makes commands fail from now on, or succeed again. Tells the kernel if that is new.
    pub(crate) fn set_failed(&self, failed: bool) {
        // The swap leaves it to one of several callers to tell the kernel.
        if self.failed.swap(failed, Ordering::Relaxed) == failed {
            return;
        }
        for port in 1..=self.ports() {
            if failed {
                self.device.dispatch(port, Event::Fatal);
            } else if self.ports.look(port, |port| port.is_active()) == Some(true) {
                self.device.dispatch(port, Event::PortActive);
            }
        }
    }

    /// Returns the number of ports.
    pub(crate) fn ports(&self) -> u8 {
        self.lines.len() as u8
    }

    /// Returns the time since the device was made, in nanoseconds.
    pub(crate) fn now(&self) -> Time {
        Time::new(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(0))
    }

    /// Returns the sending side of a port's cable.
    pub(crate) fn line(&self, port: u8) -> Option<&Arc<Line>> {
        self.lines.get(usize::from(port).checked_sub(1)?)
    }

    /// Ends what runs by itself. Sleeps.
    pub(crate) fn stop(self: &Arc<Self>) {
        // Disabled, not cancelled: packets and events of net devices may still schedule these
        // works.
        work::disable::<_, REMOVAL>(self);
        work::disable::<_, { management::TRAPS }>(self);
        work::disable::<_, LOOPBACK>(self);
        work::disable::<_, { closing::CLOSING }>(self);
    }

    /// Sends a frame on a port's cable. Any context.
    pub(crate) fn transmit(&self, port: u8, frame: Frame) {
        if self.is_in_memory(port) {
            // The end of the peer waits for this RCU section.
            let _guard = rcu::read_lock();
            let took = self.peer(port).map(|peer| peer.enqueue(port, frame));
            self.count_unsent(port, took);
        } else {
            self.count_unsent(port, self.line(port).map(|line| line.send(frame)));
        }
    }

    /// Counts a frame for which there was no room, if somebody was there to take it.
    fn count_unsent(&self, port: u8, took: Option<bool>) {
        if took == Some(false) {
            self.counters.add(port, Counter::SendDropped, 1);
        }
    }

    /// Takes what did not come by a net device.
    fn take(self: &Arc<Self>, port: u8, frame: &Frame) {
        match Signal::read(frame.bytes()) {
            None => self.receive(port, frame),
            Some(signal) => self.set_carrier(port, signal == Signal::Up),
        }
    }

    /// Lets a port receive a frame that it sends itself, as from its cable, unless too many wait.
    /// Any context.
    pub(crate) fn loop_back(self: &Arc<Self>, port: u8, frame: Frame) {
        if !self.enqueue(port, frame) {
            self.counters.add(port, Counter::SendDropped, 1);
        }
    }

    /// Queues a frame that a port receives soon. Returns whether there was room. Any context.
    fn enqueue(self: &Arc<Self>, port: u8, mut frame: Frame) -> bool {
        frame.set_port(port);
        // Queued: the sender's consumer may hold its locks, and a packet that arrives may call
        // it.
        let took = self.loopback.push(frame);
        self.take_loopback();
        took
    }

    /// Returns the reason for which a connection is to send no more from a port for now, to the
    /// port itself or to a queue pair behind another one; `None` if it may send. With the queue
    /// pair locked. `has_backlog` is whether a burst that it sent before has not left yet.
    fn reason_to_pause(
        &self,
        port: u8,
        to_self: bool,
        destination: Qpn,
        has_backlog: bool,
    ) -> Option<Pause> {
        if has_backlog {
            return Some(Pause::Backlog);
        }
        let is_crowded = match to_self {
            true => self.loopback.is_crowded(),
            false => self.is_crowded(port, destination),
        };
        is_crowded.then_some(Pause::Crowd)
    }

    /// Returns whether many packets wait where those to a queue pair behind a port go.
    fn is_crowded(&self, port: u8, destination: Qpn) -> bool {
        // The end of the peer waits for this RCU section.
        let _guard = rcu::read_lock();
        match self.is_in_memory(port) {
            true => self
                .peer(port)
                .is_some_and(|peer| peer.loopback.is_crowded()),
            false => self
                .line(port)
                .is_some_and(|line| line.is_crowded(destination)),
        }
    }

    /// Takes the frames that wait, soon. If the work waits already it will see them all.
    fn take_loopback(self: &Arc<Self>) {
        let _ = workqueue::system_bh().enqueue_delayed::<_, LOOPBACK>(self.clone(), 0);
    }
}

impl Plug for Hca {
    fn received(self: &Arc<Self>, port: u8, frame: Frame) {
        self.receive(port, &frame);
    }

    fn carrier(self: &Arc<Self>, port: u8, up: bool) {
        if self.is_in_memory(port) {
            self.look_for_carrier();
        } else {
            self.set_carrier(port, up);
        }
    }

    fn unplugged(self: &Arc<Self>, port: u8) {
        Plug::carrier(self, port, false);
        self.queue.schedule::<_, REMOVAL>(self.clone(), 0);
    }
}
