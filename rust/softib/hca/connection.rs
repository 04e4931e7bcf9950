// SPDX-License-Identifier: GPL-2.0-only

//! Connected queue pairs: the shell around the transport layer's protocol.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    completion::{
        Completion,
        CompletionQueue,
        Event,
        Extra,
        Kind,
        Origin, //
    },
    counters::Counter,
    datagram,
    port::Path,
    queue_pair::{
        Attributes,
        QueuePair, //
    },
    receive::{
        Held,
        ReceiveQueue, //
    },
    region::Need,
    send::{
        Local,
        SendQueue, //
    }, //
};
use crate::{
    net::frame::Frame,
    provider::memory::Segment,
    transport::{
        self,
        packet::{
            Atomic,
            Outgoing,
            Payload,
            Remote,
            Tail, //
        },
        shell::{
            Access,
            Denied,
            Memory,
            Output,
            Queues,
            Reports, //
        },
        work::{
            self,
            Delivery,
            Received,
            Status,
            Work, //
        }, //
    },
    wire::{
        bth::Transport,
        opcode::{
            Opcode,
            Service, //
        },
        packet, //
    }, //
};

/// Packets that are sent in one go; then others have a turn.
pub(super) const BURST: usize = 32;

/// Sends, and as many receives, that are flushed in one go: the lock is held for that time.
const FLUSHES: usize = 128;

/// State that only connected queue pairs have.
pub(crate) struct Connection {
    pub(super) transport: transport::QueuePair,
    pub(super) sends: SendQueue,
    held: Held,
    /// The time at which the timer is set to go off, in nanoseconds; `None` if it is not set.
    pub(super) armed: Option<u64>,
}

impl Connection {
    /// Makes one in the reset state.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(
        service: transport::attributes::Service,
        shared: bool,
        sends: SendQueue,
        receive_segments: u32,
    ) -> Result<KBox<Self>> {
        let connection = Self {
            transport: transport::QueuePair::new(service, shared),
            sends,
            held: Held::new(receive_segments.max(1) as usize)?,
            armed: None,
        };
        Ok(KBox::new(connection, GFP_KERNEL_ACCOUNT)?)
    }
}

/// The reason for which a connection sends or flushes no more for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pause {
    /// The turn of others: it has sent a burst, or flushed many requests.
    Turn,
    /// Another CPU has not sent an earlier burst of it yet. That CPU resumes it.
    Backlog,
    /// Many packets of connections wait where its own would go.
    Crowd,
}

/// Actions that are left for when the queue pair is unlocked.
#[must_use]
pub(super) struct Outcome<'a> {
    pub(super) sent: Event<'a>,
    pub(super) received: Event<'a>,
    /// Asynchronous events, a bit each.
    pub(super) events: u32,
    /// The reason for which packets are left, if there was no room for some, or requests that are
    /// to be flushed.
    pub(super) left: Option<Pause>,
    /// Whether receives were taken out of the shared queue.
    pub(super) took_shared: bool,
}

/// The shell that the protocol runs in, made of a locked queue pair.
pub(super) struct Shell<'l, 'a> {
    pair: &'a QueuePair,
    attributes: &'l Attributes,
    receives: &'l mut ReceiveQueue,
    sends: &'l mut SendQueue,
    held: &'l mut Held,
    armed: &'l mut Option<u64>,
    /// The path by which packets leave, or `None` if they cannot; looked up when the first one
    /// does.
    path: Option<Option<Path>>,
    emitted: usize,
    flushed: usize,
    /// The reason for which no packet is to leave, or `None` if one may; looked up when the first
    /// one is to leave.
    pause: Option<Option<Pause>>,
    /// The origin of the packet that is being taken.
    origin: Origin,
    outcome: Outcome<'a>,
}

impl<'l, 'a> Shell<'l, 'a> {
    /// The protocol and its shell.
    pub(super) fn new(
        pair: &'a QueuePair,
        attributes: &'l Attributes,
        receives: &'l mut ReceiveQueue,
        connection: &'l mut Connection,
        origin: Origin,
    ) -> (&'l mut transport::QueuePair, Self) {
        let shell = Self {
            pair,
            attributes,
            receives,
            sends: &mut connection.sends,
            held: &mut connection.held,
            armed: &mut connection.armed,
            path: None,
            emitted: 0,
            flushed: 0,
            pause: None,
            origin,
            outcome: Outcome {
                sent: Event::NONE,
                received: Event::NONE,
                events: 0,
                left: None,
                took_shared: false,
            },
        };
        (&mut connection.transport, shell)
    }

