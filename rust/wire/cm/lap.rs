// SPDX-License-Identifier: GPL-2.0-only

//! LAP: one side gives a path to migrate to (IBTA 12.8.1).

use core::mem::offset_of;
use zerocopy::byteorder::big_endian::U32;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::super::bits::Field;
use super::super::mad;
use super::super::mad::Header;
use super::super::qpn::Qpn;
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::kind::Kind;
use super::path::{
    LapPath,
    Path, //
};
use super::timeout::Timeout;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 168;

const _: () = assert!(size_of::<Lap>() == mad::LEN);
const _: () = assert!(offset_of!(Lap, private_data) == mad::HEADER_LEN + 64);

/// A LAP as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Lap {
    header: Header,
    local_comm_id: U32,
    remote_comm_id: U32,
    reserved8: U32,
    remote_qpn: [u8; 3],
    /// [`RemoteCmResponseTimeout`].
    timeout: u8,
    reserved16: U32,
    alternate: LapPath,
    private_data: [u8; PRIVATE_DATA_LEN],
}

/// `15[0]`, 5 bits.
type RemoteCmResponseTimeout = Field<Timeout, 0, 5>;

impl Lap {
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

    /// Within which time the receiver of the LAP shall answer.
    pub fn remote_cm_response_timeout(&self) -> Timeout {
        RemoteCmResponseTimeout::get(self.timeout)
    }

    /// The path to migrate to.
    pub fn alternate(&self) -> Path {
        self.alternate.get()
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a LAP, field by field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Lap::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Lap::remote_comm_id`].
    pub remote_comm_id: CommId,
    /// [`Lap::remote_qpn`].
    pub remote_qpn: Qpn,
    /// [`Lap::remote_cm_response_timeout`].
    pub remote_cm_response_timeout: Timeout,
    /// [`Lap::alternate`].
    pub alternate: Path,
    /// [`Lap::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a LAP with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much private data; nothing is written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        Kind::Lap.check_private_data(self.private_data)?;
        let lap: &mut Lap = zerocopy::transmute_mut!(Kind::Lap.begin(out, tid, 0));
        lap.local_comm_id.set(self.local_comm_id.get());
        lap.remote_comm_id.set(self.remote_comm_id.get());
        lap.remote_qpn = self.remote_qpn.bytes();
        RemoteCmResponseTimeout::set(&mut lap.timeout, self.remote_cm_response_timeout);
        lap.alternate.set(&self.alternate);
        build::place(self.private_data, &mut lap.private_data);
        Ok(())
    }
}
