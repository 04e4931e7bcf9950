// SPDX-License-Identifier: GPL-2.0-only

//! Connections of a listener that are not finished: their slots, and which of them gives its
//! slot up for another.
//!
//! [`Backlog`] decides. Here are its memory and its lock, and the identifiers behind its slots.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    id::{
        Id,
        Inner, //
    },
    machine::{
        actions::{
            Failure,
            Report, //
        },
        backlog::{
            Backlog,
            Cell,
            Outcome,
            Refused, //
            Slot,
        },
        source::Source,
        time::Time, //
    },
    notice::Notice,
    table::hash,
    Manager, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    rdma::management::random,
    wire::cm::CommId, //
};

/// The number of connections that are looked at to find one that gives its slot up.
const LOOKED_AT: u32 = 16;

/// A function that allocates so many empty cells.
type Allocate = fn(usize) -> Result<KVVec<Cell>>;

/// Allocates cells. Sleeps.
fn allocate(cells: usize) -> Result<KVVec<Cell>> {
    Ok(KVVec::from_elem(Cell::default(), cells, GFP_KERNEL)?)
}

/// The slots of a listener.
#[pin_data]
pub(super) struct Slots {
    /// A key for the hashes of sources, so that no node can choose a source that has the hash of
    /// another.
    seed: u32,
    #[pin]
    backlog: IrqLock<Backlog<KVVec<Cell>>>,
}

/// A slot of a listener, taken by a connection that is not finished.
pub(super) struct HalfOpen {
    slots: Arc<Slots>,
    slot: Slot,
}

impl HalfOpen {
    /// Gives the slot back, with the outcome of its connection. Any context, once.
    pub(super) fn end(&mut self, outcome: Outcome, now: Time) {
        let slot = &mut self.slot;
        self.slots
            .backlog
            .with(|backlog| backlog.end(slot, outcome, now));
    }

    /// Gives the slot back, unless that was done. Any context.
    pub(super) fn give_back(&mut self) {
        if !self.slot.is_given_back() {
            let slot = &mut self.slot;
            self.slots.backlog.with(|backlog| backlog.give_back(slot));
        }
    }
}

/// The drop may free the memory of all slots, which may sleep: under an identifier's lock there is
/// [`HalfOpen::give_back`].
impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The count of a connection that gives its slot up, until its consumer has been told.
pub(super) struct GivenUp(Arc<Slots>);

impl GivenUp {
    /// Counts one more connection; `None` if there are too many.
    fn new(slots: &Arc<Slots>) -> Option<Self> {
        let may_begin = slots.backlog.with(|backlog| backlog.begin_giving_up());
        may_begin.then(|| Self(slots.clone()))
    }
}

/// The drop may free the memory of all slots, which may sleep.
impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.backlog.with(|backlog| backlog.end_giving_up());
    }
}

impl Slots {
    /// Makes the slots of a listener, `most` of them. They take memory when they are taken.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(most: u32) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                seed: random(),
                backlog <- new_irq_lock!(Backlog::new(most, KVVec::new()), "oxib_cm_backlog"),
            }),
            GFP_KERNEL,
        )
    }

    /// A source as the backlog knows it.
    fn hash(&self, source: &Source) -> u32 {
        hash(&(self.seed, *source))
    }

    /// Returns whether `source` may get a slot: one that is free, or one of another source.
    pub(super) fn admit(&self, source: &Source) -> bool {
        // Mostly so, and then the source needs no hash yet.
        if self.backlog.with(|backlog| backlog.admits_all()) {
            return true;
        }
        let source = self.hash(source);
        self.backlog.with(|backlog| backlog.admits(source))
    }

    /// Returns whether there is a slot that is taken.
    pub(super) fn are_in_use(&self) -> bool {
        self.backlog.with(|backlog| backlog.taken() > 0)
    }

    /// Returns whether `source` holds a slot.
    pub(super) fn are_held_by(&self, source: &Source) -> bool {
        let source = self.hash(source);
        self.backlog.with(|backlog| backlog.held(source) > 0)
    }

    /// Takes a slot for `source` if one is free, for what `name` stands for. Sleeps.
    ///
    /// # Errors
    ///
    /// There is no free slot for the source, or no memory.
    pub(super) fn take(
        self: &Arc<Self>,
        source: &Source,
        name: CommId,
        now: Time,
    ) -> core::result::Result<HalfOpen, Refused> {
        let source = self.hash(source);
        self.hold(allocate, |backlog| backlog.take(source, name, now))
    }

    /// Takes a slot by `take`, with memory from `allocate` if there is not enough. Sleeps.
    ///
    /// # Errors
    ///
    /// The errors of `take`. A refusal for want of memory means that none could be allocated.
    fn hold(
        self: &Arc<Self>,
        allocate: Allocate,
        take: impl Fn(&mut Backlog<KVVec<Cell>>) -> core::result::Result<Slot, Refused>,
    ) -> core::result::Result<HalfOpen, Refused> {
        loop {
            // Memory is allocated without the lock, so another thread may have used it up by the
            // next try.
            match self.backlog.with(&take) {
                Ok(slot) => {
                    return Ok(HalfOpen {
                        slots: self.clone(),
                        slot,
                    })
                }
                Err(Refused::Memory(cells)) => {
                    let memory = allocate(cells).map_err(|_| Refused::Memory(cells))?;
                    let unused = self.backlog.with(|backlog| backlog.grow(memory));
                    // Without the lock.
                    drop(unused);
                }
                Err(Refused::Full) => return Err(Refused::Full),
            }
        }
    }
}

