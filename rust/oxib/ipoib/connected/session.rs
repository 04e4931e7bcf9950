// SPDX-License-Identifier: GPL-2.0-only

//! Connected mode while the interface is up: the shared receive queue, the listener, the
//! connections.
//!
//! Its end is waited for with the RTNL held, so nothing here takes that.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    AtomicU64,
    Ordering, //
};

use kernel::{
    impl_has_delayed_work,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    },
    workqueue::{
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    }, //
};

use super::{
    active::Outbound,
    activity::Activity,
    attempts::Attempts,
    lids::KnownLid,
    passive::{
        Inbound,
        Listener, //
    },
    placed::PlacedList,
    receive::{
        self,
        Arrivals, //
    },
    slots::{
        Among,
        ConnectionSlots,
        Yielding, //
    },
    too_big::Messages,
    waits::WAITS_WORK, //
};
use crate::{
    acm::sources::Source,
    cm::{
        DeviceKey,
        Id,
        Manager, //
    },
    ipoib::{
        interface::Interface,
        queues::{
            next_vector,
            Queues, //
        }, //
    },
    net::{
        errno,
        ethtool::Moderation,
        napi::Instance, //
    },
    rdma::{
        cq::CompletionQueue,
        rc_send::Tag,
        srq::SharedReceiveQueue, //
    },
    wire::qpn::Qpn,
    work, //
};

mod listen;

use listen::close_all;

/// Time until the next try to listen, in milliseconds.
const LISTEN_AGAIN: u32 = 500;

/// Number of looks for idle connections in the time after which they are closed.
const LOOKS: u32 = 4;

/// Most idle connections that are collected under a transmit queue's lock at a time.
const BATCH: usize = 64;

/// Most packets in the shared receive queue: each has room for 64 KiB.
const MOST_BUFFERS: u32 = 1024;

/// Longest wait for a device to release a queue pair's memory: 5 s in steps of 1 ms.
const PATIENCE_STEPS: u32 = 5000;
const STEP: Delta = Delta::from_millis(1);

/// The completion queue of received packets.
pub(super) type Completions = CompletionQueue<Arc<Instance<Arrivals>>>;

/// Connected mode of an interface that is up.
#[pin_data]
pub(in crate::ipoib) struct Session {
    pub(super) interface: Arc<Interface>,
    /// The interface's queues for datagrams.
    pub(super) queues: Arc<Queues>,
    pub(super) instance: Arc<Instance<Arrivals>>,
    pub(super) completions: Arc<Completions>,
    pub(super) shared: Arc<SharedReceiveQueue>,
    pub(super) entries: u32,
    pub(super) pieces: u32,
    pub(super) activity: Activity,
    pub(super) messages: Messages,
    /// Numbers of polls that found the completion queue empty, and of completions that were
    /// taken.
    pub(super) sweeps: AtomicU64,
    pub(super) taken: AtomicU64,
    /// Queue pairs that the device may use memory for.
    pub(super) queue_pairs: AtomicU32,
    pub(super) slots: ConnectionSlots,
    /// The port's LID, as it was read last.
    pub(super) lid: KnownLid,
    /// Attempts to listen that failed.
    attempts: Attempts,
    /// The RDMA device is being removed; the interface goes next.
    leaves: AtomicBool,
    #[pin]
    members: Mutex<Members>,
    #[pin]
    tend_work: DelayedWork<Session>,
    #[pin]
    pub(super) waits_work: DelayedWork<Session, WAITS_WORK>,
}

/// Users of the connection manager. None is added once `open` is false.
struct Members {
    open: bool,
    /// The numbers of the queue pairs that peers may know us by.
    addresses: KVec<Qpn>,
    /// Listeners, one for each number that peers may know us by.
    listeners: KVec<Arc<Listener>>,
    outbound: PlacedList<Arc<Outbound>>,
    /// Connections that peers have made. Their consumers are [`Inbound`].
    inbound: PlacedList<Arc<Id>>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Session { self.tend_work }
}

impl WorkItem for Session {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let next = this.tend();
        this.tend_in(next);
    }
}

