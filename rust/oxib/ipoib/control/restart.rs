// SPDX-License-Identifier: GPL-2.0-only

//! Queue pairs that failed or hang: how an interface is brought back to work. With the RTNL held.

use core::sync::atomic::{
    AtomicU64,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::Memberships;
use crate::{
    ipoib::interface::{
        Interface,
        Phase, //
    },
    net::rtnl::Rtnl,
    rdma::qp, //
};

/// The completions of a transmit queue at the watchdog's last alarm.
pub(in crate::ipoib) struct LastAlarm(AtomicU64);

impl LastAlarm {
    /// No number of completions.
    const NONE: u64 = u64::MAX;

    /// A queue that has had no alarm.
    pub(in crate::ipoib) fn none() -> Self {
        Self(AtomicU64::new(Self::NONE))
    }

    /// Forgets the alarm: another queue begins in the place of the one that had it.
    pub(in crate::ipoib) fn forget(&self) {
        // Relaxed: the watchdog finds a queue of either time, and this is its number alone.
        self.0.store(Self::NONE, Ordering::Relaxed);
    }

    /// Notes an alarm of a queue with so many completions. Returns whether none has come since the
    /// alarm before.
    fn hangs(&self, completions: u64) -> bool {
        // Relaxed: as above.
        self.0.swap(completions, Ordering::Relaxed) == completions
    }
}

/// Longest wait between two restarts, in seconds.
const RESTART_MAX: u64 = 16;

/// Time of the next try of something that failed: at once, then after 1, 2, 4 … seconds.
#[derive(Clone, Copy, Default)]
pub(in crate::ipoib) struct Backoff {
    /// Time of the next try, in seconds.
    at: u64,
    /// The wait after the next try.
    wait: u64,
}

/// Kind of a try: the first one after trouble began, or a further one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Try {
    First,
    Further,
}

impl Backoff {
    /// Begins a try at time `now`, or says how long to wait for it.
    fn begin(&mut self, now: u64) -> core::result::Result<Try, u64> {
        if now < self.at {
            return Err(self.at - now);
        }
        // A good while without a try: the trouble is over.
        if now > self.at + 4 * RESTART_MAX {
            self.wait = 0;
        }
        let which = match self.wait {
            0 => Try::First,
            _ => Try::Further,
        };
        self.wait = (self.wait * 2).clamp(1, RESTART_MAX);
        self.at = now + self.wait;
        Ok(which)
    }
}

impl Interface {
    /// Brings queue pairs that failed back to work, or restarts the interface if `force`d.
    pub(in crate::ipoib) fn repair(self: &Arc<Self>, rtnl: &mut Rtnl, force: bool) {
        let mut restart = match self.control.get(rtnl).phase {
            Phase::Down | Phase::NoPkey => return,
            Phase::Broken => true,
            Phase::Up { .. } => force,
        };
        self.for_each_pair(rtnl, |qp| {
            restart |= match qp.state() {
                Ok(qp::State::ReadyToSend) => false,
                // Only the send queue has stopped; reception goes on, and RTS starts it again
                // (IBTA 10.3.1).
                Ok(qp::State::SendQueueError) => qp.resume().is_err(),
                Ok(qp::State::Error | qp::State::Other) | Err(_) => true,
            };
        });
        if restart {
            self.restart(rtnl);
        }
    }

    /// Takes the interface down and up again, not too often.
    fn restart(self: &Arc<Self>, rtnl: &mut Rtnl) {
        match self.control.get(rtnl).restarts.begin(self.now()) {
            Err(seconds) => {
                // Keeps the demand for the retry: the queue pairs may look well by then.
                self.stuck.store(true, Ordering::Release);
                return self.retry_in(1000 * seconds);
            }
            Ok(Try::First) => dev_warn!(
                self.rdma(),
                "{}: a queue pair failed or hangs; restarting, as often as that is needed\n",
                self.device().name()
            ),
            Ok(Try::Further) => {}
        }
        // The queue pairs are attached anew: a device that failed may have lost the attachments.
        self.take_down_keeping(rtnl, Memberships::Move);
        self.bring_up_again(rtnl);
    }

    /// Brings up what the stack believes to be up; if that fails now, later.
    pub(in crate::ipoib) fn bring_up_again(self: &Arc<Self>, rtnl: &mut Rtnl) {
        if self.bring_up(rtnl).is_err() {
            // The stack takes the interface for up, so nothing but the retry brings it up.
            self.control.get(rtnl).phase = Phase::Broken;
            self.broken.store(true, Ordering::Release);
            self.retry_in(1000);
        }
    }

    /// Restarts an interface of which a send queue hangs: one that was stopped for the watchdog's
    /// time and ended no packet since its last alarm. A device may be that slow.
    pub(in crate::ipoib) fn tx_timeout(self: &Arc<Self>, queue: u32) {
        let Some((statistics, alarm)) = self.transmit_alarm(queue as usize) else {
            return;
        };
        let completions = statistics.tx_completions.get();
        if !alarm.hangs(completions) {
            return;
        }
        dev_warn!(
            self.rdma(),
            "{}: transmit queue {queue} makes no progress: the interface is restarted\n",
            self.device().name()
        );
        // The watchdog is a timer: a restart takes the RTNL and sleeps.
        self.restart_soon();
    }
}

#[kernel::prelude::kunit_tests(oxib_restart)]
mod tests {
    use super::*;

    #[test]
    fn one_alarm_is_not_enough() {
        for before in [0, 7] {
            let alarm = LastAlarm::none();
            assert!(!alarm.hangs(before));
            assert!(alarm.hangs(before));
            assert!(alarm.hangs(before));
            assert!(!alarm.hangs(before + 1));
            assert!(alarm.hangs(before + 1));
            // The queue in its place has ended no packet yet.
            alarm.forget();
            assert!(!alarm.hangs(before + 1));
        }
    }

    #[test]
    fn restarts_back_off() {
        let mut backoff = Backoff::default();
        // (time, waits so long if it has to)
        for (now, wait) in [
            (100, None),
            (100, Some(1)),
            (101, None),
            (102, Some(1)),
            (103, None),
            (107, None),
            (114, Some(1)),
            (115, None),
            (131, None),
            (147, None),
            (162, Some(1)),
            // Quiet for long: from the start.
            (300, None),
            (301, None),
        ] {
            assert_eq!(backoff.begin(now).err(), wait);
        }
    }
}
