// SPDX-License-Identifier: GPL-2.0-only

//! Connections that peers make, by which we receive.
//!
//! A queue pair that has taken buffers out of the shared queue gives them back by completions. So
//! its end has three steps: it fails, and says when it holds no buffer any more; then the poll
//! must have seen all that it left in the completion queue; then it can go.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    AtomicU64,
    Ordering, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    lids::Lids,
    placed::{
        Place,
        Placed, //
    },
    receive::Arrivals,
    session::Session,
    slots::{
        ConnectionSlot,
        Held,
        Leaving, //
    }, //
};
use crate::{
    acm::sources::Source,
    cm::{
        Consumer,
        Id,
        Identifier,
        Manager,
        Notice,
        RepParameters,
        Report, //
    },
    net::napi::Instance,
    rdma::{
        management,
        rc, //
    },
    reclaim::WithoutIo,
    wire::{
        cm::{
            rep::Failover,
            req::Req,
            Ece,
            Message,
            Reason, //
        },
        connected::{
            service,
            Greeting, //
        },
        pkey::Pkey,
        psn::Psn,
        qpn::Qpn, //
    }, //
};

/// The queue pair of a connection by which we receive.
type QueuePair = rc::QueuePair<Arc<Instance<Arrivals>>, Arc<Instance<Arrivals>>>;

/// The consumer that accepts requests for connections.
#[pin_data]
pub(super) struct Listener {
    session: Arc<Session>,
    /// The number of the queue pair that the requester was told.
    address: Qpn,
    #[pin]
    id: Identifier,
}

impl Listener {
    /// Listens for requests to the interface's address, as those have it that were told `address`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EBUSY` if there is another listener for them.
    pub(super) fn new(
        session: &Arc<Session>,
        manager: &Arc<Manager>,
        address: Qpn,
    ) -> Result<Arc<Self>> {
        let this = Arc::pin_init(
            pin_init!(Self {
                session: session.clone(),
                address,
                id <- Identifier::new(),
            }),
            GFP_KERNEL,
        )?;
        let id = Id::new(manager, session.device(), this.clone())?;
        id.listen(service(address)).inspect_err(|_| this.close())?;
        Ok(this)
    }

    /// Returns whether it listens for requests of those that were told `address`.
    pub(super) fn is_for(&self, address: Qpn) -> bool {
        self.address == address
    }

    /// Stops listening: destroys the identifier. Sleeps.
    pub(super) fn close(&self) {
        self.id.close();
    }
}

impl Consumer for Listener {
    fn event(&self, _id: &Arc<Id>, _notice: &Notice) -> Result {
        Ok(())
    }

    fn accept(&self) -> Result<Arc<dyn Consumer>> {
        Ok(Inbound::new(&self.session, self.address)?)
    }

    fn leave_device(&self) {
        self.session.leave_device();
        self.close();
    }

    fn attach(&self, id: &Arc<Id>) {
        self.id.attach(id);
    }