impl Manager {
    /// Takes a slot of a listener's for the connection that we call `name`. If all are taken,
    /// another connection may have to give its slot up. Sleeps.
    ///
    /// # Errors
    ///
    /// There is no slot for the source, or no memory.
    pub(super) fn half_open(
        &self,
        slots: &Arc<Slots>,
        source: &Source,
        name: CommId,
    ) -> core::result::Result<HalfOpen, Refused> {
        self.half_open_in(allocate, slots, source, name)
    }

    /// Takes a slot as [`Manager::half_open`] does, with memory from `allocate`.
    fn half_open_in(
        &self,
        allocate: Allocate,
        slots: &Arc<Slots>,
        source: &Source,
        name: CommId,
    ) -> core::result::Result<HalfOpen, Refused> {
        let source = slots.hash(source);
        let now = self.now();
        match slots.hold(allocate, |backlog| backlog.take(source, name, now)) {
            // Only then: the end of another connection gives the listener no memory.
            Err(Refused::Full) if self.make_room(slots, source) => {
                slots.hold(allocate, |backlog| backlog.take_over(source, name, now))
            }
            taken => taken,
        }
    }

    /// Frees a slot for `source`, if another one can be made to give its up.
    fn make_room(&self, slots: &Arc<Slots>, source: u32) -> bool {
        if !slots.backlog.with(|backlog| backlog.may_take_over(source)) {
            return false;
        }
        (0..LOOKED_AT).any(|_| {
            let number = random();
            // The lock is released before the candidate's own is taken: identifiers give their
            // slots back with their locks held.
            let (candidate, time) = slots
                .backlog
                .with(|backlog| (backlog.candidate(source, number), backlog.time_to_finish()));
            // A connection that is still being made is not in this table yet and keeps its slot.
            let holder = candidate.and_then(|name| self.ids.get(&name));
            holder.is_some_and(|id| id.gives_up_slot(slots, time))
        })
    }
}

impl Id {
    /// Ends a connection that has waited for its peer's RTU for `time` milliseconds. Returns
    /// whether it has. Its consumer and its peer are told that none came in time.
    fn gives_up_slot(self: &Arc<Self>, slots: &Arc<Slots>, time: u64) -> bool {
        let failed = Report::RepError(Failure::Timeout);
        // Allocated before the lock, under which nothing may sleep.
        let Ok(mut notice) = Notice::new(failed, GFP_KERNEL) else {
            return false;
        };
        notice.given_up = GivenUp::new(slots);
        if notice.given_up.is_none() {
            return false;
        }
        let now = self.manager.now();
        let theirs = self.with(|inner| {
            // The candidate was chosen without its lock: it may have been established or
            // destroyed since.
            if !inner.has_had(slots, time, now) {
                return None;
            }
            let actions = inner.machine.give_up();
            inner.send(self, &actions, None);
            let _ = inner.follow(self, &actions, now, None);
            Some(inner.machine.ids().1)
        });
        let Some(theirs) = theirs else {
            return false;
        };
        // Told by another thread: this one uses the listener, which the consumer's handler may
        // destroy, and that waits for all uses to end.
        notice.id = Some(self.clone());
        self.manager.lanes.push(theirs, notice);
        true
    }
}

