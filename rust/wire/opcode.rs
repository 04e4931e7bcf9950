// SPDX-License-Identifier: GPL-2.0-only

//! Operation codes of the transport header (IBTA 9.2.1, table 38).

use core::fmt;

/// A transport service: the three highest bits of the operation code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

impl Service {
    const fn bits(self) -> u8 {
        match self {
            Service::Rc => 0,
            Service::Uc => 1,
            Service::Ud => 3,
        }
    }
}

/// An operation: the five lowest bits of the operation code, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Operation {
    /// The first of several packets of a SEND.
    SendFirst = 0x00,
    /// One between the first and the last.
    SendMiddle = 0x01,
    /// The last of several.
    SendLast = 0x02,
    /// The last of several, with immediate data.
    SendLastImmediate = 0x03,
    /// A SEND in one packet.
    SendOnly = 0x04,
    /// A SEND in one packet, with immediate data.
    SendOnlyImmediate = 0x05,
    /// The first of several packets of an RDMA WRITE.
    WriteFirst = 0x06,
    /// One between the first and the last.
    WriteMiddle = 0x07,
    /// The last of several.
    WriteLast = 0x08,
    /// The last of several, with immediate data.
    WriteLastImmediate = 0x09,
    /// An RDMA WRITE in one packet.
    WriteOnly = 0x0a,
    /// An RDMA WRITE in one packet, with immediate data.
    WriteOnlyImmediate = 0x0b,
    /// The request of an RDMA READ.
    ReadRequest = 0x0c,
    /// The first of several packets of the data read.
    ReadResponseFirst = 0x0d,
    /// One between the first and the last.
    ReadResponseMiddle = 0x0e,
    /// The last of several.
    ReadResponseLast = 0x0f,
    /// The data read in one packet.
    ReadResponseOnly = 0x10,
    /// An acknowledgement, positive or negative.
    Acknowledge = 0x11,
    /// The value that an atomic operation found.
    AtomicAcknowledge = 0x12,
    /// An atomic compare and swap.
    CompareSwap = 0x13,
    /// An atomic fetch and add.
    FetchAdd = 0x14,
    /// The last packet of a SEND, with a key to invalidate.
    SendLastInvalidate = 0x16,
    /// A SEND in one packet, with a key to invalidate.
    SendOnlyInvalidate = 0x17,
}

impl Operation {
    /// The operations in the order of their numbers.
    const ALL: [Operation; 23] = [
        Operation::SendFirst,
        Operation::SendMiddle,
        Operation::SendLast,
        Operation::SendLastImmediate,
        Operation::SendOnly,
        Operation::SendOnlyImmediate,
        Operation::WriteFirst,
        Operation::WriteMiddle,
        Operation::WriteLast,
        Operation::WriteLastImmediate,
        Operation::WriteOnly,
        Operation::WriteOnlyImmediate,
        Operation::ReadRequest,
        Operation::ReadResponseFirst,
        Operation::ReadResponseMiddle,
        Operation::ReadResponseLast,
        Operation::ReadResponseOnly,
        Operation::Acknowledge,
        Operation::AtomicAcknowledge,
        Operation::CompareSwap,
        Operation::FetchAdd,
        Operation::SendLastInvalidate,
        Operation::SendOnlyInvalidate,
    ];

    /// The highest number that every service of connections has; those above are of RC alone.
    const LAST_OF_UC: u8 = Operation::WriteOnlyImmediate as u8;

    fn from_bits(bits: u8) -> Option<Operation> {
        let place = match bits {
            0x00..=0x14 => bits,
            // 0x15 is no operation of a connection.
            0x16 | 0x17 => bits - 1,
            _ => return None,
        };
        Self::ALL.get(usize::from(place)).copied()
    }

    /// Returns whether immediate data comes with it.
    pub const fn has_immediate(self) -> bool {
        matches!(
            self,
            Operation::SendLastImmediate
                | Operation::SendOnlyImmediate
                | Operation::WriteLastImmediate
                | Operation::WriteOnlyImmediate
        )
    }

    /// Returns whether a key to invalidate comes with it.
    pub const fn has_invalidate(self) -> bool {
        matches!(
            self,
            Operation::SendLastInvalidate | Operation::SendOnlyInvalidate
        )
    }

    /// Returns whether it begins with the memory that it reads or writes (RETH).
    pub const fn has_reth(self) -> bool {
        matches!(
            self,
            Operation::WriteFirst
                | Operation::WriteOnly
                | Operation::WriteOnlyImmediate
                | Operation::ReadRequest
        )
    }

    /// Returns whether it says what became of a request (AETH).
    pub const fn has_aeth(self) -> bool {
        matches!(
            self,
            Operation::ReadResponseFirst
                | Operation::ReadResponseLast
                | Operation::ReadResponseOnly
                | Operation::Acknowledge
                | Operation::AtomicAcknowledge
        )
    }

