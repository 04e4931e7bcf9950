// SPDX-License-Identifier: GPL-2.0-only

//! Sending datagrams (IBTA 9.8.3).

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::AddressVector,
    counters::Counter,
    offload,
    port::Path,
    queue_pair::{
        Attributes,
        Chain,
        Datagram,
        QueuePair,
        Type, //
    }, //
};
use crate::{
    net::frame::{
        Frame,
        VL15, //
    },
    provider::memory::Segment,
    transport::work::Status,
    wire::{
        bth::Transport,
        deth::Deth,
        lid::Lid,
        mad,
        opcode::Opcode,
        packet::{
            Extension,
            Layout,
            Outgoing,
            Packet, //
        },
        psn::Psn,
        qpn::Qpn,
        smp::attribute, //
    }, //
};

/// The Q_Key of the general services (IBTA 10.2.5.3... 9.2.6.2).
pub(super) const GSI_QKEY: u32 = 0x8001_0000;

/// The bit of a request by which the sender's own Q_Key is meant (IBTA 10.2.5).
const OWN_QKEY: u32 = 0x8000_0000;

impl Datagram<'_> {
    /// The Q_Key that it carries.
    pub(super) fn qkey(&self, attributes: &Attributes) -> u32 {
        if self.to.qkey & OWN_QKEY == 0 {
            self.to.qkey
        } else {
            attributes.qkey
        }
    }
}

impl QueuePair {
    /// Sends a datagram and returns the status of the send. A packet that gets lost counts as
    /// success, as its sender cannot know.
    pub(super) fn send_datagram(
        self: &Arc<Self>,
        chain: &mut Chain,
        datagram: &Datagram<'_>,
    ) -> Status {
        let length = datagram.header.len() + datagram.length;
        let hca = &self.hca;
        let port = chain.attributes.port;
        let pkey_index = match self.kind {
            Type::Gsi => datagram.to.pkey_index,
            _ => chain.attributes.pkey_index,
        };
        let Chain {
            attributes,
            path,
            far,
            ..
        } = chain;
        let Some(path) = self.path(port, path, datagram.to.address, pkey_index) else {
            return Status::LocalOperation;
        };
        // The answer to a command that takes the link down leaves after that is done.
        let is_open = match self.kind {
            Type::Smi => path.up || hca.is_open_to_management(port),
            // A P_Key that names no partition lets nobody take the packet (IBTA 10.9.3).
            _ => path.up && path.active && path.pkey.is_valid(),
        };
        // A datagram that is too long for the link does not leave, and its sender is not told
        // (C10-93.1.1).
        if !is_open || length > path.mtu {
            hca.counters.add(port, Counter::SendDropped, 1);
            return Status::Success;
        }
        if hca.is_in_memory(port) && self.hand_over(attributes, far, datagram, path) {
            return Status::Success;
        }
        self.send_packet(attributes, datagram, path, length)
    }

    /// Sends a datagram as a packet, to a cable or the port itself.
    #[inline(never)]
    fn send_packet(
        self: &Arc<Self>,
        attributes: &Attributes,
        datagram: &Datagram<'_>,
        path: &Path,
        length: usize,
    ) -> Status {
        let packet = self.packet(attributes, datagram, path);
        match self.build(&packet, datagram, length) {
            Ok(frame) => {
                let answers = self.kind == Type::Smi && frame.as_ref().is_some_and(is_answer);
                self.route(attributes.port, &packet, path, frame);
                if answers {
                    // A command that disables the link may be what it answers.
                    self.hca.close(attributes.port);
                }
                Status::Success
            }
            Err(status) => status,
        }
    }

