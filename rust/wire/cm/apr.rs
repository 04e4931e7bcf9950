// SPDX-License-Identifier: GPL-2.0-only

//! APR: what became of the path that a LAP gave (IBTA 12.8.2).

use core::fmt;
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
use super::INFORMATION_LEN;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 148;

const _: () = assert!(size_of::<Apr>() == mad::LEN);
const _: () = assert!(offset_of!(Apr, private_data) == mad::HEADER_LEN + 84);

/// The outcome of loading an alternate path: the AP status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Status(u8);

impl Status {
    /// The path was loaded.
    pub const SUCCESS: Status = Status(0);
    /// There is no such connection.
    pub const INVALID_COMM_ID: Status = Status(1);
    /// The receiver does not migrate paths.
    pub const UNSUPPORTED: Status = Status(2);
    /// The consumer does not want it.
    pub const REJECT: Status = Status(3);
    /// Another port is to be asked; the information says which.
    pub const REDIRECT: Status = Status(4);
    /// The path is the one already in use.
    pub const IS_CURRENT: Status = Status(5);
    /// The queue pair is not the connection's.
    pub const INVALID_QPN_EECN: Status = Status(6);
    /// The LID is not the receiver's.
    pub const INVALID_LID: Status = Status(7);
    /// The GID is not the receiver's.
    pub const INVALID_GID: Status = Status(8);
    /// The flow label is not acceptable.
    pub const INVALID_FLOW_LABEL: Status = Status(9);
    /// The traffic class is not acceptable.
    pub const INVALID_TRAFFIC_CLASS: Status = Status(10);
    /// The hop limit is not acceptable.
    pub const INVALID_HOP_LIMIT: Status = Status(11);
    /// The packet rate is not acceptable.
    pub const INVALID_PACKET_RATE: Status = Status(12);
    /// The service level is not acceptable.
    pub const INVALID_SL: Status = Status(13);

    /// Takes a number; those without a name are reserved.
    pub const fn new(number: u8) -> Status {
        Status(number)
    }

    /// The number in the AP status field.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Status::SUCCESS => "path loaded",
            Status::INVALID_COMM_ID => "no such connection",
            Status::UNSUPPORTED => "path migration unsupported",
            Status::REJECT => "path rejected",
            Status::REDIRECT => "redirected",
            Status::IS_CURRENT => "path already in use",
            Status::INVALID_QPN_EECN => "invalid queue pair",
            Status::INVALID_LID => "invalid LID",
            Status::INVALID_GID => "invalid GID",
            Status::INVALID_FLOW_LABEL => "invalid flow label",
            Status::INVALID_TRAFFIC_CLASS => "invalid traffic class",
            Status::INVALID_HOP_LIMIT => "invalid hop limit",
            Status::INVALID_PACKET_RATE => "invalid packet rate",
            Status::INVALID_SL => "invalid service level",
            Status(number) => return write!(f, "status {number}"),
        })
    }
}

/// An APR as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Apr {
    header: Header,
    local_comm_id: U32,
    remote_comm_id: U32,
    information_length: u8,
    status: u8,
    reserved10: [u8; 2],
    information: [u8; INFORMATION_LEN],
    private_data: [u8; PRIVATE_DATA_LEN],
}

impl Apr {
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

    /// The outcome of loading the path.
    pub const fn status(&self) -> Status {
        Status(self.status)
    }

    /// The length of the additional information as the message says it.
    pub(super) const fn information_length(&self) -> u8 {
        self.information_length
    }

    /// The additional information; its form depends on the status. Of a parsed message it has the
    /// length that the message says.
    pub fn information(&self) -> &[u8] {
        let length = usize::from(self.information_length);
        self.information.get(..length).unwrap_or(&self.information)
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of an APR, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Apr::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Apr::remote_comm_id`].
    pub remote_comm_id: CommId,
    /// [`Apr::status`].
    pub status: Status,
    /// [`Apr::information`]. At most [`INFORMATION_LEN`] bytes.
    pub information: &'a [u8],
    /// [`Apr::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds an APR with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much additional information or private data; nothing is
    /// written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        let information_length = Kind::Apr.check_information(self.information)?;
        Kind::Apr.check_private_data(self.private_data)?;
        let apr: &mut Apr = zerocopy::transmute_mut!(Kind::Apr.begin(out, tid, 0));
        apr.local_comm_id.set(self.local_comm_id.get());
        apr.remote_comm_id.set(self.remote_comm_id.get());
        apr.information_length = information_length;
        apr.status = self.status.get();
        build::place(self.information, &mut apr.information);
        build::place(self.private_data, &mut apr.private_data);
        Ok(())
    }
}
