// SPDX-License-Identifier: GPL-2.0-only

//! The way of packets into the device, and datagrams at its end (IBTA 9.6, 9.8.3).

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
    datagram::GSI_QKEY,
    offload,
    queue_pair::{
        Inner,
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
        frame::{
            Frame,
            VL15, //
        }, //
    },
    transport::work::Status,
    wire::{
        deth::Deth,
        grh,
        mad,
        opcode::Service,
        packet::Packet,
        qpn::Qpn, //
    }, //
};

impl Hca {
    /// Takes a packet that came in at a port. In soft interrupt context, under RCU.
    pub(super) fn receive(self: &Arc<Self>, port: u8, frame: &Frame) {
        if let Err(cause) = self.accept(port, frame) {
            self.counters.add(port, cause, 1);
        }
    }

    fn accept(self: &Arc<Self>, port: u8, frame: &Frame) -> Result<(), Counter> {
        let packet = Packet::parse(frame.bytes()).map_err(|_| Counter::Malformed)?;
        if !frame.is_own() && !packet.head.is_intact(crc32) {
            return Err(Counter::BadIcrc);
        }
        let management = packet.transport.destination == Qpn::from_bytes([0; 3]);
        // The port takes none that is longer (IBTA 7.7.8). A queue pair would use up a receive.
        if packet.payload.len() > self.options.largest_payload() {
            return Err(Counter::Malformed);
        }
        let link = packet.head.lrh.link();
        self.counters
            .received(port, link.dlid, packet.head.bytes.len());
        // Subnet management has VL 15 to itself.
        if management != (link.vl == VL15) {
            return Err(Counter::WrongQueuePair);
        }
        let path_bits = self.ports.accepts(port, link.dlid, management)?;
        let multicast = packet.transport.destination == Qpn::MULTICAST;
        // Packets to a group name it by the LID and by the queue pair number (IBTA 9.6.1).
        if multicast != link.dlid.is_multicast() {
            return Err(Counter::WrongQueuePair);
        }
        if multicast {
            return self.accept_multicast(port, &packet, path_bits);
        }
        let pair = self
            .queue_pairs
            .find(port, packet.transport.destination)
            .ok_or(Counter::WrongQueuePair)?;
        match packet.transport.opcode.service {
            Service::Ud => pair.receive_datagram(port, &packet, path_bits),
            service => pair.receive_connected(port, service, &packet, path_bits),
        }
    }

    /// Gives a multicast packet to all its members. They post receives of their own.
    fn accept_multicast(
        self: &Arc<Self>,
        port: u8,
        packet: &Packet<'_>,
        path_bits: u8,
    ) -> Result<(), Counter> {
        let grh = packet.head.grh.ok_or(Counter::Malformed)?;
        let group = grh.addresses().dgid;
        let deth = packet.extension.deth.ok_or(Counter::Malformed)?;
        let link = packet.head.lrh.link();
        let own = self.ports.is_own(port, link.slid);
        let mut members = 0;
        let mut from = 0;
        // The lock of the groups is not held while a member receives. One that stands behind a
        // member which is detached meanwhile may be missed, as any packet may be lost.
        while let Some((pair, next)) = self.groups.next(from, &group, link.dlid) {
            from = next;
            // The members at the other port are in the same table.
            if !pair.is_at(port) {
                continue;
            }
            if own && pair.number == deth.source() && !pair.own_multicast {
                continue;
            }
            members += 1;
            if let Err(cause) = pair.receive_datagram(port, packet, path_bits) {
                self.counters.add(port, cause, 1);
            }
        }
        // The sender's port gets each of its multicast packets back: no member is no loss there.
        if members == 0 && !own {
            return Err(Counter::NoMember);
        }
        Ok(())
    }
}

impl Inner {
    /// Returns whether a datagram that came in at a port may go on to the receive queue.
    pub(super) fn takes_datagrams(&self, port: u8) -> bool {
        let ready = self.state >= State::ReadyToReceive && self.state != State::Error;
        ready && self.attributes.port == port
    }
}

impl QueuePair {
    /// Returns whether this is the queue pair's port.
    fn is_at(&self, port: u8) -> bool {
        self.inner.with(|inner| inner.attributes.port == port)
    }

