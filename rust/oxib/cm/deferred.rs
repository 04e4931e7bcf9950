// SPDX-License-Identifier: GPL-2.0-only

//! Messages that wait for the Ethernet address of their sender, on RoCE.
//!
//! An answer needs that address, and completions do not have it. Mostly it is known. Else its
//! owner is asked, and the sender of the message decides how long that takes. So no thread waits
//! for it: the message is put here, and comes into its lane again after a while, a few times.
//! There is room for a number of messages, of which a sender has at most as much as is left for
//! others. What finds no room, or no address in time, is dropped: a peer that means it repeats
//! it.

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::{
        new_delayed_work,
        DelayedWork,
        WorkItem, //
    }, //
};

use super::{
    half_open::{
        HalfOpen,
        Slots, //
    },
    machine::{
        source::Source,
        time::Time, //
    },
    notice::{
        Chain,
        Notice, //
    },
    port::Port,
    Manager, //
};
use crate::{
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    rdma::cm_counters::Cause,
    wire::cm::{
        rej::Rej,
        CommId, //
    },
    work, //
};

/// The number of messages that there is room for.
const ROOM: u32 = 256;

/// Times after which a message is tried again, in milliseconds. Their sum is what `ib_core` waits
/// for an address.
const DELAYS: [u64; 5] = [4, 16, 64, 256, 660];

/// The name of all that holds slots here: no holder is asked to give one up.
const NOBODY: CommId = CommId::new(1);

/// The messages that wait.
#[pin_data]
pub(super) struct Deferred {
    slots: Arc<Slots>,
    #[pin]
    rounds: IrqLock<Rounds>,
    queue: Arc<work::Queue>,
    #[pin]
    work: DelayedWork<Deferred>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Deferred { self.work }
}

/// Messages by the number of times that they have waited.
struct Rounds([Round; DELAYS.len()]);

/// The messages that have waited so many times.
struct Round {
    chain: Chain,
    /// The time when they are tried again; that of an empty round means nothing.
    due: Time,
}

impl Rounds {
    const fn new() -> Self {
        const EMPTY: Round = Round {
            chain: Chain::new(),
            due: Time::END,
        };
        Self([EMPTY; DELAYS.len()])
    }

    /// Adds a message, or gives it back if it has waited often enough.
    fn add(&mut self, notice: KBox<Notice>, now: Time) -> core::result::Result<(), KBox<Notice>> {
        let number = usize::from(notice.deferred);
        let (Some(round), Some(&delay)) = (self.0.get_mut(number), DELAYS.get(number)) else {
            return Err(notice);
        };
        // Those that come later go with the first.
        if round.chain.is_empty() {
            round.due = now.after(delay);
        }
        round.chain.push(notice);
        Ok(())
    }

    /// Takes out the messages that are due, or [all](Time::END).
    fn take(&mut self, now: Time) -> [Chain; DELAYS.len()] {
        self.0.each_mut().map(|round| match round.due <= now {
            true => core::mem::take(&mut round.chain),
            false => Chain::new(),
        })
    }

    /// Takes out the messages that `is_meant` chooses, and leaves the others where they are.
    fn remove(&mut self, is_meant: impl Fn(&Notice) -> bool) -> Chain {
        let mut removed = Chain::new();
        for round in &mut self.0 {
            for notice in core::mem::take(&mut round.chain).in_order() {
                match is_meant(&notice) {
                    true => removed.push(notice),
                    false => round.chain.push(notice),
                }
            }
        }
        removed
    }

    /// The time when a message is due next.
    fn due(&self) -> Option<Time> {
        let rounds = self.0.iter().filter(|round| !round.chain.is_empty());
        rounds.map(|round| round.due).min()
    }
}