    fn detach(&self) {
        self.id.detach();
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// A connection that a peer makes.
#[pin_data]
pub(super) struct Inbound {
    session: Arc<Session>,
    /// The queue pair of our address, as the peer knows it.
    address: Qpn,
    #[pin]
    id: Identifier,
    #[pin]
    receiver: Mutex<Option<Receiver>>,
    /// Time at which it was last seen to receive, in seconds since the interface was made.
    since: AtomicU64,
    /// The number of the [`Source`] that made it.
    source: AtomicU64,
    /// The number of its [`Lids`].
    lids: AtomicU32,
    /// The peer has confirmed it, or sent something by it.
    is_established: AtomicBool,
    pub(super) leaving: Leaving,
    /// Its place among the session's connections.
    pub(super) place: Place,
}

impl Placed for Arc<Id> {
    fn place(&self) -> Option<&Place> {
        Inbound::of(self).map(|connection| &connection.place)
    }
}

impl Inbound {
    fn new(session: &Arc<Session>, address: Qpn) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                session: session.clone(),
                address,
                id <- Identifier::new(),
                receiver <- new_mutex!(None),
                since: AtomicU64::new(session.interface.now()),
                source: AtomicU64::new(Source::UNKNOWN.get()),
                lids: AtomicU32::new(Lids::UNKNOWN.number()),
                is_established: AtomicBool::new(false),
                leaving: Leaving::default(),
                place: Place::default(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the consumer of `id`, if it is such a connection.
    pub(super) fn of(id: &Id) -> Option<&Self> {
        id.consumer().as_any().downcast_ref()
    }

    /// Ends the connection, unless it ends already. Sleeps.
    pub(super) fn close(&self) {
        self.id.close();
    }

    /// Returns whether nothing was received for `idle` seconds; called from time to time.
    pub(super) fn is_idle(&self, now: u64, idle: u64) -> bool {
        self.idle_time(now).is_some_and(|time| time >= idle)
    }

    /// Returns the seconds since something was received, or `None` if the connection has no queue
    /// pair. The caller holds the lock of the session's members.
    pub(super) fn idle_time(&self, now: u64) -> Option<u64> {
        let receiver = self.receiver.lock();
        let address = receiver.as_ref()?.qp.address();
        // The time of the look stands for that of the packet: there are several in an idle time.
        let seen = self.session.activity.take(address, now);
        let since = self.since.load(Ordering::Relaxed);
        // An earlier time than that of the connection is that of another one.
        let Some(seen) = seen.filter(|seen| *seen >= since) else {
            return Some(now.saturating_sub(since));
        };
        self.since.store(seen, Ordering::Relaxed);
        // An RTU may be lost: a packet shows as well that the peer is connected.
        self.is_established.store(true, Ordering::Relaxed);
        Some(now.saturating_sub(seen))
    }

    /// Returns the port that asked for it.
    pub(super) fn source(&self) -> Source {
        Source::from_number(self.source.load(Ordering::Relaxed))
    }

    /// LIDs of both ports.
    pub(super) fn lids(&self) -> Lids {
        Lids::from_number(self.lids.load(Ordering::Relaxed))
    }

    /// Returns it as a candidate to give way, if it is made.
    pub(super) fn held(&self, now: u64) -> Option<Held> {
        let idle = self.idle_time(now)?;
        Some(Held {
            source: self.source(),
            is_established: self.is_established.load(Ordering::Relaxed),
            idle,
        })
    }

    /// A peer asks for the connection.
    ///
    /// # Errors
    ///
    /// Why it is rejected.
    fn requested(&self, id: &Arc<Id>, notice: &Notice) -> core::result::Result<(), Reason> {
        let mad = notice.message().ok_or(Reason::CONSUMER_DEFINED)?;
        let Ok(Message::Req(req)) = Message::parse(mad.bytes()) else {
            return Err(Reason::CONSUMER_DEFINED);
        };
        let (lid, gid) = (mad.slid() as u16, mad.grh().map(|grh| grh.addresses().sgid));
        Greeting::parse(req.private_data()).map_err(|_| Reason::CONSUMER_DEFINED)?;
        if !self.is_for_interface(id, req.pkey()) {
            return Err(Reason::INVALID_SERVICE_ID);
        }
        let source = self.session.interface.link().source(lid, gid);
        self.source.store(source.get(), Ordering::Relaxed);
        let lids = Lids::of_request(req);
        self.lids.store(lids.number(), Ordering::Relaxed);
        self.session.requested_from(&req.primary().local_gid, lid);
        let room = self.session.take_slot_for_peer(source);
        let (slot, yielding) = room.ok_or(Reason::NO_QP)?;
        match self.session.admit_inbound(id) {
            Ok(true) => {}
            Ok(false) => return Err(Reason::INVALID_SERVICE_ID),
            Err(_) => return Err(Reason::NO_RESOURCES),
        }
        if !self.session.may_begin_here(lids) {
            // The LID has changed meanwhile: the look for such connections may have been before
            // this one was there.
            return Err(Reason::INVALID_LID);
        }
        self.accept_request(id, req, slot)
            .map_err(|_| Reason::NO_RESOURCES)?;
        if let Some(yielding) = yielding {
            self.session.give_way(yielding);
        }
        Ok(())
    }

    /// Returns whether a request for a connection in partition `pkey` came where the interface
    /// is. A listener of a service listens on all ports of the device and in all their
    /// partitions.
    fn is_for_interface(&self, id: &Id, pkey: Pkey) -> bool {
        let interface = &self.session.interface;
        let port = id.rc_initial().map(|initial| initial.port);
        port.is_ok_and(|port| port == interface.port()) && pkey.base() == interface.pkey().base()
    }

    fn accept_request(&self, id: &Arc<Id>, req: &Req, slot: ConnectionSlot) -> Result {
        // What comes by it may be what a write of pages waits for.
        let _scope = WithoutIo::begin();
        let psn = Psn::wrapping(management::random());
        let receiver = Receiver::new(&self.session, slot)?;
        let number = receiver.qp.number();
        // Before it can receive anything.
        let activity = &self.session.activity;
        activity.set_source(receiver.qp.address(), self.source());
        let prepared = receiver.prepare(id, psn);
        // Its end is the connection's from here on.
        let before = self.receiver.lock().replace(receiver);
        drop(before);
        prepared?;
        let greeting = Greeting::new(self.address).bytes();
        id.send_rep(&RepParameters {
            qpn: number,
            psn,
            private_data: &greeting,
            responder_resources: 0,
            initiator_depth: 0,
            failover: Failover::Accepted,
            flow_control: false,
            rnr_retry_count: req.rnr_retry_count(),
            srq: true,
            ece: Ece::default(),
        })
    }
}

impl Consumer for Inbound {
    fn event(&self, id: &Arc<Id>, notice: &Notice) -> Result {
        match notice.report() {
            Report::ReqReceived => match self.requested(id, notice) {
                Ok(()) => Ok(()),
                Err(reason) => {
                    // Not sent is as good as lost: the peer asks again.
                    let _ = id.send_rej(reason, &[], &[]);
                    self.id.over()
                }
            },
            Report::RtuReceived | Report::UserEstablished => {
                self.is_established.store(true, Ordering::Relaxed);
                Ok(())
            }
            Report::DreqReceived => {
                // Not sent is as good as lost: the peer repeats its DREQ.
                let _ = id.send_drep(&[]);
                self.id.over()
            }
            Report::RejReceived
            | Report::RepError(_)
            | Report::DreqError(_)
            | Report::DrepReceived
            | Report::TimewaitExit
            // A peer that only asks for the number of a queue pair gets none.
            | Report::SidrReqReceived => self.id.over(),
            _ => Ok(()),
        }
    }

    fn leave_device(&self) {
        self.session.leave_device();
        self.close();
    }

    fn attach(&self, id: &Arc<Id>) {
        self.id.attach(id);
    }

    fn detach(&self) {
        self.id.detach();
        let receiver = self.receiver.lock().take();
        if let Some(receiver) = receiver {
            receiver.retire();
        }
        self.session.dismiss_inbound(self);
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

/// A queue pair that receives, counted among the session's.
struct Receiver {
    qp: Arc<QueuePair>,
    session: Arc<Session>,
    /// The queue pair may have taken buffers from the shared receive queue.
    receives: AtomicBool,
    _slot: ConnectionSlot,
}

impl Receiver {
    fn new(session: &Arc<Session>, slot: ConnectionSlot) -> Result<Self> {
        let pd = &session.interface.pd;
        let completions = &session.completions;
        let qp = QueuePair::receiver(pd, completions, completions, &session.shared)?;
        // Relaxed: `Session::close` waits for this handler before it waits for the count.
        session.queue_pairs.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            qp,
            session: session.clone(),
            receives: AtomicBool::new(false),
            _slot: slot,
        })
    }

    fn prepare(&self, id: &Id, psn: Psn) -> Result {
        self.qp.initialise(&id.rc_initial()?)?;
        self.qp.receive(&id.rc_reception(psn)?)?;
        // From Ready to Receive on, the queue pair takes buffers out of the shared queue.
        self.receives.store(true, Ordering::Relaxed);
        // Some devices flush nothing before a queue pair could send.
        if let Ok(transmission) = id.rc_transmission() {
            let _ = self.qp.send(&transmission);
        }
        Ok(())
    }

    /// Ends it, beside what else is going on: the buffers that it has taken come back first.
    fn retire(self) {
        // The buffers of a session that ends go with it. A queue pair that has received none
        // reports no last one.
        if !self.session.stays() || !self.receives.load(Ordering::Relaxed) {
            return;
        }
        let interface = self.session.interface.clone();
        // Without memory it goes at once, and buffers may be lost until the interface goes down.
        let _ = interface.drains.spawn(move || self.drain());
    }

    fn drain(&self) {
        // Without the error state nothing is flushed; the reset of the drop is what is left.
        if self.qp.fail().is_err() {
            return;
        }
        let session = &self.session;
        let closes = || !session.stays();
        session.wait(|| closes() || self.qp.is_drained());
        // A sweep may be under way that passed before the last buffer came; the next one finds it.
        let swept = session.sweeps.load(Ordering::Acquire) + 2;
        // A busy queue is never found empty, but no more than `entries` can be ahead in it.
        let taken = session.taken.load(Ordering::Acquire) + u64::from(session.entries);
        session.wait(|| {
            // An idle queue notifies nobody, so the poll that counts a sweep is scheduled here.
            session.instance.schedule();
            closes()
                || session.sweeps.load(Ordering::Acquire) >= swept
                || session.taken.load(Ordering::Acquire) >= taken
        });
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // One that cannot be reset is destroyed; if that fails too, the shared queue knows.
        let _ = self.qp.reset();
        self.session.queue_pairs.fetch_sub(1, Ordering::Release);
    }
}
