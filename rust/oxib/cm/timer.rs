// SPDX-License-Identifier: GPL-2.0-only

//! The timer of an identifier. A step of the machine plans it; when it comes due, the machine takes
//! another step, and the consumer is told what came of it.

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

use super::{
    id::{
        Id,
        Inner,
        Next, //
    },
    machine::{
        actions::{
            Actions,
            Report, //
        },
        time::Time, //
    },
    notice::Notice, //
};
use crate::work;

/// Delay of a timer that found no memory for its notice, in milliseconds.
const NO_MEMORY: u32 = 100;

/// The work that follows when the timer came due.
enum Due {
    /// No report.
    Nothing,
    /// This thread tells the consumer.
    Tell(Report),
    /// The consumer is being told something else, and the machine was left as it was.
    Busy,
}

impl Inner {
    /// Handles the timer, unless a notice would have to wait until others are reported.
    fn timer_due(&mut self, id: &Arc<Id>, now: Time) -> Due {
        if self.gone {
            return Due::Nothing;
        }
        if self.notifying {
            return Due::Busy;
        }
        let actions = self.step_by_timer(id, now);
        let _ = self.follow(id, &actions, now, None);
        match actions.report {
            None => Due::Nothing,
            Some(report) => {
                self.notifying = true;
                Due::Tell(report)
            }
        }
    }

    /// Lets the timer of the machine come due, and sends what that asks for.
    fn step_by_timer(&mut self, id: &Id, now: Time) -> Actions {
        let asked = self.machine.asked_at().unwrap_or(now);
        let round_trip = self.round_trip();
        let rto = round_trip.map_or(0, |round_trip| round_trip.patience_with(asked, now));
        let actions = self.machine.timer(rto, now);
        self.send(id, &actions, None);
        // Before `follow`, where the next look depends on whether the request still has a slot.
        self.let_others_in(now);
        actions
    }

    /// Plans the timer for `due`, and not for when it was planned before.
    pub(super) fn arm(&mut self, id: &Arc<Id>, due: Time, now: Time) {
        self.disarm(id);
        self.armed = true;
        id.wake_at(due, now);
    }

    /// Takes the timer out of its queue, if it may be there.
    pub(super) fn disarm(&mut self, id: &Arc<Id>) {
        // One that went off is taken for one that waits: it may have been planned again before it
        // got the lock.
        if core::mem::take(&mut self.armed) {
            // Not waited for: the work takes the lock that is held here, and the machine ignores
            // a timer that comes too early.
            work::cancel(id);
        }
    }
}

impl Id {
    /// Plans the timer, which is not in its queue: for [`Inner::arm`] alone.
    fn wake_at(self: &Arc<Self>, due: Time, now: Time) {
        let delay = u32::try_from(due.since(now)).unwrap_or(u32::MAX);
        self.manager
            .timers
            .schedule(self.clone(), msecs_to_jiffies(delay.max(1)));
    }

    fn timer_due(self: &Arc<Self>) {
        let now = self.manager.now();
        // Most often the machine repeats a request and notifies nobody, or the consumer can be
        // told at once.
        match self.with(|inner| inner.timer_due(self, now)) {
            Due::Nothing => {}
            Due::Tell(report) => {
                let handled = self.consumer.event(self, &Notice::of_event(report));
                self.tell_others(handled);
            }
            Due::Busy => self.timer_due_when_busy(now),
        }
    }

    /// Handles the timer while the consumer is being notified: a notice that the machine makes has
    /// to wait, and must arrive.
    fn timer_due_when_busy(self: &Arc<Self>, now: Time) {
        let Ok(notice) = Notice::new(Report::TimewaitExit, GFP_KERNEL) else {
            let later = now.after(NO_MEMORY.into());
            self.with(|inner| {
                if !inner.gone {
                    inner.arm(self, later, now);
                }
            });
            return;
        };
        let next = self.with(|inner| {
            if inner.gone {
                return Next::Nothing(Some(notice));
            }
            let actions = inner.step_by_timer(self, now);
            inner.follow(self, &actions, now, Some(notice))
        });
        self.then(next);
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Id { self.timer }
}

impl WorkItem for Id {
    type Pointer = Arc<Id>;

    fn run(this: Arc<Id>) {
        this.timer_due();
    }
}

#[kernel::prelude::kunit_tests(oxib_cm_timer)]
mod tests {
    use core::sync::atomic::{
        AtomicU32,
        Ordering, //
    };

    use super::*;
    use crate::cm::{
        consumer::Consumer,
        id::NO_SERVICE,
        machine::{
            input::{
                Patience,
                SidrReqParam, //
            },
            Machine, //
        },
        DeviceKey,
        Manager, //
    };

    /// A consumer that counts how often it was told that nobody has answered.
    struct Unanswered(AtomicU32);

    impl Consumer for Unanswered {
        fn event(&self, _: &Arc<Id>, notice: &Notice) -> Result {
            if matches!(notice.report(), Report::SidrReqError(_)) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }

        fn attach(&self, _: &Arc<Id>) {}

        fn detach(&self) {}

        fn as_any(&self) -> &dyn core::any::Any {
            self
        }
    }

    /// An identifier with a request that should have been answered long ago, and its consumer.
    fn overdue(manager: &Arc<Manager>) -> Result<(Arc<Id>, Arc<Unanswered>)> {
        let told = Arc::new(Unanswered(AtomicU32::new(0)), GFP_KERNEL)?;
        let local = manager.name();
        let mut machine = Machine::new(local);
        let param = SidrReqParam {
            patience: Patience {
                timeout: 1,
                retries: 0,
            },
            rto: 1,
        };
        let asked = machine.send_sidr_req(&param, Time::new(0));
        let _ = asked.map_err(|_| EINVAL)?;
        let device = DeviceKey::of_no_device();
        let made = (machine, NO_SERVICE);
        let id = Id::unlisted(manager, device, told.clone(), local, made)?;
        Ok((id, told))
    }

    #[test]
    fn a_timer_is_reported_once() -> Result {
        let manager = Manager::new(1)?;
        let (id, told) = overdue(&manager)?;
        for _ in 0..2 {
            id.timer_due();
            assert_eq!(told.0.load(Ordering::Relaxed), 1);
            assert!(!id.look(|inner| inner.notifying));
        }
        assert!(id.destroy());
        Ok(())
    }

    #[test]
    fn a_timer_waits_while_the_consumer_is_told_something_else() -> Result {
        let manager = Manager::new(1)?;
        let (id, told) = overdue(&manager)?;
        id.look(|inner| inner.notifying = true);
        id.timer_due();
        assert_eq!(told.0.load(Ordering::Relaxed), 0);
        id.tell_others(Ok(()));
        assert_eq!(told.0.load(Ordering::Relaxed), 1);
        assert!(!id.look(|inner| inner.notifying));
        assert!(id.destroy());
        Ok(())
    }
}