    /// Returns the actions that are left to do.
    pub(super) fn into_outcome(self) -> Outcome<'a> {
        self.outcome
    }

    /// Checks whether the packet that came in is one of the peer's.
    ///
    /// # Errors
    ///
    /// The counter of the cause for which it is none.
    pub(super) fn admit(&mut self, packet: &packet::Packet<'_>) -> Result<(), Counter> {
        let attributes = self.attributes;
        let (port, pkey_index) = (attributes.port, attributes.pkey_index);
        let ports = &self.pair.hca.ports;
        if self.origin.port != port {
            return Err(Counter::WrongQueuePair);
        }
        if !ports.pkey_matches(port, pkey_index, packet.transport.pkey) {
            return Err(Counter::WrongPkey);
        }
        // Without an address it takes none, as the protocol sees by its state.
        let peer = attributes.address.as_ref();
        if peer.is_some_and(|peer| !ports.is_from(port, peer, &packet.head)) {
            return Err(Counter::WrongSource);
        }
        self.origin.pkey_index = pkey_index;
        Ok(())
    }

    /// Notes that the timer went off.
    pub(super) fn timer_rang(&mut self) {
        *self.armed = None;
    }

    fn complete(
        &self,
        queue: &'a Arc<CompletionQueue>,
        completion: &Completion,
        solicited: bool,
    ) -> Event<'a> {
        queue.push(completion, solicited)
    }

    fn completion(&self, request: u64, status: Status, kind: Kind, length: u32) -> Completion {
        Completion {
            request,
            status,
            kind,
            length,
            extra: Extra::Nothing,
            source: self.attributes.destination,
            origin: self.origin,
            queue_pair: self.pair.handle,
        }
    }

    /// Looks up how packets leave.
    fn path(&mut self) -> Option<&Path> {
        if self.path.is_none() {
            let address = self.attributes.address.as_ref();
            self.path = Some(address.and_then(|address| {
                let attributes = self.attributes;
                let ports = &self.pair.hca.ports;
                let path = ports.path(attributes.port, address, attributes.pkey_index);
                // A P_Key that names no partition lets nobody take the packet (IBTA 10.9.3).
                path.filter(|path| path.active && path.pkey.is_valid())
            }));
        }
        self.path.as_ref()?.as_ref()
    }

    /// Returns the reason for which all packets of this run are to wait; `None` if they may leave.
    fn reason_to_pause(&mut self) -> Option<Pause> {
        if let Some(pause) = self.pause {
            return pause;
        }
        let to_self = self.path().is_some_and(|path| path.own);
        let pair = self.pair;
        let waiting = match to_self {
            true => pair.own_frames.len(),
            false => pair.frames.len(),
        };
        let has_backlog = waiting >= BURST as u32;
        let (port, destination) = (self.attributes.port, self.attributes.destination);
        let pause = pair
            .hca
            .reason_to_pause(port, to_self, destination, has_backlog);
        self.pause = Some(pause);
        pause
    }

    /// Builds the packet around its payload.
    fn build(&mut self, packet: &Outgoing) -> Result<Option<(Frame, bool)>, Denied> {
        let attributes = self.attributes;
        let service = self.service();
        let Some(path) = self.path() else {
            return Ok(None);
        };
        let own = path.own;
        let headers = packet::Outgoing {
            vl: 0,
            sl: path.service_level,
            dlid: path.dlid,
            slid: path.slid,
            global: path.global,
            transport: Transport {
                opcode: Opcode {
                    service,
                    operation: packet.body.operation(),
                },
                solicited: packet.solicited,
                migrated: true,
                pad: 0,
                pkey: path.pkey,
                destination: attributes.destination,
                ack_request: packet.ack_request,
                psn: packet.psn,
            },
            extension: packet.body.extension(),
        };
        let length = packet.payload.length() as usize;
        let Ok(layout) = headers.layout(length) else {
            return Ok(None);
        };
        let Ok(mut frame) = Frame::new(layout.total()) else {
            return Ok(None);
        };
        let Ok(bytes) = frame.bytes_mut() else {
            return Ok(None);
        };
        if headers.write(length, bytes).is_err() {
            return Ok(None);
        }
        if let Some(room) = bytes.get_mut(layout.headers..layout.headers + length) {
            self.gather(&packet.payload, room)?;
        }
        datagram::fill_up(bytes, &layout);
        frame.leave_open();
        frame.set_connected();
        Ok(Some((frame, own)))
    }

    fn service(&self) -> Service {
        match self.pair.kind {
            super::queue_pair::Type::Unreliable => Service::Uc,
            _ => Service::Rc,
        }
    }

    /// Reads a packet's payload.
    fn gather(&self, payload: &Payload, room: &mut [u8]) -> Result<(), Denied> {
        let regions = &self.pair.hca.regions;
        let domain = self.pair.domain;
        match payload {
            Payload::None => Ok(()),
            Payload::Send { index, offset, .. } => {
                self.sends
                    .gather(*index, *offset as usize, room, regions, domain)
            }
            Payload::Remote(remote) => {
                let length = room.len();
                let mut rest = room;
                // The region is found by the bits of its key that never change. `access` compares
                // the whole key, which a registration may have changed since.
                regions.find(remote.rkey).ok_or(Denied)?.access(
                    remote.rkey,
                    domain,
                    remote.address,
                    length,
                    Need::RemoteRead,
                    |part| {
                        let (now, later) = core::mem::take(&mut rest).split_at_mut(part.len());
                        part.read(now);
                        rest = later;
                    },
                )
            }
        }
    }
}

