// SPDX-License-Identifier: GPL-2.0-only

//! SIDR_REP: which queue pair gives a datagram service (IBTA 12.11.2).

use core::fmt;
use core::mem::offset_of;
use zerocopy::byteorder::big_endian::{
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
use super::super::qpn::Qpn;
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::ece::Ece;
use super::kind::Kind;
use super::service_id::ServiceId;
use super::INFORMATION_LEN;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 136;

const _: () = assert!(size_of::<SidrRep>() == mad::LEN);
const _: () = assert!(offset_of!(SidrRep, private_data) == mad::HEADER_LEN + 96);

/// The outcome of a service ID resolution request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Status(u8);

impl Status {
    /// The queue pair is the service's.
    pub const SUCCESS: Status = Status(0);
    /// The receiver does not provide this service.
    pub const UNSUPPORTED: Status = Status(1);
    /// The service does not want the sender.
    pub const REJECT: Status = Status(2);
    /// The service has no queue pair to give.
    pub const NO_QP: Status = Status(3);
    /// Another port is to be asked; the information says which.
    pub const REDIRECT: Status = Status(4);
    /// The class version of the request is unsupported.
    pub const UNSUPPORTED_VERSION: Status = Status(5);

    /// Takes a number; those without a name are reserved.
    pub const fn new(number: u8) -> Status {
        Status(number)
    }

    /// The number in the status field.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Status::SUCCESS => "service found",
            Status::UNSUPPORTED => "no such service",
            Status::REJECT => "rejected by the service",
            Status::NO_QP => "no queue pair",
            Status::REDIRECT => "redirected",
            Status::UNSUPPORTED_VERSION => "unsupported version",
            Status(number) => return write!(f, "status {number}"),
        })
    }
}

/// A SIDR_REP as it stands on the wire.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SidrRep {
    header: Header,
    request_id: U32,
    status: u8,
    information_length: u8,
    vendor_id_high: [u8; 2],
    qpn: [u8; 3],
    vendor_id_low: u8,
    service_id: U64,
    qkey: U32,
    information: [u8; INFORMATION_LEN],
    private_data: [u8; PRIVATE_DATA_LEN],
}

impl SidrRep {
    /// The header, with the transaction identifier.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The identifier that the receiver gave the request.
    pub const fn request_id(&self) -> CommId {
        CommId::new(self.request_id.get())
    }

    /// The outcome of the request.
    pub const fn status(&self) -> Status {
        Status(self.status)
    }

    /// The service's queue pair.
    pub const fn qpn(&self) -> Qpn {
        Qpn::from_bytes(self.qpn)
    }

    /// The service that was asked for.
    pub const fn service_id(&self) -> ServiceId {
        ServiceId::new(self.service_id.get())
    }

    /// Key of the service's queue pair.
    pub const fn qkey(&self) -> u32 {
        self.qkey.get()
    }

    /// The vendor's options that the sender accepts.
    pub const fn ece(&self) -> Ece {
        let [high, middle] = self.vendor_id_high;
        Ece::new([high, middle, self.vendor_id_low], &self.header)
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

    /// The private data of the service.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a SIDR_REP, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`SidrRep::request_id`].
    pub request_id: CommId,
    /// [`SidrRep::status`].
    pub status: Status,
    /// [`SidrRep::qpn`].
    pub qpn: Qpn,
    /// [`SidrRep::service_id`].
    pub service_id: ServiceId,
    /// [`SidrRep::qkey`].
    pub qkey: u32,
    /// [`SidrRep::ece`].
    pub ece: Ece,
    /// [`SidrRep::information`]. At most [`INFORMATION_LEN`] bytes.
    pub information: &'a [u8],
    /// [`SidrRep::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a SIDR_REP with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much additional information or private data; nothing is
    /// written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        let information_length = Kind::SidrRep.check_information(self.information)?;
        Kind::SidrRep.check_private_data(self.private_data)?;
        let out = Kind::SidrRep.begin(out, tid, self.ece.options);
        let reply: &mut SidrRep = zerocopy::transmute_mut!(out);
        let [high, middle, low] = self.ece.vendor();
        reply.request_id.set(self.request_id.get());
        reply.status = self.status.get();
        reply.information_length = information_length;
        reply.vendor_id_high = [high, middle];
        reply.qpn = self.qpn.bytes();
        reply.vendor_id_low = low;
        reply.service_id.set(self.service_id.get());
        reply.qkey.set(self.qkey);
        build::place(self.information, &mut reply.information);
        build::place(self.private_data, &mut reply.private_data);
        Ok(())
    }
}
