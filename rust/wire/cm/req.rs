// SPDX-License-Identifier: GPL-2.0-only

//! REQ: one side asks the other for a connection (IBTA 12.6.5).

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

use super::super::bits::Field;
use super::super::mad;
use super::super::mad::Header;
use super::super::pkey::Pkey;
use super::super::psn::Psn;
use super::super::qpn::Qpn;
use super::build;
use super::build::BuildError;
use super::comm_id::CommId;
use super::ece::Ece;
use super::kind::Kind;
use super::mtu::Mtu;
use super::path::{
    Path,
    ReqPath, //
};
use super::service_id::ServiceId;
use super::timeout::Timeout;
use super::transport::Transport;

/// Length in bytes of the private data.
pub const PRIVATE_DATA_LEN: usize = 92;

const _: () = assert!(size_of::<Req>() == mad::LEN);
const _: () = assert!(offset_of!(Req, private_data) == mad::HEADER_LEN + 140);

/// A REQ as it stands on the wire. "Local" is the side that sends it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Req {
    header: Header,
    local_comm_id: U32,
    reserved4: u8,
    vendor_id: [u8; 3],
    service_id: U64,
    local_ca_guid: U64,
    reserved24: U32,
    local_qkey: U32,
    local_qpn: [u8; 3],
    responder_resources: u8,
    local_eecn: [u8; 3],
    initiator_depth: u8,
    remote_eecn: [u8; 3],
    /// [`RemoteCmResponseTimeout`], [`TransportType`], [`FlowControl`].
    timeout_transport_flow: u8,
    starting_psn: [u8; 3],
    /// [`LocalCmResponseTimeout`], [`RetryCount`].
    timeout_retry: u8,
    pkey: U16,
    /// [`PathMtu`], [`RdcExists`], [`RnrRetryCount`].
    mtu_rdc_rnr: u8,
    /// [`MaxCmRetries`], [`Srq`], [`ExtendedTransportType`].
    retries_srq_transport: u8,
    primary: ReqPath,
    /// The alternate path; its last byte has [`SapSupported`], too.
    alternate: ReqPath,
    private_data: [u8; PRIVATE_DATA_LEN],
}

/// `43[0]`, 5 bits.
type RemoteCmResponseTimeout = Field<Timeout, 0, 5>;
/// `43[5]`, 2 bits.
type TransportType = Field<u8, 5, 2>;
/// `43[7]`, 1 bit.
type FlowControl = Field<bool, 7, 1>;
/// `47[0]`, 5 bits.
type LocalCmResponseTimeout = Field<Timeout, 0, 5>;
/// `47[5]`, 3 bits.
type RetryCount = Field<u8, 5, 3>;
/// `50[0]`, 4 bits.
type PathMtu = Field<Mtu, 0, 4>;
/// `50[4]`, 1 bit.
type RdcExists = Field<bool, 4, 1>;
/// `50[5]`, 3 bits.
type RnrRetryCount = Field<u8, 5, 3>;
/// `51[0]`, 4 bits.
type MaxCmRetries = Field<u8, 0, 4>;
/// `51[4]`, 1 bit.
type Srq = Field<bool, 4, 1>;
/// `51[5]`, 3 bits.
type ExtendedTransportType = Field<u8, 5, 3>;
/// `139[5]`, 1 bit.
type SapSupported = Field<bool, 5, 1>;

impl Req {
    /// The header, with the transaction identifier that the answer shall have.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The communication identifier that the sender gave the connection.
    pub const fn local_comm_id(&self) -> CommId {
        CommId::new(self.local_comm_id.get())
    }

    /// The service that is asked for.
    pub const fn service_id(&self) -> ServiceId {
        ServiceId::new(self.service_id.get())
    }

    /// Identity of the sender's channel adapter.
    pub const fn local_ca_guid(&self) -> u64 {
        self.local_ca_guid.get()
    }

    /// Key of the sender's datagram queue pair.
    pub const fn local_qkey(&self) -> u32 {
        self.local_qkey.get()
    }

    /// The sender's queue pair.
    pub const fn local_qpn(&self) -> Qpn {
        Qpn::from_bytes(self.local_qpn)
    }

