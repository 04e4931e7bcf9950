// SPDX-License-Identifier: GPL-2.0-only

//! One net device: how it comes up and goes down, and what the stack and the port tell it.
//!
//! All configuration runs with the RTNL held ([`Control`] opens to nothing else). Work items:
//!
//! | work | does | when |
//! | --- | --- | --- |
//! | control | reads the port anew, joins and leaves groups, repairs queue pairs | events, changes |
//! | retry | runs control again | a join or a repair has failed |
//! | age | forgets unused destinations, has the port read anew | every 30 s |
//! | search | finds the way to one destination | packets wait for it |

use core::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Instant,
        Monotonic, //
    },
    workqueue::{
        impl_has_delayed_work,
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    }, //
};

use super::{
    address::Destinations,
    control::Backoff,
    link::{
        Link,
        Offer,
        QueuePair, //
    },
    multicast::Groups,
    options::{
        Options,
        RING, //
    },
    receive::Receiver,
    roce::Roce,
    statistics::Statistics,
    transmit::{
        Reaper,
        TransmitQueue, //
    }, //
};
use crate::{
    net::{
        bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        device::{
            self,
            Device,
            Operations, //
        },
        ethtool,
        napi::{
            Instance,
            Napi, //
        },
        queue::Queue,
        rtnl::{
            self,
            Rtnl, //
        },
        skb::Skb, //
    },
    rdma::{
        ah::AddressHandle,
        cq::CompletionQueue,
        device::Device as RdmaDevice,
        event,
        pd::ProtectionDomain,
        port::PortNumber,
        qp::{
            self,
            Capacity, //
        }, //
    },
    wire::{
        hwaddr::HwAddr,
        mgid::Scope,
        pkey::Pkey, //
    },
    work, //
};

/// Bytes that we would like to send inline: a TCP acknowledgement with its headers and time stamps,
/// small requests.
const INLINE: u32 = 128;

/// Time between two looks for unused destinations, in milliseconds.
const AGE_INTERVAL_MS: u32 = 30_000;

/// Numbers of the work items.
pub(super) const CONTROL: u64 = 0;
const AGE: u64 = 1;
pub(super) const RETRY: u64 = 2;

/// An interface, from its making to its end.
#[pin_data]
pub(super) struct Interface {
    device: Device<Interface>,
    port: PortNumber,
    link: Pin<KBox<Roce>>,
    pub(super) options: Options,
    /// Where the work runs that does not wait for peers.
    works: work::Queue,
    /// Where the searches run.
    pub(super) searches: Arc<work::Queue>,
    /// The interface goes away: nothing new is begun.
    pub(super) closing: AtomicBool,
    /// The first receives and sends, the others only send.
    pub(super) queue_pairs: KVec<Arc<QueuePair>>,
    pub(super) queues: Queues,
    pub(super) broadcast: HwAddr,
    pub(super) control: rtnl::Locked<Control>,
    #[pin]
    pub(super) destinations: SpinLockBh<Destinations<Arc<AddressHandle>, Skb>>,
    /// Where the seconds of `destinations` are counted from.
    epoch: Instant<Monotonic>,
    /// A queue pair has failed and wants a look.
    pub(super) broken: AtomicBool,
    /// A queue makes no progress though its queue pair may look well.
    pub(super) stuck: AtomicBool,
    /// The port's GID table has changed.
    gids_changed: AtomicBool,
    statistics: Statistics,
    transmit_statistics: KVec<Arc<Statistics>>,
    /// What had been completed at the watchdog's last alarm, by queue.
    alarms: KVec<AtomicU64>,
    receive_statistics: Arc<Statistics>,
    #[pin]
    control_work: DelayedWork<Interface, CONTROL>,
    #[pin]
    age_work: DelayedWork<Interface, AGE>,
    #[pin]
    retry_work: DelayedWork<Interface, RETRY>,
}

/// The completion queues, which live as long as the queue pairs.
pub(super) struct Queues {
    pub(super) receive: Arc<super::receive::Queue>,
    pub(super) send: KVec<Arc<super::transmit::Completions>>,
}