impl Memory for Shell<'_, '_> {
    fn scatter_send(&mut self, index: u32, offset: u32, bytes: &[u8]) -> Result<(), Denied> {
        let segments = self.sends.segments(index);
        self.pair
            .hca
            .regions
            .scatter(self.pair.domain, segments, offset as usize, bytes)
    }

    fn scatter_receive(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Denied> {
        let segments = self.held.segments();
        let domain = self.pair.receive_domain();
        self.pair
            .hca
            .regions
            .scatter(domain, segments, offset as usize, bytes)
    }

    fn check(&mut self, remote: &Remote, access: Access) -> Result<(), Denied> {
        let need = match access {
            Access::Write => Need::RemoteWrite,
            Access::Read => Need::RemoteRead,
            Access::Atomic => Need::RemoteAtomic,
        };
        // As for `gather`: the check compares the whole key.
        let region = self.pair.hca.regions.find(remote.rkey).ok_or(Denied)?;
        let length = remote.length as usize;
        region.check(remote.rkey, self.pair.domain, remote.address, length, need)
    }

    fn write(&mut self, rkey: u32, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        let region = self.pair.hca.regions.find(rkey).ok_or(Denied)?;
        let mut rest = bytes;
        let need = Need::RemoteWrite;
        region.access(rkey, self.pair.domain, address, bytes.len(), need, |part| {
            let (now, later) = rest.split_at(part.len());
            part.write(now);
            rest = later;
        })
    }

    fn atomic(&mut self, rkey: u32, address: u64, operation: Atomic) -> Result<u64, Denied> {
        let region = self.pair.hca.regions.find(rkey).ok_or(Denied)?;
        let mut original = None;
        let need = Need::RemoteAtomic;
        region.access(
            rkey,
            self.pair.domain,
            address,
            size_of::<u64>(),
            need,
            |word| original = word.update(|old| operation.apply(old)),
        )?;
        original.ok_or(Denied)
    }

    fn invalidate(&mut self, rkey: u32) -> Result<(), Denied> {
        let region = self.pair.hca.regions.find(rkey).ok_or(Denied)?;
        region.invalidate(self.pair.domain, rkey)
    }
}

impl Queues for Shell<'_, '_> {
    fn send(&mut self, index: u32) -> Option<Work> {
        self.sends.work(index)
    }

