// SPDX-License-Identifier: GPL-2.0-only

//! The M_Key: who may manage a port (IBTA 14.2.4).

use super::port::Port;
use super::wire::mad::METHOD_GET;
use super::wire::smp::Smp;

/// One second.
const SECOND: u64 = 1_000_000_000;

/// From this protection on a wrong key cannot read either.
const PROTECT_READS: u8 = 2;

impl Port {
    /// Whether the request may be served at this time. One that may not is counted, and begins the
    /// lease, at whose end the protection ends: a subnet manager that has lost its key is not
    /// locked out for ever.
    pub(super) fn admits(&mut self, smp: &Smp, now: u64) -> bool {
        if self.lease.is_some_and(|end| now >= end) {
            self.lease = None;
            self.info.set_m_key_protect(0);
        }
        let key = self.info.m_key();
        if key == 0 || smp.m_key() == key {
            self.lease = None;
            return true;
        }
        if smp.header().method() == METHOD_GET && self.info.m_key_protect() < PROTECT_READS {
            return true;
        }
        let violations = self.info.m_key_violations().saturating_add(1);
        self.info.set_m_key_violations(violations);
        let period = u64::from(self.info.m_key_lease());
        if period != 0 && self.lease.is_none() {
            self.lease = Some(now.saturating_add(period * SECOND));
        }
        false
    }

    /// The key as that request may see it: with any protection only who has it sees it.
    pub(super) fn visible_key(&self, smp: &Smp) -> u64 {
        let key = self.info.m_key();
        if self.info.m_key_protect() == 0 || smp.m_key() == key {
            key
        } else {
            0
        }
    }
}
