// SPDX-License-Identifier: GPL-2.0-only

//! REP: the other side accepts the connection (IBTA 12.6.8).

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

use super::super::bits::{
    Field,
    Value, //
};
use super::super::mad;
use super::super::mad::Header;
use super::super::psn::Psn;
use super::super::qpn::Qpn;
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::ece::Ece;
use super::kind::Kind;
use super::timeout::Timeout;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 196;

const _: () = assert!(size_of::<Rep>() == mad::LEN);
const _: () = assert!(offset_of!(Rep, private_data) == mad::HEADER_LEN + 36);

/// The answer to the alternate path that a REQ gave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Failover {
    /// The path will be used.
    Accepted,
    /// The path will not be used: the port does not migrate paths.
    Unsupported,
    /// The path will not be used: it is not acceptable.
    Rejected,
    /// The number 3, which is not defined.
    Reserved,
}

impl Value for Failover {
    const BITS: u32 = 2;

    fn from_bits(bits: u32) -> Failover {
        match bits {
            0 => Failover::Accepted,
            1 => Failover::Unsupported,
            2 => Failover::Rejected,
            _ => Failover::Reserved,
        }
    }

    fn bits(self) -> u32 {
        match self {
            Failover::Accepted => 0,
            Failover::Unsupported => 1,
            Failover::Rejected => 2,
            Failover::Reserved => 3,
        }
    }
}

/// A REP as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Rep {
    header: Header,
    local_comm_id: U32,
    remote_comm_id: U32,
    local_qkey: U32,
    local_qpn: [u8; 3],
    vendor_id_high: u8,
    local_eecn: [u8; 3],
    vendor_id_middle: u8,
    starting_psn: [u8; 3],
    vendor_id_low: u8,
    responder_resources: u8,
    initiator_depth: u8,
    /// [`TargetAckDelay`], [`FailoverAccepted`], [`FlowControl`].
    delay_failover_flow: u8,
    /// [`RnrRetryCount`], [`Srq`].
    rnr_srq: u8,
    local_ca_guid: U64,
    private_data: [u8; PRIVATE_DATA_LEN],
}

/// `26[0]`, 5 bits.
type TargetAckDelay = Field<Timeout, 0, 5>;
/// `26[5]`, 2 bits.
type FailoverAccepted = Field<Failover, 5, 2>;
/// `26[7]`, 1 bit.
type FlowControl = Field<bool, 7, 1>;
/// `27[0]`, 3 bits.
type RnrRetryCount = Field<u8, 0, 3>;
/// `27[3]`, 1 bit.
type Srq = Field<bool, 3, 1>;

impl Rep {
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

    /// Key of the sender's datagram queue pair.
    pub const fn local_qkey(&self) -> u32 {
        self.local_qkey.get()
    }

    /// The sender's queue pair, but for a connection of XRC, where [`Rep::local_eecn`] is.
    pub const fn local_qpn(&self) -> Qpn {
        Qpn::from_bytes(self.local_qpn)
    }

    /// The sender's end-to-end context, numbered as queue pairs are; in a connection of XRC its
    /// queue pair.
    pub const fn local_eecn(&self) -> Qpn {
        Qpn::from_bytes(self.local_eecn)
    }

    /// Number of the first packet that the sender will send.
    pub const fn starting_psn(&self) -> Psn {
        Psn::from_bytes(self.starting_psn)
    }

    /// The number of RDMA reads and atomics that the sender can answer at a time.
    pub const fn responder_resources(&self) -> u8 {
        self.responder_resources
    }

    /// The number of RDMA reads and atomics that the sender wants to have outstanding at a time.
    pub const fn initiator_depth(&self) -> u8 {
        self.initiator_depth
    }

    /// The time that the sender's channel adapter takes to acknowledge a packet.
    pub fn target_ack_delay(&self) -> Timeout {
        TargetAckDelay::get(self.delay_failover_flow)
    }

    /// The answer to the REQ's alternate path.
    pub fn failover(&self) -> Failover {
        FailoverAccepted::get(self.delay_failover_flow)
    }

    /// Returns whether the sender's channel adapter does end-to-end flow control.
    pub fn flow_control(&self) -> bool {
        FlowControl::get(self.delay_failover_flow)
    }

    /// The number of retries of a packet that finds no receive buffer: 3 bits, 7 is without
    /// limit.
    pub fn rnr_retry_count(&self) -> u8 {
        RnrRetryCount::get(self.rnr_srq)
    }

    /// Returns whether the sender's queue pair receives by a shared receive queue.
    pub fn srq(&self) -> bool {
        Srq::get(self.rnr_srq)
    }

    /// Identity of the sender's channel adapter.
    pub const fn local_ca_guid(&self) -> u64 {
        self.local_ca_guid.get()
    }

    /// The vendor's options that the sender accepts.
    pub const fn ece(&self) -> Ece {
        let vendor = [
            self.vendor_id_high,
            self.vendor_id_middle,
            self.vendor_id_low,
        ];
        Ece::new(vendor, &self.header)
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a REP, field by field. Values too large for a field lose their high bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Rep::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Rep::remote_comm_id`].
    pub remote_comm_id: CommId,
    /// [`Rep::local_qkey`].
    pub local_qkey: u32,
    /// [`Rep::local_qpn`].
    pub local_qpn: Qpn,
    /// [`Rep::local_eecn`].
    pub local_eecn: Qpn,
    /// [`Rep::starting_psn`].
    pub starting_psn: Psn,
    /// [`Rep::responder_resources`].
    pub responder_resources: u8,
    /// [`Rep::initiator_depth`].
    pub initiator_depth: u8,
    /// [`Rep::target_ack_delay`].
    pub target_ack_delay: Timeout,
    /// [`Rep::failover`].
    pub failover: Failover,
    /// [`Rep::flow_control`].
    pub flow_control: bool,
    /// [`Rep::rnr_retry_count`].
    pub rnr_retry_count: u8,
    /// [`Rep::srq`].
    pub srq: bool,
    /// [`Rep::local_ca_guid`].
    pub local_ca_guid: u64,
    /// [`Rep::ece`].
    pub ece: Ece,
    /// [`Rep::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a REP with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much private data; nothing is written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        Kind::Rep.check_private_data(self.private_data)?;
        let out = Kind::Rep.begin(out, tid, self.ece.options);
        let rep: &mut Rep = zerocopy::transmute_mut!(out);
        rep.local_comm_id.set(self.local_comm_id.get());
        rep.remote_comm_id.set(self.remote_comm_id.get());
        rep.local_qkey.set(self.local_qkey);
        rep.local_qpn = self.local_qpn.bytes();
        rep.local_eecn = self.local_eecn.bytes();
        rep.starting_psn = self.starting_psn.bytes();
        [rep.vendor_id_high, rep.vendor_id_middle, rep.vendor_id_low] = self.ece.vendor();
        rep.responder_resources = self.responder_resources;
        rep.initiator_depth = self.initiator_depth;
        TargetAckDelay::set(&mut rep.delay_failover_flow, self.target_ack_delay);
        FailoverAccepted::set(&mut rep.delay_failover_flow, self.failover);
        FlowControl::set(&mut rep.delay_failover_flow, self.flow_control);
        RnrRetryCount::set(&mut rep.rnr_srq, self.rnr_retry_count);
        Srq::set(&mut rep.rnr_srq, self.srq);
        rep.local_ca_guid.set(self.local_ca_guid);
        build::place(self.private_data, &mut rep.private_data);
        Ok(())
    }
}