    /// The number of RDMA reads and atomics that the sender can answer at a time.
    pub const fn responder_resources(&self) -> u8 {
        self.responder_resources
    }

    /// The number of RDMA reads and atomics that the sender wants to have outstanding at a time.
    pub const fn initiator_depth(&self) -> u8 {
        self.initiator_depth
    }

    /// The sender's end-to-end context, numbered as queue pairs are.
    pub const fn local_eecn(&self) -> Qpn {
        Qpn::from_bytes(self.local_eecn)
    }

    /// The receiver's end-to-end context, numbered as queue pairs are.
    pub const fn remote_eecn(&self) -> Qpn {
        Qpn::from_bytes(self.remote_eecn)
    }

    /// Within which time the receiver of the REQ shall answer.
    pub fn remote_cm_response_timeout(&self) -> Timeout {
        RemoteCmResponseTimeout::get(self.timeout_transport_flow)
    }

    /// The kind of connection.
    pub fn transport(&self) -> Transport {
        Transport::from_types(
            TransportType::get(self.timeout_transport_flow),
            ExtendedTransportType::get(self.retries_srq_transport),
        )
    }

    /// Returns whether the sender's channel adapter does end-to-end flow control.
    pub fn flow_control(&self) -> bool {
        FlowControl::get(self.timeout_transport_flow)
    }

    /// Number of the first packet that the sender will send.
    pub const fn starting_psn(&self) -> Psn {
        Psn::from_bytes(self.starting_psn)
    }

    /// Within which time the sender of the REQ will answer.
    pub fn local_cm_response_timeout(&self) -> Timeout {
        LocalCmResponseTimeout::get(self.timeout_retry)
    }

    /// The number of retries of a packet that is not acknowledged, 3 bits.
    pub fn retry_count(&self) -> u8 {
        RetryCount::get(self.timeout_retry)
    }

    /// The partition of the connection.
    pub const fn pkey(&self) -> Pkey {
        Pkey::new(self.pkey.get())
    }

    /// The largest packet on the primary path.
    pub fn path_mtu(&self) -> Mtu {
        PathMtu::get(self.mtu_rdc_rnr)
    }

    /// Returns whether the reliable datagram channel exists already.
    pub fn rdc_exists(&self) -> bool {
        RdcExists::get(self.mtu_rdc_rnr)
    }

    /// The number of retries of a packet that finds no receive buffer: 3 bits, 7 is without
    /// limit.
    pub fn rnr_retry_count(&self) -> u8 {
        RnrRetryCount::get(self.mtu_rdc_rnr)
    }

    /// The number of retries of a connection manager's message that is not answered, 4 bits.
    pub fn max_cm_retries(&self) -> u8 {
        MaxCmRetries::get(self.retries_srq_transport)
    }

    /// Returns whether the sender's queue pair receives by a shared receive queue.
    pub fn srq(&self) -> bool {
        Srq::get(self.retries_srq_transport)
    }

    /// The path that the connection begins on.
    pub fn primary(&self) -> Path {
        self.primary.get()
    }

    /// The path to migrate to, if one is given, which it is by a local LID.
    pub fn alternate(&self) -> Option<Path> {
        self.alternate.is_present().then(|| self.alternate.get())
    }

    /// Returns whether the sender takes suggestions of an alternate path.
    pub fn sap_supported(&self) -> bool {
        SapSupported::get(self.alternate.tail.ack_timeout)
    }

    /// The vendor's options that the sender offers.
    pub const fn ece(&self) -> Ece {
        Ece::new(self.vendor_id, &self.header)
    }

    /// The private data of the sender's consumer.
    pub const fn private_data(&self) -> &[u8; PRIVATE_DATA_LEN] {
        &self.private_data
    }
}

