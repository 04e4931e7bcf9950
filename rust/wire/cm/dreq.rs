// SPDX-License-Identifier: GPL-2.0-only

//! DREQ: one side gives up the connection (IBTA 12.6.10).

use core::mem::offset_of;
use zerocopy::byteorder::big_endian::U32;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::mad;
use super::super::mad::Header;
use super::super::qpn::Qpn;
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::kind::Kind;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 220;

const _: () = assert!(size_of::<Dreq>() == mad::LEN);
const _: () = assert!(offset_of!(Dreq, private_data) == mad::HEADER_LEN + 12);

/// A DREQ as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Dreq {
    header: Header,
    local_comm_id: U32,
    remote_comm_id: U32,
    remote_qpn: [u8; 3],
    reserved11: u8,
    private_data: [u8; PRIVATE_DATA_LEN],
}

impl Dreq {
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

    /// The receiver's queue pair, or its end-to-end context, which is numbered alike.
    pub const fn remote_qpn(&self) -> Qpn {
        Qpn::from_bytes(self.remote_qpn)
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a DREQ, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Dreq::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Dreq::remote_comm_id`].
    pub remote_comm_id: CommId,
    /// [`Dreq::remote_qpn`].
    pub remote_qpn: Qpn,
    /// [`Dreq::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a DREQ with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much private data; nothing is written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        Kind::Dreq.check_private_data(self.private_data)?;
        let dreq: &mut Dreq = zerocopy::transmute_mut!(Kind::Dreq.begin(out, tid, 0));
        dreq.local_comm_id.set(self.local_comm_id.get());
        dreq.remote_comm_id.set(self.remote_comm_id.get());
        dreq.remote_qpn = self.remote_qpn.bytes();
        build::place(self.private_data, &mut dreq.private_data);
        Ok(())
    }
}
