// SPDX-License-Identifier: GPL-2.0-only

//! SIDR_REQ: one side asks for the queue pair of a datagram service (IBTA 12.11.1).

use core::mem::offset_of;
use zerocopy::byteorder::big_endian::{
    U16,
    U32,
    U64, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::mad;
use super::super::mad::Header;
use super::super::pkey::Pkey;
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::kind::Kind;
use super::service_id::ServiceId;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 216;

const _: () = assert!(size_of::<SidrReq>() == mad::LEN);
const _: () = assert!(offset_of!(SidrReq, private_data) == mad::HEADER_LEN + 16);

/// A SIDR_REQ as it stands on the wire.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SidrReq {
    header: Header,
    request_id: U32,
    pkey: U16,
    reserved6: U16,
    service_id: U64,
    private_data: [u8; PRIVATE_DATA_LEN],
}

impl SidrReq {
    /// The header, with the transaction identifier that the answer shall have.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The identifier that the sender gave the request.
    pub const fn request_id(&self) -> CommId {
        CommId::new(self.request_id.get())
    }

    /// The partition in which the service is asked for.
    pub const fn pkey(&self) -> Pkey {
        Pkey::new(self.pkey.get())
    }

    /// Which service is asked for.
    pub const fn service_id(&self) -> ServiceId {
        ServiceId::new(self.service_id.get())
    }

    /// The private data of the consumer that makes the request.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a SIDR_REQ, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`SidrReq::request_id`].
    pub request_id: CommId,
    /// [`SidrReq::pkey`].
    pub pkey: Pkey,
    /// [`SidrReq::service_id`].
    pub service_id: ServiceId,
    /// [`SidrReq::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a SIDR_REQ with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much private data; nothing is written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        Kind::SidrReq.check_private_data(self.private_data)?;
        let request: &mut SidrReq = zerocopy::transmute_mut!(Kind::SidrReq.begin(out, tid, 0));
        request.request_id.set(self.request_id.get());
        request.pkey.set(self.pkey.get());
        request.service_id.set(self.service_id.get());
        build::place(self.private_data, &mut request.private_data);
        Ok(())
    }
}
