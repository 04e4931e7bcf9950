// SPDX-License-Identifier: GPL-2.0-only

//! Identifiers: a connection, a service ID resolution, or a listener.
//!
//! An identifier's lock is held for a step of its machine and for what that step asks for. Its
//! consumer is called without it, by the thread that brought the first notice; notices that come
//! meanwhile queue up, so that the consumer gets one at a time and in order.

use kernel::{
    prelude::*,
    sync::{
        Arc,
        Completion, //
    },
    workqueue::{
        new_delayed_work,
        DelayedWork, //
    }, //
};

use super::{
    address::Address,
    consumer::{
        Consumer,
        Shown, //
    },
    half_open::HalfOpen,
    machine::{
        actions::{
            Actions,
            RemoteAction,
            SlotAction,
            TimerAction, //
        },
        claim::Claims,
        input::QpType,
        state::StateName,
        time::Time,
        Machine, //
    },
    message::Bytes,
    notice::{
        Chain,
        Notice, //
    },
    port::Port,
    sidr::SidrRequest,
    table::Reserved,
    window::Slot,
    DeviceKey,
    Manager, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    rdma::cm_trace,
    wire::{
        cm::{
            CommId,
            ServiceId, //
        },
        qpn::Qpn, //
    }, //
};

/// The service of an identifier that has none yet.
pub(super) const NO_SERVICE: ServiceId = ServiceId::new(0);

/// A communication identifier, with its machine, its consumer and its timer.
#[pin_data]
pub(crate) struct Id {
    local: CommId,
    pub(super) device: DeviceKey,
    pub(super) consumer: Arc<dyn Consumer>,
    pub(super) manager: Arc<Manager>,
    #[pin]
    inner: IrqLock<Inner>,
    /// Completes when the identifier has been destroyed and is not in use any more.
    #[pin]
    pub(super) unused: Completion,
    #[pin]
    pub(super) timer: DelayedWork<Id>,
}

/// The data that an identifier's lock guards.
pub(super) struct Inner {
    pub(super) machine: Machine,
    pub(super) service: ServiceId,
    /// The address of messages and of the first path.
    pub(super) address: Option<Address>,
    /// The address of the alternate path.
    pub(super) alternate: Option<KBox<Address>>,
    /// The LID that the queue pair's packets go to, if not that of the messages.
    pub(super) data_lid: u16,
    /// Transaction of the messages that answer.
    pub(super) tid: u64,
    /// The type of the consumer's queue pair.
    pub(super) qp_type: QpType,
    /// The peer's queue pair.
    pub(super) peer_qpn: Qpn,
    /// The request that is repeated until it is answered; none for a DREQ that is built again.
    pub(super) request: Option<KBox<Bytes>>,
    /// The request is kept back until its turn comes.
    pub(super) waits: bool,
    /// The request's slot among the port's, until something comes for it or is overdue.
    pub(super) window_slot: Option<Slot>,
    /// The peer's request for resolution.
    pub(super) sidr_request: Option<KBox<SidrRequest>>,
    /// Private data of the answer that is repeated to duplicates.
    pub(super) saved: Option<KBox<KVec<u8>>>,
    /// The peer's names for it.
    pub(super) claims: Claims,
    /// The slot of a passive connection that is not finished, or of a request that is not
    /// answered; afterwards, one that was given back. It is dropped with the identifier: the last
    /// one frees the memory of all, which may sleep.
    pub(super) half_open: Option<HalfOpen>,
    pub(super) waiting: Chain,
    /// The timer may be in its queue.
    pub(super) armed: bool,
    /// The consumer is being notified.
    pub(super) notifying: bool,
    /// Number of other users of the identifier: requests to a listener.
    pub(super) users: u32,
    /// The consumer has let go.
    pub(super) gone: bool,
}

// With its count of references it fits into 512 bytes, where no debugging option makes it larger:
// a node may have a hundred thousand.
#[cfg(not(CONFIG_DEBUG_SPINLOCK))]
const _: () = assert!(size_of::<Id>() + size_of::<usize>() <= 512);

/// The work that follows a step, after the lock is released.
#[must_use]
pub(super) enum Next {
    /// No report; the rest of the notice is dropped.
    Nothing(Option<KBox<Notice>>),
    /// The consumer is to be told.
    Tell(KBox<Notice>),
}

