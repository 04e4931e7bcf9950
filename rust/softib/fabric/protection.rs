// SPDX-License-Identifier: GPL-2.0-only

//! The M_Key: the protection of a port's management (IBTA 14.2.4).

use super::port::Port;
use super::wire::mad::METHOD_GET;
use super::wire::smp::Smp;

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The degree of protection from which on a wrong key cannot read either.
const PROTECT_READS: u8 = 2;

impl Port {
    /// Returns whether the request may be served at this time. A request that may not is counted,
    /// and begins the lease, at the end of which the protection ends: a subnet manager that has
    /// lost its key is not locked out for ever.
    pub(super) fn admits(&mut self, smp: &Smp, now: u64) -> bool {
        if self.lease.is_some_and(|end| now >= end) {
            self.lease = None;
            self.info.set_m_key_protect(0);
        }
        let key = self.info.m_key();
        // Key 0 protects nothing. The right key ends a lease that a wrong one has begun.
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

    /// The key as that request may see it: with any protection only requests that have it see it.
    pub(super) fn visible_key(&self, smp: &Smp) -> u64 {
        let key = self.info.m_key();
        if self.info.m_key_protect() == 0 || smp.m_key() == key {
            key
        } else {
            0
        }
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(softib_fabric_protection))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::port::Profile;
    use super::super::wire::mad::{
        Header,
        Subject,
        CLASS_SUBNET_LID,
        METHOD_SET, //
    };
    use super::*;

    const KEY: u64 = 0x1234;

    fn smp(method: u8, key: u64) -> Smp {
        let header = Header::new(Subject {
            class: CLASS_SUBNET_LID,
            class_version: 1,
            method,
            tid: 1,
            attribute: 0x15,
            modifier: 0,
        });
        Smp::new(header, key)
    }

    fn port(protect: u8) -> Port {
        let mut port = Port::new(&Profile::new(1));
        port.info.set_m_key(KEY);
        port.info.set_m_key_protect(protect);
        port.info.set_m_key_lease(2);
        port
    }

    #[test]
    fn the_m_key_protects() {
        let table = [
            // Protection; method; key; served; the key that is seen.
            (0, METHOD_GET, 0, true, KEY),
            (0, METHOD_SET, 0, false, KEY),
            (1, METHOD_GET, 0, true, 0),
            (1, METHOD_SET, KEY, true, KEY),
            (2, METHOD_GET, 0, false, 0),
            (2, METHOD_GET, KEY, true, KEY),
        ];
        for (protect, method, key, served, seen) in table {
            let mut port = port(protect);
            let smp = smp(method, key);
            assert_eq!(port.admits(&smp, 0), served);
            assert_eq!(port.visible_key(&smp), seen);
            assert_eq!(port.info.m_key_violations(), u16::from(!served));
        }
    }

    #[test]
    fn the_lease_ends() {
        let mut port = port(2);
        let stranger = smp(METHOD_GET, 0);
        assert!(!port.admits(&stranger, 0));
        assert!(!port.admits(&stranger, 2 * SECOND - 1));
        assert!(port.admits(&stranger, 2 * SECOND));
        assert_eq!(port.info.m_key_protect(), 0);
    }
}
