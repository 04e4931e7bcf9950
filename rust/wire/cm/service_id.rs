// SPDX-License-Identifier: GPL-2.0-only

//! Service identifiers (IBTA 12.7.3 and annex A3).

use core::fmt;

/// The 64-bit name of a service at a node, as a port number is in the internet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(u64);

impl ServiceId {
    /// The base of the identifiers that an operating system hands out itself, and, by itself, the
    /// wish for one of these.
    pub const ASSIGN: ServiceId = ServiceId(0x0200_0000_0000_0000);

    /// The bits of an identifier that name the administrative body which handed it out.
    pub const AGN_MASK: u64 = 0xff00_0000_0000_0000;

    /// The base of the identifiers of the RDMA IP CM service (IBTA annex A11): port space and port
    /// stand in the low three bytes.
    pub const RDMA_IP_CM: ServiceId = ServiceId(0x0000_0000_0100_0000);

    /// The bits of an identifier that tell whether it is one of the RDMA IP CM service.
    pub const RDMA_IP_CM_MASK: u64 = 0xffff_ffff_ff00_0000;

    /// Takes the number in host byte order.
    pub const fn new(number: u64) -> ServiceId {
        ServiceId(number)
    }

    /// The number in host byte order.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns whether an operating system hands out this identifier itself
    /// ([`ServiceId::ASSIGN`], the wish for one, is among them).
    pub const fn is_locally_assigned(self) -> bool {
        self.0 & Self::AGN_MASK == Self::ASSIGN.0
    }

    /// Returns whether this is an identifier of the RDMA IP CM service.
    pub const fn is_rdma_ip_cm(self) -> bool {
        self.0 & Self::RDMA_IP_CM_MASK == Self::RDMA_IP_CM.0
    }
}

/// Writes the number as `/sys` and the tracepoints of the kernel do: sixteen hexadecimal digits.
impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

impl fmt::Debug for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_cm_service_id))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_service_ids() {
        // The identifier, by the operating system, RDMA IP CM.
        let table = [
            (0, false, false),
            (ServiceId::ASSIGN.get(), true, false),
            (0x0200_0000_0000_0001, true, false),
            (0x02ff_ffff_ffff_ffff, true, false),
            (0x0300_0000_0000_0000, false, false),
            (0x0000_0000_0106_4853, false, true),
            (0x0000_0000_0113_1389, false, true),
            (0x0000_0000_0206_4853, false, false),
            (0x0000_0001_0106_4853, false, false),
        ];
        for (number, assigned, ip) in table {
            let service = ServiceId::new(number);
            assert_eq!(service.get(), number);
            assert_eq!(service.is_locally_assigned(), assigned);
            assert_eq!(service.is_rdma_ip_cm(), ip);
        }
    }
}
