// SPDX-License-Identifier: GPL-2.0-only

//! Any packet in any state, between calls, posts and times of any order: nothing overflows, no
//! memory is touched outside of what a work request or a region names, sends end once and in
//! order, receives are held one at a time, what is emitted can be written as headers, and a queue
//! pair that has failed or is told to flushes everything.

#![no_main]

// The tests of the crate have the same module.
#[path = "../../tests/host/mod.rs"]
mod host;

use host::{
    Frame,
    Host,
    Terms,
    ALL, //
};
use libfuzzer_sys::fuzz_target;
use oxib_softib_transport::attributes::{
    Mtu,
    Receiving,
    RemoteAccess,
    Sending,
    Service, //
};
use oxib_softib_transport::packet::{
    Acknowledgement,
    Atomic,
    Body,
    Remote,
    Request,
    Response,
    Tail, //
};
use oxib_softib_transport::time::Time;
use oxib_softib_transport::work::{
    Local,
    Operation,
    Target, //
};
use oxib_softib_transport::StateName;
use oxib_wire::aeth::Syndrome;
use oxib_wire::immdt::ImmDt;
use oxib_wire::psn::Psn;

const BASE: u64 = 0x1000;
const REGION: usize = 0x4000;

/// Choices of the fuzzer, byte by byte; zeros after their end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }

    fn bit(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes([0; 4].map(|_: u8| self.byte()))
    }

    fn access(&mut self) -> RemoteAccess {
        let bits = self.byte();
        RemoteAccess {
            write: bits & 1 == 0,
            read: bits & 2 == 0,
            atomic: bits & 4 == 0,
        }
    }

    fn terms(&mut self) -> Terms {
        let bits = self.byte();
        let psn = Psn::wrapping(u32::from(bits >> 4).wrapping_sub(8));
        Terms {
            receiving: Receiving {
                mtu: Mtu::ALL[usize::from(bits % 5)],
                psn,
                access: ALL,
                max_reads: self.byte() % 20,
                min_rnr_timer: self.byte(),
            },
            sending: Sending {
                psn,
                timeout: self.byte(),
                retry_count: self.byte() % 8,
                rnr_retry: self.byte() % 8,
                max_reads: self.byte() % 20,
            },
        }
    }

    /// Chooses a length around that of a packet, or any.
    fn length(&mut self, mtu: Mtu) -> u32 {
        let mtu = mtu.bytes();
        match self.byte() {
            0 => 0,
            1 => mtu - 1,
            2 => mtu,
            3 => mtu + 1,
            4 => self.word(),
            many @ 5..16 => mtu * u32::from(many),
            few => u32::from(few),
        }
    }

    fn address(&mut self) -> u64 {
        match self.byte() {
            0 => BASE,
            1 => u64::from(self.word()) << 32 | u64::from(self.word()),
            2 => BASE + REGION as u64,
            few => BASE + u64::from(few) * 8,
        }
    }

    fn remote(&mut self, mtu: Mtu) -> Remote {
        Remote {
            address: self.address(),
            rkey: u32::from(self.byte() % 3),
            length: self.length(mtu),
        }
    }

    fn tail(&mut self) -> Tail {
        match self.byte() % 4 {
            0 | 1 => Tail::Plain,
            2 => Tail::Immediate(ImmDt::from_bytes([1, 2, 3, 4])),
            _ => Tail::Invalidate(u32::from(self.byte() % 3)),
        }
    }

    fn immediate(&mut self) -> Option<ImmDt> {
        self.bit().then_some(ImmDt::from_bytes([1, 2, 3, 4]))
    }

    fn atomic(&mut self) -> Atomic {
        if self.bit() {
            Atomic::FetchAdd { add: 1 }
        } else {
            Atomic::CompareSwap {
                compare: 0,
                swap: 1,
            }
        }
    }

    fn request(&mut self, mtu: Mtu) -> Request {
        match self.byte() % 11 {
            0 => Request::SendFirst,
            1 => Request::SendMiddle,
            2 => Request::SendLast(self.tail()),
            3 => Request::SendOnly(self.tail()),
            4 => Request::WriteFirst(self.remote(mtu)),
            5 => Request::WriteMiddle,
            6 => Request::WriteLast(self.immediate()),
            7 => Request::WriteOnly(self.remote(mtu), self.immediate()),
            8 | 9 => Request::Read(self.remote(mtu)),
            _ => {
                let remote = Remote {
                    length: 8,
                    ..self.remote(mtu)
                };
                Request::Atomic(remote, self.atomic())
            }
        }
    }

    fn response(&mut self) -> Response {
        let kind = self.byte() % 8;
        let acknowledgement = Acknowledgement {
            syndrome: Syndrome::try_from(self.byte()).unwrap_or(Syndrome::Ack(31)),
            msn: 0,
        };
        match kind {
            0 => Response::ReadFirst(acknowledgement),
            1 => Response::ReadMiddle,
            2 => Response::ReadLast(acknowledgement),
            3 => Response::ReadOnly(acknowledgement),
            4 => Response::Atomic(acknowledgement, 7),
            _ => Response::Acknowledge(acknowledgement),
        }
    }

    fn operation(&mut self) -> Operation {
        let target = Target {
            address: self.address(),
            rkey: u32::from(self.byte() % 3),
        };
        match self.byte() % 8 {
            0 | 1 => Operation::Send(self.tail()),
            2 => Operation::Write(target, self.immediate()),
            3 | 4 => Operation::Read(target),
            5 => Operation::Atomic(target, self.atomic()),
            6 => Operation::Local(Local::Register),
            _ => Operation::Local(Local::Invalidate),
        }
    }
}

