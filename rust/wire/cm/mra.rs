// SPDX-License-Identifier: GPL-2.0-only

//! MRA: the answer to a message will take longer than its sender thought (IBTA 12.6.6).

use core::mem::offset_of;
use zerocopy::byteorder::big_endian::U32;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::{
    Field,
    Value, //
};
use super::super::mad;
use super::super::mad::Header;
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::kind::Kind;
use super::timeout::Timeout;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 222;

const _: () = assert!(size_of::<Mra>() == mad::LEN);
const _: () = assert!(offset_of!(Mra, private_data) == mad::HEADER_LEN + 10);

/// The message that an MRA acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Acknowledged {
    /// The request for communication (REQ).
    Req,
    /// The reply to the request (REP).
    Rep,
    /// The offer of an alternate path (LAP).
    Lap,
    /// The number 3, which is not defined.
    Reserved,
}

impl Value for Acknowledged {
    const BITS: u32 = 2;

    fn from_bits(bits: u32) -> Acknowledged {
        match bits {
            0 => Acknowledged::Req,
            1 => Acknowledged::Rep,
            2 => Acknowledged::Lap,
            _ => Acknowledged::Reserved,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Acknowledged::Req => 0,
            Acknowledged::Rep => 1,
            Acknowledged::Lap => 2,
            Acknowledged::Reserved => 3,
        }
    }
}

/// An MRA as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Mra {
    header: Header,
    local_comm_id: U32,
    remote_comm_id: U32,
    /// [`MessageAcknowledged`].
    acknowledged: u8,
    /// [`ServiceTimeout`].
    service_timeout: u8,
    private_data: [u8; PRIVATE_DATA_LEN],
}

/// `8[0]`, 2 bits.
type MessageAcknowledged = Field<Acknowledged, 0, 2>;
/// `9[0]`, 5 bits.
type ServiceTimeout = Field<Timeout, 0, 5>;

impl Mra {
    /// The header, with the transaction identifier.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The communication identifier that the sender gave the connection.
    pub const fn local_comm_id(&self) -> CommId {
        CommId::new(self.local_comm_id.get())
    }

    /// The communication identifier that the receiver gave the connection.
    pub const fn remote_comm_id(&self) -> CommId {
        CommId::new(self.remote_comm_id.get())
    }

    /// The message that was received.
    pub fn acknowledged(&self) -> Acknowledged {
        MessageAcknowledged::get(self.acknowledged)
    }

    /// Within which time it will be answered.
    pub fn service_timeout(&self) -> Timeout {
        ServiceTimeout::get(self.service_timeout)
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of an MRA, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Mra::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Mra::remote_comm_id`].
    pub remote_comm_id: CommId,
    /// [`Mra::acknowledged`].
    pub acknowledged: Acknowledged,
    /// [`Mra::service_timeout`].
    pub service_timeout: Timeout,
    /// [`Mra::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds an MRA with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much private data; nothing is written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        Kind::Mra.check_private_data(self.private_data)?;
        let mra: &mut Mra = zerocopy::transmute_mut!(Kind::Mra.begin(out, tid, 0));
        mra.local_comm_id.set(self.local_comm_id.get());
        mra.remote_comm_id.set(self.remote_comm_id.get());
        MessageAcknowledged::set(&mut mra.acknowledged, self.acknowledged);
        ServiceTimeout::set(&mut mra.service_timeout, self.service_timeout);
        build::place(self.private_data, &mut mra.private_data);
        Ok(())
    }
}
