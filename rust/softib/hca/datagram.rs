// SPDX-License-Identifier: GPL-2.0-only

//! Datagrams (IBTA 9.8.3): sending and receiving them, and the way of all packets into the device.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::{
        Completion,
        Extra,
        Kind,
        Origin, //
    },
    counters::Counter,
    offload,
    port::Way,
    queue_pair::{
        Attributes,
        Datagram,
        QueuePair,
        State,
        Type, //
    },
    receive::ReceiveQueue,
    Hca, //
};
use crate::{
    net::{
        crc::crc32,
        frame::Frame, //
    },
    provider::memory::Segment,
    transport::work::Status,
    wire::{
        bth::Transport,
        deth::Deth,
        grh,
        immdt::ImmDt,
        lid::Lid,
        opcode::{
            Opcode,
            Service, //
        },
        packet::{
            self,
            Extension,
            Layout,
            Outgoing,
            Packet, //
        },
        psn::Psn,
        qpn::Qpn, //
    }, //
};

/// The Q_Key of the general services (IBTA 10.2.5.3... 9.2.6.2).
const GSI_QKEY: u32 = 0x8001_0000;

/// In a request: the sender's own Q_Key is meant (IBTA 10.2.5).
const OWN_QKEY: u32 = 0x8000_0000;

/// The virtual lane of subnet management.
const VL15: u8 = 15;

impl QueuePair {
    /// Sends a datagram and says how that ended. A packet that gets lost has ended well, as its sender cannot know.
    pub(super) fn send_datagram(
        self: &Arc<Self>,
        attributes: &Attributes,
        datagram: &Datagram<'_>,
    ) -> Status {
        let length = datagram.header.len() + datagram.length;
        let hca = &self.hca;
        let port = attributes.port;
        let pkey_index = match self.kind {
            Type::Gsi => datagram.to.pkey_index,
            _ => attributes.pkey_index,
        };
        let way = hca.ports.way(port, datagram.to.address, pkey_index);
        let Some(way) = way else {
            return Status::LocalOperation;
        };
        let management = self.kind == Type::Smi;
        // One that is too long for the link does not leave, and its sender is not told (C10-93.1.1).
        if !way.up || (!way.active && !management) || length > way.mtu {
            hca.counters.add(port, Counter::SendDropped, 1);
            return Status::Success;
        }
        let packet = self.packet(attributes, datagram, &way);
        match self.build(&packet, datagram, length) {
            Ok(frame) => {
                self.route(port, &packet, &way, frame);
                Status::Success
            }
            Err(status) => status,
        }
    }