impl Inner {
    /// Returns whether its slot is one of `slots`, and its peer has had `time` milliseconds to
    /// answer. A connection that its consumer has not answered keeps its slot.
    fn has_had(&self, slots: &Arc<Slots>, time: u64, now: Time) -> bool {
        let is_held =
            |held: &HalfOpen| Arc::ptr_eq(&held.slots, slots) && !held.slot.is_given_back();
        let asked = self.machine.asked_at();
        !self.gone
            && self.half_open.as_ref().is_some_and(is_held)
            && asked.is_some_and(|asked| now.since(asked) >= time)
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_half_open)]
mod tests {
    use core::sync::atomic::{
        AtomicI32,
        Ordering, //
    };

    use super::*;
    use crate::{
        cm::{
            id::NO_SERVICE,
            machine::{
                input::{
                    QpType,
                    RepParam,
                    Req, //
                },
                Machine, //
            },
            table::Reserved,
            Consumer,
            DeviceKey, //
        },
        wire::{
            cm::mtu::Mtu,
            pkey::Pkey,
            psn::Psn,
            qpn::Qpn, //
        },
    };

    fn take(slots: &Arc<Slots>, lid: u32) -> core::result::Result<HalfOpen, Refused> {
        let source = slots.hash(&Source::new(lid, 0, None));
        slots.hold(allocate, |backlog| {
            backlog.take(source, CommId::new(1 + lid), Time::new(1))
        })
    }

    /// Takes what a source gets.
    fn take_all(slots: &Arc<Slots>, lid: u32) -> Result<KVec<HalfOpen>> {
        let mut taken = KVec::new();
        while let Ok(slot) = take(slots, lid) {
            taken.push(slot, GFP_KERNEL)?;
        }
        Ok(taken)
    }

    #[test]
    fn a_source_has_as_many_as_are_left() -> Result {
        let slots = Slots::new(4096)?;
        let first = take_all(&slots, 1)?;
        assert_eq!(first.len(), 2048);
        let second = take_all(&slots, 2)?;
        assert_eq!(second.len(), 1024);
        // What one gives back, the other may have.
        drop(first);
        assert_eq!(take_all(&slots, 2)?.len(), 1024);
        drop(second);
        assert_eq!(take_all(&slots, 3)?.len(), 2048);
        Ok(())
    }

    #[test]
    fn a_slot_is_given_back_once() -> Result {
        let slots = Slots::new(2)?;
        let mut slot = take(&slots, 1).map_err(|_| EBUSY)?;
        let other = take(&slots, 2).map_err(|_| EBUSY)?;
        slot.end(Outcome::Finished, Time::new(2));
        assert_eq!(slots.backlog.with(|backlog| backlog.taken()), 1);
        slot.give_back();
        drop(slot);
        assert_eq!(slots.backlog.with(|backlog| backlog.taken()), 1);
        drop(other);
        assert_eq!(slots.backlog.with(|backlog| backlog.taken()), 0);
        Ok(())
    }

    /// A consumer that keeps which thread told it that its REP came to nothing.
    struct Told(AtomicI32);

    impl Consumer for Told {
        fn event(&self, _: &Arc<Id>, notice: &Notice) -> Result {
            if notice.report() == Report::RepError(Failure::Timeout) {
                self.0.store(kernel::current!().pid(), Ordering::Relaxed);
            }
            Ok(())
        }

        fn attach(&self, _: &Arc<Id>) {}

        fn detach(&self) {}

        fn as_any(&self) -> &dyn core::any::Any {
            self
        }
    }

