// SPDX-License-Identifier: GPL-2.0-only

//! Progress of connected queue pairs: by requests of their consumers, by packets, by time.

use core::sync::atomic::{
    fence,
    Ordering, //
};

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
    workqueue::{
        self,
        WorkItem, //
    }, //
};

use super::{
    completion::Origin,
    connection::{
        bit,
        Outcome,
        Pause,
        Shell,
        BURST,
        EVENTS, //
    },
    counters::Counter,
    queue_pair::{
        Attributes,
        Inner,
        QueuePair,
        State,
        Type, //
    },
    send::Request, //
};
use crate::{
    transport::{
        self,
        attributes::{
            Mtu,
            Receiving,
            RemoteAccess,
            Sending, //
        },
        packet::{
            Body,
            Incoming,
            Tail, //
        },
        time::Time,
        work::Operation,
        StateName, //
    },
    wire::{
        opcode::Service,
        packet::Packet, //
    },
    work, //
};

/// Packets that one call of `drain` sends at the most; then others have a turn.
const MOST_SENT: usize = 4 * BURST;

/// The works of a queue pair.
pub(super) const TIMER: u64 = 0;
pub(super) const TELLER: u64 = 1;
pub(super) const RESUMPTION: u64 = 2;

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 0> for QueuePair { self.timer }
    impl HasDelayedWork<Self, 1> for QueuePair { self.teller }
    impl HasDelayedWork<Self, 2> for QueuePair { self.resumption }
}

impl WorkItem<0> for QueuePair {
    type Pointer = Arc<QueuePair>;

    fn run(this: Arc<QueuePair>) {
        let now = this.hca.now();
        this.run_connection(Origin::default(), Context::Anywhere, |transport, shell| {
            shell.timer_rang();
            transport.timer(shell, now);
        });
    }
}

impl WorkItem<1> for QueuePair {
    type Pointer = Arc<QueuePair>;

    fn run(this: Arc<QueuePair>) {
        // All at once: an event that is noted after this schedules the work again.
        let events = this.events.swap(0, Ordering::AcqRel);
        for event in EVENTS {
            if events & bit(event) != 0 {
                this.handle.raise(event);
            }
        }
        if let (Some(shared), true) = (&this.shared, events & SHARED_LIMIT != 0) {
            shared.raise_limit();
        }
    }
}

impl WorkItem<2> for QueuePair {
    type Pointer = Arc<QueuePair>;

    fn run(this: Arc<QueuePair>) {
        if !this.kind.is_connected() {
            return this.send_postponed();
        }
        let now = this.hca.now();
        this.run_connection(
            Origin::default(),
            Context::SoftInterrupt,
            |transport, shell| {
                transport.run(shell, now);
            },
        );
    }
}

/// The bit among the events by which the shared receive queue may have reached its limit.
const SHARED_LIMIT: u32 = 1 << 31;

/// The context from which a queue pair is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// Soft interrupt, with no lock of a consumer held.
    SoftInterrupt,
    /// Any context, also with locks of consumers held.
    Anywhere,
}

impl QueuePair {
    /// Runs the protocol of a connected queue pair, then does what it wanted done without the lock.
    pub(super) fn run_connection(
        self: &Arc<Self>,
        origin: Origin,
        context: Context,
        step: impl FnOnce(&mut transport::QueuePair, &mut Shell<'_, '_>),
    ) {
        let outcome = self.inner.with(|inner| self.step(inner, origin, step));
        if let Some(outcome) = outcome {
            self.finish(outcome, context);
        }
    }