impl Deferred {
    /// Makes it, with room for messages; `queue` is for the timer.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(queue: &Arc<work::Queue>) -> Result<Arc<Self>> {
        let slots = Slots::new(ROOM)?;
        Arc::pin_init(
            pin_init!(Self {
                slots,
                rounds <- new_irq_lock!(Rounds::new(), "oxib_cm_deferred"),
                queue: queue.clone(),
                work <- new_delayed_work!("oxib_cm_deferred"),
            }),
            GFP_KERNEL,
        )
    }

    /// Gives a message from `source` a slot, unless it has one. Returns whether it has one then.
    fn hold(&self, notice: &mut Notice, source: &Source, now: Time) -> bool {
        if notice.slot.is_none() {
            notice.slot = self.slots.take(source, NOBODY, now).ok();
        }
        notice.slot.is_some()
    }

    fn add(
        self: &Arc<Self>,
        notice: KBox<Notice>,
        now: Time,
    ) -> core::result::Result<(), KBox<Notice>> {
        self.rounds.with(|rounds| {
            rounds.add(notice, now)?;
            self.plan(rounds, now);
            Ok(())
        })
    }

    /// Takes out the messages that are due for another try. Each keeps its slot over its lane:
    /// under a flood another sender would get that slot before the message has to wait again.
    fn take_due(self: &Arc<Self>, now: Time) -> impl Iterator<Item = KBox<Notice>> {
        let due = self.rounds.with(|rounds| {
            let due = rounds.take(now);
            self.plan(rounds, now);
            due
        });
        due.into_iter().flat_map(Chain::in_order).map(|mut notice| {
            notice.deferred += 1;
            notice
        })
    }

    /// Plans the timer for what is due next, with the lock held.
    fn plan(self: &Arc<Self>, rounds: &Rounds, now: Time) {
        // The lock orders the calls: of two at once the later time might win.
        if let Some(due) = rounds.due() {
            let delay = u32::try_from(due.since(now)).unwrap_or(u32::MAX);
            self.queue.reschedule(self, msecs_to_jiffies(delay.max(1)));
        }
    }

    /// Forgets all that waits for `port`, which goes. Nothing may be deferred for the port any
    /// more. Sleeps until nothing of it is on its way to a lane.
    pub(super) fn forget(self: &Arc<Self>, port: &Arc<Port>, now: Time) {
        let is_of = |notice: &Notice| {
            let of = notice.port.as_ref();
            of.is_some_and(|other| Arc::ptr_eq(other, port))
        };
        let gone = self.rounds.with(|rounds| rounds.remove(is_of));
        // Without the lock.
        drop(gone);
        // The work may have taken messages of the port out of their rounds. This waits until they
        // are in lanes; the timer is planned again below for other ports.
        let _ = work::cancel_sync(self);
        self.rounds.with(|rounds| self.plan(rounds, now));
    }

    /// Takes out the messages from `source` that `is_meant` chooses.
    fn remove_from(&self, source: &Source, is_meant: impl Fn(&Notice) -> bool) -> Chain {
        // Most have none, and all others would have to wait for the look through them.
        if !self.slots.are_held_by(source) {
            return Chain::new();
        }
        let is_from = |notice: &Notice| {
            let received = notice.port.as_ref().zip(notice.message());
            received.is_some_and(|(port, received)| port.source(received) == *source)
        };
        self.rounds
            .with(|rounds| rounds.remove(|notice| is_meant(notice) && is_from(notice)))
    }

    /// Forgets the messages that the sender of a REJ has taken back by it.
    fn take_back(&self, sender: CommId, source: &Source) {
        let is_taken_back = |notice: &Notice| {
            let message = notice.parsed();
            message.is_some_and(|message| message.sender() == sender)
        };
        // Without the lock.
        drop(self.remove_from(source, is_taken_back));
    }

    /// Forgets everything, when there are no ports any more. Sleeps.
    pub(super) fn end(self: &Arc<Self>) {
        // No port is left to defer a message, so nothing plans the work again.
        let _ = work::cancel_sync(self);
        let all = self.rounds.with(|rounds| rounds.take(Time::END));
        // Without the lock.
        drop(all);
    }
}

impl WorkItem for Deferred {
    type Pointer = Arc<Deferred>;

    fn run(this: Arc<Deferred>) {
        let now = Time::new(work::milliseconds());
        for notice in this.take_due(now) {
            if let Some(port) = notice.port.clone() {
                port.manager().take_in_again(&port, notice);
            }
        }
    }
}

impl Manager {
    /// Forgets the deferred messages that the sender of a REJ, which found no connection, takes
    /// back by it: its request would be granted in vain.
    pub(super) fn take_back(&self, port: &Port, rej: &Rej, notice: &Notice) {
        if let Some(received) = notice.message().filter(|_| port.roce) {
            let source = port.source(received);
            self.deferred.take_back(rej.local_comm_id(), &source);
        }
    }

    /// Forgets the deferred copies of a request, which is handled now, and counts them as
    /// duplicates. A copy has the same bytes: another message of the same names may be a forgery.
    /// Returns the slot of a copy, for the request if it has to wait, too: if that slot were given
    /// back first, another sender could get it.
    #[must_use]
    pub(super) fn forget_copies(&self, port: &Port, request: &Notice) -> Option<HalfOpen> {
        // Mostly nothing waits, so there is no source to compare.
        if !port.roce || !self.deferred.slots.are_in_use() {
            return None;
        }
        let (received, message) = request.message().zip(request.parsed())?;
        let is_copy = |notice: &Notice| {
            let other = notice.message();
            other.is_some_and(|other| other.bytes() == received.bytes())
        };
        let copies = self.deferred.remove_from(&port.source(received), is_copy);
        let mut slot = None;
        // Without the lock.
        for mut copy in copies.in_order() {
            port.count_duplicate(message.kind());
            slot = slot.or_else(|| copy.slot.take());
        }
        slot
    }

    /// Lets a message wait for the Ethernet address of its sender, in the slot that it has or in a
    /// new one.
    pub(super) fn defer(&self, port: &Arc<Port>, mut notice: KBox<Notice>) {
        let Some(received) = notice.message() else {
            return;
        };
        let (source, now) = (port.source(received), self.now());
        // The port goes: a message that is added after `forget` has emptied the rounds would keep
        // it.
        let may_wait = !port.window.is_closed() && self.deferred.hold(&mut notice, &source, now);
        if !may_wait || self.deferred.add(notice, now).is_err() {
            port.count_dropped(Cause::Unresolved);
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_deferred)]
mod tests {
    use super::super::machine::actions::Report;
    use super::*;