    /// Returns whether it is an atomic request (AtomicETH).
    pub const fn has_atomic(self) -> bool {
        matches!(self, Operation::CompareSwap | Operation::FetchAdd)
    }

    /// Returns whether it answers an atomic request (AtomicAckETH).
    pub const fn has_atomic_ack(self) -> bool {
        matches!(self, Operation::AtomicAcknowledge)
    }

    /// Returns whether it goes from responder to requester.
    pub const fn is_response(self) -> bool {
        matches!(
            self,
            Operation::ReadResponseFirst
                | Operation::ReadResponseMiddle
                | Operation::ReadResponseLast
                | Operation::ReadResponseOnly
                | Operation::Acknowledge
                | Operation::AtomicAcknowledge
        )
    }
}

/// An operation of a service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Opcode {
    /// The transport service, the three highest bits.
    pub service: Service,
    /// The operation; not every service has every one, see [`Opcode::new`].
    pub operation: Operation,
}

impl Opcode {
    /// Puts a service and an operation together; `None` if that service has no such operation.
    pub const fn new(service: Service, operation: Operation) -> Option<Opcode> {
        let has = match service {
            Service::Rc => true,
            Service::Uc => operation as u8 <= Operation::LAST_OF_UC,
            Service::Ud => matches!(
                operation,
                Operation::SendOnly | Operation::SendOnlyImmediate
            ),
        };
        if has {
            Some(Opcode { service, operation })
        } else {
            None
        }
    }

    /// Returns the operation of an unreliable datagram.
    pub const fn datagram(immediate: bool) -> Opcode {
        Opcode {
            service: Service::Ud,
            operation: if immediate {
                Operation::SendOnlyImmediate
            } else {
                Operation::SendOnly
            },
        }
    }

    /// The number in the packet.
    pub const fn get(self) -> u8 {
        (self.service.bits() << 5) | self.operation as u8
    }

    /// Returns whether the packet says from which queue pair it comes (DETH).
    pub const fn has_deth(self) -> bool {
        matches!(self.service, Service::Ud)
    }
}

impl TryFrom<u8> for Opcode {
    type Error = OpcodeError;

    fn try_from(number: u8) -> Result<Opcode, OpcodeError> {
        let service = match number >> 5 {
            0 => Service::Rc,
            1 => Service::Uc,
            3 => Service::Ud,
            _ => return Err(OpcodeError(number)),
        };
        Operation::from_bits(number & 0x1f)
            .and_then(|operation| Opcode::new(service, operation))
            .ok_or(OpcodeError(number))
    }
}

/// A number that is no operation of a service that is known here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpcodeError(pub u8);

impl fmt::Display for OpcodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown operation code {:#04x}", self.0)
    }
}

impl core::error::Error for OpcodeError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_opcode))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_operations() {
        let table = [
            (0x00, Service::Rc, Operation::SendFirst),
            (0x04, Service::Rc, Operation::SendOnly),
            (0x0a, Service::Rc, Operation::WriteOnly),
            (0x0c, Service::Rc, Operation::ReadRequest),
            (0x10, Service::Rc, Operation::ReadResponseOnly),
            (0x11, Service::Rc, Operation::Acknowledge),
            (0x12, Service::Rc, Operation::AtomicAcknowledge),
            (0x13, Service::Rc, Operation::CompareSwap),
            (0x14, Service::Rc, Operation::FetchAdd),
            (0x16, Service::Rc, Operation::SendLastInvalidate),
            (0x17, Service::Rc, Operation::SendOnlyInvalidate),
            (0x20, Service::Uc, Operation::SendFirst),
            (0x2b, Service::Uc, Operation::WriteOnlyImmediate),
            (0x64, Service::Ud, Operation::SendOnly),
            (0x65, Service::Ud, Operation::SendOnlyImmediate),
        ];
        for (number, service, operation) in table {
            let opcode = Opcode::new(service, operation);
            assert_eq!(opcode.map(Opcode::get), Some(number));
            assert_eq!(Opcode::try_from(number).ok(), opcode);
        }
        assert_eq!(Opcode::datagram(false).get(), 0x64);
        assert_eq!(Opcode::datagram(true).get(), 0x65);
    }

    #[test]
    fn numbers_that_are_none() {
        // Reserved of RC; of UC what answers; of UD all but two; RD, congestion, XRC, vendors'.
        let table = [
            0x15, 0x18, 0x1f, 0x2c, 0x31, 0x36, 0x60, 0x63, 0x66, 0x71, 0x40, 0x44, 0x81, 0xa4,
            0xc0, 0xff,
        ];
        for number in table {
            assert_eq!(Opcode::try_from(number), Err(OpcodeError(number)));
        }
        let known = (0..=u8::MAX).filter(|number| {
            let opcode = Opcode::try_from(*number);
            assert!(opcode.is_err() || opcode.map(Opcode::get) == Ok(*number));
            opcode.is_ok()
        });
        assert_eq!(known.count(), 23 + 12 + 2);
    }
}