/// What changes under the RTNL.
pub(super) struct Control {
    pub(super) phase: Phase,
    pub(super) receive: Napi<Receiver, Interface>,
    pub(super) reapers: KVec<Napi<Reaper, Interface>>,
    pub(super) groups: Groups,
    /// What the port offered when last asked.
    pub(super) offer: Option<Offer>,
    /// The lack of a GID was logged.
    pub(super) advised: bool,
    /// When the interface may be restarted again.
    pub(super) restarts: Backoff,
}

/// Whether the interface is up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is not.
    Down,
    /// It is, with receive buffers for packets of so many bytes.
    Up(u32),
    /// It should be, but could not be restarted: to be tried again.
    Broken,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Interface, CONTROL> for Interface { self.control_work }
    impl HasDelayedWork<Interface, AGE> for Interface { self.age_work }
    impl HasDelayedWork<Interface, RETRY> for Interface { self.retry_work }
}

impl WorkItem<CONTROL> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut rtnl = rtnl::lock();
        if this.gids_changed.swap(false, Ordering::AcqRel) {
            // Ways from an entry that is gone, or came again at another place, are no use.
            this.forget_destinations();
        }
        let stuck = this.stuck.swap(false, Ordering::AcqRel);
        if this.broken.swap(false, Ordering::AcqRel) || stuck {
            this.repair(&mut rtnl, stuck);
        }
        this.refresh(&mut rtnl);
    }
}

impl WorkItem<RETRY> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.kick();
    }
}

impl WorkItem<AGE> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Without memory at the moment, the next time will do.
        let _ = this.age();
        // Nothing tells of a changed MTU below: the control work looks.
        this.kick();
        this.schedule_age();
    }
}

/// Tells an interface of its port's events.
struct PortEvents(Arc<Interface>);

impl event::Listener for PortEvents {
    fn event(&self, event: event::Event) {
        match event {
            event::Event::Port(port) | event::Event::Gids(port) if port != self.0.port.get() => {}
            event::Event::Gids(_) => {
                self.0.gids_changed.store(true, Ordering::Release);
                self.0.kick();
            }
            event::Event::Port(_) | event::Event::Device => self.0.kick(),
        }
    }
}

/// An interface that the world sees. Dropping it takes it away, whatever it is doing.
pub(super) struct Attached {
    events: Option<Pin<KBox<event::Registration<PortEvents>>>>,
    registration: Option<device::Registration<Interface>>,
    interface: Arc<Interface>,
}

impl Attached {
    /// Makes an interface for `port` of `rdma`, a RoCE port, and shows it.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device and the stack say.
    pub(super) fn new(rdma: &RdmaDevice, port: PortNumber, options: Options) -> Result<Self> {
        let interface = Interface::new(rdma, port, options)?;
        // Whatever fails from here on, the drop undoes.
        let mut this = Self {
            events: None,
            registration: None,
            interface: interface.clone(),
        };
        interface.refresh(&mut rtnl::lock());
        let device = interface.device();
        this.registration = Some(device::Registration::new(device, interface.clone())?);
        this.events = Some(event::Registration::new(
            rdma,
            PortEvents(interface.clone()),
        )?);
        dev_info!(
            rdma.as_dev(),
            "port {}: IPoIB interface {}\n",
            port.get(),
            device.name()
        );
        // Events between the first look and the registration were not heard.
        interface.kick();
        interface.schedule_age();
        Ok(this)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.interface.closing.store(true, Ordering::Release);
        // What starts work ends first, then the work, which wants a registered device; then that.
        self.events = None;
        work::disable::<_, RETRY>(&self.interface);
        work::disable::<_, CONTROL>(&self.interface);
        work::disable::<_, AGE>(&self.interface);
        self.registration = None;
        // The last of what holds the interface: its queue of searches goes with it, and must not do
        // so in one of them.
        self.interface.searches.flush();
    }
}