impl Inner {
    /// Carries out what a step of the machine asks for, but for its message, and says what the
    /// consumer is told: `notice`, if anything.
    pub(super) fn follow(
        &mut self,
        id: &Arc<Id>,
        actions: &Actions,
        now: Time,
        notice: Option<KBox<Notice>>,
    ) -> Next {
        // First, while the request is still kept: its kind tells which estimate of the port
        // learns.
        if let (Some(sample), Some(round_trip)) = (actions.rtt_sample, self.round_trip()) {
            round_trip.sample(sample, now);
        }
        if !self.machine.awaits_answer() {
            self.request = None;
            // A turn that the identifier still has in the port's window is void: `turn_came`
            // looks here.
            self.waits = false;
        }
        if !self.machine.is_in_flight() {
            // The drop only schedules the window's work, which takes the lock that is held here.
            self.window_slot = None;
        }
        match actions.timer {
            TimerAction::Keep => {}
            TimerAction::Stop => self.disarm(id),
            // Its time begins with its turn.
            TimerAction::At(_) if self.waits => {}
            TimerAction::At(due) => self.arm(id, self.next_look(due, now), now),
        }
        if actions.remote == RemoteAction::Forget {
            // Lock order: the identifier's lock, then that of a table's shard.
            self.forget_names(id);
        }
        // The lock of the slots nests inside the identifier's, as those of the tables do.
        match (actions.slot, &mut self.half_open) {
            (SlotAction::Keep, _) | (_, None) => {}
            (SlotAction::GiveBack, Some(half_open)) => half_open.give_back(),
            (SlotAction::End(outcome), Some(half_open)) => half_open.end(outcome, now),
        }
        match (actions.report, notice) {
            (Some(report), Some(mut notice)) => {
                notice.report = report;
                self.turn(notice)
            }
            (_, notice) => Next::Nothing(notice),
        }
    }

    /// Decides whether this thread reports `notice` to the consumer. If another thread is
    /// reporting one, that thread reports this one afterwards.
    pub(super) fn turn(&mut self, notice: KBox<Notice>) -> Next {
        if self.gone {
            // `destroy` waits for the handler that runs, and promises that no other is called
            // after it.
            Next::Nothing(Some(notice))
        } else if self.notifying {
            self.waiting.push(notice);
            Next::Nothing(None)
        } else {
            self.notifying = true;
            Next::Tell(notice)
        }
    }

    /// The port that messages leave by.
    pub(super) fn port(&self) -> Option<&Arc<Port>> {
        self.address.as_ref().map(Address::port)
    }

    /// Makes it one that counts as unfinished.
    pub(super) fn begin_half_open(&mut self, half_open: HalfOpen) {
        self.half_open = Some(half_open);
    }

    fn shown(&self) -> Shown {
        shown(&self.machine, self.service)
    }
}

/// Returns what a consumer sees of an identifier with this machine.
fn shown(machine: &Machine, service: ServiceId) -> Shown {
    let (local, remote) = machine.ids();
    Shown {
        state: machine.name(),
        lap: machine.lap_state(),
        local,
        remote,
        service,
    }
}

