// SPDX-License-Identifier: GPL-2.0-only

//! Whether the kernel may answer management datagrams: not while it takes the device apart
//! (`provider::farewell`).

use core::sync::atomic::Ordering;

use kernel::time::{
    delay::fsleep,
    Delta, //
};
use zerocopy::FromBytes as _;

use super::Hca;
use crate::wire::{
    mad,
    qpn::Qpn, //
};

/// The queue pairs of a port's management (IBTA 3.9.5).
const SPECIAL: [Qpn; 2] = [Qpn::SUBNET_MANAGEMENT, Qpn::GENERAL_SERVICES];

impl Hca {
    /// Lets the kernel answer, from now on.
    pub(crate) fn begin_answers(&self) {
        self.silent.store(false, Ordering::Relaxed);
    }

    /// Lets the kernel answer no more, and waits for the answers that it is at work on. Sleeps.
    pub(crate) fn end_answers(&self) {
        // Consumers see this when they take completions after their queue was found not to be in
        // hand: the queue has a lock.
        self.silent.store(true, Ordering::Relaxed);
        while (1..=self.ports()).any(|port| self.is_managed(port)) {
            fsleep(Delta::from_millis(1));
        }
    }

    /// Returns whether the kernel may be at work on what came to the special queue pairs of a port.
    fn is_managed(&self, port: u8) -> bool {
        SPECIAL.iter().any(|number| {
            let pair = self.queue_pairs.find(port, *number);
            pair.is_some_and(|pair| pair.receive_queue.is_in_hand())
        })
    }

    /// Returns whether the kernel must not get a datagram, as it would answer: it does so to those
    /// of classes that nobody registered for, too.
    pub(super) fn is_silent_on(&self, question: &[u8; mad::LEN]) -> bool {
        let Ok((header, _)) = mad::Header::ref_from_prefix(question) else {
            return false;
        };
        let demands_answer = matches!(header.method(), mad::METHOD_GET | mad::METHOD_SET);
        demands_answer && self.silent.load(Ordering::Relaxed)
    }
}
