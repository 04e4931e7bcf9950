// SPDX-License-Identifier: GPL-2.0-only

//! Connections that we make, to send.

use core::sync::atomic::{
    AtomicBool,
    AtomicU8,
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
    peer::Fate,
    placed::{
        Place,
        Placed, //
    },
    receive::Arrivals,
    rejections,
    session::Session,
    slots::{
        ConnectionSlot,
        Leaving, //
    },
    transmit::Sender, //
};
use crate::{
    cm::{
        Consumer,
        Id,
        Identifier,
        Manager,
        Notice,
        QpType,
        Report,
        ReqParameters, //
    },
    ipoib::transmit::Reaper,
    net::napi::Instance,
    rdma::{
        path::PathRecord,
        rc::{
            self,
            Capacity, //
        },
        rc_send::{
            SendRing,
            Tag,
            PIECES, //
        }, //
    },
    reclaim::WithoutIo,
    wire::{
        cm::{
            Ece,
            Message,
            Reason, //
        },
        connected::{
            service,
            Greeting, //
        },
        gid::Gid,
        hwaddr::HwAddr,
        psn::Psn, //
    }, //
};

/// Most packets that are on their way by one connection; a power of two.
const RING: u32 = 128;

/// Bytes that we would like to send inline, as in datagram mode.
const INLINE: u32 = 128;

/// Attributes of a REQ, like those of the kernel's own driver, which the peer may run: reads and
/// atomics of the peer, of which there will be none; response time-out, as an exponent; tries.
/// The transport retries nothing: IP does (RFC 4755 §6).
const RESPONDER_RESOURCES: u8 = 4;
const RESPONSE_TIMEOUT: u8 = 20;
const TRIES: u8 = 15;

/// The queue pair of a connection by which we send.
pub(super) type QueuePair = rc::QueuePair<Arc<Instance<Reaper>>, Arc<Instance<Arrivals>>>;

/// A connection that we make.
#[pin_data]
pub(super) struct Outbound {
    session: Arc<Session>,
    queue: u32,
    tag: Tag,
    /// GID of the peer's port.
    gid: Gid,
    lids: Lids,
    /// The peer has accepted.
    accepted: AtomicBool,
    #[pin]
    id: Identifier,
    #[pin]
    qp: Mutex<Option<Arc<QueuePair>>>,
    /// Consequence of the connection's end for the next one: a [`Fate`].
    fate: AtomicU8,
    /// Its queue pair is counted among the session's.
    counted: AtomicBool,
    pub(super) leaving: Leaving,
    /// Its place among the session's connections.
    pub(super) place: Place,
    _slot: ConnectionSlot,
}

impl Placed for Arc<Outbound> {
    fn place(&self) -> Option<&Place> {
        Some(&self.place)
    }
}

impl Session {
    /// Makes the connection to `peer`, by which `queue` knows it by `tag`: soon, as that sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`: it will not be made.
    pub(super) fn connect(self: &Arc<Self>, queue: u32, tag: Tag, peer: HwAddr) -> Result {
        let this = self.clone();
        self.interface.connects.spawn(move || {
            if let Err(error) = Outbound::begin(&this, queue, tag, peer) {
                let fate = fate_of_failure(error, this.stays());
                this.interface.end_connection(&this, queue, tag, fate);
            }
        })
    }

    /// Takes a connection away that failed: soon. The path to the peer may be another one by now.
    /// Without memory at the moment, the next look for what is idle does.
    pub(super) fn close_soon(self: &Arc<Self>, queue: u32, tag: Tag) {
        let this = self.clone();
        let _ = self.interface.searches.spawn(move || {
            if let Some(connection) = this.outbound(queue, tag) {
                this.interface.invalidate_destination(&connection.gid);
                connection.close();
            }
        });
    }
}

