// SPDX-License-Identifier: GPL-2.0-only

//! A host that is a queue pair's shell: queues, memory and what was reported are plain vectors.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::{
    HashMap,
    VecDeque, //
};

use oxib_softib_transport::attributes::{
    Mtu,
    Receiving,
    RemoteAccess,
    Sending,
    Service, //
};
use oxib_softib_transport::packet::{
    Atomic,
    Body,
    Incoming,
    Outgoing,
    Payload,
    Remote,
    Tail, //
};
use oxib_softib_transport::shell::{
    Access,
    Denied,
    Memory,
    Output,
    Queues,
    Reports, //
};
use oxib_softib_transport::time::Time;
use oxib_softib_transport::work::{
    Delivery,
    Event,
    Local,
    Operation,
    Received,
    Status,
    Target,
    Work, //
};
use oxib_softib_transport::{
    QueuePair,
    Verdict, //
};
use oxib_wire::psn::Psn;

/// A packet on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    pub body: Body,
    pub psn: Psn,
    pub ack_request: bool,
    pub solicited: bool,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            body: self.body,
            psn: self.psn,
            ack_request: self.ack_request,
            solicited: self.solicited,
            payload: &self.payload,
        }
    }
}

/// A send with its memory.
#[derive(Clone, Debug)]
pub struct Post {
    pub work: Work,
    pub buffer: Vec<u8>,
    /// Whether its local key is wrong.
    pub denied: bool,
}

/// A receive with its memory.
#[derive(Clone, Debug)]
pub struct Receive {
    pub buffer: Vec<u8>,
    pub denied: bool,
}

/// Memory for the peer.
#[derive(Clone, Debug)]
pub struct Region {
    pub base: u64,
    pub bytes: Vec<u8>,
    pub access: RemoteAccess,
}

impl Region {
    fn part(&mut self, address: u64, length: usize, access: Access) -> Result<&mut [u8], Denied> {
        let allowed = match access {
            Access::Write => self.access.write,
            Access::Read => self.access.read,
            Access::Atomic => self.access.atomic,
        };
        let start = address.checked_sub(self.base).ok_or(Denied)? as usize;
        let end = start.checked_add(length).ok_or(Denied)?;
        self.bytes
            .get_mut(start..end)
            .filter(|_| allowed)
            .ok_or(Denied)
    }
}

pub const ALL: RemoteAccess = RemoteAccess {
    write: true,
    read: true,
    atomic: true,
};

/// All but the queue pair.
#[derive(Default, Debug)]
pub struct World {
    pub sends: Vec<Post>,
    /// The number of sends that are over.
    pub retired: u32,
    pub receives: VecDeque<Receive>,
    pub held: Option<Receive>,
    pub regions: HashMap<u32, Region>,
    /// The number of packets that may still be emitted, if there is a limit.
    pub room: Option<u32>,
    /// The number of sends and of receives that may still be flushed, if there is a limit.
    pub flushes: Option<u32>,
    pub out: Vec<Frame>,
    /// Index and status of each completion.
    pub completions: Vec<(u32, Status)>,
    pub received: Vec<(Received, Vec<u8>)>,
    pub events: Vec<Event>,
    /// Indices of the local operations that were done.
    pub locals: Vec<u32>,
    pub atomics: u32,
    pub invalidated: Vec<u32>,
}

impl World {
    fn region(&mut self, rkey: u32) -> Result<&mut Region, Denied> {
        self.regions.get_mut(&rkey).ok_or(Denied)
    }

    fn gather(&mut self, payload: &Payload) -> Result<Vec<u8>, Denied> {
        match payload {
            Payload::None => Ok(Vec::new()),
            Payload::Send {
                index,
                offset,
                length,
            } => {
                assert!(*length > 0 && *index >= self.retired);
                let post = &self.sends[*index as usize];
                if post.denied {
                    return Err(Denied);
                }
                let (start, end) = (*offset as usize, (*offset + *length) as usize);
                Ok(post.buffer[start..end].to_vec())
            }
            Payload::Remote(remote) => {
                assert!(remote.length > 0);
                let region = self.region(remote.rkey)?;
                let bytes = region.part(remote.address, remote.length as usize, Access::Read)?;
                Ok(bytes.to_vec())
            }
        }
    }
}