    /// The headers of a datagram.
    fn packet(&self, attributes: &Attributes, datagram: &Datagram<'_>, way: &Way) -> Outgoing {
        let to = &datagram.to;
        let qkey = if to.qkey & OWN_QKEY == 0 {
            to.qkey
        } else if self.kind == Type::Gsi {
            GSI_QKEY
        } else {
            attributes.qkey
        };
        let management = self.kind == Type::Smi;
        Outgoing {
            vl: if management { VL15 } else { 0 },
            sl: to.address.service_level,
            dlid: to.address.lid,
            slid: if to.address.lid == Lid::PERMISSIVE {
                Lid::PERMISSIVE
            } else {
                way.slid
            },
            global: way.global,
            transport: Transport {
                opcode: Opcode::datagram(datagram.immediate.is_some()),
                solicited: datagram.solicited,
                migrated: true,
                pad: 0,
                pkey: way.pkey,
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
        finish(bytes, &layout, packet.global.is_some());
        Ok(Some(frame))
    }

    /// Sends a frame where its headers say.
    fn route(self: &Arc<Self>, port: u8, packet: &Outgoing, way: &Way, frame: Option<Frame>) {
        let hca = &self.hca;
        let Some(frame) = frame else {
            hca.counters.add(port, Counter::SendDropped, 1);
            return;
        };
        hca.counters.sent(port, packet.dlid, frame.bytes().len());
        if way.own {
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

/// Reads segments that are the kernel's memory whatever their keys say.
fn gather_inline(segments: &[Segment], room: &mut [u8]) {
    let mut rest = room;
    for segment in segments {
        let Some((now, later)) = rest.split_at_mut_checked(segment.len()) else {
            return;
        };
        segment.memory().read(now);
        rest = later;
    }
}

/// Fills the last word of the payload and writes the CRC.
pub(super) fn finish(bytes: &mut [u8], layout: &Layout, global: bool) {
    if let Some(pad) = bytes.get_mut(layout.headers + layout.payload..layout.icrc()) {
        pad.fill(0);
    }
    // The packet has all its headers.
    let _ = packet::seal(bytes, global, crc32);
}

impl Hca {
    /// Takes a packet that came in at a port. In soft interrupt context, under RCU.
    pub(super) fn receive(self: &Arc<Self>, port: u8, frame: &Frame) {
        if let Err(cause) = self.accept(port, frame.bytes()) {
            self.counters.add(port, cause, 1);
        }
    }

    fn accept(self: &Arc<Self>, port: u8, frame: &[u8]) -> Result<(), Counter> {
        let packet = Packet::parse(frame).map_err(|_| Counter::Malformed)?;
        if !packet.head.is_intact(crc32) {
            return Err(Counter::BadIcrc);
        }
        let management = packet.transport.destination == Qpn::from_bytes([0; 3]);
        let link = packet.head.lrh.link();
        self.counters
            .received(port, link.dlid, packet.head.bytes.len());
        if management != (link.vl == VL15) {
            return Err(Counter::WrongQueuePair);
        }
        self.ports.accepts(port, link.dlid, management)?;
        if packet.transport.destination == Qpn::MULTICAST {
            return self.accept_multicast(port, &packet);
        }
        let pair = self
            .queue_pairs
            .find(port, packet.transport.destination)
            .ok_or(Counter::WrongQueuePair)?;
        match packet.transport.opcode.service {
            Service::Ud => pair.receive_datagram(port, &packet),
            service => pair.receive_connected(port, service, &packet),
        }
    }

    /// Gives a multicast packet to all its members. They post receives of their own.
    fn accept_multicast(self: &Arc<Self>, port: u8, packet: &Packet<'_>) -> Result<(), Counter> {
        let grh = packet.head.grh.ok_or(Counter::Malformed)?;
        let group = grh.addresses().dgid;
        let deth = packet.extension.deth.ok_or(Counter::Malformed)?;
        let link = packet.head.lrh.link();
        let own = self.ports.is_own(port, link.slid);
        let mut members = 0;
        let mut from = 0;
        while let Some((pair, next)) = self.groups.next(from, &group, link.dlid) {
            from = next;
            // Not to who sent it.
            if own && pair.number == deth.source() {
                continue;
            }
            members += 1;
            if let Err(cause) = pair.receive_datagram(port, packet) {
                self.counters.add(port, cause, 1);
            }
        }
        if members == 0 && !own {
            return Err(Counter::NoMember);
        }
        Ok(())
    }
}

impl QueuePair {
    /// Takes a datagram, if it may come here and a receive waits for it. In soft interrupt context.
    fn receive_datagram(self: &Arc<Self>, port: u8, packet: &Packet<'_>) -> Result<(), Counter> {
        if self.kind.is_connected() {
            return Err(Counter::WrongQueuePair);
        }
        let (state, attributes) = self.query();
        if state < State::ReadyToReceive || state == State::Error || attributes.port != port {
            return Err(Counter::WrongQueuePair);
        }
        let deth = packet.extension.deth.ok_or(Counter::WrongQueuePair)?;
        let pkey_index = self.check_keys(port, &attributes, packet, &deth)?;
        let link = packet.head.lrh.link();
        let mut completion = Completion {
            request: 0,
            status: Status::Success,
            kind: Kind::Receive,
            length: 0,
            extra: match packet.extension.immediate {
                Some(data) => Extra::Immediate(ImmDt::from_bytes(data.bytes())),
                None => Extra::Nothing,
            },
            source: deth.source(),
            origin: Origin {
                lid: link.slid.get(),
                service_level: link.sl,
                path_bits: self.hca.ports.path_bits(port, link.dlid),
                pkey_index,
                port,
                global: packet.head.grh.is_some(),
                checksum: self.hca.options.checksum && offload::is_right(packet.payload),
            },
            queue_pair: self.handle,
        };
        match &self.shared {
            Some(shared) => {
                shared.with(|receives| self.fill(receives, packet, &mut completion))?;
                shared.raise_limit();
            }
            None => self
                .inner
                .with(|inner| self.fill(&mut inner.receives, packet, &mut completion))?,
        }
        self.receive_queue
            .push(completion, packet.transport.solicited)
            .raise();
        Ok(())
    }

    /// Checks the partition and the Q_Key, and answers with the P_Key's place.
    fn check_keys(
        &self,
        port: u8,
        attributes: &Attributes,
        packet: &Packet<'_>,
        deth: &Deth,
    ) -> Result<u16, Counter> {
        let ports = &self.hca.ports;
        let pkey = packet.transport.pkey;
        let (place, qkey) = match self.kind {
            Type::Smi => return Ok(0),
            Type::Gsi => (ports.find_pkey(port, pkey), GSI_QKEY),
            _ => {
                let matches = ports.pkey_matches(port, attributes.pkey_index, pkey);
                (matches.then_some(attributes.pkey_index), attributes.qkey)
            }
        };
        let Some(place) = place else {
            self.hca.bad_pkey(port, packet);
            return Err(Counter::WrongPkey);
        };
        if deth.qkey() != qkey {
            self.hca.bad_qkey(port, packet, deth);
            return Err(Counter::WrongQkey);
        }
        Ok(place)
    }

    /// Writes a datagram into the oldest receive, after the 40 bytes of its global route header.
    fn fill(
        &self,
        receives: &mut ReceiveQueue,
        packet: &Packet<'_>,
        completion: &mut Completion,
    ) -> Result<(), Counter> {
        let Some((request, segments)) = receives.front() else {
            return Err(Counter::NoReceive);
        };
        let regions = &self.hca.regions;
        completion.request = request;
        completion.length = (grh::LEN + packet.payload.len()) as u32;
        let room: usize = segments.iter().map(|segment| segment.len()).sum();
        if room < completion.length as usize {
            completion.status = Status::LocalLength;
        } else {
            let header = packet.head.grh.map_or(Ok(()), |grh| {
                regions.scatter(self.domain, segments, 0, &grh.bytes())
            });
            let data = regions.scatter(self.domain, segments, grh::LEN, packet.payload);
            if header.and(data).is_err() {
                completion.status = Status::LocalProtection;
            }
        }
        receives.advance();
        Ok(())
    }
}