    fn notice(deferred: usize) -> Result<KBox<Notice>> {
        let mut notice = Notice::new(Report::ReqReceived, GFP_KERNEL)?;
        notice.deferred = deferred as u8;
        Ok(notice)
    }

    /// The messages that are taken out at that time.
    fn taken(rounds: &mut Rounds, now: u64) -> usize {
        let chains = rounds.take(Time::new(now));
        chains.into_iter().flat_map(Chain::in_order).count()
    }

    #[test]
    fn each_time_takes_longer() -> Result {
        let mut rounds = Rounds::new();
        assert_eq!(rounds.due(), None);
        let start = 1000;
        for number in 0..DELAYS.len() {
            assert!(rounds.add(notice(number)?, Time::new(start)).is_ok());
        }
        for delay in DELAYS {
            assert_eq!(rounds.due(), Some(Time::new(start + delay)));
            assert_eq!(taken(&mut rounds, start + delay - 1), 0);
            assert_eq!(taken(&mut rounds, start + delay), 1);
        }
        assert_eq!(rounds.due(), None);
        Ok(())
    }

    #[test]
    fn later_ones_go_with_the_first() -> Result {
        let mut rounds = Rounds::new();
        assert!(rounds.add(notice(1)?, Time::new(1)).is_ok());
        assert!(rounds.add(notice(1)?, Time::new(10)).is_ok());
        assert_eq!(taken(&mut rounds, 1 + DELAYS[1]), 2);
        // The next one begins from the start.
        assert!(rounds.add(notice(1)?, Time::new(100)).is_ok());
        assert_eq!(rounds.due(), Some(Time::new(100 + DELAYS[1])));
        Ok(())
    }

    #[test]
    fn others_stay_where_they_are() -> Result {
        let mut rounds = Rounds::new();
        for number in [0, 1, 1, 2] {
            assert!(rounds.add(notice(number)?, Time::new(1)).is_ok());
        }
        let removed = rounds.remove(|notice| notice.deferred == 1);
        assert_eq!(removed.in_order().count(), 2);
        assert_eq!(rounds.due(), Some(Time::new(1 + DELAYS[0])));
        assert_eq!(taken(&mut rounds, u64::MAX), 2);
        Ok(())
    }

    #[test]
    fn a_message_keeps_the_slot_that_it_has() -> Result {
        let manager = Manager::new(1)?;
        let deferred = &manager.deferred;
        let now = Time::new(1);
        let [mine, other] = [1, 2].map(|lid| Source::new(lid, 0, None));
        let (mut first, mut second) = (notice(0)?, notice(0)?);
        assert!(deferred.hold(&mut first, &mine, now));
        let mut others = KVec::new();
        for lid in 3..=ROOM {
            let mut other = notice(0)?;
            assert!(deferred.hold(&mut other, &Source::new(lid, 0, None), now));
            others.push(other, GFP_KERNEL)?;
        }
        assert!(deferred.hold(&mut second, &other, now));
        // All are taken: a repetition has the place of the first one, or none.
        let mut repetition = notice(0)?;
        assert!(!deferred.hold(&mut repetition, &mine, now));
        repetition.slot = first.slot.take();
        drop(first);
        assert!(deferred.hold(&mut repetition, &mine, now));
        assert!(deferred.slots.are_held_by(&mine));
        drop(repetition);
        assert!(!deferred.slots.are_held_by(&mine));
        Ok(())
    }

    #[test]
    fn a_message_keeps_its_slot_from_one_round_to_the_next() -> Result {
        let manager = Manager::new(1)?;
        let deferred = &manager.deferred;
        let now = Time::new(1);
        let mine = Source::new(1, 0, None);
        let mut first = notice(0)?;
        assert!(deferred.hold(&mut first, &mine, now));
        let added = deferred.rounds.with(|rounds| rounds.add(first, now));
        assert!(added.is_ok());
        let mut again = deferred.take_due(now.after(DELAYS[0]));
        let mut again = again.next().ok_or(EINVAL)?;
        assert_eq!(again.deferred, 1);
        // A flood takes all others while it is in its lane.
        let mut flood = KVec::new();
        for lid in 2..=ROOM {
            let mut other = notice(0)?;
            assert!(deferred.hold(&mut other, &Source::new(lid, 0, None), now));
            flood.push(other, GFP_KERNEL)?;
        }
        let (late, mut newcomer) = (Source::new(ROOM + 1, 0, None), notice(0)?);
        assert!(!deferred.hold(&mut newcomer, &late, now));
        assert!(deferred.hold(&mut again, &mine, now));
        again.end_wait();
        assert!(!deferred.slots.are_held_by(&mine));
        assert!(deferred.hold(&mut newcomer, &late, now));
        Ok(())
    }

    #[test]
    fn no_message_waits_for_ever() -> Result {
        let mut rounds = Rounds::new();
        assert!(rounds.add(notice(DELAYS.len())?, Time::new(1)).is_err());
        assert_eq!(DELAYS.iter().sum::<u64>(), 1000);
        Ok(())
    }
}
