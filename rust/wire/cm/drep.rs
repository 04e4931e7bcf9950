// SPDX-License-Identifier: GPL-2.0-only

//! DREP: the other side has given up the connection, too (IBTA 12.6.11).

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
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::kind::Kind;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 224;

const _: () = assert!(size_of::<Drep>() == mad::LEN);
const _: () = assert!(offset_of!(Drep, private_data) == mad::HEADER_LEN + 8);

/// A DREP as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Drep {
    header: Header,
    local_comm_id: U32,
    remote_comm_id: U32,
    private_data: [u8; PRIVATE_DATA_LEN],
}

impl Drep {
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

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a DREP, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Drep::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Drep::remote_comm_id`].
    pub remote_comm_id: CommId,
    /// [`Drep::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a DREP with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much private data; nothing is written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        Kind::Drep.check_private_data(self.private_data)?;
        let drep: &mut Drep = zerocopy::transmute_mut!(Kind::Drep.begin(out, tid, 0));
        drep.local_comm_id.set(self.local_comm_id.get());
        drep.remote_comm_id.set(self.remote_comm_id.get());
        build::place(self.private_data, &mut drep.private_data);
        Ok(())
    }
}