/// A host, with the numbers at which packets are aimed.
struct Bench {
    host: Host,
    terms: Terms,
    incoming: u32,
    outgoing: u32,
}

impl Bench {
    fn new(choices: &mut Choices<'_>) -> Bench {
        let terms = choices.terms();
        let service = if choices.byte() % 4 == 0 {
            Service::Uc
        } else {
            Service::Rc
        };
        let mut host = Host::receiver(service, choices.bit(), &terms);
        for rkey in 0..2 {
            host.region(rkey, BASE, REGION);
        }
        Bench {
            host,
            terms,
            incoming: terms.receiving.psn.get(),
            outgoing: terms.sending.psn.get(),
        }
    }

    /// Takes one packet, mostly in order.
    fn packet(&mut self, choices: &mut Choices<'_>) {
        let mtu = self.terms.receiving.mtu;
        let off = i32::from(choices.byte() as i8) / 16;
        let (body, psn) = if choices.byte() % 4 == 0 {
            let psn = self.outgoing.wrapping_add_signed(off);
            (Body::Response(choices.response()), psn)
        } else {
            let psn = self.incoming.wrapping_add_signed(off);
            if off == 0 {
                self.incoming = psn.wrapping_add(1);
            }
            (Body::Request(choices.request(mtu)), psn)
        };
        let frame = Frame {
            body,
            psn: Psn::wrapping(psn),
            ack_request: choices.bit(),
            solicited: choices.bit(),
            payload: vec![0xee; choices.length(mtu).min(5000) as usize],
        };
        self.host.take(&frame);
    }

    fn post(&mut self, choices: &mut Choices<'_>) {
        let mtu = self.terms.receiving.mtu;
        let length = choices.length(mtu).min(1 << 16);
        let operation = choices.operation();
        let length = match operation {
            Operation::Atomic(..) if choices.byte() < 250 => 8,
            _ => length,
        };
        let bits = choices.byte();
        let post = self.host.post(operation, vec![0; length as usize]);
        post.work.signalled = bits & 1 == 0;
        post.work.fence = bits & 6 == 6;
        post.denied = bits > 240;
    }

    fn post_receive(&mut self, choices: &mut Choices<'_>) {
        let length = choices.length(self.terms.receiving.mtu).min(1 << 16);
        self.host.post_receive(length as usize).denied = choices.byte() > 240;
        self.host.qp.receive_posted(&mut self.host.world);
    }

    fn run(&mut self, choices: &mut Choices<'_>) {
        self.host.world.room = Some(u32::from(choices.byte()));
        for frame in self.host.run() {
            self.look_at(&frame);
        }
    }

    fn wait(&mut self, choices: &mut Choices<'_>) {
        self.host.world.room = Some(u32::from(choices.byte()));
        if self.host.qp.due().is_some() {
            for frame in self.host.wait() {
                self.look_at(&frame);
            }
        }
    }

    fn look_at(&mut self, frame: &Frame) {
        assert!(frame.payload.len() <= self.terms.receiving.mtu.bytes() as usize);
        if let Body::Request(_) = frame.body {
            self.outgoing = frame.psn.get();
        }
    }

    fn step(&mut self, event: u8, choices: &mut Choices<'_>) {
        match event & 0xf {
            0..=5 => self.packet(choices),
            6 | 7 => self.post(choices),
            8 => self.post_receive(choices),
            9 | 10 => self.run(choices),
            11 => self.wait(choices),
            _ => self.call(event & 0xf, choices),
        }
    }

    /// A call of the consumer, which may be refused.
    fn call(&mut self, event: u8, choices: &mut Choices<'_>) {
        let qp = &mut self.host.qp;
        let _ = match event {
            12 => qp.ready_to_send(self.terms.sending),
            13 if choices.bit() => qp.drain(choices.bit()),
            13 => qp.resume(),
            14 => {
                qp.set_access(choices.access());
                Ok(())
            }
            _ if choices.byte() == 0 => {
                qp.fail(&mut self.host.world);
                Ok(())
            }
            _ => {
                let later = self.host.now.get() + u64::from(choices.word());
                self.host.now = Time::new(later);
                Ok(())
            }
        };
    }

    /// Ends the queue pair: whatever has happened, everything ends when it is told to.
    fn end(mut self) {
        self.host.qp.fail(&mut self.host.world);
        self.host.run();
        assert_eq!(self.host.qp.state(), StateName::Error);
        assert_eq!(self.host.qp.due(), None);
        assert_eq!(
            self.host.world.retired as usize,
            self.host.world.sends.len()
        );
        assert!(self.host.world.held.is_none());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut choices = Choices(bytes);
    let mut bench = Bench::new(&mut choices);
    while let Some(event) = choices.next() {
        bench.step(event, &mut choices);
    }
    bench.end();
});