impl Outbound {
    /// Returns whether the peer has accepted.
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }

    /// GID of the peer's port.
    pub(super) fn gid(&self) -> Gid {
        self.gid
    }

    /// LIDs of both ports.
    pub(super) fn lids(&self) -> Lids {
        self.lids
    }

    /// Asks `peer` for a connection.
    ///
    /// # Errors
    ///
    /// `ENODEV` if there can be none over the port, `EBUSY` if there are as many as there may be;
    /// `EAGAIN` if the connection manager is not in use yet; `ENOMEM` and others that pass.
    fn begin(session: &Arc<Session>, queue: u32, tag: Tag, peer: HwAddr) -> Result {
        // As with the kernel's `ib_ipoib`: the memory may have to be got by this very connection.
        let _scope = WithoutIo::begin();
        let interface = &session.interface;
        let manager = session.manager()?;
        // The slot comes first: a request beyond the limit costs the subnet administrator no
        // query.
        let slot = session.take_slot().ok_or(EBUSY)?;
        let path = path_from_here(session, peer.gid())?;
        let lids = Lids::along(&path);
        let qp = new_queue_pair(session, queue)?;
        let number = qp.number();
        let route = (peer.gid(), lids);
        let this = Self::new(session, &manager, (queue, tag), route, qp, slot)?;
        if !session.may_begin_here(lids) {
            // The LID has changed meanwhile: the look for such connections may have been before
            // this one was there.
            this.close_as(Fate::Moved);
            return Ok(());
        }
        let main = session.queues.main()?.number();
        // The number by which this peer knows us, of the queue pair for datagrams (RFC 4755).
        let told = interface.number_for(&peer.gid(), main);
        let greeting = Greeting::new(told).bytes();
        let id = this.id.get()?;
        let sent = id.send_req(ReqParameters {
            primary: path,
            inbound_dlid: None,
            outbound_dlid: None,
            alternate: None,
            source: None,
            service: service(peer.qpn()),
            qpn: number,
            qp_type: QpType::Rc,
            psn: Psn::wrapping(0),
            private_data: &greeting,
            responder_resources: RESPONDER_RESOURCES,
            initiator_depth: 0,
            remote_response_timeout: RESPONSE_TIMEOUT,
            local_response_timeout: RESPONSE_TIMEOUT,
            flow_control: false,
            retry_count: 0,
            rnr_retry_count: 0,
            max_retries: TRIES,
            srq: false,
            ece: Ece::default(),
        });
        sent.inspect_err(|_| this.close_as(Fate::Failed))
    }

    fn new(
        session: &Arc<Session>,
        manager: &Arc<Manager>,
        (queue, tag): (u32, Tag),
        (gid, lids): (Gid, Lids),
        qp: Arc<QueuePair>,
        connection_slot: ConnectionSlot,
    ) -> Result<Arc<Self>> {
        let this = Arc::pin_init(
            pin_init!(Self {
                session: session.clone(),
                queue,
                tag,
                gid,
                lids,
                accepted: AtomicBool::new(false),
                id <- Identifier::new(),
                qp <- new_mutex!(Some(qp)),
                fate: AtomicU8::new(Fate::Over as u8),
                counted: AtomicBool::new(false),
                leaving: Leaving::default(),
                place: Place::default(),
                _slot: connection_slot,
            }),
            GFP_KERNEL,
        )?;
        Id::new(manager, session.device(), this.clone())?;
        match session.admit_outbound(&this) {
            Ok(true) => Ok(this),
            Ok(false) => {
                this.close();
                Err(ENODEV)
            }
            Err(error) => {
                this.close();
                Err(error)
            }
        }
    }

    /// Counts the queue pair among the session's, until the connection has ended.
    pub(super) fn count(&self) {
        // Relaxed: the members' lock, which is held, orders it before the wait of
        // `Session::close`.
        self.session.queue_pairs.fetch_add(1, Ordering::Relaxed);
        self.counted.store(true, Ordering::Release);
    }

    /// Returns whether `queue` knows the connection by `tag`.
    pub(super) fn is(&self, queue: u32, tag: Tag) -> bool {
        self.queue == queue && self.tag == tag
    }

    /// Ends the connection, unless it ends already. Sleeps.
    pub(super) fn close(&self) {
        self.id.close();
    }

    /// Ends the connection with `fate`, unless it ends already. Sleeps.
    pub(super) fn close_as(&self, fate: Fate) {
        // Relaxed: of two threads that end it at the same time, the fate of either will do.
        self.fate.store(fate as u8, Ordering::Relaxed);
        self.close();
    }

    /// Ends the connection as the answer to a notice, unless it is being ended.
    fn over(&self, fate: Fate) -> Result {
        self.fate.store(fate as u8, Ordering::Relaxed);
        self.id.over()
    }

    /// Handles the peer's REP: brings the queue pair up, and answers with an RTU.
    fn accepted(&self, id: &Arc<Id>, notice: &Notice) -> Result {
        let Some(Message::Rep(rep)) = notice
            .message()
            .and_then(|mad| Message::parse(mad.bytes()).ok())
        else {
            return Err(EINVAL);
        };
        self.accepted.store(true, Ordering::Relaxed);
        let greeting = Greeting::parse(rep.private_data()).map_err(|_| EINVAL)?;
        let _scope = WithoutIo::begin();
        // A reference of its own: the commands sleep, and need not hold the lock.
        let qp = self.qp.lock().clone().ok_or(ENODEV)?;
        qp.initialise(&id.rc_initial()?)?;
        qp.receive(&id.rc_reception(Psn::wrapping(0))?)?;
        qp.send(&id.rc_transmission()?)?;
        let ring = SendRing::new(&qp, RING, self.tag)?;
        id.send_rtu(&[])?;
        let sender = Sender::new(ring, greeting.packet());
        let interface = &self.session.interface;
        interface.connection_made(&self.session, self.queue, self.tag, sender)
    }
}