    fn step<'a>(
        self: &'a Arc<Self>,
        inner: &mut Inner,
        origin: Origin,
        step: impl FnOnce(&mut transport::QueuePair, &mut Shell<'_, '_>),
    ) -> Option<Outcome<'a>> {
        let connection = inner.connection.as_mut()?;
        let (transport, mut shell) = Shell::new(
            self,
            &inner.attributes,
            &mut inner.receives,
            connection,
            origin,
        );
        step(transport, &mut shell);
        let outcome = shell.into_outcome();
        // The step may have ended the queue pair: posts and queries look at this state.
        inner.state = match connection.transport.state() {
            StateName::Reset => State::Reset,
            StateName::Init => State::Init,
            StateName::Rtr => State::ReadyToReceive,
            StateName::Rts => State::ReadyToSend,
            StateName::Sqd => State::SendQueueDrained,
            StateName::Sqe => State::SendQueueError,
            StateName::Error => State::Error,
        };
        let due = connection.transport.due().map(|due| due.get());
        // One that goes off too early does nothing but is set again.
        if let Some(due) = due.filter(|due| connection.armed.is_none_or(|armed| *due < armed)) {
            connection.armed = Some(due);
            let delay = due.saturating_sub(self.hca.now().get());
            let delay = u32::try_from(delay.div_ceil(1_000_000)).unwrap_or(u32::MAX);
            self.hca
                .queue
                .reschedule::<_, TIMER>(self, msecs_to_jiffies(delay));
        }
        Some(outcome)
    }

    /// Does what the protocol wanted done.
    fn finish(self: &Arc<Self>, outcome: Outcome<'_>, context: Context) {
        self.drain();
        if context == Context::SoftInterrupt {
            outcome.received.raise();
            outcome.sent.raise();
        } else {
            outcome.received.raise_later();
            outcome.sent.raise_later();
        }
        let limit = self.shared.as_ref().map_or(0, |shared| shared.limit());
        let mut events = outcome.events;
        if outcome.took_shared && limit != 0 {
            events |= SHARED_LIMIT;
        }
        if events != 0 {
            self.tell(events);
        }
        match outcome.left {
            Some(Pause::Turn) => self.resume(0),
            // Not at once: the packets ahead are taken by the CPU that this may run on.
            Some(Pause::Crowd) => self.resume(1),
            // The CPU that sends the backlog resumes it in `drain`.
            Some(Pause::Backlog) | None => {}
        }
    }

    /// Sends what is left, after a delay. If that is planned already, that run sends it.
    pub(super) fn resume(self: &Arc<Self>, delay: Jiffies) {
        let _ = workqueue::system_bh().enqueue_delayed::<_, RESUMPTION>(self.clone(), delay);
    }

    /// Tells the consumer of events soon. Any context.
    pub(super) fn tell(self: &Arc<Self>, events: u32) {
        // Noted before the work is scheduled, so that its run finds them.
        self.events.fetch_or(events, Ordering::AcqRel);
        self.hca.queue.schedule::<_, TELLER>(self.clone(), 0);
    }

    /// Sends the packets that wait. One CPU at a time does it, so that they leave in order. It does
    /// so for others that post meanwhile, but not for ever.
    fn drain(self: &Arc<Self>) {
        if !self.has_frames() {
            return;
        }
        let port = self.inner.with(|inner| inner.attributes.port);
        let mut sent = 0;
        while sent < MOST_SENT {
            // Frames are added before `draining` is read, and `draining` is cleared before the
            // frames are looked at again. Without a full barrier between the two, on both sides, a
            // CPU that adds a frame and one that ends draining could both miss what the other did.
            fence(Ordering::SeqCst);
            // If another one drains, it sees frames that were added meanwhile; if it has just
            // ended, we drain them.
            if !self.has_frames() || self.draining.swap(true, Ordering::AcqRel) {
                break;
            }
            sent += self.frames.take(MOST_SENT - sent, |frame| {
                self.hca.transmit(port, frame);
            });
            sent += self.own_frames.take(MOST_SENT - sent, |frame| {
                self.hca.loop_back(port, frame);
            });
            self.draining.store(false, Ordering::Release);
        }
        // Another CPU may have found this backlog and have left packets for it. A backlog is a
        // burst in one of the queues, which one call of this takes out as a whole, unless it has
        // sent its most. What is left then is sent by that work, too.
        if sent >= BURST {
            self.resume(0);
        }
    }

    /// Returns whether packets wait to be sent.
    fn has_frames(&self) -> bool {
        !self.frames.is_empty() || !self.own_frames.is_empty()
    }

    /// Ends what runs by itself, and sends what that work had left to send: the peer may wait for
    /// the acknowledgement of what has been received. Sleeps. The queue pair has ended, so that no
    /// more packets come to be sent.
    pub(crate) fn stop(self: &Arc<Self>) {
        work::disable::<_, TIMER>(self);
        work::disable::<_, TELLER>(self);
        work::disable::<_, RESUMPTION>(self);
        while self.has_frames() {
            self.drain();
        }
    }

    /// Posts a send to a connected queue pair.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full; `EINVAL` if the state or the service takes no such send, or
    /// the request is too large.
    pub(crate) fn post_send(self: &Arc<Self>, mut request: Request<'_>) -> Result {
        request.work.signalled |= self.signal_all;
        if self.kind == Type::Unreliable && !is_unreliable(&request.work.operation) {
            return Err(EINVAL);
        }
        // A post only queues: the packets of a whole chain are sent by one `send_posted`.
        self.inner.with(|inner| {
            if inner.state < State::ReadyToSend {
                return Err(EINVAL);
            }
            let connection = inner.connection.as_mut().ok_or(EINVAL)?;
            connection.sends.post(request)
        })
    }

    /// Sends what was posted.
    pub(crate) fn send_posted(self: &Arc<Self>) {
        let now = self.hca.now();
        self.run_connection(Origin::default(), Context::Anywhere, |transport, shell| {
            transport.run(shell, now);
        });
    }

    /// Takes a packet of a connection. In soft interrupt context.
    pub(super) fn receive_connected(
        self: &Arc<Self>,
        port: u8,
        service: Service,
        packet: &Packet<'_>,
        path_bits: u8,
    ) -> Result<(), Counter> {
        let own = match self.kind {
            Type::Reliable => Service::Rc,
            Type::Unreliable => Service::Uc,
            _ => return Err(Counter::WrongQueuePair),
        };
        if service != own {
            return Err(Counter::WrongQueuePair);
        }
        let link = packet.head.lrh.link();
        let origin = Origin {
            lid: link.slid.get(),
            service_level: link.sl,
            path_bits,
            pkey_index: 0,
            port,
            global: false,
            checksum: false,
        };
        let now = self.hca.now();
        let mut taken = Ok(());
        self.run_connection(origin, Context::SoftInterrupt, |transport, shell| {
            // Checked under the lock under which it is taken: between two holds of it the consumer
            // could connect the queue pair with another peer.
            taken = shell
                .admit(packet)
                .and_then(|()| take(transport, shell, packet, now));
        });
        if taken == Err(Counter::WrongPkey) {
            self.hca.bad_pkey(port, packet);
        }
        taken
    }

    /// Modifies a connected queue pair, as [`QueuePair::modify`] does any.
    pub(super) fn modify_connection(
        self: &Arc<Self>,
        state: Option<State>,
        change: impl FnOnce(&mut Attributes),
    ) -> Result {
        let mut changed = Ok(());
        let now = self.hca.now();
        let before = self.inner.with(|inner| {
            let before = inner.attributes;
            change(&mut inner.attributes);
            before
        });
        let (current, attributes) = self.query();
        self.run_connection(Origin::default(), Context::Anywhere, |transport, shell| {
            changed = transition(transport, shell, current, state, &attributes);
            // Also after a change of state: a queue that is drained already reports so here.
            transport.run(shell, now);
        });
        if changed.is_err() {
            // A queue pair is modified by one at a time, so the attributes are those of above.
            self.inner.with(|inner| inner.attributes = before);
        }
        if changed.is_ok() && state == Some(State::Reset) {
            self.inner.with(|inner| {
                if let Some(connection) = &mut inner.connection {
                    // Both count sends from 0 again, the protocol since its reset and the queue
                    // since this.
                    connection.sends.clear();
                }
            });
        }
        changed
    }
}

