// SPDX-License-Identifier: GPL-2.0-only

//! Identities of softib's nodes in a subnet, and the packets that they report.

use crate::{
    fabric::node::Identity,
    wire::{
        gid::Gid,
        grh::Addresses,
        packet::Packet,
        smp::{
            node::{
                NodeType,
                DESCRIPTION_LEN, //
            },
            notice::Culprit, //
        }, //
    }, //
};

/// The vendor: an unassigned number, of 24 bits, as soft-RoCE has it. Programs take 0 for a
/// mistake.
pub(crate) const VENDOR: u32 = 0xff_ffff;
/// The device, by the vendor's numbers.
pub(crate) const DEVICE: u16 = 1;

/// A description in the form of the wire.
fn description(text: &[u8]) -> [u8; DESCRIPTION_LEN] {
    let mut description = [0; DESCRIPTION_LEN];
    for (place, byte) in description.iter_mut().zip(text) {
        *place = *byte;
    }
    description
}

/// Returns the identity of a node of softib in a subnet.
pub(crate) fn identity(node_type: NodeType, guid: u64, name: &[u8]) -> Identity {
    Identity {
        node_type,
        node_guid: guid,
        system_guid: guid,
        device: DEVICE,
        revision: 1,
        vendor: VENDOR,
        description: description(name),
    }
}

/// Returns the description of a packet with a wrong key, as a trap reports it.
pub(crate) fn culprit(packet: &Packet<'_>, key: u32) -> Culprit {
    let link = packet.head.lrh.link();
    let none = Addresses {
        sgid: Gid::ZERO,
        dgid: Gid::ZERO,
    };
    let addresses = packet.head.grh.map_or(none, |grh| grh.addresses());
    let destination = packet.transport.destination;
    Culprit {
        slid: link.slid,
        dlid: link.dlid,
        key,
        sl: link.sl,
        source: packet
            .extension
            .deth
            .map_or(destination, |deth| deth.source()),
        destination,
        sgid: addresses.sgid,
        dgid: addresses.dgid,
    }
}