/// Returns the path from the port, at the LID that it has now, to the port at `gid`. Sleeps.
///
/// # Errors
///
/// `EAGAIN` if the subnet administrator, too, has only one from an old LID of the port; others if
/// there is none.
fn path_from_here(session: &Arc<Session>, gid: Gid) -> Result<PathRecord> {
    let interface = &session.interface;
    let path = interface.link().path_record(interface, gid)?;
    if session.may_begin_here(Lids::along(&path)) {
        return Ok(path);
    }
    // Known since before the port got another LID.
    interface.forget_paths_to(&gid);
    let path = interface.link().path_record(interface, gid)?;
    if session.may_begin_here(Lids::along(&path)) {
        Ok(path)
    } else {
        Err(EAGAIN)
    }
}

fn new_queue_pair(session: &Session, queue: u32) -> Result<Arc<QueuePair>> {
    let send = session.queues.send.get(queue as usize).ok_or(EINVAL)?;
    let pd = &session.interface.pd;
    let capacity = Capacity {
        send: RING,
        pieces: pd.device().max_send_pieces().min(PIECES as u32).max(1),
        inline: INLINE,
    };
    QueuePair::sender(pd, send, &session.completions, capacity)
}

/// Returns the consequence of a request that could not be begun. The interface may go down for a
/// change, or with its device, of which a bond has another one: a session that does not stay says
/// nothing of connections.
fn fate_of_failure(error: Error, stays: bool) -> Fate {
    if stays && (error == ENODEV || error == EBUSY) {
        Fate::Declined
    } else {
        Fate::Postponed
    }
}

/// Returns the reason of the rejection that `notice` is of.
fn reason_of(notice: &Notice) -> Option<Reason> {
    match Message::parse(notice.message()?.bytes()) {
        Ok(Message::Rej(rej)) => Some(rej.reason()),
        _ => None,
    }
}

impl Consumer for Outbound {
    fn event(&self, id: &Arc<Id>, notice: &Notice) -> Result {
        match notice.report() {
            Report::RepReceived => match self.accepted(id, notice) {
                Ok(()) => Ok(()),
                // The end says so to the peer.
                Err(_) => self.over(Fate::Failed),
            },
            Report::RejReceived => {
                let reason = reason_of(notice);
                let interface = &self.session.interface;
                let is_first = interface.is_first_refusal(&self.session, self.queue, self.tag);
                if reason.is_some_and(|reason| rejections::doubts_path(reason, is_first)) {
                    // The peer may be elsewhere.
                    interface.invalidate_destination(&self.gid);
                }
                self.over(reason.map_or(Fate::Failed, rejections::fate_of))
            }
            Report::ReqError(_) => {
                // The peer may be elsewhere.
                self.session.interface.invalidate_destination(&self.gid);
                self.over(Fate::Failed)
            }
            Report::DreqReceived => {
                // A peer with another LID goes on there.
                let from = notice.message().map_or(0, |mad| mad.slid() as u16);
                let fate = self.session.ended_from(self, from);
                // Not sent is as good as lost: the peer asks again.
                let _ = id.send_drep(&[]);
                self.over(fate)
            }
            Report::DreqError(_) | Report::DrepReceived | Report::TimewaitExit => {
                self.over(Fate::Over)
            }
            _ => Ok(()),
        }
    }

    fn leave_device(&self) {
        // First: nothing that is tried meanwhile is declined.
        self.session.leave_device();
        self.close_as(Fate::Postponed);
    }

    fn attach(&self, id: &Arc<Id>) {
        self.id.attach(id);
    }

    fn detach(&self) {
        self.id.detach();
        let fate = Fate::from_number(self.fate.load(Ordering::Relaxed));
        let interface = &self.session.interface;
        interface.end_connection(&self.session, self.queue, self.tag, fate);
        // What was sent on it is gone by now.
        let qp = self.qp.lock().take();
        drop(qp);
        if self.counted.swap(false, Ordering::AcqRel) {
            self.session.queue_pairs.fetch_sub(1, Ordering::Release);
        }
        self.session.dismiss_outbound(self);
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

#[kernel::prelude::kunit_tests(oxib_connected_active)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_closes_declines_nothing() {
        for (error, is_open, fate) in [
            (ENODEV, true, Fate::Declined),
            (EBUSY, true, Fate::Declined),
            (EAGAIN, true, Fate::Postponed),
            (ENOMEM, true, Fate::Postponed),
            (ENODEV, false, Fate::Postponed),
            (EBUSY, false, Fate::Postponed),
        ] {
            assert_eq!(fate_of_failure(error, is_open), fate);
        }
    }
}