    fn local(&mut self, index: u32) -> Result<(), Denied> {
        match self.sends.local(index) {
            Some(Local::Register(region, wanted)) => region.register(self.pair.domain, &wanted),
            Some(Local::Invalidate(key)) => self.invalidate(key),
            Some(Local::Nothing) => Ok(()),
            None => Err(Denied),
        }
    }

    fn take_receive(&mut self) -> Option<u32> {
        let taken = match &self.pair.shared {
            Some(shared) => {
                self.outcome.took_shared = true;
                shared.take(self.held)
            }
            None => self.receives.take(self.held),
        };
        let room = |segments: &[Segment]| {
            let lengths = segments.iter().map(Segment::len);
            // More than a message can have is as good as that.
            u32::try_from(lengths.sum::<usize>()).unwrap_or(u32::MAX)
        };
        taken.then(|| room(self.held.segments()))
    }
}

impl Output for Shell<'_, '_> {
    fn room(&mut self) -> bool {
        let pause = match self.emitted < BURST {
            true => self.reason_to_pause(),
            false => Some(Pause::Turn),
        };
        self.outcome.left = self.outcome.left.or(pause);
        pause.is_none()
    }

    fn is_full(&self) -> bool {
        self.outcome.left.is_some()
    }

    fn emit(&mut self, packet: &Outgoing) -> Result<(), Denied> {
        // Lost packets count, too: while the port is down a long answer is not made under the
        // lock at once.
        self.emitted += 1;
        let built = self.build(packet)?;
        let (hca, port) = (&self.pair.hca, self.attributes.port);
        let Some((frame, own)) = built else {
            hca.counters.add(port, Counter::SendDropped, 1);
            return Ok(());
        };
        hca.counters.add(port, Counter::Sent, 1);
        let length = frame.bytes().len() as u64;
        hca.counters.add(port, Counter::SentBytes, length);
        if own {
            self.pair.own_frames.push(frame);
        } else {
            self.pair.frames.push(frame);
        }
        Ok(())
    }
}

impl Reports for Shell<'_, '_> {
    fn may_flush(&mut self) -> bool {
        if self.flushed == FLUSHES {
            // Whatever keeps packets waiting, a flush goes on.
            self.outcome.left = Some(Pause::Turn);
            return false;
        }
        self.flushed += 1;
        true
    }

    fn sent(&mut self, index: u32, status: Option<Status>) {
        let Some((request, kind, length)) = self.sends.release(index) else {
            return;
        };
        let Some(status) = status else {
            return;
        };
        let completion = self.completion(request, status, kind, length);
        let event = self.complete(&self.pair.send_queue, &completion, false);
        // Raised without the queue pair's lock, once for all the completions of a step.
        self.outcome.sent.merge(event);
    }

    fn received(&mut self, received: &Received) {
        let kind = match received.delivery {
            Delivery::Send(_) => Kind::Receive,
            Delivery::Write(_) => Kind::ReceiveWrite,
        };
        let mut completion =
            self.completion(self.held.request, received.status, kind, received.length);
        completion.extra = match received.delivery {
            Delivery::Send(Tail::Plain) => Extra::Nothing,
            Delivery::Send(Tail::Immediate(data)) | Delivery::Write(data) => Extra::Immediate(data),
            Delivery::Send(Tail::Invalidate(key)) => Extra::Invalidated(key),
        };
        let event = self.complete(&self.pair.receive_queue, &completion, received.solicited);
        self.outcome.received.merge(event);
    }

    fn event(&mut self, event: work::Event) {
        self.outcome.events |= bit(event);
    }
}

/// The bit of an event.
pub(super) fn bit(event: work::Event) -> u32 {
    1 << match event {
        work::Event::CommunicationEstablished => 0,
        work::Event::SendQueueDrained => 1,
        work::Event::LastWqeReached => 2,
        work::Event::RequestError => 3,
        work::Event::AccessError => 4,
    }
}

/// All events, in the order of their bits.
pub(super) const EVENTS: [work::Event; 5] = [
    work::Event::CommunicationEstablished,
    work::Event::SendQueueDrained,
    work::Event::LastWqeReached,
    work::Event::RequestError,
    work::Event::AccessError,
];
