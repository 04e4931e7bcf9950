// SPDX-License-Identifier: GPL-2.0-only

//! One net device: how it comes up and goes down, and what the stack and the port tell it.
//!
//! All configuration runs with the RTNL held ([`Control`] opens to nothing else).

use core::sync::atomic::{
    AtomicBool,
    AtomicU16,
    Ordering, //
};

use kernel::{
    fmt,
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
    time::{
        Instant,
        Monotonic, //
    },
    workqueue::{
        new_delayed_work,
        DelayedWork, //
    }, //
};

use super::{
    address::Destinations,
    connected::Connected,
    control::{
        Backoff,
        LastAlarm,
        Trouble,
        Unanswered, //
    },
    debug::Files,
    inbound::{
        Inbound,
        Numbers,
        Repeating, //
    },
    link::{
        self,
        Link,
        Offer, //
    },
    multicast::Groups,
    offload::SEGMENTS,
    options::Options,
    port::PortEvents,
    queues::{
        self,
        Polls,
        Queues,
        Sizes,
        SizesNow, //
    },
    search::KeptHandle,
    statistics::Statistics,
    strangers::Askers,
    transmit::TransmitQueue, //
};
use crate::{
    acm::exchange::Exchange,
    net::{
        bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        device::Device,
        ethtool::Moderation,
        rtnl::{
            self,
            Rtnl, //
        },
        skb::Skb, //
    },
    rdma::{
        device::Device as RdmaDevice,
        event,
        pd::ProtectionDomain,
        port::{
            LinkLayer,
            PortNumber, //
        }, //
    },
    wire::{
        hwaddr::HwAddr,
        mgid::Scope,
        pkey::Pkey, //
    },
    work, //
};

mod notifications;
mod operations;
mod works;

use notifications::Notifications;
use works::{
    Plan,
    AGE_WORK,
    ANNOUNCE_WORK,
    CONTROL_WORK,
    NOTIFY_WORK,
    RETIRE_WORK,
    RETRY_WORK,
    REVALIDATE_WORK,
    WATCH_WORK, //
};