impl Id {
    /// Makes an identifier on `device` for `consumer`, which it attaches to.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(
        manager: &Arc<Manager>,
        device: DeviceKey,
        consumer: Arc<dyn Consumer>,
    ) -> Result<Arc<Self>> {
        let local = manager.name();
        let machine = Machine::new(local);
        let id = Self::unlisted(manager, device, consumer, local, (machine, NO_SERVICE))?;
        // The consumer has referred to the identifier since `unlisted`: `forget` detaches it
        // again.
        Reserved::new(GFP_KERNEL)
            .and_then(|memory| id.enlist(memory))
            .inspect_err(|_| id.forget())?;
        Ok(id)
    }

    /// Makes one for a service that messages do not find.
    pub(super) fn unlisted(
        manager: &Arc<Manager>,
        device: DeviceKey,
        consumer: Arc<dyn Consumer>,
        local: CommId,
        (machine, service): (Machine, ServiceId),
    ) -> Result<Arc<Self>> {
        let shown = shown(&machine, service);
        let inner = init!(Inner {
            machine,
            service,
            address: None,
            alternate: None,
            data_lid: 0,
            tid: 0,
            qp_type: QpType::Rc,
            peer_qpn: Qpn::from_bytes([0; 3]),
            request: None,
            waits: false,
            window_slot: None,
            sidr_request: None,
            saved: None,
            claims: Claims::default(),
            half_open: None,
            waiting: Chain::new(),
            armed: false,
            notifying: false,
            users: 0,
            gone: false,
        });
        let id = Arc::pin_init(
            pin_init!(Self {
                local,
                device,
                consumer,
                manager: manager.clone(),
                inner <- new_irq_lock!(inner, "oxib_cm_id"),
                unused <- Completion::new(),
                timer <- new_delayed_work!("oxib_cm_id"),
            }),
            GFP_KERNEL,
        )?;
        // Without the lock: no other thread has the identifier before the consumer does.
        id.consumer.show(&shown);
        id.consumer.attach(&id);
        Ok(id)
    }

    /// Lets messages find the identifier by its local name. Its lock may be held.
    ///
    /// # Errors
    ///
    /// `EBUSY` if the name is in use.
    pub(super) fn enlist(self: &Arc<Self>, memory: Reserved<CommId, Arc<Self>>) -> Result {
        // A name that is still in use after four thousand million others: the request is repeated.
        self.manager
            .ids
            .claim(self.local, self.clone(), memory)
            .map_err(|_| EBUSY)
    }

    /// Our name for it.
    pub(super) fn local(&self) -> CommId {
        self.local
    }

    /// The device that it is on.
    pub(super) fn device(&self) -> DeviceKey {
        self.device
    }

    /// The consumer of this identifier.
    pub(crate) fn consumer(&self) -> &Arc<dyn Consumer> {
        &self.consumer
    }

    /// Runs `read` with the lock held. What the consumer is shown does not change by it.
    pub(super) fn look<R>(&self, read: impl FnOnce(&mut Inner) -> R) -> R {
        self.inner.with(read)
    }

    /// Runs `step` with the lock held, and shows the consumer what came of it.
    pub(super) fn with<R>(&self, step: impl FnOnce(&mut Inner) -> R) -> R {
        self.inner.with(|inner| {
            let before = inner.machine.name();
            let result = step(inner);
            let state = inner.machine.name();
            // Of what is shown, only the state of path migration changes without the machine's.
            if state == before && state != StateName::Established {
                return result;
            }
            let shown = inner.shown();
            if state != before {
                let (local, remote) = (shown.local.get(), shown.remote.get());
                let (old, new) = (before.number(), state.number());
                cm_trace::state(local, remote, old.into(), new.into());
            }
            // With the lock held, so that the consumer is shown the states in the order of the
            // steps.
            self.consumer.show(&shown);
            result
        })
    }

    /// Does what follows a step: tells the consumer, and what has waited for that. Sleeps.
    pub(super) fn then(self: &Arc<Self>, next: Next) {
        match next {
            Next::Nothing(_) => {}
            Next::Tell(notice) => {
                let handled = self.tell(notice);
                self.tell_others(handled);
            }
        }
    }

    /// Tells the consumer what has waited until it had `handled` a notice. Sleeps.
    pub(super) fn tell_others(self: &Arc<Self>, mut handled: Result) {
        loop {
            if let Err(error) = handled {
                // A failed handler ends the identifier, as with the kernel's `ib_cm`. For
                // `ENOMEM` a REQ is not rejected: the peer repeats it, and there may be memory
                // then.
                self.end(error == ENOMEM, true);
                return;
            }
            match self.next_turn() {
                Some(notice) => handled = self.tell(notice),
                None => return,
            }
        }
    }

    fn tell(self: &Arc<Self>, notice: KBox<Notice>) -> Result {
        // No lock is held: the handler may sleep and call the identifier. `notifying` keeps other
        // threads from calling it meanwhile. The notice of a REQ uses its listener: `destroy` of
        // that waits for the use to end, so the notice ends here.
        self.consumer.event(self, &notice)
    }

    fn next_turn(&self) -> Option<KBox<Notice>> {
        // In one step: a notice that is queued after the look and before `notifying` ends would
        // stay there.
        let (next, is_unused) = self.look(|inner| {
            let next = match inner.gone {
                true => None,
                false => inner.waiting.pop(),
            };
            inner.notifying = next.is_some();
            (next, inner.is_unused())
        });
        if is_unused {
            self.unused.complete_all();
        }
        next
    }
}