    /// Takes a datagram, if it may come here and a receive waits for it. In soft interrupt context.
    fn receive_datagram(
        self: &Arc<Self>,
        port: u8,
        packet: &Packet<'_>,
        path_bits: u8,
    ) -> Result<(), Counter> {
        if self.kind.is_connected() {
            return Err(Counter::WrongQueuePair);
        }
        let deth = packet.extension.deth.ok_or(Counter::WrongQueuePair)?;
        let mut completion = self.arrived(port, packet, &deth, path_bits);
        let taken = self.inner.with(|inner| {
            completion.origin.pkey_index = self.check(inner, port, packet, &deth)?;
            match &self.shared {
                // Lock order: that of the queue pair, then that of the shared queue.
                Some(shared) => {
                    shared.with(|receives| self.fill(receives, packet, &mut completion))?;
                }
                None => self.fill(&mut inner.receives, packet, &mut completion)?,
            }
            // Still locked: completions are in the order of the receives, and none comes once the
            // state does not allow it.
            let solicited = packet.transport.solicited;
            Ok(self.receive_queue.push(&completion, solicited))
        });
        match taken {
            Ok(_) => (),
            Err(Counter::WrongPkey) => self.hca.bad_pkey(port, packet),
            Err(Counter::WrongQkey) => self.hca.bad_qkey(port, packet, &deth),
            Err(_) => (),
        }
        let event = taken?;
        if let Some(shared) = &self.shared {
            shared.raise_limit();
        }
        event.raise();
        Ok(())
    }

    /// Returns the completion of a datagram, as far as the headers say it.
    fn arrived(&self, port: u8, packet: &Packet<'_>, deth: &Deth, path_bits: u8) -> Completion {
        let link = packet.head.lrh.link();
        Completion {
            request: 0,
            status: Status::Success,
            kind: Kind::Receive,
            length: 0,
            extra: match packet.extension.immediate {
                Some(data) => Extra::Immediate(data),
                None => Extra::Nothing,
            },
            source: deth.source(),
            origin: Origin {
                lid: link.slid.get(),
                service_level: link.sl,
                path_bits,
                pkey_index: 0,
                port,
                global: packet.head.grh.is_some(),
                checksum: self.hca.options.checksum && offload::is_right(packet.payload),
            },
            queue_pair: self.handle,
        }
    }

    /// Checks the state, the partition and the Q_Key. Returns the index of the P_Key.
    fn check(
        &self,
        inner: &Inner,
        port: u8,
        packet: &Packet<'_>,
        deth: &Deth,
    ) -> Result<u16, Counter> {
        if !inner.takes_datagrams(port) {
            return Err(Counter::WrongQueuePair);
        }
        // A management datagram has 256 bytes (IBTA 13.4.2). One with more fits in no receive. The
        // kernel takes a receive that ends in an error for one of a queue pair that is in error,
        // and posts no other in its place: after some hundred the port would be deaf. One with
        // less is for the kernel to judge.
        let managed = matches!(self.kind, Type::Smi | Type::Gsi);
        if managed && packet.payload.len() > mad::LEN {
            return Err(Counter::Malformed);
        }
        let ports = &self.hca.ports;
        let pkey = packet.transport.pkey;
        let own = inner.attributes.pkey_index;
        let (place, qkey) = match self.kind {
            Type::Smi => return Ok(0),
            Type::Gsi => (ports.find_pkey(port, pkey), GSI_QKEY),
            _ => {
                let matches = ports.pkey_matches(port, own, pkey);
                (matches.then_some(own), inner.attributes.qkey)
            }
        };
        let place = place.ok_or(Counter::WrongPkey)?;
        if deth.qkey() != qkey {
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
        let (regions, domain) = (&self.hca.regions, self.receive_domain());
        completion.request = request;
        // The receive has these 40 bytes before the data, with a global route header or without.
        completion.length = (grh::LEN + packet.payload.len()) as u32;
        let room: usize = segments.iter().map(|segment| segment.len()).sum();
        if room < completion.length as usize {
            completion.status = Status::LocalLength;
        } else {
            let header = packet.head.grh.map_or(Ok(()), |grh| {
                regions.scatter(domain, segments, 0, &grh.bytes())
            });
            let data = regions.scatter(domain, segments, grh::LEN, packet.payload);
            if header.and(data).is_err() {
                completion.status = Status::LocalProtection;
            }
        }
        receives.advance();
        Ok(())
    }
}