/// An interface, from its making to its end.
#[pin_data]
pub(super) struct Interface {
    device: Device<Interface>,
    port: PortNumber,
    /// The P_Key of the partition, with full membership whatever the port's is.
    pkey: AtomicU16,
    /// The interface that this one is a child of.
    parent: Option<Arc<Interface>>,
    /// Its own children. Changes with the RTNL held.
    #[pin]
    pub(super) children: Mutex<KVec<Arc<Interface>>>,
    /// Its files in debugfs.
    #[pin]
    pub(super) files: Mutex<Option<Files>>,
    /// Origin of the request that made the interface.
    pub(super) origin: Origin,
    /// Groups that user space joined by itself are left alone.
    pub(super) umcast: AtomicBool,
    link: KBox<dyn Link>,
    pub(super) options: Options,
    /// The work queue for items that do not wait for peers.
    pub(super) works: work::Queue,
    /// The work queue on which children are removed.
    pub(super) removals: work::Queue,
    /// The work queue on which searches run.
    pub(super) searches: Arc<work::Queue>,
    /// The work queue on which connections begin, which wait for the SA there and delay nothing
    /// else.
    pub(super) connects: work::Queue,
    /// The work queue on which connections that have ended wait until the device has returned their
    /// buffers: for seconds, if it does not report that.
    pub(super) drains: work::Queue,
    /// The world sees the interface.
    shown: AtomicBool,
    /// The interface goes away: nothing new is begun.
    pub(super) closing: AtomicBool,
    pub(super) pd: Arc<ProtectionDomain>,
    pub(super) sizes: SizesNow,
    pub(super) queues: rtnl::Locked<Arc<Queues>>,
    pub(super) control: rtnl::Locked<Control>,
    #[pin]
    pub(super) connected: Connected,
    #[pin]
    pub(super) destinations: SpinLockBh<Destinations<KeptHandle, Skb>>,
    /// Ports that have asked lately and are not known.
    #[pin]
    pub(super) askers: SpinLockBh<Askers>,
    /// The receive queues that peers are told of, if there are several.
    #[pin]
    pub(super) numbers: SpinLockBh<Option<Arc<Numbers>>>,
    /// Rounds in which the neighbours are notified which of them is theirs.
    #[pin]
    notifications: SpinLockBh<Notifications>,
    /// The task that announces now what peers know.
    pub(super) repeating: Repeating,
    /// Exchanges that find peers' queue pairs for the address cache.
    #[pin]
    pub(super) exchange: Exchange,
    /// Peers across a router are looked after.
    pub(super) watched: AtomicBool,
    /// Time from which the interface's clock counts ([`Interface::now`]).
    epoch: Instant<Monotonic>,
    /// A queue pair has failed and wants a look.
    pub(super) broken: AtomicBool,
    /// A queue makes no progress though its queue pair may look well.
    pub(super) stuck: AtomicBool,
    /// The port's subnet has changed.
    pub(super) subnet_changed: AtomicBool,
    pub(super) handed_over: AtomicBool,
    statistics: Statistics,
    transmit_statistics: KVec<Arc<Statistics>>,
    /// The watchdog's last alarms, by transmit queue.
    alarms: KVec<LastAlarm>,
    receive_statistics: KVec<Arc<Statistics>>,
    connected_statistics: Arc<Statistics>,
    #[pin]
    control_work: DelayedWork<Interface, CONTROL_WORK>,
    #[pin]
    age_work: DelayedWork<Interface, AGE_WORK>,
    #[pin]
    retry_work: DelayedWork<Interface, RETRY_WORK>,
    #[pin]
    revalidate_work: DelayedWork<Interface, REVALIDATE_WORK>,
    #[pin]
    announce_work: DelayedWork<Interface, ANNOUNCE_WORK>,
    #[pin]
    retry: Plan,
    #[pin]
    revalidation: Plan,
    #[pin]
    notify_work: DelayedWork<Interface, NOTIFY_WORK>,
    #[pin]
    retire_work: DelayedWork<Interface, RETIRE_WORK>,
    #[pin]
    watch_work: DelayedWork<Interface, WATCH_WORK>,
}

/// Place of an interface that is to be made.
pub(super) struct Place<'a> {
    /// The RDMA device that has the port.
    pub(super) rdma: &'a RdmaDevice,
    /// The port of the device.
    pub(super) port: PortNumber,
    /// P_Key of the partition.
    pub(super) pkey: Pkey,
    /// The interface that it is a child of.
    pub(super) parent: Option<Arc<Interface>>,
    /// Origin of the request.
    pub(super) origin: Origin,
}

/// Origin of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// The port's own interface, made when the port appears.
    Port,
    /// A request by netlink.
    Netlink,
    /// `create_child` of sysfs, for which the P_Key is the child's name.
    Sysfs,
}

