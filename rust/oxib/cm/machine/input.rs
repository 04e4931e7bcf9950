// SPDX-License-Identifier: GPL-2.0-only

//! The inputs of a machine: the parameters of the consumer's calls, and the fields that it reads
//! of the messages that come.

use super::wire::cm::comm_id::CommId;
use super::wire::cm::mra::Acknowledged;
use super::wire::cm::mtu::Mtu;
use super::wire::cm::reason::Reason;
use super::wire::cm::rej::Rejected;
use super::wire::pkey::Pkey;
use super::wire::psn::Psn;
use super::wire::qpn::Qpn;

/// The kinds of queue pairs that the protocol connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpType {
    /// Reliable connection (RC), both ends.
    Rc,
    /// Unreliable connection (UC), both ends.
    Uc,
    /// Extended reliable connection, initiator: the active end.
    XrcIni,
    /// Extended reliable connection, target: the passive end.
    XrcTgt,
}

/// Time-out and number of the tries of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Time that the consumer waits for the answer to one try, in milliseconds.
    pub timeout: u32,
    /// Number of tries that the consumer allows after the first. The machine waits for the time
    /// of all tries together, but repeats the request at other times.
    pub retries: u8,
}

/// Fields of a REQ that the consumer sends, as far as the machine keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReqParam {
    /// Kind of the queue pair.
    pub qp_type: QpType,
    /// Our queue pair number.
    pub qpn: Qpn,
    /// First sequence number that the peer is to send with.
    pub psn: Psn,
    /// P_Key of the partition.
    pub pkey: Pkey,
    /// MTU of the path.
    pub mtu: Mtu,
    /// RDMA reads and atomics that the peer may have outstanding with us.
    pub responder_resources: u8,
    /// RDMA reads and atomics that we may have outstanding with the peer.
    pub initiator_depth: u8,
    /// Retries of the transport.
    pub retry_count: u8,
    /// Packet life time of the primary path, as an exponent.
    pub packet_life_time: u8,
    /// Packet life time of the alternate path, if there is one.
    pub alternate_life_time: Option<u8>,
    /// Time in which the peer has to answer, as an exponent (IBTA 12.7).
    pub remote_response_timeout: u8,
    /// Time in which we have to answer the peer, as an exponent (IBTA 12.7).
    pub local_response_timeout: u8,
    /// Tries after the first (IBTA 12.7).
    pub retries: u8,
    /// Time until the REQ is repeated first, in milliseconds; see [`Machine::send_req`].
    ///
    /// [`Machine::send_req`]: super::Machine::send_req
    pub rto: u32,
}

/// Fields of a REP that the consumer sends, as far as the machine keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepParam {
    /// Our queue pair number.
    pub qpn: Qpn,
    /// First sequence number that the peer is to send with.
    pub psn: Psn,
    /// RDMA reads and atomics that the peer may have outstanding with us.
    pub responder_resources: u8,
    /// RDMA reads and atomics that we may have outstanding with the peer.
    pub initiator_depth: u8,
    /// Time until the REP is repeated first, in milliseconds.
    pub rto: u32,
}

/// Parameters of a SIDR_REQ that the consumer sends, as far as the machine keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SidrReqParam {
    /// Time-out and number of the tries.
    pub patience: Patience,
    /// Time until the SIDR_REQ is repeated first, in milliseconds.
    pub rto: u32,
}

/// Fields of a REQ that the machine reads. The depths are named as the sender names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Req {
    /// The sender's name for the connection.
    pub sender: CommId,
    /// Kind of *our* queue pair: [`QpType::XrcTgt`] where the sender's is an XRC initiator.
    pub qp_type: QpType,
    /// The sender's queue pair.
    pub qpn: Qpn,
    /// First sequence number that we are to send with.
    pub psn: Psn,
    /// P_Key of the partition.
    pub pkey: Pkey,
    /// MTU of the path.
    pub mtu: Mtu,
    /// RDMA reads and atomics that we may have outstanding with the sender.
    pub responder_resources: u8,
    /// RDMA reads and atomics that the sender may have outstanding with us.
    pub initiator_depth: u8,
    /// Retries of the transport.
    pub retry_count: u8,
    /// Retries of the transport when the receiver is not ready.
    pub rnr_retry_count: u8,
    /// Time in which we have to answer, as an exponent (IBTA 12.7).
    pub remote_response_timeout: u8,
    /// Time in which the sender will answer us, as an exponent (IBTA 12.7).
    pub local_response_timeout: u8,
    /// Tries after the first (IBTA 12.7).
    pub max_retries: u8,
    /// Local ACK timeout of the primary path (IBTA 12.7).
    pub ack_timeout: u8,
    /// Local ACK timeout of the alternate path, if there is one.
    pub alternate_ack_timeout: Option<u8>,
}

/// Fields of a REP that the machine reads. The depths are named as the sender names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rep {
    /// The sender's name for the connection.
    pub sender: CommId,
    /// The sender's queue pair.
    pub qpn: Qpn,
    /// The sender's end-to-end context, where an XRC target has its queue pair number.
    pub eecn: Qpn,
    /// First sequence number that we are to send with.
    pub psn: Psn,
    /// RDMA reads and atomics that we may have outstanding with the sender.
    pub responder_resources: u8,
    /// RDMA reads and atomics that the sender may have outstanding with us.
    pub initiator_depth: u8,
    /// Retries of the transport when the receiver is not ready.
    pub rnr_retry_count: u8,
    /// The sender's ACK delay, as an exponent (IBTA 12.7).
    pub target_ack_delay: u8,
}

/// A message for the machine, with the fields that it reads. The shell has looked the machine up:
/// by the identifier that the message names as the receiver's, or by the tables of remote names.
///
/// `sender` is the sender's name for the connection; the machine compares it with what it knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// A REQ that is found to be the one, once more, that this identifier was made for.
    DuplicateReq,
    /// Message receipt acknowledgement (IBTA 12.6.6).
    Mra {
        /// The sender's name for the connection.
        sender: CommId,
        /// The message that is acknowledged.
        of: Acknowledged,
        /// Time that the sender needs, as an exponent.
        service_timeout: u8,
    },
    /// A rejection (IBTA 12.6.7).
    Rej {
        /// The sender's name for the connection.
        sender: CommId,
        /// The message that is rejected.
        of: Rejected,
        /// The reason of the rejection.
        reason: Reason,
    },
    /// Reply to a REQ (IBTA 12.6.8).
    Rep(Rep),
    /// Ready to use (IBTA 12.6.9).
    Rtu {
        /// The sender's name for the connection.
        sender: CommId,
    },
    /// Request to disconnect (IBTA 12.6.10).
    Dreq {
        /// The sender's name for the connection.
        sender: CommId,
        /// The queue pair of the receiver.
        qpn: Qpn,
    },
    /// Reply to a DREQ (IBTA 12.6.11).
    Drep {
        /// The sender's name for the connection.
        sender: CommId,
    },
    /// A proposal of an alternate path (IBTA 12.8.1).
    Lap {
        /// The sender's name for the connection.
        sender: CommId,
        /// Local ACK timeout of the alternate path.
        ack_timeout: u8,
    },
    /// Alternate path response (IBTA 12.8.2).
    Apr {
        /// The sender's name for the connection.
        sender: CommId,
    },
    /// A SIDR_REQ that is found to be the one, once more, that this identifier was made for.
    DuplicateSidrReq,
    /// Service ID resolution response (IBTA 12.11.2).
    SidrRep,
}