impl Session {
    /// Opens the session of `interface`, of which the port has `lid`; `instance` polls its packets.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device says.
    pub(super) fn new(
        interface: &Arc<Interface>,
        queues: Arc<Queues>,
        addresses: KVec<Qpn>,
        instance: &Arc<Instance<Arrivals>>,
        lid: u16,
    ) -> Result<Arc<Self>> {
        let device = interface.link().rdma();
        let entries = interface
            .sizes
            .get()
            .receive_ring
            .min(MOST_BUFFERS)
            .min(device.max_shared_requests().max(1));
        let pieces =
            receive::pieces(device.max_shared_pieces()).ok_or_else(errno::not_supported)?;
        let pd = &interface.pd;
        Arc::pin_init(
            try_pin_init!(Self {
                interface: interface.clone(),
                queues,
                instance: instance.clone(),
                completions: CompletionQueue::new(
                    device,
                    entries,
                    next_vector(device),
                    instance.clone(),
                )?,
                shared: SharedReceiveQueue::new(pd, entries, pieces)?,
                entries,
                pieces,
                activity: Activity::new()?,
                messages: Messages::default(),
                sweeps: AtomicU64::new(0),
                taken: AtomicU64::new(0),
                queue_pairs: AtomicU32::new(0),
                slots: ConnectionSlots::new()?,
                lid: KnownLid::new(lid),
                attempts: Attempts::default(),
                leaves: AtomicBool::new(false),
                members <- new_mutex!(Members {
                    open: true,
                    addresses,
                    listeners: KVec::new(),
                    outbound: PlacedList::default(),
                    inbound: PlacedList::default(),
                }),
                tend_work <- new_delayed_work!("oxib_connected"),
                waits_work <- new_delayed_work!("oxib_waits"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has the device gather the completions of what is received by connections.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device cannot, and what else it says.
    pub(in crate::ipoib) fn moderate(&self, moderation: Moderation) -> Result {
        self.completions.moderate(moderation)
    }

    /// Begins to listen, and to look after the connections.
    pub(super) fn begin(self: &Arc<Self>) {
        self.tend_in(0);
    }

    /// Tries to listen now.
    pub(super) fn listen_soon(self: &Arc<Self>) {
        let searches = &self.interface.searches;
        searches.reschedule::<_, 0>(self, msecs_to_jiffies(0));
    }

    fn tend_in(self: &Arc<Self>, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds);
        self.interface
            .searches
            .schedule::<_, 0>(self.clone(), delay);
    }

    /// Listens, if that is not done, and closes what is idle. Returns when to do so again, in
    /// milliseconds.
    fn tend(self: &Arc<Self>) -> u32 {
        // Without memory at the moment, the next time will do.
        let _ = self.close_idle();
        if !self.listen() {
            return LISTEN_AGAIN;
        }
        (self.idle_time() * 1000 / LOOKS).max(LISTEN_AGAIN)
    }

    /// Returns the number of seconds without a packet after which a connection is closed.
    fn idle_time(&self) -> u32 {
        self.interface.options().connection_idle
    }

    /// Returns the connection manager of the port.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if it is not in use yet: that is begun. `ENODEV` if it does not have the port.
    pub(super) fn manager(self: &Arc<Self>) -> Result<Arc<Manager>> {
        let Some(manager) = self.interface.connected.manager() else {
            self.interface.acquire_service(self);
            return Err(EAGAIN);
        };
        if manager.has_port(self.device(), self.interface.port()) {
            Ok(manager)
        } else {
            Err(ENODEV)
        }
    }

    /// The device, as the connection manager knows it.
    pub(super) fn device(&self) -> DeviceKey {
        DeviceKey::of(self.interface.link().rdma())
    }

    /// Tells the administrator why there are no connections: of each cause once.
    pub(super) fn advise(&self, error: Error) {
        if !self.attempts.is_new(error) {
            return;
        }
        let interface = &self.interface;
        let (name, port) = (interface.device().name(), interface.port().get());
        if error == ENODEV {
            dev_warn!(
                interface.rdma(),
                "{name}: port {port} has another connection manager than oxib's, or none: no \
                 connections, all peers get datagrams\n"
            );
        } else if error == EAGAIN {
            dev_warn!(
                interface.rdma(),
                "{name}: port {port}: the connection manager has not started yet: until it has, \
                 all peers get datagrams\n"
            );
        } else {
            dev_warn!(
                interface.rdma(),
                "{name}: port {port}: no connections are accepted: {error:?}; peers send \
                 datagrams, and it is tried again\n"
            );
        }
    }

    /// Notes a connection that we make. False if the session is closed: then it is to be closed,
    /// too.
    pub(super) fn admit_outbound(&self, connection: &Arc<Outbound>) -> Result<bool> {
        let mut members = self.members.lock();
        if members.open {
            members.outbound.push(connection.clone())?;
            // Under the lock: `close` waits for the count only after it has closed the session
            // there.
            connection.count();
        }
        self.count(&members);
        Ok(members.open)
    }

    /// Notes a connection that a peer makes. False if the session is closed: then it is to be
    /// closed, too.
    pub(super) fn admit_inbound(&self, id: &Arc<Id>) -> Result<bool> {
        let mut members = self.members.lock();
        if members.open {
            members.inbound.push(id.clone())?;
        }
        self.count(&members);
        Ok(members.open)
    }

    /// Forgets a connection that we made.
    pub(super) fn dismiss_outbound(&self, connection: &Outbound) {
        let mut members = self.members.lock();
        let dismissed = members.outbound.remove(&connection.place);
        self.count(&members);
        drop(members);
        drop(dismissed);
    }

    /// Forgets a connection that a peer made.
    pub(super) fn dismiss_inbound(&self, connection: &Inbound) {
        let mut members = self.members.lock();
        let dismissed = members.inbound.remove(&connection.place);
        self.count(&members);
        drop(members);
        drop(dismissed);
    }

    /// Shows how many there are, with the lock held that makes this the only writer.
    fn count(&self, members: &Members) {
        let statistics = self.interface.statistics();
        statistics
            .connections_out
            .set(members.outbound.len() as u64);
        statistics.connections_in.set(members.inbound.len() as u64);
    }

    /// Returns whether the session is open.
    pub(super) fn is_open(&self) -> bool {
        self.members.lock().open
    }

    /// Notes that the RDMA device is being removed.
    pub(super) fn leave_device(&self) {
        self.leaves.store(true, Ordering::Relaxed);
    }

    /// Returns whether the session is open, and its device is not being removed.
    pub(super) fn stays(&self) -> bool {
        // Relaxed: an answer of just before the removal is as good as one of just before `close`.
        self.is_open() && !self.leaves.load(Ordering::Relaxed)
    }

    /// Closes connections that nothing was sent or received by for long, and those that failed.
    fn close_idle(self: &Arc<Self>) -> Result {
        let idle = u64::from(self.idle_time());
        for queue in 0..self.queues.pairs.len() as u32 {
            self.close_idle_of(queue, idle)?;
        }
        // Collected first: a connection that ends takes the members' lock to leave the list.
        for id in &self.idle_inbound(self.interface.now(), idle)? {
            if let Some(connection) = Inbound::of(id) {
                connection.close();
            }
        }
        Ok(())
    }

    /// Closes the connections of `queue` by which nothing was sent for `idle` seconds, and those
    /// that failed: all of them, a batch at a time.
    fn close_idle_of(self: &Arc<Self>, queue: u32, idle: u64) -> Result {
        let mut tags = KVec::with_capacity(BATCH, GFP_KERNEL)?;
        let mut next = Some(0);
        while let Some(from) = next.take() {
            if let Ok(mut guard) = self.interface.device().lock_queue(queue) {
                if let Some(senders) = guard.as_mut().and_then(|data| data.senders.as_mut()) {
                    next = senders.take_idle(self.interface.now(), idle, from, &mut tags);
                }
            }
            // Without the queue's lock: the end of a connection sleeps, and takes that lock
            // itself.
            for tag in &tags {
                if let Some(connection) = self.outbound(queue, *tag) {
                    connection.close();
                }
            }
            tags.clear();
        }
        Ok(())
    }

    /// Finds the connection that `queue` knows by `tag`.
    pub(super) fn outbound(&self, queue: u32, tag: Tag) -> Option<Arc<Outbound>> {
        self.find_outbound(|other| other.is(queue, tag))
    }

    /// Finds a connection that we make.
    pub(super) fn find_outbound(&self, is_it: impl Fn(&Outbound) -> bool) -> Option<Arc<Outbound>> {
        let members = self.members.lock();
        let mut connections = members.outbound.iter();
        connections.find(|other| is_it(other)).cloned()
    }

    /// Finds a connection that a peer makes.
    pub(super) fn find_inbound(&self, is_it: impl Fn(&Inbound) -> bool) -> Option<Arc<Id>> {
        let members = self.members.lock();
        let mut connections = members.inbound.iter();
        connections
            .find(|id| Inbound::of(id).is_some_and(&is_it))
            .cloned()
    }

    fn idle_inbound(&self, now: u64, idle: u64) -> Result<KVec<Arc<Id>>> {
        let mut found = KVec::new();
        let members = self.members.lock();
        for id in members.inbound.iter() {
            // Lock order: the members, then a connection's receiver.
            if Inbound::of(id).is_some_and(|connection| connection.is_idle(now, idle)) {
                found.push(id.clone(), GFP_KERNEL)?;
            }
        }
        Ok(found)
    }

    /// Chooses a connection of ours to give way to a peer's, unless all do.
    pub(super) fn outbound_to_leave(&self) -> Option<Yielding> {
        // `choose` is true once: two callers at a time find two connections.
        self.find_outbound(|other| other.leaving.choose())
            .map(Yielding::outbound)
    }

    /// Returns the number of connections that `source` has made, without those that give way.
    pub(super) fn inbound_of(&self, source: Source) -> u32 {
        let members = self.members.lock();
        let connections = members.inbound.iter().filter_map(|id| Inbound::of(id));
        connections
            .filter(|other| other.source() == source && !other.leaving.is())
            .count() as u32
    }

    /// Chooses the connection that gives way among those: one that is not established before
    /// others, and the one that has received nothing for longest.
    pub(super) fn inbound_to_leave(&self, among: Among) -> Option<Yielding> {
        let now = self.interface.now();
        let members = self.members.lock();
        let stays = |id: &&Arc<Id>| !Inbound::of(id).is_some_and(|other| other.leaving.is());
        let rank = |id: &Arc<Id>| Inbound::of(id)?.held(now)?.rank(among);
        let longest = (members.inbound.iter())
            .filter(stays)
            .filter_map(|id| Some((rank(id)?, id)))
            .max_by_key(|(rank, _)| *rank)?
            .1;
        let is_chosen = Inbound::of(longest)?.leaving.choose();
        is_chosen.then(|| Yielding::inbound(longest.clone()))
    }

    /// Ends all connections, and waits, not for ever, until the device lets go of their memory;
    /// none is made any more.
    pub(super) fn close(self: &Arc<Self>) {
        let (listeners, outbound, inbound) = {
            let mut members = self.members.lock();
            members.open = false;
            // Copies stay until each has ended: one that ends dismisses itself.
            (
                core::mem::take(&mut members.listeners),
                core::mem::take(&mut members.outbound),
                core::mem::take(&mut members.inbound),
            )
        };
        // Waits for `tend` with the RTNL held: that is why nothing of a session takes the RTNL.
        work::disable::<_, 0>(self);
        work::disable::<_, WAITS_WORK>(self);
        close_all(&listeners);
        outbound.iter().for_each(|connection| connection.close());
        let consumers = inbound.iter().filter_map(|id| Inbound::of(id));
        consumers.for_each(|connection| connection.close());
        drop((outbound, inbound));
        let statistics = self.interface.statistics();
        statistics.connections_out.set(0);
        statistics.connections_in.set(0);
        // Acquire pairs with the Release of each decrement: the device has let go of the memory by
        // then.
        self.wait(|| self.queue_pairs.load(Ordering::Acquire) == 0);
    }

    /// Throws away completions that nobody polls any more.
    pub(super) fn discard(&self) {
        self.completions.discard();
    }

    /// Waits until `is_so` is true, for 5 s at most; returns whether it is. Sleeps.
    pub(super) fn wait(&self, is_so: impl Fn() -> bool) -> bool {
        for _ in 0..PATIENCE_STEPS {
            if is_so() {
                return true;
            }
            fsleep(STEP);
        }
        is_so()
    }
}