/// State that is protected by the RTNL.
pub(super) struct Control {
    /// The port's events, from before the interface is shown until it goes.
    pub(super) events: Option<Pin<KBox<event::Registration<PortEvents>>>>,
    pub(super) phase: Phase,
    /// Receive queues beside the main one. Their queue pairs go before the polls of the main ones.
    pub(super) inbound: KVec<Inbound>,
    /// Time until which those of them go on that are out of use, in milliseconds.
    pub(super) grace: u64,
    pub(super) polls: Polls,
    /// The minimum that the driver has given the byte queue limit of each transmit queue, in bytes.
    /// The stack begins with 0.
    pub(super) minimums: KVec<u32>,
    /// The address that was last announced.
    pub(super) announced: Option<HwAddr>,
    /// Moderation of receive completions.
    pub(super) moderation: Moderation,
    pub(super) groups: Groups,
    /// The port's offer when last asked.
    pub(super) offer: Option<Offer>,
    /// The Q_Key of the queue pairs, while they have one.
    pub(super) qkey: Option<u32>,
    /// Setting the Q_Key of queue pairs that have started.
    pub(super) keying: Trouble,
    /// The second half of the address's GID, if an administrator chose it.
    pub(super) guid: Option<[u8; 8]>,
    /// The lack of a GID was logged.
    pub(super) advised: bool,
    /// The MTU in datagrams that an administrator wishes for, which may be more than the link
    /// carries now; `None`: as much as it carries.
    pub(super) wished_mtu: Option<u32>,
    /// The MTU that is being set because the link or the mode has changed, not on request.
    pub(super) following_mtu: Option<u32>,
    /// The largest MTU when the log last said why a larger one is refused or not set yet.
    pub(super) mtu_advised: u32,
    /// Time of the next restart that is allowed.
    pub(super) restarts: Backoff,
    /// Failures to bring the interface up.
    pub(super) start: Trouble,
    /// Asking the port what it offers.
    pub(super) query: Trouble,
    pub(super) unanswered: Unanswered,
    /// Finding the partition's P_Key in the port's table.
    pub(super) partition: Trouble,
}

/// Whether the interface is up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The interface is down.
    Down,
    /// The interface is up.
    Up {
        /// Largest packet, in bytes, that the receive buffers take.
        mtu: u32,
        /// Index of the queue pairs' P_Key in the port's table.
        pkey_index: u16,
    },
    /// The interface is up administratively, but the port is no member of its partition.
    NoPkey,
    /// The interface is up administratively, but could not be restarted: to be tried again.
    Broken,
}