    /// A machine that has answered a REQ.
    fn offering(local: CommId, now: Time) -> Result<Machine> {
        let req = Req {
            sender: CommId::new(2),
            qp_type: QpType::Rc,
            qpn: Qpn::from_bytes([0, 0, 3]),
            psn: Psn::wrapping(5),
            pkey: Pkey::DEFAULT,
            mtu: Mtu::new(4),
            responder_resources: 1,
            initiator_depth: 1,
            retry_count: 7,
            rnr_retry_count: 7,
            remote_response_timeout: 20,
            local_response_timeout: 20,
            max_retries: 15,
            ack_timeout: 19,
            alternate_ack_timeout: None,
        };
        let rep = RepParam {
            qpn: Qpn::from_bytes([0, 0, 4]),
            psn: Psn::wrapping(6),
            responder_resources: 1,
            initiator_depth: 1,
            rto: 100,
        };
        let (mut machine, _) = Machine::accept_req(local, &req, now);
        let _ = machine.send_rep(&rep, now).map_err(|_| EINVAL)?;
        Ok(machine)
    }

    /// An identifier of ours that messages find. It has answered a REQ, longer ago than any peer
    /// has time for its RTU, and holds one of `slots`.
    fn holder(manager: &Arc<Manager>, slots: &Arc<Slots>) -> Result<Arc<Id>> {
        let told = Arc::new(Told(AtomicI32::new(0)), GFP_KERNEL)?;
        let (local, now) = (manager.name(), manager.now());
        let made = (offering(local, Time::new(0))?, NO_SERVICE);
        let id = Id::unlisted(manager, DeviceKey::of_no_device(), told, local, made)?;
        let slot = slots.take(&Source::new(1, 0, None), local, now);
        let slot = slot.map_err(|_| EBUSY)?;
        id.look(|inner| inner.begin_half_open(slot));
        id.enlist(Reserved::new(GFP_KERNEL)?)?;
        Ok(id)
    }

    /// A holder that a newcomer could make give its slot up keeps it when there is no memory.
    #[test]
    fn no_memory_ends_no_connection() -> Result {
        let manager = Manager::new(1)?;
        let slots = Slots::new(32)?;
        // A backlog that is not full has not been either, so it leaves holders the longest time.
        let time = slots.backlog.with(|backlog| backlog.time_to_finish());
        assert!(manager.now().since(Time::new(0)) >= time);
        // Two sources have all slots that there is memory for. One of them holds most of them, by
        // connections that can end.
        let mut holders = KVec::new();
        for _ in 0..13 {
            holders.push(holder(&manager, &slots)?, GFP_KERNEL)?;
        }
        let others = [take(&slots, 2), take(&slots, 2), take(&slots, 2)];
        assert!(others.iter().all(|other| other.is_ok()));
        let taken = || slots.backlog.with(|backlog| backlog.taken());
        assert_eq!(taken(), 16);
        let newcomer = Source::new(3, 0, None);
        let no_memory = |_| Err(ENOMEM);
        let name = manager.name();
        let slot = manager.half_open_in(no_memory, &slots, &newcomer, name);
        assert!(matches!(slot, Err(Refused::Memory(_))));
        assert_eq!(taken(), 16);
        assert!(manager.half_open(&slots, &newcomer, name).is_ok());
        for id in holders {
            assert!(id.destroy());
        }
        Ok(())
    }

    /// The thread that needs the slot uses the listener, which the handler may destroy.
    #[test]
    fn another_thread_tells_that_a_slot_was_given_up() -> Result {
        let manager = Manager::new(1)?;
        let slots = Slots::new(1)?;
        let told = Arc::new(Told(AtomicI32::new(0)), GFP_KERNEL)?;
        let (local, now) = (manager.name(), manager.now());
        let made = (offering(local, now)?, NO_SERVICE);
        let device = DeviceKey::of_no_device();
        let id = Id::unlisted(&manager, device, told.clone(), local, made)?;
        let slot = slots.take(&Source::new(1, 0, None), local, now);
        let slot = slot.map_err(|_| EBUSY)?;
        id.look(|inner| inner.begin_half_open(slot));
        let other = GivenUp::new(&slots).ok_or(EBUSY)?;
        assert!(!id.gives_up_slot(&slots, 0));
        drop(other);
        assert!(id.gives_up_slot(&slots, 0));
        assert_eq!(slots.backlog.with(|backlog| backlog.taken()), 0);
        manager.lanes.flush();
        // Its consumer has been told, so another one may give its slot up.
        assert!(GivenUp::new(&slots).is_some());
        let by = told.0.load(Ordering::Relaxed);
        assert!(by != 0 && by != kernel::current!().pid());
        assert!(!id.gives_up_slot(&slots, 0));
        assert!(id.destroy());
        Ok(())
    }
}
