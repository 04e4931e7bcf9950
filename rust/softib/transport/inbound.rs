// SPDX-License-Identifier: GPL-2.0-only

//! The message that a responder is in the middle of: SENDs and RDMA WRITEs, packet by packet
//! (IBTA 9.7.4, 9.8.3).

use super::attributes::{
    Mtu,
    RemoteAccess,
    MAX_MESSAGE, //
};
use super::packet::{
    Remote,
    Request,
    Tail, //
};
use super::shell::{
    Access,
    Shell, //
};
use super::wire::immdt::ImmDt;
use super::work::{
    Delivery,
    Received,
    Status, //
};

/// The cause for which a request was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// There is no receive. Nothing has changed: the packet may come once more.
    NotReady,
    /// The packet has no place here, is not of the length that it should be, or is nothing that
    /// the queue pair does for its peer.
    Invalid,
    /// The peer may not use that memory.
    Access,
    /// The message is longer than the receive.
    LocalLength,
    /// The receive's own list names memory that it may not use.
    LocalProtection,
    /// The key that comes with a SEND cannot be invalidated.
    Invalidation,
}

/// The progress of a message by a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// More of the message follows.
    Middle,
    /// The message is complete.
    Complete,
}

/// The place of the next packet in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Message {
    /// Before the first packet of a message.
    Between,
    /// In a SEND, after that many bytes.
    Send { offset: u32 },
    /// In an RDMA WRITE.
    Write {
        /// The memory that is still to be written.
        rest: Remote,
        /// The length of all of it.
        length: u32,
    },
}

/// One packet, and what it is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) request: Request,
    pub(super) payload: &'a [u8],
    pub(super) solicited: bool,
    pub(super) mtu: Mtu,
    pub(super) access: RemoteAccess,
}

impl Arrival<'_> {
    /// The length of the payload; `None` if no packet of this path can be that long.
    fn length(&self) -> Option<u32> {
        let length = u32::try_from(self.payload.len()).ok()?;
        (length <= self.mtu.bytes()).then_some(length)
    }

    /// The length, if it is that of a packet which others follow.
    fn full(&self) -> Result<u32, Refusal> {
        self.length()
            .filter(|length| *length == self.mtu.bytes())
            .ok_or(Refusal::Invalid)
    }

    /// Checks whether the length is that of a packet of an RDMA WRITE which others follow.
    fn full_of(&self, rest: &Remote) -> Result<(), Refusal> {
        if self.full()? < rest.length {
            Ok(())
        } else {
            Err(Refusal::Invalid)
        }
    }

    /// The length, if it is that of the last of several packets.
    fn last(&self) -> Result<u32, Refusal> {
        self.length()
            .filter(|length| *length > 0)
            .ok_or(Refusal::Invalid)
    }

    /// The length, if it is that of a message's only packet.
    fn only(&self) -> Result<u32, Refusal> {
        self.length().ok_or(Refusal::Invalid)
    }
}

/// The message that is coming in, and the receive that it goes to.
#[derive(Debug)]
pub(super) struct Inbound {
    message: Message,
    /// The room in the receive that was taken and is not reported yet. It is kept when a message
    /// is given up, and the next one has it.
    held: Option<u32>,
}

impl Inbound {
    pub(super) fn new() -> Inbound {
        Inbound {
            message: Message::Between,
            held: None,
        }
    }

    /// Forgets the message that was not completed.
    pub(super) fn give_up(&mut self) {
        self.message = Message::Between;
    }

    /// Returns whether no message has begun.
    pub(super) fn is_between(&self) -> bool {
        self.message == Message::Between
    }

    /// Reports the receive that is held, if there is one.
    pub(super) fn fail(&mut self, shell: &mut impl Shell, status: Status) {
        if self.held.take().is_some() {
            shell.received(&Received::failed(status));
        }
    }

