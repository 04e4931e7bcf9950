// SPDX-License-Identifier: GPL-2.0-only

//! Why an attempt to connect was given up.

use core::ffi::CStr;
use core::fmt;

/// The reason in a REJ (IBTA 12.6.7.2). What came from the wire may be one that has no name here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(u16);

impl Reason {
    /// The receiver of the REQ has no queue pair left.
    pub const NO_QP: Reason = Reason(1);
    /// The receiver has no end-to-end context left.
    pub const NO_EEC: Reason = Reason(2);
    /// The receiver lacks another resource.
    pub const NO_RESOURCES: Reason = Reason(3);
    /// The sender waited for an answer in vain.
    pub const TIMEOUT: Reason = Reason(4);
    /// The request is not supported.
    pub const UNSUPPORTED: Reason = Reason(5);
    /// A communication identifier is not known.
    pub const INVALID_COMM_ID: Reason = Reason(6);
    /// The identifiers, numbers and service of the message do not belong together.
    pub const INVALID_COMM_INSTANCE: Reason = Reason(7);
    /// The receiver does not provide this service.
    pub const INVALID_SERVICE_ID: Reason = Reason(8);
    /// The service is not given by this transport.
    pub const INVALID_TRANSPORT_TYPE: Reason = Reason(9);
    /// The message belongs to a connection that is no more.
    pub const STALE_CONNECTION: Reason = Reason(10);
    /// The reliable datagram channel does not exist.
    pub const RDC_NOT_EXIST: Reason = Reason(11);
    /// The primary path's GID is not the receiver's.
    pub const INVALID_GID: Reason = Reason(12);
    /// The primary path's LID is not the receiver's.
    pub const INVALID_LID: Reason = Reason(13);
    /// The primary path's service level is not acceptable.
    pub const INVALID_SL: Reason = Reason(14);
    /// The primary path's traffic class is not acceptable.
    pub const INVALID_TRAFFIC_CLASS: Reason = Reason(15);
    /// The primary path's hop limit is not acceptable.
    pub const INVALID_HOP_LIMIT: Reason = Reason(16);
    /// The primary path's packet rate is not acceptable.
    pub const INVALID_PACKET_RATE: Reason = Reason(17);
    /// The alternate path's GID is not the receiver's.
    pub const INVALID_ALTERNATE_GID: Reason = Reason(18);
    /// The alternate path's LID is not the receiver's.
    pub const INVALID_ALTERNATE_LID: Reason = Reason(19);
    /// The alternate path's service level is not acceptable.
    pub const INVALID_ALTERNATE_SL: Reason = Reason(20);
    /// The alternate path's traffic class is not acceptable.
    pub const INVALID_ALTERNATE_TRAFFIC_CLASS: Reason = Reason(21);
    /// The alternate path's hop limit is not acceptable.
    pub const INVALID_ALTERNATE_HOP_LIMIT: Reason = Reason(22);
    /// The alternate path's packet rate is not acceptable.
    pub const INVALID_ALTERNATE_PACKET_RATE: Reason = Reason(23);
    /// Another connection manager is to be asked; the additional information says which.
    pub const CM_REDIRECT: Reason = Reason(24);
    /// Another port is to be asked; the additional information says which.
    pub const PORT_REDIRECT: Reason = Reason(25);
    /// The packets of the path are too large.
    pub const INVALID_MTU: Reason = Reason(26);
    /// The REP's sender can answer too few RDMA reads and atomics at a time.
    pub const INSUFFICIENT_RESPONDER_RESOURCES: Reason = Reason(27);
    /// The consumer does not want the connection; it says why in its own way.
    pub const CONSUMER_DEFINED: Reason = Reason(28);
    /// The count of retries without a receive buffer is not acceptable.
    pub const INVALID_RNR_RETRY: Reason = Reason(29);
    /// The sender's communication identifier is in use already.
    pub const DUPLICATE_LOCAL_COMM_ID: Reason = Reason(30);
    /// The class version is not supported.
    pub const INVALID_CLASS_VERSION: Reason = Reason(31);
    /// The primary path's flow label is not acceptable.
    pub const INVALID_FLOW_LABEL: Reason = Reason(32);
    /// The alternate path's flow label is not acceptable.
    pub const INVALID_ALTERNATE_FLOW_LABEL: Reason = Reason(33);
    /// The vendor's options are not supported.
    pub const VENDOR_OPTION_NOT_SUPPORTED: Reason = Reason(35);

    /// Takes a number in host byte order.
    pub const fn new(number: u16) -> Reason {
        Reason(number)
    }

    /// The number in host byte order.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The reason in words, which C can read; `None` for a number that is not defined.
    pub const fn text(self) -> Option<&'static CStr> {
        Some(match self {
            Reason::NO_QP => c"no queue pair",
            Reason::NO_EEC => c"no end-to-end context",
            Reason::NO_RESOURCES => c"no resources",
            Reason::TIMEOUT => c"no answer in time",
            Reason::UNSUPPORTED => c"unsupported request",
            Reason::INVALID_COMM_ID => c"invalid communication ID",
            Reason::INVALID_COMM_INSTANCE => c"invalid communication instance",
            Reason::INVALID_SERVICE_ID => c"invalid service ID",
            Reason::INVALID_TRANSPORT_TYPE => c"invalid transport type",
            Reason::STALE_CONNECTION => c"stale connection",
            Reason::RDC_NOT_EXIST => c"no such reliable datagram channel",
            Reason::INVALID_GID => c"invalid GID",
            Reason::INVALID_LID => c"invalid LID",
            Reason::INVALID_SL => c"invalid service level",
            Reason::INVALID_TRAFFIC_CLASS => c"invalid traffic class",
            Reason::INVALID_HOP_LIMIT => c"invalid hop limit",
            Reason::INVALID_PACKET_RATE => c"invalid packet rate",
            Reason::INVALID_ALTERNATE_GID => c"invalid alternate GID",
            Reason::INVALID_ALTERNATE_LID => c"invalid alternate LID",
            Reason::INVALID_ALTERNATE_SL => c"invalid alternate service level",
            Reason::INVALID_ALTERNATE_TRAFFIC_CLASS => c"invalid alternate traffic class",
            Reason::INVALID_ALTERNATE_HOP_LIMIT => c"invalid alternate hop limit",
            Reason::INVALID_ALTERNATE_PACKET_RATE => c"invalid alternate packet rate",
            Reason::CM_REDIRECT => c"redirected to another connection manager",
            Reason::PORT_REDIRECT => c"redirected to another port",
            Reason::INVALID_MTU => c"invalid path MTU",
            Reason::INSUFFICIENT_RESPONDER_RESOURCES => c"insufficient responder resources",
            Reason::CONSUMER_DEFINED => c"rejected by the consumer",
            Reason::INVALID_RNR_RETRY => c"invalid RNR retry count",
            Reason::DUPLICATE_LOCAL_COMM_ID => c"duplicate local communication ID",
            Reason::INVALID_CLASS_VERSION => c"invalid class version",
            Reason::INVALID_FLOW_LABEL => c"invalid flow label",
            Reason::INVALID_ALTERNATE_FLOW_LABEL => c"invalid alternate flow label",
            Reason::VENDOR_OPTION_NOT_SUPPORTED => c"unsupported vendor option",
            _ => return None,
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text().and_then(|text| text.to_str().ok()) {
            Some(text) => f.write_str(text),
            None => write!(f, "reason {}", self.0),
        }
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({self})", self.0)
    }
}
