// SPDX-License-Identifier: GPL-2.0-only

//! Queue pairs (IBTA 10.2.4, 10.3.1).

use core::sync::atomic::{
    AtomicBool,
    AtomicU32, //
};

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::{
        new_delayed_work,
        DelayedWork, //
    }, //
};

use super::{
    address::AddressVector,
    completion::{
        Completion,
        CompletionQueue,
        Event,
        Extra,
        Kind,
        Origin, //
    },
    connection::{
        bit,
        Connection, //
    },
    postponed::Postponed,
    progress::Context,
    receive::{
        ReceiveQueue,
        SharedReceiveQueue, //
    },
    region::Rights,
    send::SendQueue,
    Hca, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    net::frame::Queue,
    provider::{
        memory::Segment,
        pd::Domain,
        queue_pair::Handle, //
    },
    transport::{
        attributes::Service,
        work::{
            self,
            Status, //
        }, //
    },
    wire::{
        psn::Psn,
        qpn::Qpn, //
    }, //
};

mod chain;

pub(super) use chain::HandedOver;
pub(crate) use chain::{
    Chain,
    Datagram,
    Destination, //
};

/// The type of a queue pair, by its service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    /// Queue pair 0: subnet management.
    Smi,
    /// Queue pair 1: general services.
    Gsi,
    /// Unreliable datagrams (UD) between any queue pairs.
    Datagram,
    /// An unreliable connection (UC).
    Unreliable,
    /// A reliable connection (RC).
    Reliable,
}

impl Type {
    pub(crate) fn is_connected(self) -> bool {
        matches!(self, Self::Unreliable | Self::Reliable)
    }
}

/// The states of a queue pair, by the kernel's numbers (IBTA 10.3.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
#[repr(u8)]
pub(crate) enum State {
    Reset = 0,
    Init = 1,
    ReadyToReceive = 2,
    ReadyToSend = 3,
    SendQueueDrained = 4,
    SendQueueError = 5,
    Error = 6,
}

/// The attributes of a queue pair, as its consumer has set them and queries return them. Values
/// are the verbs'.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) port: u8,
    pub(crate) pkey_index: u16,
    pub(crate) qkey: u32,
    pub(crate) access: Rights,
    pub(crate) path_mtu: u8,
    pub(crate) destination: Qpn,
    pub(crate) receive_psn: Psn,
    pub(crate) send_psn: Psn,
    pub(crate) max_reads: u8,
    pub(crate) max_reads_of_peer: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry: u8,
    /// Whether the consumer asked for an event when the send queue is drained.
    pub(crate) notify_drained: bool,
    pub(crate) address: Option<AddressVector>,
}

impl Attributes {
    const NONE: Self = Self {
        port: 1,
        pkey_index: 0,
        qkey: 0,
        access: Rights::NONE,
        path_mtu: 1,
        destination: Qpn::from_bytes([0; 3]),
        receive_psn: Psn::from_bytes([0; 3]),
        send_psn: Psn::from_bytes([0; 3]),
        max_reads: 0,
        max_reads_of_peer: 0,
        min_rnr_timer: 0,
        timeout: 0,
        retry_count: 0,
        rnr_retry: 0,
        notify_drained: false,
        address: None,
    };
}

/// Parameters for making a queue pair.
pub(crate) struct Make {
    pub(crate) kind: Type,
    pub(crate) domain: Domain,
    pub(crate) handle: Handle,
    pub(crate) send_queue: Arc<CompletionQueue>,
    pub(crate) receive_queue: Arc<CompletionQueue>,
    pub(crate) shared: Option<Arc<SharedReceiveQueue>>,
    pub(crate) sends: u32,
    pub(crate) receives: u32,
    pub(crate) send_segments: u32,
    pub(crate) receive_segments: u32,
    pub(crate) inline: u32,
    pub(crate) signal_all: bool,
    pub(crate) own_multicast: bool,
    /// The port of a special queue pair.
    pub(crate) port: u8,
}