impl Memory for World {
    fn scatter_send(&mut self, index: u32, offset: u32, bytes: &[u8]) -> Result<(), Denied> {
        assert!(index >= self.retired && !bytes.is_empty());
        let post = &mut self.sends[index as usize];
        if post.denied {
            return Err(Denied);
        }
        post.buffer[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn scatter_receive(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Denied> {
        let held = self.held.as_mut().expect("a receive is held");
        assert!(!bytes.is_empty());
        if held.denied {
            return Err(Denied);
        }
        held.buffer[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn check(&mut self, remote: &Remote, access: Access) -> Result<(), Denied> {
        assert!(remote.length > 0);
        let region = self.region(remote.rkey)?;
        region
            .part(remote.address, remote.length as usize, access)
            .map(|_| ())
    }

    fn write(&mut self, rkey: u32, address: u64, bytes: &[u8]) -> Result<(), Denied> {
        assert!(!bytes.is_empty());
        let region = self.region(rkey)?;
        region
            .part(address, bytes.len(), Access::Write)?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn atomic(&mut self, rkey: u32, address: u64, operation: Atomic) -> Result<u64, Denied> {
        let word = self.region(rkey)?.part(address, 8, Access::Atomic)?;
        let original = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        word.copy_from_slice(&operation.apply(original).to_ne_bytes());
        self.atomics += 1;
        Ok(original)
    }

    fn invalidate(&mut self, rkey: u32) -> Result<(), Denied> {
        self.regions.remove(&rkey).ok_or(Denied)?;
        self.invalidated.push(rkey);
        Ok(())
    }
}

impl Queues for World {
    fn send(&mut self, index: u32) -> Option<Work> {
        assert!(index >= self.retired, "send {index} is over");
        self.sends.get(index as usize).map(|post| post.work)
    }

    fn local(&mut self, index: u32) -> Result<(), Denied> {
        self.locals.push(index);
        if self.sends[index as usize].denied {
            Err(Denied)
        } else {
            Ok(())
        }
    }

    fn take_receive(&mut self) -> Option<u32> {
        assert!(self.held.is_none(), "one receive at a time");
        self.held = self.receives.pop_front();
        self.held.as_ref().map(|held| held.buffer.len() as u32)
    }
}

impl Output for World {
    fn room(&mut self) -> bool {
        self.room != Some(0)
    }

    fn is_full(&self) -> bool {
        self.room == Some(0)
    }

    fn emit(&mut self, packet: &Outgoing) -> Result<(), Denied> {
        let payload = self.gather(&packet.payload)?;
        assert_eq!(payload.len(), packet.payload.length() as usize);
        if let Some(room) = &mut self.room {
            *room = room.checked_sub(1).expect("there is room");
        }
        // Through the headers and back.
        let body = Body::of(packet.body.operation(), &packet.body.extension());
        assert_eq!(body, Some(packet.body));
        self.out.push(Frame {
            body: packet.body,
            psn: packet.psn,
            ack_request: packet.ack_request,
            solicited: packet.solicited,
            payload,
        });
        Ok(())
    }
}

impl Reports for World {
    fn may_flush(&mut self) -> bool {
        match &mut self.flushes {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn sent(&mut self, index: u32, status: Option<Status>) {
        assert_eq!(index, self.retired, "sends end in order");
        self.retired += 1;
        if let Some(status) = status {
            self.completions.push((index, status));
        } else {
            assert!(!self.sends[index as usize].work.signalled);
        }
    }

    fn received(&mut self, received: &Received) {
        let held = self.held.take().expect("a receive is held");
        let data = match received.delivery {
            Delivery::Send(_) => held.buffer[..received.length as usize].to_vec(),
            Delivery::Write(_) => Vec::new(),
        };
        self.received.push((*received, data));
    }

    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// A queue pair with its world.
#[derive(Debug)]
pub struct Host {
    pub qp: QueuePair,
    pub world: World,
    pub now: Time,
}

/// Attributes of both ends, with the numbers of their first packets.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub receiving: Receiving,
    pub sending: Sending,
}

impl Terms {
    pub fn new(mtu: Mtu) -> Terms {
        Terms {
            receiving: Receiving {
                mtu,
                psn: Psn::wrapping(0x10),
                access: ALL,
                max_reads: 4,
                min_rnr_timer: 12,
            },
            sending: Sending {
                psn: Psn::wrapping(0x10),
                timeout: 14,
                retry_count: 7,
                rnr_retry: 7,
                max_reads: 4,
            },
        }
    }
}

pub const MS: u64 = 1_000_000;

impl Host {
    /// Makes a host that is ready to receive.
    pub fn receiver(service: Service, shared: bool, terms: &Terms) -> Host {
        let mut qp = QueuePair::new(service, shared);
        qp.init().expect("reset to init");
        qp.ready_to_receive(terms.receiving).expect("init to RTR");
        Host {
            qp,
            world: World::default(),
            now: Time::new(0),
        }
    }

    /// Makes a host that is ready to send.
    pub fn new(service: Service, terms: &Terms) -> Host {
        let mut host = Host::receiver(service, false, terms);
        host.qp.ready_to_send(terms.sending).expect("RTR to RTS");
        host
    }

    pub fn rc() -> Host {
        Host::new(Service::Rc, &Terms::new(Mtu::Mtu256))
    }

    pub fn uc() -> Host {
        Host::new(Service::Uc, &Terms::new(Mtu::Mtu256))
    }

    /// Posts a send without running.
    pub fn post(&mut self, operation: Operation, buffer: Vec<u8>) -> &mut Post {
        self.world.sends.push(Post {
            work: Work {
                operation,
                length: buffer.len() as u32,
                signalled: true,
                solicited: false,
                fence: false,
            },
            buffer,
            denied: false,
        });
        self.world.sends.last_mut().expect("just pushed")
    }

    pub fn post_receive(&mut self, length: usize) -> &mut Receive {
        self.world.receives.push_back(Receive {
            buffer: vec![0; length],
            denied: false,
        });
        self.world.receives.back_mut().expect("just pushed")
    }

    /// Posts so many receives of that length.
    pub fn post_receives(&mut self, count: usize, length: usize) {
        for _ in 0..count {
            self.post_receive(length);
        }
    }

    /// Memory for the peer, of zeros.
    pub fn region(&mut self, rkey: u32, base: u64, length: usize) -> &mut Region {
        let region = Region {
            base,
            bytes: vec![0; length],
            access: ALL,
        };
        self.world
            .regions
            .entry(rkey)
            .insert_entry(region)
            .into_mut()
    }

    /// Runs, and takes what was emitted.
    pub fn run(&mut self) -> Vec<Frame> {
        self.qp.run(&mut self.world, self.now);
        std::mem::take(&mut self.world.out)
    }

    /// Takes a packet without answering.
    pub fn take(&mut self, frame: &Frame) -> Verdict {
        self.qp
            .receive(&mut self.world, &frame.incoming(), self.now)
    }

    /// Takes packets one by one, runs after the last, and takes what was emitted.
    pub fn receive(&mut self, frames: &[Frame]) -> Vec<Frame> {
        for frame in frames {
            self.take(frame);
        }
        self.run()
    }

    /// Waits until the timer, and takes what was emitted.
    pub fn wait(&mut self) -> Vec<Frame> {
        self.now = self.qp.due().expect("a timer");
        self.qp.timer(&mut self.world, self.now);
        std::mem::take(&mut self.world.out)
    }
}

/// Returns the status of each send that made a completion.
pub fn statuses(host: &Host) -> Vec<Status> {
    host.world
        .completions
        .iter()
        .map(|(_, status)| *status)
        .collect()
}

/// Returns the status of each receive.
pub fn received(host: &Host) -> Vec<Status> {
    host.world
        .received
        .iter()
        .map(|(received, _)| received.status)
        .collect()
}

/// Lets two hosts talk until they are silent.
pub fn talk(one: &mut Host, other: &mut Host) {
    let mut frames = one.run();
    for _ in 0..10_000 {
        let answers = other.receive(&frames);
        frames = one.receive(&answers);
        if frames.is_empty() && answers.is_empty() {
            return;
        }
    }
    panic!("they do not stop talking");
}

pub fn plain() -> Operation {
    Operation::Send(Tail::Plain)
}

pub fn target(rkey: u32, address: u64) -> Target {
    Target { address, rkey }
}

pub fn read(rkey: u32, address: u64) -> Operation {
    Operation::Read(target(rkey, address))
}

pub fn write(rkey: u32, address: u64) -> Operation {
    Operation::Write(target(rkey, address), None)
}

pub fn add(rkey: u32, address: u64, add: u64) -> Operation {
    Operation::Atomic(target(rkey, address), Atomic::FetchAdd { add })
}

pub fn swap(rkey: u32, address: u64, compare: u64, swap: u64) -> Operation {
    let atomic = Atomic::CompareSwap { compare, swap };
    Operation::Atomic(target(rkey, address), atomic)
}

pub fn invalidate() -> Operation {
    Operation::Local(Local::Invalidate)
}

/// Bytes of which no two neighbours at any packet's distance are the same.
pub fn pattern(seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        })
        .collect()
}
