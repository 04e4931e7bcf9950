// SPDX-License-Identifier: GPL-2.0-only

//! REJ: one side gives up the attempt to connect (IBTA 12.6.7).

use core::mem::offset_of;
use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};
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
use super::reason::Reason;
use super::INFORMATION_LEN;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 148;

const _: () = assert!(size_of::<Rej>() == mad::LEN);
const _: () = assert!(offset_of!(Rej, private_data) == mad::HEADER_LEN + 84);

/// The message that a REJ rejects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejected {
    /// The request for communication (REQ).
    Req,
    /// The reply to the request (REP).
    Rep,
    /// No message: the sender gives up for another reason, a time-out for example.
    Other,
    /// The number 3, which is not defined.
    Reserved,
}

impl Value for Rejected {
    const BITS: u32 = 2;

    fn from_bits(bits: u32) -> Rejected {
        match bits {
            0 => Rejected::Req,
            1 => Rejected::Rep,
            2 => Rejected::Other,
            _ => Rejected::Reserved,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Rejected::Req => 0,
            Rejected::Rep => 1,
            Rejected::Other => 2,
            Rejected::Reserved => 3,
        }
    }
}

/// A REJ as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Rej {
    header: Header,
    local_comm_id: U32,
    remote_comm_id: U32,
    /// [`MessageRejected`].
    rejected: u8,
    /// [`AriLength`].
    ari_length: u8,
    reason: U16,
    ari: [u8; INFORMATION_LEN],
    private_data: [u8; PRIVATE_DATA_LEN],
}

/// `8[0]`, 2 bits.
type MessageRejected = Field<Rejected, 0, 2>;
/// `9[0]`, 7 bits.
type AriLength = Field<u8, 0, 7>;

impl Rej {
    /// The header, with the transaction identifier.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The communication identifier that the sender gave the connection; [`CommId::ZERO`] if it
    /// never chose one.
    pub const fn local_comm_id(&self) -> CommId {
        CommId::new(self.local_comm_id.get())
    }

    /// The communication identifier that the receiver gave the connection; [`CommId::ZERO`] if
    /// the sender was never told it.
    pub const fn remote_comm_id(&self) -> CommId {
        CommId::new(self.remote_comm_id.get())
    }

    /// The message that is rejected.
    pub fn rejected(&self) -> Rejected {
        MessageRejected::get(self.rejected)
    }

    /// The reason of the rejection.
    pub const fn reason(&self) -> Reason {
        Reason::new(self.reason.get())
    }

    /// The length of the additional information as the message says it.
    pub(super) fn ari_length(&self) -> u8 {
        AriLength::get(self.ari_length)
    }

    /// The additional reject information; its form depends on the reason. Of a parsed message it
    /// has the length that the message says.
    pub fn ari(&self) -> &[u8] {
        let length = usize::from(self.ari_length());
        self.ari.get(..length).unwrap_or(&self.ari)
    }

    /// The sender's channel adapter, by which the connection is found if it gave up on an answer to
    /// its REQ ([`Reason::TIMEOUT`]): the receiver never told it a communication identifier. `None`
    /// if the message does not say it.
    pub fn ca_guid(&self) -> Option<u64> {
        let guid = self.ari().first_chunk()?;
        Some(u64::from_be_bytes(*guid))
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a REJ, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Rej::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Rej::remote_comm_id`].
    pub remote_comm_id: CommId,
    /// [`Rej::rejected`].
    pub rejected: Rejected,
    /// [`Rej::reason`].
    pub reason: Reason,
    /// [`Rej::ari`]. At most [`INFORMATION_LEN`] bytes.
    pub ari: &'a [u8],
    /// [`Rej::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a REJ with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much additional information or private data; nothing is
    /// written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        let ari_length = Kind::Rej.check_information(self.ari)?;
        Kind::Rej.check_private_data(self.private_data)?;
        let rej: &mut Rej = zerocopy::transmute_mut!(Kind::Rej.begin(out, tid, 0));
        rej.local_comm_id.set(self.local_comm_id.get());
        rej.remote_comm_id.set(self.remote_comm_id.get());
        MessageRejected::set(&mut rej.rejected, self.rejected);
        AriLength::set(&mut rej.ari_length, ari_length);
        rej.reason.set(self.reason.get());
        build::place(self.ari, &mut rej.ari);
        build::place(self.private_data, &mut rej.private_data);
        Ok(())
    }
}