impl Make {
    /// Makes the connection of a queue pair; `None` if its type has none.
    fn connection(&self) -> Result<Option<KBox<Connection>>> {
        let service = match self.kind {
            Type::Reliable => Service::Rc,
            Type::Unreliable => Service::Uc,
            _ => return Ok(None),
        };
        let sends = SendQueue::new(self.sends, self.send_segments, self.inline)?;
        let (shared, segments) = match &self.shared {
            Some(shared) => (true, shared.segments_each),
            None => (false, self.receive_segments),
        };
        Connection::new(service, shared, sends, segments).map(Some)
    }
}

/// The part of a queue pair that is under its lock.
pub(crate) struct Inner {
    pub(crate) state: State,
    /// The number of times that a queue pair without a connection was reset.
    pub(super) reset_count: u32,
    pub(crate) attributes: Attributes,
    pub(crate) receives: ReceiveQueue,
    pub(crate) connection: Option<KBox<Connection>>,
    /// The datagrams that wait. They are there in SQD, and after it until all of them have left.
    pub(super) postponed: Option<KBox<Postponed>>,
    /// Their queue after all of them have left, until it is freed; `None` while there is another.
    pub(super) emptied: Option<KBox<Postponed>>,
}

impl Inner {
    /// Sets the state of a queue pair without a connection, and counts its resets.
    fn set_state(&mut self, state: State) {
        if state == State::Reset {
            self.reset_count = self.reset_count.wrapping_add(1);
        }
        self.state = state;
    }

    /// Takes the oldest receive of a queue pair without a connection, if it is to be flushed.
    fn take_flushed(&mut self) -> Option<u64> {
        // The thread that flushes holds no lock between two receives: the queue pair may have been
        // reset, and others posted.
        if self.state != State::Error {
            return None;
        }
        let (request, _) = self.receives.front()?;
        self.receives.advance();
        Some(request)
    }
}

/// A queue pair, with its changing part in `inner`.
#[pin_data]
pub(crate) struct QueuePair {
    pub(crate) hca: Arc<Hca>,
    pub(crate) kind: Type,
    pub(crate) number: Qpn,
    pub(crate) domain: Domain,
    pub(crate) handle: Handle,
    pub(crate) send_queue: Arc<CompletionQueue>,
    pub(crate) receive_queue: Arc<CompletionQueue>,
    pub(crate) shared: Option<Arc<SharedReceiveQueue>>,
    pub(crate) signal_all: bool,
    /// Whether it gets what it sends to groups that it is in.
    pub(crate) own_multicast: bool,
    pub(crate) sends: u32,
    pub(crate) send_segments: u32,
    pub(crate) receives: u32,
    pub(crate) receive_segments: u32,
    pub(crate) inline: u32,
    /// Held while it is modified: programs may do that from several threads at once.
    #[pin]
    pub(crate) modifying: Mutex<()>,
    #[pin]
    pub(crate) inner: IrqLock<Inner>,
    /// Packets that leave when the queue pair is unlocked, and those to its own port.
    #[pin]
    pub(super) frames: Queue,
    #[pin]
    pub(super) own_frames: Queue,
    /// Whether those packets are being sent.
    pub(super) draining: AtomicBool,
    /// Asynchronous events that the consumer is not told of yet, a bit each.
    pub(super) events: AtomicU32,
    #[pin]
    pub(super) timer: DelayedWork<QueuePair, { super::progress::TIMER }>,
    #[pin]
    pub(super) teller: DelayedWork<QueuePair, { super::progress::TELLER }>,
    #[pin]
    pub(super) resumption: DelayedWork<QueuePair, { super::progress::RESUMPTION }>,
}

