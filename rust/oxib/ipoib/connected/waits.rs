// SPDX-License-Identifier: GPL-2.0-only

//! Packets that have waited too long for their connections.
//!
//! A request for a connection is repeated for about a minute. Packets that wait for it are dropped
//! long before: what a sender has given up is of no use to the peer.

use kernel::{
    impl_has_delayed_work,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

use super::session::Session;
use crate::ipoib::transmit::drop_counted;

/// Number of the work item, beside that of [`Session::begin`].
pub(super) const WAITS_WORK: u64 = 1;

/// Time between two looks while packets wait, in milliseconds.
const LOOK_MS: u32 = 500;

impl_has_delayed_work! {
    impl HasDelayedWork<Session, WAITS_WORK> for Session { self.waits_work }
}

impl WorkItem<WAITS_WORK> for Session {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.expire_waits() {
            this.expire_waits_later();
        }
    }
}

impl Session {
    /// Looks in a while for packets that have waited too long. Any context.
    pub(super) fn expire_waits_later(self: &Arc<Self>) {
        let delay = msecs_to_jiffies(LOOK_MS);
        let queue = &self.interface.searches;
        queue.schedule::<_, WAITS_WORK>(self.clone(), delay);
    }

    /// Drops the packets that have waited too long. Returns whether others wait.
    fn expire_waits(self: &Arc<Self>) -> bool {
        let (device, now) = (self.interface.device(), self.interface.now());
        let mut others_wait = false;
        for queue in 0..self.queues.pairs.len() as u32 {
            let Ok(mut guard) = device.lock_queue(queue) else {
                continue;
            };
            let Some(data) = guard.as_mut() else { continue };
            let counter = &data.statistics.tx_drop_waiting;
            let senders = data.senders.as_mut();
            if let Some(senders) = senders.filter(|senders| senders.is_of(self)) {
                others_wait |=
                    senders.expire_waits(now, |packet| drop_counted(device, counter, packet));
            }
        }
        others_wait
    }
}