impl Interface {
    /// Makes an interface on `port` of `rdma` that nobody sees yet.
    fn new(rdma: &RdmaDevice, port: PortNumber, options: Options) -> Result<Arc<Self>> {
        let options = options.limited_to(rdma.max_work_requests());
        let vectors = rdma.completion_vectors();
        let queues = options.tx_queues(vectors, kernel::cpu::nr_cpu_ids());
        let device = Device::<Self>::new(rdma, port.get(), queues)?;
        let broadcast = HwAddr::broadcast(Pkey::DEFAULT, Scope::LinkLocal);
        device.set_broadcast(&broadcast);
        let pd = Arc::new(ProtectionDomain::new(rdma)?, GFP_KERNEL)?;

        let receive = Napi::new(&device, false)?;
        let mut reapers = KVec::new();
        let mut transmit_statistics = KVec::new();
        let mut alarms = KVec::new();
        // Flushed requests complete too, so a queue has room for the whole ring.
        let queue =
            CompletionQueue::new(rdma, options.receive_ring, 0, receive.instance().clone())?;
        let mut completions = Queues {
            receive: queue,
            send: KVec::new(),
        };
        let mut queue_pairs = KVec::new();
        for index in 0..queues {
            let reaper: Napi<Reaper, Self> = Napi::new(&device, true)?;
            let waker: Arc<Instance<Reaper>> = reaper.instance().clone();
            let send = CompletionQueue::new(rdma, options.send_ring, index % vectors, waker)?;
            let capacity = Capacity {
                send: options.send_ring,
                receive: if index == 0 { options.receive_ring } else { 0 },
                inline: INLINE,
            };
            let qp = qp::QueuePair::new(&pd, port, &send, &completions.receive, capacity)?;
            queue_pairs.push(qp, GFP_KERNEL)?;
            completions.send.push(send, GFP_KERNEL)?;
            reapers.push(reaper, GFP_KERNEL)?;
            transmit_statistics.push(Arc::new(Statistics::default(), GFP_KERNEL)?, GFP_KERNEL)?;
            alarms.push(AtomicU64::new(0), GFP_KERNEL)?;
        }
        let receive_statistics = Arc::new(Statistics::default(), GFP_KERNEL)?;
        let works = work::Queue::new()?;
        let work_queue = Arc::new(work::Queue::new()?, GFP_KERNEL)?;
        let link = KBox::pin_init(Roce::new(pd, port, work_queue.clone()), GFP_KERNEL)?;
        let control = Control {
            phase: Phase::Down,
            receive,
            reapers,
            groups: Groups::default(),
            offer: None,
            advised: false,
            restarts: Backoff::default(),
        };
        Arc::pin_init(
            pin_init!(Self {
                device,
                port,
                link,
                options,
                works,
                searches: work_queue,
                closing: AtomicBool::new(false),
                queue_pairs,
                queues: completions,
                broadcast,
                control: rtnl::Locked::new(control),
                destinations <- new_spinlock_bh!(Destinations::new(), "oxib_destinations"),
                epoch: Instant::now(),
                broken: AtomicBool::new(false),
                stuck: AtomicBool::new(false),
                gids_changed: AtomicBool::new(false),
                statistics: Statistics::default(),
                transmit_statistics,
                alarms,
                receive_statistics,
                control_work <- new_delayed_work!("oxib_control"),
                age_work <- new_delayed_work!("oxib_age"),
                retry_work <- new_delayed_work!("oxib_retry"),
            }),
            GFP_KERNEL,
        )
    }

    /// The net device.
    #[inline(always)]
    pub(super) fn device(&self) -> &Device<Self> {
        &self.device
    }

    /// The module's parameters.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Counters of transmit queue `index`.
    pub(super) fn transmit_statistics(&self, index: usize) -> Option<&Arc<Statistics>> {
        self.transmit_statistics.get(index)
    }

    /// Counters of transmit queue `index`, and where its last alarm is noted.
    pub(super) fn transmit_alarm(&self, index: usize) -> Option<(&Statistics, &AtomicU64)> {
        let statistics = self.transmit_statistics.get(index)?;
        Some((statistics, self.alarms.get(index)?))
    }