/// Gives a packet to the protocol, which then does what follows from it.
///
/// # Errors
///
/// [`Counter::Malformed`] if it is none of a connection.
fn take(
    transport: &mut transport::QueuePair,
    shell: &mut Shell<'_, '_>,
    packet: &Packet<'_>,
    now: Time,
) -> Result<(), Counter> {
    let body =
        Body::of(packet.transport.opcode.operation, &packet.extension).ok_or(Counter::Malformed)?;
    let incoming = Incoming {
        body,
        psn: packet.transport.psn,
        ack_request: packet.transport.ack_request,
        solicited: packet.transport.solicited,
        payload: packet.payload,
    };
    // Duplicates and gaps are the protocol's daily bread; it answers them itself.
    let _ = transport.receive(shell, &incoming, now);
    transport.run(shell, now);
    Ok(())
}

/// Returns whether an unreliable connection does that operation (IBTA 9.5, table 39).
fn is_unreliable(operation: &Operation) -> bool {
    match operation {
        Operation::Send(tail) => !matches!(tail, Tail::Invalidate(_)),
        Operation::Write(..) | Operation::Local(_) => true,
        Operation::Read(_) | Operation::Atomic(..) => false,
    }
}

/// Tells the protocol of a new state, and of what may change without one.
fn transition(
    transport: &mut transport::QueuePair,
    shell: &mut Shell<'_, '_>,
    current: State,
    state: Option<State>,
    attributes: &Attributes,
) -> Result {
    let moved = match state {
        None => Ok(()),
        Some(State::Reset) => {
            transport.reset();
            Ok(())
        }
        Some(State::Init) => transport.init(),
        Some(State::ReadyToReceive) => {
            transport.ready_to_receive(receiving(attributes).ok_or(EINVAL)?)
        }
        Some(State::ReadyToSend) if current == State::ReadyToReceive => {
            transport.ready_to_send(sending(attributes))
        }
        Some(State::ReadyToSend) => transport.resume(),
        Some(State::SendQueueDrained) => transport.drain(attributes.notify_drained),
        Some(State::Error) => {
            transport.fail(shell);
            Ok(())
        }
        Some(State::SendQueueError) => return Err(EINVAL),
    };
    moved.map_err(|_| EINVAL)?;
    // These can change while the send queue is drained (IBTA 11.2.5.2), and are as they were else.
    // First, as a queue that is still being drained refuses them.
    transport
        .set_sending(sending(attributes))
        .map_err(|_| EINVAL)?;
    transport.set_access(access(attributes));
    transport.set_min_rnr_timer(attributes.min_rnr_timer);
    transport.set_max_reads_of_peer(attributes.max_reads_of_peer);
    Ok(())
}

fn access(attributes: &Attributes) -> RemoteAccess {
    let rights = attributes.access;
    RemoteAccess {
        write: rights.remote_write,
        read: rights.remote_read,
        atomic: rights.remote_atomic,
    }
}

fn receiving(attributes: &Attributes) -> Option<Receiving> {
    Some(Receiving {
        mtu: Mtu::from_code(attributes.path_mtu)?,
        psn: attributes.receive_psn,
        access: access(attributes),
        max_reads: attributes.max_reads_of_peer,
        min_rnr_timer: attributes.min_rnr_timer,
    })
}

fn sending(attributes: &Attributes) -> Sending {
    Sending {
        psn: attributes.send_psn,
        timeout: attributes.timeout,
        retry_count: attributes.retry_count,
        rnr_retry: attributes.rnr_retry,
        max_reads: attributes.max_reads,
    }
}
