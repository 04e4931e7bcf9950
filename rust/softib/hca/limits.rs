// SPDX-License-Identifier: GPL-2.0-only

//! Limits that a device promises to keep.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::prelude::*;

/// Completions of a queue: what libfabric wants for 256 peers fits.
pub(crate) const COMPLETIONS: u32 = 1 << 18;

/// Completion queues of a device.
pub(crate) const COMPLETION_QUEUES: u32 = 1 << 16;

/// Queue pairs, and the bits of a number that say which.
pub(crate) const QUEUE_PAIR_BITS: u32 = 14;
pub(crate) const QUEUE_PAIRS: u32 = 1 << QUEUE_PAIR_BITS;

/// Work requests of a queue.
pub(crate) const WORK_REQUESTS: u32 = 1 << 14;

/// Pieces of memory in a work request.
pub(crate) const SEGMENTS: u32 = 32;

/// Memory regions, and pages of one.
pub(crate) const REGIONS: u32 = 1 << 16;
pub(crate) const REGION_PAGES: u32 = 1 << 12;

/// Shared receive queues of a device.
pub(crate) const SHARED_QUEUES: u32 = 1 << 12;

/// Address handles and protection domains that all programs together may have of a device. The
/// kernel allocates them, and charges them to nobody. Its own consumers have as many as they make.
pub(crate) const ADDRESS_HANDLES: u32 = 1 << 15;
pub(crate) const DOMAINS: u32 = 1 << 14;

/// Multicast groups, and queue pairs in each.
pub(crate) const GROUPS: u32 = 1 << 12;
pub(crate) const GROUP_MEMBERS: u32 = 1 << 8;

/// READs and atomics that a queue pair may have outstanding.
pub(crate) const READS: u32 = 16;

/// The most of a local ACK time-out, and of an RNR timer: five bits each.
pub(crate) const TIMER: u32 = 31;

/// The most of a retry count, and of an RNR retry count: three bits each.
pub(crate) const RETRIES: u32 = 7;

/// The longest message, in bytes.
pub(crate) const MESSAGE: u32 = 1 << 30;

/// Returns whether a queue pair can be attached beside `members` others, `of_programs` of them of
/// programs, where `most` may be. Programs leave a quarter to the kernel, whose IPoIB interfaces
/// need their groups.
pub(super) fn takes_member(members: u32, of_programs: u32, most: u32, of_program: bool) -> bool {
    members < most && (!of_program || of_programs < most - most / 4)
}

/// The number of objects of one kind that a device has, and may have.
pub(crate) struct Quota {
    most: u32,
    used: AtomicU32,
}

impl Quota {
    /// Creates the quota of objects of which there may be so many.
    pub(super) const fn new(most: u32) -> Self {
        Self {
            most,
            used: AtomicU32::new(0),
        }
    }

    /// Counts an object that is being made.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there are as many as there may be.
    pub(crate) fn take(&self) -> Result<Share<'_>> {
        // Relaxed: only the number matters, and nothing is read because of it.
        let more = |used: u32| (used < self.most).then_some(used + 1);
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        match taken {
            Ok(_) => Ok(Share(self)),
            Err(_) => Err(ENOMEM),
        }
    }

    /// Notes that an object is gone of which the share was kept.
    pub(crate) fn give_back(&self) {
        self.used.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The count of an object that is being made. Dropping it takes the count back.
#[must_use]
pub(crate) struct Share<'a>(&'a Quota);

impl Share<'_> {
    /// Lets the object count until [`Quota::give_back`].
    pub(crate) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

#[kernel::prelude::kunit_tests(softib_quota)]
mod tests {
    use super::*;

    #[test]
    fn programs_leave_the_kernel_a_quarter_of_the_members() {
        for (members, of_programs, of_program, expected) in [
            (0, 0, true, true),
            (5, 5, true, true),
            (6, 6, true, false),
            (7, 5, true, true),
            (8, 5, true, false),
            (6, 6, false, true),
            (7, 0, false, true),
            (8, 0, false, false),
        ] {
            let takes = takes_member(members, of_programs, 8, of_program);
            assert_eq!(takes, expected);
        }
    }

    #[test]
    fn no_more_objects_than_there_may_be() -> Result {
        let quota = Quota::new(2);
        quota.take()?.keep();
        let share = quota.take()?;
        assert_eq!(quota.take().err(), Some(ENOMEM));
        drop(share);
        quota.take()?.keep();
        assert_eq!(quota.take().err(), Some(ENOMEM));
        quota.give_back();
        assert!(quota.take().is_ok());
        Ok(())
    }
}
