// SPDX-License-Identifier: GPL-2.0-only

//! Failures of a device that are switched on and off while it is there.

use core::sync::atomic::{
    AtomicBool,
    AtomicU32,
    Ordering, //
};

use kernel::prelude::*;

use super::{
    queue_pair::{
        State,
        Type, //
    },
    Hca, //
};

/// The most of `refuse_every`.
pub(crate) const MAX_REFUSE_EVERY: u32 = 65536;

/// The failures of a device.
#[derive(Default)]
pub(crate) struct Faults {
    /// The number of work requests of which one is refused; 0 if none is.
    refuse_every: AtomicU32,
    /// The number of work requests since that was said.
    posted: AtomicU32,
    /// Whether queue pairs that are Ready to Send cannot be changed.
    resets_fail: AtomicBool,
    /// Whether queue pairs can be neither attached to groups nor detached.
    attaches_fail: AtomicBool,
    /// Whether queue pairs cannot be detached from groups.
    detaches_fail: AtomicBool,
}

impl Faults {
    /// The number of work requests of which one is refused; 0 if none is.
    pub(crate) fn refuse_every(&self) -> u32 {
        self.refuse_every.load(Ordering::Relaxed)
    }

    /// Refuses one of every `count` work requests from now on; 0 for none.
    pub(crate) fn set_refuse_every(&self, count: u32) {
        self.posted.store(0, Ordering::Relaxed);
        self.refuse_every.store(count, Ordering::Relaxed);
    }

    /// Returns whether queue pairs that are Ready to Send cannot be changed.
    pub(crate) fn resets_fail(&self) -> bool {
        self.resets_fail.load(Ordering::Relaxed)
    }

    /// Lets resets fail from now on, or succeed.
    pub(crate) fn set_resets_fail(&self, fail: bool) {
        self.resets_fail.store(fail, Ordering::Relaxed);
    }

    /// Returns whether queue pairs can be neither attached to groups nor detached.
    pub(crate) fn attaches_fail(&self) -> bool {
        self.attaches_fail.load(Ordering::Relaxed)
    }

    /// Lets attachments to groups, and their ends, fail from now on, or succeed.
    pub(crate) fn set_attaches_fail(&self, fail: bool) {
        self.attaches_fail.store(fail, Ordering::Relaxed);
    }

    /// Returns whether queue pairs cannot be detached from groups, though they can be attached.
    pub(crate) fn detaches_fail(&self) -> bool {
        self.detaches_fail.load(Ordering::Relaxed)
    }

    /// Lets the ends of attachments to groups fail from now on, or succeed.
    pub(crate) fn set_detaches_fail(&self, fail: bool) {
        self.detaches_fail.store(fail, Ordering::Relaxed);
    }

    /// Takes in the attachment of a queue pair to a group.
    ///
    /// # Errors
    ///
    /// `EIO`.
    pub(crate) fn take_attachment(&self) -> Result {
        match self.attaches_fail() {
            true => Err(EIO),
            false => Ok(()),
        }
    }

    /// Takes in the end of an attachment of a queue pair to a group.
    ///
    /// # Errors
    ///
    /// `EIO`.
    pub(crate) fn take_detachment(&self) -> Result {
        match self.attaches_fail() || self.detaches_fail() {
            true => Err(EIO),
            false => Ok(()),
        }
    }

    /// Takes in a work request of a queue pair, or of a shared receive queue.
    ///
    /// # Errors
    ///
    /// `ENOMEM` for each that is to be refused.
    #[inline]
    pub(crate) fn take_request(&self) -> Result {
        let every = self.refuse_every();
        if every == 0 {
            return Ok(());
        }
        let number = self.posted.fetch_add(1, Ordering::Relaxed);
        match number % every == every - 1 {
            true => Err(ENOMEM),
            false => Ok(()),
        }
    }
}

impl Hca {
    /// Takes in a work request of a queue pair of that type. Management has no failures, or no
    /// subnet manager could reach the device.
    ///
    /// # Errors
    ///
    /// The error of [`Faults::take_request`].
    #[inline]
    pub(crate) fn take_request_of(&self, kind: Type) -> Result {
        match kind {
            Type::Smi | Type::Gsi => Ok(()),
            _ => self.faults.take_request(),
        }
    }

    /// Checks whether a queue pair of that type can be changed in a state. One that cannot is as
    /// it was: packets still land in the memory of its receives.
    ///
    /// # Errors
    ///
    /// `EIO`.
    pub(crate) fn may_change(&self, kind: Type, state: State) -> Result {
        let is_ready = state == State::ReadyToSend;
        let is_special = matches!(kind, Type::Smi | Type::Gsi);
        match is_ready && !is_special && self.faults.resets_fail() {
            true => Err(EIO),
            false => Ok(()),
        }
    }
}