impl QueuePair {
    /// Makes one, which the device knows from now on.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EBUSY` if the port has that special queue pair already.
    pub(crate) fn new(hca: &Arc<Hca>, make: Make) -> Result<Arc<Self>> {
        let place = hca.queue_pairs.reserve(make.kind, make.port)?;
        let number = place.number();
        let inner = Inner {
            state: State::Reset,
            reset_count: 0,
            attributes: Attributes {
                port: make.port.max(1),
                ..Attributes::NONE
            },
            receives: ReceiveQueue::new(
                make.receives as usize,
                make.receive_segments.max(1) as usize,
            )?,
            connection: make.connection()?,
            postponed: None,
            emptied: None,
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                hca: hca.clone(),
                kind: make.kind,
                number,
                domain: make.domain,
                handle: make.handle,
                send_queue: make.send_queue,
                receive_queue: make.receive_queue,
                shared: make.shared,
                signal_all: make.signal_all,
                own_multicast: make.own_multicast,
                sends: make.sends,
                send_segments: make.send_segments,
                receives: make.receives,
                receive_segments: make.receive_segments,
                inline: make.inline,
                modifying <- new_mutex!((), "softib_qp_modifying"),
                inner <- new_irq_lock!(inner, "softib_qp"),
                frames <- Queue::new(),
                own_frames <- Queue::new(),
                draining: AtomicBool::new(false),
                events: AtomicU32::new(0),
                timer <- new_delayed_work!("softib_qp_timer"),
                teller <- new_delayed_work!("softib_qp_events"),
                resumption <- new_delayed_work!("softib_qp_resumption"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        // Last: from here on packets find it.
        place.fill(this.clone());
        Ok(this)
    }

    /// The protection domain of its receives: of a shared queue, that queue's (IBTA 10.2.9.1).
    pub(crate) fn receive_domain(&self) -> Domain {
        self.shared
            .as_ref()
            .map_or(self.domain, |shared| shared.domain)
    }

    /// Ends the queue pair: no packet finds it any more, and its completions are gone. Users in
    /// soft interrupts are done with it a grace period later. Sleeps.
    pub(crate) fn end(&self) {
        self.hca.groups.detach_all(self.number);
        self.hca.queue_pairs.remove(self.number, self);
        // Packets that found it before the table was changed are refused by the state.
        let postponed = self.inner.with(|inner| {
            inner.set_state(State::Reset);
            inner.receives.clear();
            if let Some(connection) = &mut inner.connection {
                connection.transport.reset();
                connection.sends.clear();
            }
            inner.postponed.take()
        });
        // Without the lock.
        drop(postponed);
        self.free_emptied();
        self.send_queue.purge(self.handle);
        self.receive_queue.purge(self.handle);
    }

    /// Changes the attributes, then the state. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the attributes are not ones that the new state can have; `ENOMEM`.
    pub(crate) fn modify(
        self: &Arc<Self>,
        state: Option<State>,
        change: impl FnOnce(&mut Attributes),
    ) -> Result {
        if self.kind.is_connected() {
            self.modify_connection(state, change)?;
        } else {
            // Allocated without the lock.
            let mut postponed = match state {
                Some(State::SendQueueDrained) => Some(Postponed::with_room(self.sends)?),
                _ => None,
            };
            let (drained, failed, emptied) = self.inner.with(|inner| {
                let before = inner.state;
                change(&mut inner.attributes);
                inner.set_state(state.unwrap_or(before));
                let drains = (before, inner.state) == (State::ReadyToSend, State::SendQueueDrained);
                let fails = before != State::Error && inner.state == State::Error;
                match inner.state {
                    State::SendQueueDrained if inner.postponed.is_none() => {
                        inner.postponed = postponed.take();
                    }
                    State::Reset => postponed = inner.postponed.take(),
                    _ => {}
                }
                let notifies = drains && inner.attributes.notify_drained;
                (notifies, fails, inner.emptied.take())
            });
            // Freed without the lock.
            drop((postponed, emptied));
            self.send_postponed();
            self.free_emptied();
            // Once: a queue pair in the error state can be told to go there again.
            if failed {
                self.flush_receives();
                // No receive of the shared queue completes for it any more.
                if self.shared.is_some() {
                    self.tell(bit(work::Event::LastWqeReached));
                }
            }
            // Datagrams are sent as they are posted, or wait: none is under way.
            if drained {
                self.tell(bit(work::Event::SendQueueDrained));
            }
        }
        if state == Some(State::Reset) {
            self.inner.with(|inner| inner.receives.clear());
            self.send_queue.purge(self.handle);
            self.receive_queue.purge(self.handle);
        }
        Ok(())
    }

    /// The state and the attributes.
    pub(crate) fn query(&self) -> (State, Attributes) {
        self.inner.with(|inner| (inner.state, inner.attributes))
    }

    /// Returns whether sends are to be finished before the send queue is drained.
    pub(crate) fn is_draining(&self) -> bool {
        self.inner.with(|inner| {
            let connection = inner.connection.as_ref();
            connection.is_some_and(|connection| connection.transport.is_draining())
        })
    }

    /// Completes all receives as flushed, until the queue pair is reset.
    fn flush_receives(self: &Arc<Self>) {
        loop {
            // One at a time, in their order; the event is raised without the lock.
            let event = self.inner.with(|inner| {
                let request = inner.take_flushed()?;
                Some(self.flushed(&self.receive_queue, Kind::Receive, request))
            });
            match event {
                Some(event) => event.raise_later(),
                None => return,
            }
        }
    }

    fn flushed<'a>(&self, queue: &'a Arc<CompletionQueue>, kind: Kind, request: u64) -> Event<'a> {
        let completion = Completion {
            request,
            status: Status::Flushed,
            kind,
            length: 0,
            extra: Extra::Nothing,
            source: Qpn::from_bytes([0; 3]),
            origin: Origin::default(),
            queue_pair: self.handle,
        };
        queue.push(&completion, true)
    }