impl Interface {
    /// Makes what drives `device`: an interface that nobody sees yet. The device is put in its
    /// place.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the RDMA device and the stack say; nothing uses the device then.
    pub(super) fn new(
        rtnl: &mut Rtnl,
        device: &Device<Self>,
        place: Place<'_>,
        options: Options,
    ) -> Result<Arc<Self>> {
        let Place {
            rdma,
            port,
            pkey,
            parent,
            origin,
        } = place;
        let pkey = pkey.full();
        let options = options.limited_to(rdma.max_work_requests());
        let sizes = match &parent {
            None => options.sizes(rdma.completion_vectors(), device.queues()),
            Some(_) => options.sizes_of_child(rdma.completion_vectors(), device.queues()),
        };
        // Children are below no adapter, as with `ib_ipoib`: udev's rules that name the interfaces
        // of adapters would give them the name of their parent. Drivers of RoCE take a net device
        // below their adapter for the port's Ethernet device (mlx4, mlx5).
        let is_below = parent.is_none() && rdma.link_layer(port) == LinkLayer::Infiniband;
        device.set_place(is_below.then_some(rdma), parent.is_none().then_some(port));
        device.use_queues(rtnl, sizes.transmit_queues)?;
        device.use_receive_queues(rtnl, sizes.receive_queues)?;
        device.set_kind();
        device.set_attributes();
        device.set_broadcast(&HwAddr::broadcast(pkey, Scope::LinkLocal));
        device.offer(rdma.computes_checksums(), SEGMENTS);
        let pd = Arc::new(ProtectionDomain::new(rdma)?, GFP_KERNEL)?;

        let (queues, polls) = queues::new(device, &pd, port, sizes)?;
        let mut transmit_statistics = KVec::new();
        let mut receive_statistics = KVec::new();
        let mut alarms = KVec::new();
        let mut minimums = KVec::new();
        // For as many as there can be: `ethtool -L` adds queues, and the counters outlive those.
        for _ in 0..device.queues() {
            receive_statistics.push(Arc::new(Statistics::default(), GFP_KERNEL)?, GFP_KERNEL)?;
            transmit_statistics.push(Arc::new(Statistics::default(), GFP_KERNEL)?, GFP_KERNEL)?;
            alarms.push(LastAlarm::none(), GFP_KERNEL)?;
            minimums.push(0, GFP_KERNEL)?;
        }
        let connected_statistics = Arc::new(Statistics::default(), GFP_KERNEL)?;
        let connected = Connected::new(device)?;
        let works = work::Queue::new()?;
        // The end of a net device waits for work without a rescuer, so this queue has none either.
        let removals = work::Queue::without_rescuer()?;
        let connects = work::Queue::new()?;
        let drains = work::Queue::new()?;
        let work_queue = Arc::new(work::Queue::new()?, GFP_KERNEL)?;
        let link = link::new(pd.clone(), port, pkey, work_queue.clone())?;
        let policy = link.policy();
        let askers = Askers::new()?;
        let control = Control {
            events: None,
            phase: Phase::Down,
            polls,
            minimums,
            inbound: KVec::new(),
            grace: 0,
            announced: None,
            moderation: Moderation::default(),
            groups: Groups::default(),
            offer: None,
            qkey: None,
            keying: Trouble::default(),
            guid: None,
            advised: false,
            wished_mtu: None,
            following_mtu: None,
            mtu_advised: 0,
            restarts: Backoff::default(),
            start: Trouble::default(),
            query: Trouble::default(),
            unanswered: Unanswered::default(),
            partition: Trouble::default(),
        };
        Arc::pin_init(
            pin_init!(Self {
                device: device.clone(),
                port,
                pkey: AtomicU16::new(pkey.get()),
                parent,
                children <- new_mutex!(KVec::new(), "oxib_children"),
                files <- new_mutex!(None, "oxib_files"),
                origin,
                umcast: AtomicBool::new(false),
                link,
                options,
                works,
                removals,
                searches: work_queue,
                connects,
                drains,
                shown: AtomicBool::new(false),
                closing: AtomicBool::new(false),
                pd,
                sizes: SizesNow::new(sizes),
                queues: rtnl::Locked::new(queues),
                control: rtnl::Locked::new(control),
                connected <- connected,
                destinations <- new_spinlock_bh!(Destinations::new(policy), "oxib_destinations"),
                askers <- new_spinlock_bh!(askers, "oxib_askers"),
                numbers <- new_spinlock_bh!(None, "oxib_numbers"),
                notifications <- new_spinlock_bh!(Notifications::default(), "oxib_told"),
                repeating: Repeating::default(),
                exchange <- Exchange::new(),
                watched: AtomicBool::new(false),
                epoch: Instant::now(),
                broken: AtomicBool::new(false),
                stuck: AtomicBool::new(false),
                subnet_changed: AtomicBool::new(false),
                handed_over: AtomicBool::new(false),
                statistics: Statistics::default(),
                transmit_statistics,
                alarms,
                receive_statistics,
                connected_statistics,
                control_work <- new_delayed_work!("oxib_control"),
                age_work <- new_delayed_work!("oxib_age"),
                retry_work <- new_delayed_work!("oxib_retry"),
                revalidate_work <- new_delayed_work!("oxib_revalidate"),
                announce_work <- new_delayed_work!("oxib_announce"),
                retry <- Plan::new(),
                revalidation <- Plan::new(),
                notify_work <- new_delayed_work!("oxib_tell"),
                retire_work <- new_delayed_work!("oxib_retire"),
                watch_work <- new_delayed_work!("oxib_watch"),
            }),
            GFP_KERNEL,
        )
    }

    /// The module's parameters, limited to what the device can do.
    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the number of queues, and their lengths.
    pub(super) fn sizes(&self) -> Sizes {
        self.sizes.get()
    }

    /// Counters of transmit queue `index`.
    pub(super) fn transmit_statistics(&self, index: usize) -> Option<&Arc<Statistics>> {
        self.transmit_statistics.get(index)
    }

