// SPDX-License-Identifier: GPL-2.0-only

//! Management datagrams as packets: how an agent's answers and traps are written.

use super::wire::bth::Transport;
use super::wire::deth::Deth;
use super::wire::grh::Addresses;
use super::wire::icrc;
use super::wire::lid::Lid;
use super::wire::lrh::VL_MANAGEMENT;
use super::wire::mad;
use super::wire::opcode::Opcode;
use super::wire::packet::{
    Extension,
    Global,
    Outgoing,
    Packet,
    MAX_HEADERS, //
};
use super::wire::pkey::Pkey;
use super::wire::psn::Psn;
use super::wire::qpn::Qpn;

/// Room for any packet that an agent writes.
pub const OUT_LEN: usize = MAX_HEADERS + mad::LEN + icrc::LEN;

/// The key of the queue pair of the general services (IBTA 13.4.2).
const GENERAL_QKEY: u32 = 0x8001_0000;

/// The queue pair of subnet management.
pub(super) const SUBNET_QP: Qpn = Qpn::from_bytes([0, 0, 0]);

/// The queue pair of the general services.
pub(super) const GENERAL_QP: Qpn = Qpn::from_bytes([0, 0, 1]);

/// Hop limit of an answer: the largest, as the request has come through the same routers.
const HOP_LIMIT: u8 = 255;

/// A datagram between two queue pairs.
fn datagram(pkey: Pkey, from: Qpn, to: Qpn, qkey: u32) -> (Transport, Extension) {
    let transport = Transport {
        opcode: Opcode::datagram(false),
        solicited: false,
        migrated: false,
        pad: 0,
        pkey,
        destination: to,
        ack_request: false,
        psn: Psn::wrapping(0),
    };
    let extension = Extension {
        deth: Some(Deth::new(qkey, from)),
        ..Extension::default()
    };
    (transport, extension)
}

/// A packet of subnet management.
pub(super) fn subnet(slid: Lid, dlid: Lid) -> Outgoing {
    let (transport, extension) = datagram(Pkey::DEFAULT, SUBNET_QP, SUBNET_QP, 0);
    Outgoing {
        vl: VL_MANAGEMENT,
        sl: 0,
        dlid,
        slid,
        global: None,
        transport,
        extension,
    }
}

/// The answer to a packet of a general service, from that address. `None` if it is no datagram.
pub(super) fn general_answer(request: &Packet<'_>, slid: Lid) -> Option<Outgoing> {
    let link = request.head.lrh.link();
    let source = request.extension.deth?.source();
    let pkey = request.transport.pkey;
    let (transport, extension) = datagram(pkey, GENERAL_QP, source, GENERAL_QKEY);
    Some(Outgoing {
        vl: 0,
        sl: link.sl,
        dlid: link.slid,
        slid,
        global: request.head.grh.map(|grh| Global {
            traffic_class: grh.route().traffic_class,
            flow_label: grh.route().flow_label,
            hop_limit: HOP_LIMIT,
            addresses: Addresses {
                sgid: grh.addresses().dgid,
                dgid: grh.addresses().sgid,
            },
        }),
        transport,
        extension,
    })
}

/// Writes the packet with that datagram in it. The length, or `None` if it does not fit, which it
/// always does.
pub(super) fn write(
    outgoing: &Outgoing,
    datagram: &[u8; mad::LEN],
    out: &mut [u8; OUT_LEN],
) -> Option<usize> {
    outgoing.build(datagram, out, icrc::crc32).ok()
}