    /// Posts a receive to the queue pair's own queue.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the queue is full; `EINVAL` in a state that takes no receives, or with too
    /// many segments.
    pub(crate) fn post_receive(self: &Arc<Self>, request: u64, segments: &[Segment]) -> Result {
        let state = self.inner.with(|inner| {
            if inner.state == State::Reset {
                return Err(EINVAL);
            }
            inner.receives.post(request, segments)?;
            Ok(inner.state)
        })?;
        // In the error state it is flushed, behind those that are still to be flushed.
        if state == State::Error && self.kind.is_connected() {
            // Of many, only some in this call: the queue pair's own work goes on with the rest.
            self.run_connection(Origin::default(), Context::Anywhere, |transport, shell| {
                transport.receive_posted(shell);
            });
        } else if state == State::Error {
            self.flush_receives();
        }
        Ok(())
    }
}

#[kernel::prelude::kunit_tests(softib_queue_pair)]
mod tests {
    use super::*;

    pub(super) fn inner() -> Result<Inner> {
        Ok(Inner {
            state: State::Reset,
            reset_count: 0,
            attributes: Attributes::NONE,
            receives: ReceiveQueue::new(1, 1)?,
            connection: None,
            postponed: None,
            emptied: None,
        })
    }

    /// Moves a queue pair from the state Reset to where it sends.
    pub(super) fn make_ready(inner: &mut Inner) {
        for state in [State::Init, State::ReadyToReceive, State::ReadyToSend] {
            inner.set_state(state);
        }
    }

    #[test]
    fn no_receive_is_flushed_after_a_reset() -> Result {
        let mut inner = inner()?;
        make_ready(&mut inner);
        inner.receives.post(1, &[])?;
        assert!(inner.take_flushed().is_none());
        inner.set_state(State::Error);
        assert_eq!(inner.take_flushed(), Some(1));
        assert!(inner.take_flushed().is_none());
        inner.set_state(State::Reset);
        inner.set_state(State::Init);
        inner.receives.post(2, &[])?;
        assert!(inner.take_flushed().is_none());
        assert_eq!(inner.receives.len(), 1);
        Ok(())
    }
}
