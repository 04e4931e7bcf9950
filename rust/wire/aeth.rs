// SPDX-License-Identifier: GPL-2.0-only

//! The acknowledge extended transport header (IBTA 9.3.5).

use core::fmt;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::bits::Field;

/// Length in bytes of the header.
pub const LEN: usize = 4;

const _: () = assert!(size_of::<Aeth>() == LEN);

/// Why a request was refused (IBTA 9.7.5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NakCode {
    /// A request before it was lost.
    SequenceError = 0,
    /// The request is none that this queue pair accepts.
    InvalidRequest = 1,
    /// The request may not access that memory.
    RemoteAccess = 2,
    /// The responder cannot go on.
    RemoteOperation = 3,
}

/// The outcome of a request, which is the syndrome (IBTA 9.7.5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syndrome {
    /// Done; the code of how many more receives are posted, 5 bits.
    Ack(u8),
    /// The receiver is not ready; the code of how long to wait, 5 bits.
    RnrNak(u8),
    /// Refused, for this reason.
    Nak(NakCode),
}

impl Syndrome {
    /// The code that says nothing about the number of receives posted (IBTA 9.7.7.2.2).
    pub const NO_CREDITS: u8 = 31;

    const fn bits(self) -> u8 {
        match self {
            Syndrome::Ack(credits) => credits & 0x1f,
            Syndrome::RnrNak(timer) => 0x20 | (timer & 0x1f),
            Syndrome::Nak(code) => 0x60 | code as u8,
        }
    }
}

impl TryFrom<u8> for Syndrome {
    type Error = SyndromeError;

    fn try_from(bits: u8) -> Result<Syndrome, SyndromeError> {
        // The highest bit is reserved.
        let value = Field::<u8, 3, 5>::get(bits);
        match (Field::<u8, 1, 2>::get(bits), value) {
            (0, credits) => Ok(Syndrome::Ack(credits)),
            (1, timer) => Ok(Syndrome::RnrNak(timer)),
            (3, 0) => Ok(Syndrome::Nak(NakCode::SequenceError)),
            (3, 1) => Ok(Syndrome::Nak(NakCode::InvalidRequest)),
            (3, 2) => Ok(Syndrome::Nak(NakCode::RemoteAccess)),
            (3, 3) => Ok(Syndrome::Nak(NakCode::RemoteOperation)),
            _ => Err(SyndromeError(bits)),
        }
    }
}

/// A syndrome that the specification reserves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyndromeError(pub u8);

impl fmt::Display for SyndromeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "acknowledgement with reserved syndrome {:#04x}", self.0)
    }
}

impl core::error::Error for SyndromeError {}

/// An acknowledge extended transport header.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Aeth {
    syndrome: u8,
    msn: [u8; 3],
}

impl Aeth {
    /// A header; of the number of messages the low 24 bits are taken.
    pub const fn new(syndrome: Syndrome, msn: u32) -> Aeth {
        let [_, high, middle, low] = msn.to_be_bytes();
        Aeth {
            syndrome: syndrome.bits(),
            msn: [high, middle, low],
        }
    }

    /// The bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// Returns the outcome of the request.
    ///
    /// # Errors
    ///
    /// [`SyndromeError`] if that is reserved.
    pub fn syndrome(&self) -> Result<Syndrome, SyndromeError> {
        Syndrome::try_from(self.syndrome)
    }

    /// The number of messages that the responder has completed, 24 bits.
    pub const fn msn(&self) -> u32 {
        let [high, middle, low] = self.msn;
        u32::from_be_bytes([0, high, middle, low])
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_aeth))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn syndromes_on_the_wire() {
        let table = [
            (Syndrome::Ack(0), 0x00),
            (Syndrome::Ack(Syndrome::NO_CREDITS), 0x1f),
            (Syndrome::RnrNak(14), 0x2e),
            (Syndrome::Nak(NakCode::SequenceError), 0x60),
            (Syndrome::Nak(NakCode::InvalidRequest), 0x61),
            (Syndrome::Nak(NakCode::RemoteAccess), 0x62),
            (Syndrome::Nak(NakCode::RemoteOperation), 0x63),
        ];
        for (syndrome, byte) in table {
            let aeth = Aeth::new(syndrome, 0xff12_3456);
            assert_eq!(aeth.bytes(), [byte, 0x12, 0x34, 0x56]);
            assert_eq!(aeth.syndrome(), Ok(syndrome));
            assert_eq!(aeth.msn(), 0x0012_3456);
        }
    }

    #[test]
    fn reserved_syndromes() {
        for byte in [0x40, 0x5f, 0x64, 0x65, 0x7f] {
            assert_eq!(Syndrome::try_from(byte), Err(SyndromeError(byte)));
        }
        assert_eq!(Syndrome::try_from(0x9f), Ok(Syndrome::Ack(31)));
    }
}
