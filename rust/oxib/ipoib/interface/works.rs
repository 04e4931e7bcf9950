// SPDX-License-Identifier: GPL-2.0-only

//! Work items of an interface.
//!
//! | work | does | when |
//! | --- | --- | --- |
//! | control | reads the port, joins and leaves groups, repairs queue pairs | events, changes |
//! | retry | runs control again | a join or a repair has failed |
//! | age | forgets unused destinations, has the port read | every 30 s |
//! | revalidate | looks again for paths that may be wrong, some at a time | the subnet has changed, paths are old |
//! | announce | tells the link where this node is | the carrier has come, the address or the LID is another one |
//! | notify | notifies each neighbour of its receive queue | there are more or fewer, all were told the main one |
//! | retire | lets go of receive queues | there have been fewer for a while |
//! | watch | asks peers across a router whether they are there | packets go to them, and none come |
//! | search | finds the path to one destination (RoCE) | packets wait for it |

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
    workqueue::{
        impl_has_delayed_work,
        HasDelayedWork,
        WorkItem, //
    }, //
};

use super::Interface;
use crate::{
    acm::Host,
    net::{
        bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        rtnl::{
            self,
            Rtnl, //
        }, //
    }, //
};

/// Time between two looks for unused destinations, in milliseconds.
const AGE_INTERVAL_MS: u32 = 30_000;

/// Time until the stack sends after the carrier has come, in milliseconds.
const ANNOUNCE_DELAY_MS: u32 = 200;

/// Time for which a receive queue goes on for peers that have not heard of its end, in
/// milliseconds: they verify an address that they use more often.
const RETIRE_DELAY_MS: u32 = 60_000;

/// Time between two looks after peers across a router, in milliseconds.
const WATCH_INTERVAL_MS: u32 = 1_000;

/// Numbers of the work items.
pub(super) const CONTROL_WORK: u64 = 0;
pub(super) const AGE_WORK: u64 = 1;
pub(super) const RETRY_WORK: u64 = 2;
pub(super) const REVALIDATE_WORK: u64 = 3;
pub(super) const ANNOUNCE_WORK: u64 = 4;
pub(super) const NOTIFY_WORK: u64 = 5;
pub(super) const RETIRE_WORK: u64 = 6;
pub(super) const WATCH_WORK: u64 = 7;

/// Time of a work item's next run, in milliseconds; `None` if none is planned.
#[pin_data]
pub(super) struct Plan {
    #[pin]
    at: SpinLockBh<Option<u64>>,
}

impl Plan {
    /// Creates a plan without a run.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            at <- new_spinlock_bh!(None, "oxib_plan"),
        })
    }

    /// Notes that the work runs: a request from now on is for the next time.
    fn runs(&self) {
        *self.at.lock() = None;
    }
}

/// Returns whether a work that is planned for some time is to run at `at` rather.
fn is_earlier(at: u64, planned: Option<u64>) -> bool {
    planned.is_none_or(|planned| at < planned)
}

impl_has_delayed_work! {
    impl HasDelayedWork<Interface, CONTROL_WORK> for Interface { self.control_work }
    impl HasDelayedWork<Interface, AGE_WORK> for Interface { self.age_work }
    impl HasDelayedWork<Interface, RETRY_WORK> for Interface { self.retry_work }
    impl HasDelayedWork<Interface, REVALIDATE_WORK> for Interface { self.revalidate_work }
    impl HasDelayedWork<Interface, ANNOUNCE_WORK> for Interface { self.announce_work }
    impl HasDelayedWork<Interface, NOTIFY_WORK> for Interface { self.notify_work }
    impl HasDelayedWork<Interface, RETIRE_WORK> for Interface { self.retire_work }
    impl HasDelayedWork<Interface, WATCH_WORK> for Interface { self.watch_work }
}

impl WorkItem<CONTROL_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut rtnl = rtnl::lock();
        // `leaving` runs with the RTNL held: what is not closing here stays for this whole run.
        if this.closing.load(Ordering::Acquire) {
            return;
        }
        // Each flag is cleared before its work: an event meanwhile sets it, and schedules a run.
        let handed_over = this.handed_over.swap(false, Ordering::AcqRel);
        let changed = this.subnet_changed.swap(false, Ordering::AcqRel);
        // Both flags are taken: what a changed subnet asks for includes the handover.
        if changed {
            this.invalidate_destinations();
        } else if handed_over {
            this.mark_destinations_stale();
        }
        if changed || handed_over {
            this.control.get(&mut rtnl).groups.reset_backoff();
        }
        // Taken before the condition: behind a `||` it might not be cleared.
        let stuck = this.stuck.swap(false, Ordering::AcqRel);
        if this.broken.swap(false, Ordering::AcqRel) || stuck {
            this.repair(&mut rtnl, stuck);
        }
        this.refresh(&mut rtnl);
        let missing = this.missing_files(&mut rtnl);
        // debugfs locks the directory while it waits for readers of a file that goes, also of
        // another interface's, and those may wait for the RTNL.
        drop(rtnl);
        if let Some(missing) = missing {
            this.make_files(&missing);
        }
    }
}

impl WorkItem<RETRY_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.retry.runs();
        this.kick();
    }
}

impl WorkItem<REVALIDATE_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.revalidation.runs();
        // Without memory at the moment, the next look at the ages will do.
        let _ = this.revalidate();
    }
}

impl WorkItem<ANNOUNCE_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut rtnl = rtnl::lock();
        // `closing` need not be checked: an interface that leaves is down, without a carrier.
        if this.device.has_carrier() {
            this.announce(&mut rtnl);
        }
    }
}