    /// Counters of reception.
    pub(super) fn receive_statistics(&self) -> &Arc<Statistics> {
        &self.receive_statistics
    }

    /// Seconds since the interface was made.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis() / 1000).unwrap_or(0)
    }

    /// The RDMA device below, for the log.
    pub(super) fn rdma(&self) -> &kernel::device::Device {
        self.link().rdma().as_dev()
    }

    /// What is below.
    pub(super) fn link(&self) -> &dyn Link {
        &*self.link
    }

    /// The port below.
    pub(super) fn port(&self) -> PortNumber {
        self.port
    }

    /// The queue pair whose number the interface's address carries.
    ///
    /// # Errors
    ///
    /// None: every interface has one.
    pub(super) fn main_qp(&self) -> Result<&Arc<QueuePair>> {
        self.queue_pairs.first().ok_or(ENODEV)
    }

    /// Counters of what is no queue's.
    pub(super) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Runs the control work soon.
    pub(super) fn kick(self: &Arc<Self>) {
        self.works.schedule::<_, CONTROL>(self.clone(), 0);
    }

    fn schedule_age(self: &Arc<Self>) {
        let delay = msecs_to_jiffies(AGE_INTERVAL_MS);
        self.works.schedule::<_, AGE>(self.clone(), delay);
    }

    /// Runs the control work in `seconds`.
    pub(super) fn retry_in(self: &Arc<Self>, seconds: u64) {
        let milliseconds = u32::try_from(seconds * 1000).unwrap_or(u32::MAX);
        let delay = msecs_to_jiffies(milliseconds);
        self.works.schedule::<_, RETRY>(self.clone(), delay);
    }

    /// Says that a queue pair failed: the control work repairs it.
    pub(super) fn recover(self: &Arc<Self>) {
        self.broken.store(true, Ordering::Release);
        self.kick();
    }

    /// Says that a queue will make no progress by itself: the control work restarts the interface.
    pub(super) fn restart_soon(self: &Arc<Self>) {
        self.stuck.store(true, Ordering::Release);
        self.kick();
    }

    /// Locks each transmit queue that is in use in turn.
    pub(super) fn for_each_queue(&self, mut change: impl FnMut(&mut TransmitQueue)) {
        for index in 0..self.device.queues() {
            if let Ok(mut guard) = self.device.lock_queue(index) {
                if let Some(queue) = guard.as_mut() {
                    change(queue);
                }
            }
        }
    }
}

impl Operations for Interface {
    type TxQueue = TransmitQueue;

    const STATISTICS: &'static [&'static CStr] = Statistics::NAMES;

    fn open(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result {
        self.bring_up(rtnl)
    }

    fn stop(self: &Arc<Self>, rtnl: &mut Rtnl) {
        self.take_down(rtnl);
    }

    #[inline(always)]
    fn transmit(&self, data: &mut TransmitQueue, queue: Queue<'_>, packet: Skb) {
        data.transmit(&self.device, queue, packet);
    }

    fn change_mtu(self: &Arc<Self>, rtnl: &mut Rtnl, mtu: u32) -> Result {
        self.set_mtu(rtnl, mtu)
    }

    fn multicast_changed(self: &Arc<Self>) {
        self.kick();
    }

    fn transmit_timeout(self: &Arc<Self>, queue: u32) {
        self.hangs(queue);
    }

    fn statistics(&self, values: &mut [u64]) {
        values.fill(0);
        let count = self.destinations.lock().len();
        self.statistics.address_count.set(count as u64);
        self.statistics.add_to(values);
        self.receive_statistics.add_to(values);
        for queue in &self.transmit_statistics {
            queue.add_to(values);
        }
    }

    fn rings(&self) -> ethtool::Rings {
        ethtool::Rings {
            send: self.options.send_ring,
            receive: self.options.receive_ring,
            max: *RING.end(),
        }
    }
}