/// The parameters of a REQ, field by field. Values too large for a field lose their high bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters<'a> {
    /// [`Req::local_comm_id`].
    pub local_comm_id: CommId,
    /// [`Req::service_id`].
    pub service_id: ServiceId,
    /// [`Req::local_ca_guid`].
    pub local_ca_guid: u64,
    /// [`Req::local_qkey`].
    pub local_qkey: u32,
    /// [`Req::local_qpn`].
    pub local_qpn: Qpn,
    /// [`Req::responder_resources`].
    pub responder_resources: u8,
    /// [`Req::initiator_depth`].
    pub initiator_depth: u8,
    /// [`Req::local_eecn`].
    pub local_eecn: Qpn,
    /// [`Req::remote_eecn`].
    pub remote_eecn: Qpn,
    /// [`Req::remote_cm_response_timeout`].
    pub remote_cm_response_timeout: Timeout,
    /// [`Req::transport`].
    pub transport: Transport,
    /// [`Req::flow_control`].
    pub flow_control: bool,
    /// [`Req::starting_psn`].
    pub starting_psn: Psn,
    /// [`Req::local_cm_response_timeout`].
    pub local_cm_response_timeout: Timeout,
    /// [`Req::retry_count`].
    pub retry_count: u8,
    /// [`Req::pkey`].
    pub pkey: Pkey,
    /// [`Req::path_mtu`].
    pub path_mtu: Mtu,
    /// [`Req::rdc_exists`].
    pub rdc_exists: bool,
    /// [`Req::rnr_retry_count`].
    pub rnr_retry_count: u8,
    /// [`Req::max_cm_retries`].
    pub max_cm_retries: u8,
    /// [`Req::srq`].
    pub srq: bool,
    /// [`Req::primary`].
    pub primary: Path,
    /// [`Req::alternate`]. Without a local LID it is none to the receiver.
    pub alternate: Option<Path>,
    /// [`Req::sap_supported`].
    pub sap_supported: bool,
    /// [`Req::ece`].
    pub ece: Ece,
    /// [`Req::private_data`]. Shorter than the message's it is followed by zeros.
    pub private_data: &'a [u8],
}

impl Parameters<'_> {
    /// Builds a REQ with this transaction identifier.
    ///
    /// # Errors
    ///
    /// [`BuildError`] if there is too much private data; nothing is written then.
    pub fn build<'b>(&self, tid: u64, out: impl Into<mad::Blank<'b>>) -> Result<(), BuildError> {
        Kind::Req.check_private_data(self.private_data)?;
        let out = Kind::Req.begin(out, tid, self.ece.options);
        let req: &mut Req = zerocopy::transmute_mut!(out);
        self.set_identity(req);
        self.set_service(req);
        req.primary.set(&self.primary);
        if let Some(alternate) = &self.alternate {
            req.alternate.set(alternate);
        }
        SapSupported::set(&mut req.alternate.tail.ack_timeout, self.sap_supported);
        build::place(self.private_data, &mut req.private_data);
        Ok(())
    }

    /// Writes the identity of the request: identifiers, service, keys and queue pair.
    fn set_identity(&self, req: &mut Req) {
        req.local_comm_id.set(self.local_comm_id.get());
        req.vendor_id = self.ece.vendor();
        req.service_id.set(self.service_id.get());
        req.local_ca_guid.set(self.local_ca_guid);
        req.local_qkey.set(self.local_qkey);
        req.local_qpn = self.local_qpn.bytes();
        req.local_eecn = self.local_eecn.bytes();
        req.remote_eecn = self.remote_eecn.bytes();
        req.pkey.set(self.pkey.get());
    }

    /// Writes the properties that the connection is to have.
    fn set_service(&self, req: &mut Req) {
        req.responder_resources = self.responder_resources;
        req.initiator_depth = self.initiator_depth;
        req.starting_psn = self.starting_psn.bytes();

        let (service, extended) = self.transport.types();
        let byte = &mut req.timeout_transport_flow;
        RemoteCmResponseTimeout::set(byte, self.remote_cm_response_timeout);
        TransportType::set(byte, service);
        FlowControl::set(byte, self.flow_control);
        let byte = &mut req.timeout_retry;
        LocalCmResponseTimeout::set(byte, self.local_cm_response_timeout);
        RetryCount::set(byte, self.retry_count);
        let byte = &mut req.mtu_rdc_rnr;
        PathMtu::set(byte, self.path_mtu);
        RdcExists::set(byte, self.rdc_exists);
        RnrRetryCount::set(byte, self.rnr_retry_count);
        let byte = &mut req.retries_srq_transport;
        MaxCmRetries::set(byte, self.max_cm_retries);
        Srq::set(byte, self.srq);
        ExtendedTransportType::set(byte, extended);
    }
}
