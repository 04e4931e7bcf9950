// SPDX-License-Identifier: GPL-2.0-only

//! The transport services that a REQ can ask for.

/// The transport service of a connection, out of two fields of a REQ (IBTA 12.6.5 and annex A14):
/// the transport service type, and, where that says so, the extended one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// Extended reliable connection.
    Xrc,
    /// An extended transport service of this number, which is not 1 and has three bits; none is
    /// defined.
    Extended(u8),
}

impl Transport {
    /// The transport service type that refers to the extended one.
    const EXTENDED: u8 = 3;

    /// The extended type of XRC.
    const XRC: u8 = 1;

    /// Puts together the two fields; the second counts only where the first refers to it.
    pub const fn from_types(service: u8, extended: u8) -> Transport {
        match (service & 3, extended) {
            (0, _) => Transport::Rc,
            (1, _) => Transport::Uc,
            (2, _) => Transport::Rd,
            (_, Self::XRC) => Transport::Xrc,
            (_, extended) => Transport::Extended(extended),
        }
    }

    /// The transport service type and the extended one.
    pub const fn types(self) -> (u8, u8) {
        match self {
            Transport::Rc => (0, 0),
            Transport::Uc => (1, 0),
            Transport::Rd => (2, 0),
            Transport::Xrc => (Self::EXTENDED, Self::XRC),
            Transport::Extended(extended) => (Self::EXTENDED, extended),
        }
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_cm_transport))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn two_fields() {
        let table = [
            (Transport::Rc, (0, 0)),
            (Transport::Uc, (1, 0)),
            (Transport::Rd, (2, 0)),
            (Transport::Xrc, (3, 1)),
            (Transport::Extended(0), (3, 0)),
            (Transport::Extended(7), (3, 7)),
        ];
        for (transport, types) in table {
            assert_eq!(transport.types(), types);
            assert_eq!(Transport::from_types(types.0, types.1), transport);
        }
        // Without a reference the extended type says nothing.
        assert_eq!(Transport::from_types(0, 1), Transport::Rc);
        assert_eq!(Transport::from_types(1, 7), Transport::Uc);
    }
}
