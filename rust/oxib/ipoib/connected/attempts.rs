// SPDX-License-Identifier: GPL-2.0-only

//! Attempts to listen that failed, by cause.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::prelude::*;

/// Number of attempts that have to fail before peers are told that they cannot connect. A single
/// one may have lacked memory for a moment, or come before the connection manager has seen a new
/// device.
const FAILURES: u32 = 2;

/// Number of such attempts while the connection manager is being started, which may wait for
/// others.
const STARTS: u32 = 10;

/// Attempts of one session. A start that takes long says nothing of failures, so each is counted
/// by itself.
#[derive(Default)]
pub(super) struct Attempts {
    starting: AtomicU32,
    failed: AtomicU32,
    /// Causes that were logged: a bit each.
    logged: AtomicU32,
}

impl Attempts {
    /// Counts an attempt that failed with `error`: `EAGAIN` while the connection manager is being
    /// started. Returns whether peers have to be told that they cannot connect.
    pub(super) fn count(&self, error: Error) -> bool {
        let (counter, most) = if error == EAGAIN {
            (&self.starting, STARTS)
        } else {
            (&self.failed, FAILURES)
        };
        counter.fetch_add(1, Ordering::Relaxed) + 1 >= most
    }

    /// Returns whether the cause that `error` stands for has yet to be logged, and notes that it
    /// is: one line for each cause, however often it comes back.
    pub(super) fn is_new(&self, error: Error) -> bool {
        let cause = match error {
            ENODEV => 1,
            EAGAIN => 2,
            _ => 4,
        };
        self.logged.fetch_or(cause, Ordering::Relaxed) & cause == 0
    }
}

#[kernel::prelude::kunit_tests(oxib_connected_attempts)]
mod tests {
    use super::*;

    #[test]
    fn the_second_failure_is_told() {
        let attempts = Attempts::default();
        assert!(!attempts.count(ENOMEM));
        assert!(attempts.count(ENODEV));
    }

    #[test]
    fn a_moment_without_memory_in_a_long_start_is_not_told() {
        let attempts = Attempts::default();
        for _ in 1..STARTS {
            assert!(!attempts.count(EAGAIN));
        }
        assert!(!attempts.count(ENOMEM));
        assert!(attempts.count(EAGAIN));
    }

    #[test]
    fn each_cause_is_logged_once() {
        let attempts = Attempts::default();
        for error in [EAGAIN, ENOMEM, ENODEV] {
            assert!(attempts.is_new(error));
            assert!(!attempts.is_new(error));
        }
        // Of the same line of the log as `ENOMEM`.
        assert!(!attempts.is_new(EINVAL));
    }
}