    /// Takes the next packet. READs and atomics are not for here.
    pub(super) fn take(
        &mut self,
        shell: &mut impl Shell,
        packet: &Arrival<'_>,
    ) -> Result<Progress, Refusal> {
        match (self.message, packet.request) {
            (Message::Between, Request::SendFirst) => {
                let length = packet.full()?;
                self.fill(shell, packet, 0, length)
            }
            (Message::Send { offset }, Request::SendMiddle) => {
                let length = packet.full()?;
                self.fill(shell, packet, offset, length)
            }
            (Message::Send { offset }, Request::SendLast(tail)) => {
                let length = packet.last()?;
                self.fill(shell, packet, offset, length)?;
                self.finish_send(shell, packet, tail)
            }
            (Message::Between, Request::SendOnly(tail)) => {
                let length = packet.only()?;
                self.fill(shell, packet, 0, length)?;
                self.finish_send(shell, packet, tail)
            }
            (Message::Between, Request::WriteFirst(remote)) => {
                packet.full_of(&remote)?;
                allow_write(packet, &remote)?;
                // All of the memory at the first packet: a WRITE that cannot be finished writes
                // nothing.
                shell
                    .check(&remote, Access::Write)
                    .map_err(|_| Refusal::Access)?;
                self.write(shell, packet, remote, remote.length)
            }
            (Message::Write { rest, length }, Request::WriteMiddle) => {
                packet.full_of(&rest)?;
                self.write(shell, packet, rest, length)
            }
            (Message::Write { rest, length }, Request::WriteLast(immediate)) => {
                packet.last()?;
                self.last_write(shell, packet, rest, length, immediate)
            }
            (Message::Between, Request::WriteOnly(remote, immediate)) => {
                packet.only()?;
                allow_write(packet, &remote)?;
                self.last_write(shell, packet, remote, remote.length, immediate)
            }
            _ => Err(Refusal::Invalid),
        }
    }

    /// The room in the receive that the message goes to.
    fn hold(&mut self, shell: &mut impl Shell) -> Result<u32, Refusal> {
        if self.held.is_none() {
            self.held = shell.take_receive();
        }
        self.held.ok_or(Refusal::NotReady)
    }

    /// Puts the payload into the receive.
    fn fill(
        &mut self,
        shell: &mut impl Shell,
        packet: &Arrival<'_>,
        offset: u32,
        length: u32,
    ) -> Result<Progress, Refusal> {
        let room = self.hold(shell)?;
        if length > room.saturating_sub(offset) {
            return Err(Refusal::LocalLength);
        }
        if length > 0 {
            shell
                .scatter_receive(offset, packet.payload)
                .map_err(|_| Refusal::LocalProtection)?;
        }
        self.message = Message::Send {
            offset: offset + length,
        };
        Ok(Progress::Middle)
    }

    /// The last packet of a SEND is in the receive.
    fn finish_send(
        &mut self,
        shell: &mut impl Shell,
        packet: &Arrival<'_>,
        tail: Tail,
    ) -> Result<Progress, Refusal> {
        // Before the completion, after which the consumer relies on the key being invalid.
        if let Tail::Invalidate(rkey) = tail {
            shell.invalidate(rkey).map_err(|_| Refusal::Invalidation)?;
        }
        let length = match self.message {
            Message::Send { offset } => offset,
            _ => 0,
        };
        self.report(shell, packet, length, Delivery::Send(tail));
        Ok(Progress::Complete)
    }

    /// Puts the payload where an RDMA WRITE says, which goes on after it.
    fn write(
        &mut self,
        shell: &mut impl Shell,
        packet: &Arrival<'_>,
        rest: Remote,
        length: u32,
    ) -> Result<Progress, Refusal> {
        shell
            .write(rest.rkey, rest.address, packet.payload)
            .map_err(|_| Refusal::Access)?;
        let rest = rest.skip(packet.mtu.bytes());
        self.message = Message::Write { rest, length };
        Ok(Progress::Middle)
    }

    /// The last packet of an RDMA WRITE. The receive for its immediate data is taken first: were
    /// there none, the packet would come once more.
    fn last_write(
        &mut self,
        shell: &mut impl Shell,
        packet: &Arrival<'_>,
        rest: Remote,
        length: u32,
        immediate: Option<ImmDt>,
    ) -> Result<Progress, Refusal> {
        if packet.length() != Some(rest.length) {
            return Err(Refusal::Invalid);
        }
        if immediate.is_some() {
            self.hold(shell)?;
        }
        // The key of a write of nothing means nothing (IBTA 9.7.4.1.1).
        if rest.length > 0 {
            shell
                .write(rest.rkey, rest.address, packet.payload)
                .map_err(|_| Refusal::Access)?;
        }
        match immediate {
            Some(immediate) => self.report(shell, packet, length, Delivery::Write(immediate)),
            None => self.message = Message::Between,
        }
        Ok(Progress::Complete)
    }

    /// The receive is over, and the message.
    fn report(
        &mut self,
        shell: &mut impl Shell,
        packet: &Arrival<'_>,
        length: u32,
        delivery: Delivery,
    ) {
        self.message = Message::Between;
        self.held = None;
        shell.received(&Received {
            status: Status::Success,
            length,
            delivery,
            solicited: packet.solicited,
        });
    }
}

/// Checks whether the queue pair takes such an RDMA WRITE at all.
fn allow_write(packet: &Arrival<'_>, remote: &Remote) -> Result<(), Refusal> {
    if packet.access.write && remote.length <= MAX_MESSAGE {
        Ok(())
    } else {
        Err(Refusal::Invalid)
    }
}