    /// Returns the path to an address. It is looked up once for datagrams in a row that have the
    /// same handle.
    #[inline]
    fn path<'a>(
        &self,
        port: u8,
        known: &'a mut Option<(*const AddressVector, u16, Path)>,
        address: &AddressVector,
        pkey_index: u16,
    ) -> Option<&'a Path> {
        // Compared by place, not content: a consumer keeps a handle until its sends are complete.
        let is_it = |(place, index, _): &(*const AddressVector, u16, Path)| {
            core::ptr::eq(*place, address) && *index == pkey_index
        };
        if !known.as_ref().is_some_and(is_it) {
            let path = self.hca.ports.path(port, address, pkey_index)?;
            *known = Some((address, pkey_index, path));
        }
        known.as_ref().map(|(_, _, path)| path)
    }

    /// The headers of a datagram.
    fn packet(&self, attributes: &Attributes, datagram: &Datagram<'_>, path: &Path) -> Outgoing {
        let to = &datagram.to;
        let qkey = if self.kind == Type::Gsi && to.qkey & OWN_QKEY != 0 {
            GSI_QKEY
        } else {
            datagram.qkey(attributes)
        };
        let management = self.kind == Type::Smi;
        Outgoing {
            vl: if management { VL15 } else { 0 },
            sl: to.address.service_level,
            dlid: to.address.lid,
            // A directed route that begins here: the port may not have a LID yet.
            slid: if to.address.lid == Lid::PERMISSIVE {
                Lid::PERMISSIVE
            } else {
                path.slid
            },
            global: path.global,
            transport: Transport {
                opcode: Opcode::datagram(datagram.immediate.is_some()),
                solicited: datagram.solicited,
                migrated: true,
                pad: 0,
                pkey: path.pkey,
                destination: to.queue_pair,
                ack_request: false,
                psn: Psn::wrapping(self.hca.ports.next_psn()),
            },
            extension: Extension {
                deth: Some(Deth::new(if management { 0 } else { qkey }, self.number)),
                immediate: datagram.immediate,
                ..Extension::default()
            },
        }
    }

    /// Puts a datagram together. Without memory it is lost.
    fn build(
        &self,
        packet: &Outgoing,
        datagram: &Datagram<'_>,
        length: usize,
    ) -> Result<Option<Frame>, Status> {
        let layout = packet.layout(length).map_err(|_| Status::LocalLength)?;
        let Ok(mut frame) = Frame::new(layout.total()) else {
            return Ok(None);
        };
        let Ok(bytes) = frame.bytes_mut() else {
            return Ok(None);
        };
        if packet.write(length, bytes).is_err() {
            return Err(Status::LocalOperation);
        }
        let room = bytes
            .get_mut(layout.headers..layout.headers + length)
            .ok_or(Status::LocalLength)?;
        let (header, data) = room
            .split_at_mut_checked(datagram.header.len())
            .ok_or(Status::LocalLength)?;
        header.copy_from_slice(datagram.header);
        if datagram.inline {
            gather_inline(datagram.segments, data);
        } else {
            self.hca
                .regions
                .gather(self.domain, datagram.segments, datagram.from, data)
                .map_err(|_| Status::LocalProtection)?;
        }
        if datagram.checksum {
            offload::fill(room);
        }
        fill_up(bytes, &layout);
        frame.leave_open();
        Ok(Some(frame))
    }

    /// Sends a frame where its headers say.
    fn route(self: &Arc<Self>, port: u8, packet: &Outgoing, path: &Path, frame: Option<Frame>) {
        let hca = &self.hca;
        let Some(frame) = frame else {
            hca.counters.add(port, Counter::SendDropped, 1);
            return;
        };
        hca.counters.sent(port, packet.dlid, frame.bytes().len());
        if path.own {
            hca.loop_back(port, frame);
            return;
        }
        // Others on this port may be in the group too.
        if packet.transport.destination == Qpn::MULTICAST {
            if let Ok(copy) = frame.try_clone() {
                hca.loop_back(port, copy);
            }
        }
        hca.transmit(port, frame);
    }
}

/// Returns whether a packet of management is an answer about a port, as that to a command which
/// disables the link.
fn is_answer(frame: &Frame) -> bool {
    let Ok(packet) = Packet::parse(frame.bytes()) else {
        return false;
    };
    let header = mad::Header::ref_from_prefix(packet.payload);
    header.is_ok_and(|(header, _)| {
        header.method() & mad::METHOD_RESPONSE != 0 && header.attribute() == attribute::PORT_INFO
    })
}

/// Reads segments that are the kernel's memory whatever their keys say.
pub(super) fn gather_inline(segments: &[Segment], room: &mut [u8]) {
    let mut rest = room;
    for segment in segments {
        let Some((now, later)) = rest.split_at_mut_checked(segment.len()) else {
            return;
        };
        segment.inline_memory().read(now);
        rest = later;
    }
}

/// Fills the last word of the payload.
pub(super) fn fill_up(bytes: &mut [u8], layout: &Layout) {
    if layout.pad == 0 {
        return;
    }
    if let Some(pad) = bytes.get_mut(layout.headers + layout.payload..layout.icrc()) {
        pad.fill(0);
    }
}
