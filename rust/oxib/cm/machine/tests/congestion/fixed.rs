// SPDX-License-Identifier: GPL-2.0-only

//! The repetitions of the kernel's `ib_cm`, for comparison.
//!
//! Linux 7.3: `ib_send_cm_req()` gives a REQ the time-out `remote_cm_response_timeout` and twice
//! the packet life time, `cm_req_handler()` gives a REP the `local_cm_response_timeout` of the
//! REQ, and `retry_send()` of `ib_mad` repeats a message after the same time-out each time, as
//! often as `max_cm_retries` says. A duplicate REQ has no answer while a REP is out
//! (`cm_dup_req_handler()`).
//!
//! Here a message is lost or there at once. Neither processors nor receive queues cost any time,
//! and none of `ib_cm`'s messages is dropped, so its times are no shorter than these.

use oxib_cm_machine::time::milliseconds;

use super::caller::req_param;
use crate::random::Random;

/// Returns the milliseconds until the slowest of `clients` connections has its REP, where so many
/// of a thousand messages are lost.
pub fn slowest(clients: usize, loss: u64, seed: u64) -> u64 {
    let param = req_param(0, 0);
    let answering = u64::from(milliseconds(param.remote_response_timeout));
    let way = u64::from(milliseconds(param.packet_life_time));
    let rep = u64::from(milliseconds(param.local_response_timeout));
    let mut random = Random::new(seed);
    let mut lost = || {
        let number = (0..).take_while(|_| random.below(1000) < loss).count();
        assert!(number <= param.retries.into(), "the connection fails");
        number as u64
    };
    let one = |_| lost() * (answering + 2 * way) + lost() * rep;
    (0..clients).map(one).max().unwrap_or(0)
}