impl WorkItem<NOTIFY_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut rtnl = rtnl::lock();
        this.notify_next(&mut rtnl);
    }
}

impl WorkItem<RETIRE_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut rtnl = rtnl::lock();
        let left = this
            .control
            .get(&mut rtnl)
            .grace
            .saturating_sub(this.now_ms());
        if left > 0 {
            // There are fewer still since it was planned.
            return this.schedule::<RETIRE_WORK>(msecs_to_jiffies(left as u32));
        }
        let retired = this.retire(&mut rtnl);
        // Queue pairs are destroyed without the RTNL, for which the whole machine would wait.
        drop(rtnl);
        drop(retired);
    }
}

impl WorkItem<WATCH_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Before the look: what asks for one meanwhile gets another. Acquire: the look sees what
        // those saw to that left it to this one.
        this.watched.swap(false, Ordering::AcqRel);
        let host: Arc<dyn Host> = this.clone();
        if this.exchange.watch(&host) {
            this.watch();
        }
    }
}

impl WorkItem<AGE_WORK> for Interface {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // Without memory at the moment, the next time will do.
        let _ = this.revalidate();
        // Nothing tells of a changed MTU below: the control work looks.
        this.kick();
        this.schedule_age();
    }
}

impl Interface {
    /// Runs the control work soon.
    pub(in crate::ipoib) fn kick(self: &Arc<Self>) {
        self.schedule::<CONTROL_WORK>(0);
    }

    pub(super) fn schedule_age(self: &Arc<Self>) {
        self.schedule::<AGE_WORK>(msecs_to_jiffies(AGE_INTERVAL_MS));
    }

    /// Runs work `ID` after `delay`, if the interface is alive: what is not shown yet must be
    /// able to go without waiting for any.
    pub(super) fn schedule<const ID: u64>(self: &Arc<Self>, delay: Jiffies)
    where
        Self: HasDelayedWork<Self, ID> + WorkItem<ID, Pointer = Arc<Self>>,
    {
        // A race with `leaving` is harmless: `gone` disables the work, which is not scheduled
        // then.
        if self.is_alive() {
            self.works.schedule::<_, ID>(self.clone(), delay);
        }
    }

    /// Tells the link soon what addresses this node has: peers may know it at another place.
    pub(in crate::ipoib) fn announce_soon(self: &Arc<Self>) {
        self.schedule::<ANNOUNCE_WORK>(msecs_to_jiffies(ANNOUNCE_DELAY_MS));
    }

    /// Lets go of receive queues that are out of use, in a while.
    pub(in crate::ipoib) fn retire_later(self: &Arc<Self>, rtnl: &mut Rtnl) {
        self.control.get(rtnl).grace = self.now_ms() + u64::from(RETIRE_DELAY_MS);
        // If it waits already, it finds out then how long it is to wait.
        self.schedule::<RETIRE_WORK>(msecs_to_jiffies(RETIRE_DELAY_MS));
    }

    /// Looks in a moment after peers that nobody else looks after.
    pub(in crate::ipoib) fn watch(self: &Arc<Self>) {
        // The caller that finds the flag set leaves the look to the one that is planned: so it is
        // not set for one that is not shown yet, which plans nothing.
        if self.is_alive() && !self.watched.swap(true, Ordering::AcqRel) {
            self.schedule::<WATCH_WORK>(msecs_to_jiffies(WATCH_INTERVAL_MS));
        }
    }

    /// Looks for paths again in `milliseconds`, or before.
    pub(in crate::ipoib) fn revalidate_soon(self: &Arc<Self>, milliseconds: u32) {
        self.plan::<REVALIDATE_WORK>(&self.revalidation, milliseconds);
    }

    /// Runs the control work in `milliseconds`, or before.
    pub(in crate::ipoib) fn retry_in(self: &Arc<Self>, milliseconds: u64) {
        let milliseconds = u32::try_from(milliseconds).unwrap_or(u32::MAX);
        self.plan::<RETRY_WORK>(&self.retry, milliseconds);
    }

    /// Runs work `ID` after so long, and `planned` says when it runs. What it is to do then it
    /// finds out for itself, and plans it again for what is not due: it runs at the earliest of
    /// the times that it was asked for.
    fn plan<const ID: u64>(self: &Arc<Self>, planned: &Plan, milliseconds: u32)
    where
        Self: HasDelayedWork<Self, ID> + WorkItem<ID, Pointer = Arc<Self>>,
    {
        let mut planned = planned.at.lock();
        let at = self.now_ms() + u64::from(milliseconds);
        if self.is_alive() && is_earlier(at, *planned) {
            *planned = Some(at);
            // One call at a time, by the lock.
            self.works
                .reschedule::<_, ID>(self, msecs_to_jiffies(milliseconds));
        }
    }

    /// Says that a queue pair failed: the control work repairs it.
    pub(in crate::ipoib) fn recover(self: &Arc<Self>) {
        // The flag before the work: a run that is queued already must find it.
        self.broken.store(true, Ordering::Release);
        self.kick();
    }

    /// Says that a queue will make no progress by itself: the control work restarts the interface.
    pub(in crate::ipoib) fn restart_soon(self: &Arc<Self>) {
        self.stuck.store(true, Ordering::Release);
        self.kick();
    }
}

#[kernel::prelude::kunit_tests(oxib_works)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_at_the_earliest_time() {
        for (at, planned, earlier) in [
            (5, None, true),
            (5, Some(6), true),
            (5, Some(5), false),
            (5, Some(4), false),
        ] {
            assert_eq!(is_earlier(at, planned), earlier);
        }
    }
}