    /// Counters of transmit queue `index`, and where its last alarm is noted.
    pub(super) fn transmit_alarm(&self, index: usize) -> Option<(&Statistics, &LastAlarm)> {
        let statistics = self.transmit_statistics.get(index)?;
        Some((statistics, self.alarms.get(index)?))
    }

    /// Counters of receive queue `index`.
    pub(super) fn receive_statistics(&self, index: usize) -> Option<&Arc<Statistics>> {
        self.receive_statistics.get(index)
    }

    /// Counters of reception by connections.
    pub(super) fn connected_statistics(&self) -> &Arc<Statistics> {
        &self.connected_statistics
    }

    /// Seconds since the interface was made.
    pub(super) fn now(&self) -> u64 {
        self.now_ms() / 1000
    }

    /// Milliseconds since the interface was made.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(0)
    }

    /// The RDMA device below, for the log.
    pub(super) fn rdma(&self) -> &kernel::device::Device {
        self.link().rdma().as_dev()
    }

    /// The link below, of the port's kind.
    pub(super) fn link(&self) -> &dyn Link {
        &*self.link
    }

    /// The port of the RDMA device below.
    pub(super) fn port(&self) -> PortNumber {
        self.port
    }

    /// Makes ready for the world: reads the port, and hears of its events from now on.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn prepare(self: &Arc<Self>, rtnl: &mut Rtnl) -> Result {
        self.refresh(rtnl);
        let events = event::Registration::new(self.link().rdma(), PortEvents(self.clone()))?;
        self.control.get(rtnl).events = Some(events);
        Ok(())
    }

    /// Returns whether work is to be begun: the world sees the interface, and will for a while.
    pub(super) fn is_alive(&self) -> bool {
        self.shown.load(Ordering::Acquire) && !self.closing.load(Ordering::Acquire)
    }

    /// The net device that the interface drives.
    #[inline(always)]
    pub(super) fn device(&self) -> &Device<Self> {
        &self.device
    }

    /// The interface that this one is a child of.
    pub(super) fn parent(&self) -> Option<&Arc<Interface>> {
        self.parent.as_ref()
    }

    /// The partition's key, as a full member has it.
    pub(super) fn pkey(&self) -> Pkey {
        // Relaxed: the key changes only while the interface is down, with the RTNL held.
        Pkey::new(self.pkey.load(Ordering::Relaxed))
    }

    /// The address that reaches all nodes of the partition.
    pub(super) fn broadcast(&self) -> HwAddr {
        HwAddr::broadcast(self.pkey(), Scope::LinkLocal)
    }

    /// Goes to another partition. The interface is down.
    pub(super) fn set_partition(&self, rtnl: &mut Rtnl, pkey: Pkey) {
        let pkey = pkey.full();
        self.pkey.store(pkey.get(), Ordering::Relaxed);
        self.link().set_partition(pkey);
        self.device.change_broadcast(rtnl, &self.broadcast());
    }

    /// Returns the interface's description for the log: name, partition and parent.
    fn title(&self) -> Title<'_> {
        Title(self)
    }

    /// Counters of what is no queue's.
    pub(super) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Locks each transmit queue that is in use in turn.
    pub(super) fn for_each_queue(&self, mut change: impl FnMut(&mut TransmitQueue)) {
        for index in 0..self.device.queues() {
            // Queues that are not in use have no data and are passed over.
            if let Ok(mut guard) = self.device.lock_queue(index) {
                if let Some(queue) = guard.as_mut() {
                    change(queue);
                }
            }
        }
    }
}

/// Description of an interface in log messages: its name, partition and parent.
struct Title<'a>(&'a Interface);

impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.device().name(), f)?;
        write!(f, ", P_Key {:#06x}", self.0.pkey().get())?;
        match self.0.parent() {
            Some(parent) => {
                f.write_str(", child of ")?;
                fmt::Display::fmt(&parent.device().name(), f)
            }
            None => Ok(()),
        }
    }
}
