// SPDX-License-Identifier: GPL-2.0-only

//! The extended transport headers of a packet (IBTA 9.3), as its operation wants them.

use zerocopy::FromBytes;

use super::super::aeth;
use super::super::aeth::Aeth;
use super::super::atomic;
use super::super::atomic::{
    AtomicAckEth,
    AtomicEth, //
};
use super::super::deth;
use super::super::deth::Deth;
use super::super::immdt;
use super::super::immdt::{
    Ieth,
    ImmDt, //
};
use super::super::opcode::{
    Opcode,
    Service, //
};
use super::super::reth;
use super::super::reth::Reth;
use super::writer::Writer;

/// The headers between the base transport header and the payload. Which of them a packet has
/// follows from its operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Extension {
    /// The sender and the Q_Key, in a datagram.
    pub deth: Option<Deth>,
    /// The memory, in the request of an RDMA operation.
    pub reth: Option<Reth>,
    /// The word and its operands, in an atomic operation.
    pub atomic: Option<AtomicEth>,
    /// The outcome of the request, in a response.
    pub aeth: Option<Aeth>,
    /// The former value of the word, in the response to an atomic operation.
    pub atomic_ack: Option<AtomicAckEth>,
    /// Immediate data, four bytes.
    pub immediate: Option<ImmDt>,
    /// The key to invalidate.
    pub invalidate: Option<Ieth>,
}

impl Extension {
    /// Returns the length in bytes of the headers of an operation.
    pub const fn len_of(opcode: Opcode) -> usize {
        const fn one(wanted: bool, length: usize) -> usize {
            if wanted {
                length
            } else {
                0
            }
        }
        let operation = opcode.operation;
        one(opcode.has_deth(), deth::LEN)
            + one(operation.has_reth(), reth::LEN)
            + one(operation.has_atomic(), atomic::LEN)
            + one(operation.has_aeth(), aeth::LEN)
            + one(operation.has_atomic_ack(), atomic::ACK_LEN)
            + one(operation.has_immediate(), immdt::LEN)
            + one(operation.has_invalidate(), immdt::LEN)
    }

    /// Reads the headers of an operation, and answers with what follows them.
    pub(super) fn parse(opcode: Opcode, bytes: &[u8]) -> Option<(Extension, &[u8])> {
        let operation = opcode.operation;
        if opcode.service == Service::Ud {
            let (deth, rest) = take(true, bytes)?;
            let (immediate, rest) = take(operation.has_immediate(), rest)?;
            let extension = Extension {
                deth,
                immediate,
                ..Extension::default()
            };
            return Some((extension, rest));
        }
        let (deth, rest) = take(opcode.has_deth(), bytes)?;
        let (reth, rest) = take(operation.has_reth(), rest)?;
        let (atomic, rest) = take(operation.has_atomic(), rest)?;
        let (aeth, rest) = take(operation.has_aeth(), rest)?;
        let (atomic_ack, rest) = take(operation.has_atomic_ack(), rest)?;
        let (immediate, rest) = take(operation.has_immediate(), rest)?;
        let (invalidate, rest) = take(operation.has_invalidate(), rest)?;
        let extension = Extension {
            deth,
            reth,
            atomic,
            aeth,
            atomic_ack,
            immediate,
            invalidate,
        };
        Some((extension, rest))
    }

    /// Returns whether these are the headers that the operation has.
    pub(super) fn is_of(&self, opcode: Opcode) -> bool {
        let operation = opcode.operation;
        self.deth.is_some() == opcode.has_deth()
            && self.reth.is_some() == operation.has_reth()
            && self.atomic.is_some() == operation.has_atomic()
            && self.aeth.is_some() == operation.has_aeth()
            && self.atomic_ack.is_some() == operation.has_atomic_ack()
            && self.immediate.is_some() == operation.has_immediate()
            && self.invalidate.is_some() == operation.has_invalidate()
    }

    /// Writes those that are there, in the order of the specification.
    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Option<()> {
        writer.put(self.deth.map(Deth::bytes))?;
        writer.put(self.reth.map(Reth::bytes))?;
        writer.put(self.atomic.map(AtomicEth::bytes))?;
        writer.put(self.aeth.map(Aeth::bytes))?;
        writer.put(self.atomic_ack.map(AtomicAckEth::bytes))?;
        writer.put(self.immediate.map(ImmDt::bytes))?;
        writer.put(self.invalidate.map(Ieth::bytes))
    }
}

/// Reads one header, if it is wanted.
#[inline]
fn take<T>(wanted: bool, bytes: &[u8]) -> Option<(Option<T>, &[u8])>
where
    T: FromBytes,
{
    if !wanted {
        return Some((None, bytes));
    }
    let (header, rest) = T::read_from_prefix(bytes).ok()?;
    Some((Some(header), rest))
}
