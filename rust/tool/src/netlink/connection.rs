// SPDX-License-Identifier: GPL-2.0-only

//! A socket to the family: requests and their answers, dumps, announcements.

use crate::{
    error::{
        Error,
        Result, //
    },
    netlink::{
        attribute::{
            Attributes,
            Request, //
        },
        doubt::{
            self,
            Doubt,
            Heard, //
        },
        family::{
            self,
            Names, //
        },
        message::Message,
        refusal::Refusal, //
    },
};
use netlink_packet_core::{
    NetlinkHeader,
    NetlinkMessage,
    NetlinkPayload,
    NLM_F_ACK,
    NLM_F_DUMP,
    NLM_F_DUMP_INTR,
    NLM_F_REQUEST, //
};
use netlink_packet_generic::{
    constants::{
        CTRL_ATTR_FAMILY_ID,
        CTRL_CMD_DELFAMILY,
        GENL_ID_CTRL, //
    },
    ctrl::{
        nlas::{
            GenlCtrlAttrs,
            McastGrpAttrs, //
        },
        GenlCtrl,
        GenlCtrlCmd, //
    },
    GenlMessage, //
};
use netlink_sys::{
    protocols::NETLINK_GENERIC,
    Socket,
    SocketAddr, //
};
use rustix::{
    io::Errno,
    net::RecvFlags, //
};
use std::fmt::Debug;

/// The acknowledgement has only the header of the request.
const NLM_F_CAPPED: u16 = 0x100;
/// The acknowledgement has attributes.
const NLM_F_ACK_TLVS: u16 = 0x200;

/// Bytes of netlink's header.
const HEADER: usize = 16;

/// The size of the receive buffer: more than the kernel puts into one datagram of a dump.
const RECEIVE: usize = 1 << 16;

/// Bytes of announcements that may wait to be read: no buffer holds as many entries as a file
/// load can bring at once.
const ANNOUNCEMENTS: usize = 8 << 20;

/// The group in which the controller announces that families come and go: it has the controller's
/// own number.
const FAMILIES: u32 = GENL_ID_CTRL as u32;

/// A socket that knows the family's number.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    family: u16,
    changes: Option<u32>,
    sequence: u32,
    doubt: Doubt,
}

/// The outcome of a request that was carried out.
#[derive(Debug)]
pub struct Answer {
    /// The attributes of the answer, if there was one beside the acknowledgement.
    pub attributes: Vec<u8>,
    /// The kernel's note about what it did.
    pub note: Option<Refusal>,
}

/// The changes of the cache that are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An entry came or changed.
    New,
    /// An entry was deleted.
    Del,
    /// There was more than the socket could hold: some of it is lost.
    Lost,
}

impl Connection {
    /// Opens a socket and asks for the family.
    pub fn open() -> Result<Connection> {
        let opened = |socket: &mut Socket| {
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            socket.set_ext_ack(true)?;
            socket.set_cap_ack(true)
        };
        let mut socket = Socket::new(NETLINK_GENERIC)
            .map_err(Error::system("opening a generic netlink socket"))?;
        opened(&mut socket).map_err(Error::system("setting a generic netlink socket up"))?;
        let mut connection = Connection {
            socket,
            family: 0,
            changes: None,
            sequence: 0,
            doubt: Doubt::new(),
        };
        connection.find_family()?;
        Ok(connection)
    }

    /// Asks for the family's number and that of its group.
    fn find_family(&mut self) -> Result {
        let request = GenlMessage::from_payload(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(family::NAME.to_owned())],
        });
        self.send(request, NLM_F_REQUEST)?;
        for message in self.receive::<GenlCtrl>(RecvFlags::empty())? {
            match message.payload {
                NetlinkPayload::InnerMessage(answer) => self.learn_family(&answer.payload.nlas),
                NetlinkPayload::Error(error)
                    if error.raw_code() == -Errno::NOENT.raw_os_error() =>
                {
                    return Err(Error::NotLoaded);
                }
                NetlinkPayload::Error(error) => {
                    return Err(Error::system("asking for the family oxib")(error.to_io()));
                }
                _ => {}
            }
        }
        if self.family == 0 {
            return Err(Error::Answer("the family has no number".to_owned()));
        }
        Ok(())
    }

    /// Asks for the number that the family has now. A socket of its own gets the answer: one that
    /// listens may be full.
    fn find_number() -> Result<u16> {
        Ok(Connection::open()?.family)
    }

    /// Takes the numbers out of the controller's answer.
    fn learn_family(&mut self, attributes: &[GenlCtrlAttrs]) {
        for attribute in attributes {
            match attribute {
                GenlCtrlAttrs::FamilyId(number) => self.family = *number,
                GenlCtrlAttrs::McastGroups(groups) => {
                    self.changes = groups.iter().find_map(|group| changes_of(group))
                }
                _ => {}
            }
        }
    }

    /// Sends a request; returns it as it was sent.
    fn send<F>(&mut self, mut request: GenlMessage<F>, flags: u16) -> Result<Vec<u8>>
    where
        F: netlink_packet_generic::GenlFamily + netlink_packet_core::Emitable + Debug,
    {
        request.set_resolved_family_id(self.family);
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket
            .send(&bytes, 0)
            .map_err(Error::system("sending a request to the kernel"))?;
        Ok(bytes)
    }

    /// Waits for a datagram unless the flags forbid that, and gives the messages in it.
    fn receive<F>(&self, flags: RecvFlags) -> Result<Vec<NetlinkMessage<GenlMessage<F>>>>
    where
        F: netlink_packet_core::ParseableParametrized<[u8], netlink_packet_generic::GenlHeader>
            + Debug,
    {
        let mut bytes = Vec::with_capacity(RECEIVE);
        while let Err(error) = self.socket.recv(&mut bytes, flags.bits() as i32) {
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(Error::system("receiving the kernel's answer")(error));
            }
        }
        let mut messages = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let message = NetlinkMessage::deserialize(rest)?;
            let length = (message.header.length as usize).next_multiple_of(4);
            rest = rest.get(length.max(HEADER)..).unwrap_or_default();
            messages.push(message);
        }
        Ok(messages)
    }

    /// Makes a request and waits until it is acknowledged.
    pub fn request(&mut self, operation: u8, attributes: &Request, names: Names) -> Result<Answer> {
        let sent = self.send(message(operation, attributes), NLM_F_REQUEST | NLM_F_ACK)?;
        let mut answer = Answer {
            attributes: Vec::new(),
            note: None,
        };
        loop {
            for message in self.receive::<Message>(RecvFlags::empty())? {
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                match message.payload {
                    NetlinkPayload::InnerMessage(inner) => {
                        answer.attributes = inner.payload.attributes
                    }
                    NetlinkPayload::Error(error) => {
                        let extended = extended(message.header.flags, &error.header);
                        let refusal = Refusal::new(-error.raw_code(), extended, &sent, names);
                        if error.code.is_some() {
                            return Err(refusal.into());
                        }
                        answer.note = refusal.text.is_some().then_some(refusal);
                        return Ok(answer);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Asks for a dump; `each` gets the attributes of each message. Returns whether the dump is of
    /// one moment: what it lists may have changed meanwhile.
    pub fn dump(
        &mut self,
        operation: u8,
        attributes: &Request,
        names: Names,
        mut each: impl FnMut(Attributes<'_>) -> Result,
    ) -> Result<bool> {
        let sent = self.send(message(operation, attributes), NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut consistent = true;
        loop {
            for message in self.receive::<Message>(RecvFlags::empty())? {
                if message.header.sequence_number != self.sequence {
                    continue;
                }
                consistent &= message.header.flags & NLM_F_DUMP_INTR == 0;
                match message.payload {
                    NetlinkPayload::InnerMessage(inner) => {
                        each(Attributes::new(&inner.payload.attributes))?
                    }
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok(consistent),
                    NetlinkPayload::Done(done) => {
                        return Err(
                            Refusal::new(-done.code, &done.extended_ack, &sent, names).into()
                        );
                    }
                    NetlinkPayload::Error(error) => {
                        let extended = extended(message.header.flags, &error.header);
                        return Err(Refusal::new(-error.raw_code(), extended, &sent, names).into());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Joins the group that announces changes, and the one that announces the family's end: with it
    /// the kernel takes the socket out of the first one.
    pub fn listen(&mut self) -> Result {
        let group = self
            .changes
            .ok_or_else(|| Error::Answer(format!("the family has no group {}", family::CHANGES)))?;
        // More than net.core.rmem_max needs a right; without it what is lost is told.
        let _ = self.socket.set_rx_buf_sz(ANNOUNCEMENTS);
        for group in [FAMILIES, group] {
            self.socket
                .add_membership(group)
                .map_err(Error::system("listening to changes of the cache"))?;
        }
        Ok(())
    }

    /// Waits for announcements and gives each to `each`, with its attributes; there may be none. It
    /// is an error if the family has gone, as nothing more would come.
    pub fn next_events(&mut self, mut each: impl FnMut(Event, Attributes<'_>) -> Result) -> Result {
        let received = self.receive::<Message>(self.doubt.flags());
        let messages = match self.doubt.hear(received)? {
            Heard::Messages(messages) => messages,
            Heard::Loss => return each(Event::Lost, Attributes::new(&[])),
            Heard::Nothing => return doubt::verify_number(self.family, Self::find_number()),
        };
        for message in messages {
            if let NetlinkPayload::InnerMessage(inner) = message.payload {
                if inner.resolved_family_id() == GENL_ID_CTRL {
                    if ends_family(&inner.payload, self.family)? {
                        return Err(Error::Unloaded);
                    }
                    continue;
                }
                let event = match inner.payload.operation {
                    family::operation::ENTRY_NEW_NTF => Event::New,
                    family::operation::ENTRY_DEL_NTF => Event::Del,
                    _ => continue,
                };
                each(event, Attributes::new(&inner.payload.attributes))?;
            }
        }
        Ok(())
    }
}

/// A request as a message.
fn message(operation: u8, attributes: &Request) -> GenlMessage<Message> {
    GenlMessage::from_payload(Message {
        operation,
        attributes: attributes.emitted(),
    })
}

/// Returns whether the controller announces with it that the family of that number has gone.
fn ends_family(message: &Message, family: u16) -> Result<bool> {
    let gone = Attributes::new(&message.attributes).u16(CTRL_ATTR_FAMILY_ID)?;
    Ok(message.operation == CTRL_CMD_DELFAMILY && gone == Some(family))
}

/// The number of the group that announces changes, if this is that group.
fn changes_of(group: &[McastGrpAttrs]) -> Option<u32> {
    let is_it = group
        .iter()
        .any(|attribute| matches!(attribute, McastGrpAttrs::Name(name) if name == family::CHANGES));
    group.iter().find_map(|attribute| match attribute {
        McastGrpAttrs::Id(number) if is_it => Some(*number),
        _ => None,
    })
}

/// The attributes of an acknowledgement, out of what follows its error number: the request's
/// header, and if the acknowledgement is not capped the rest of the request.
fn extended(flags: u16, rest: &[u8]) -> &[u8] {
    if flags & NLM_F_ACK_TLVS == 0 {
        return &[];
    }
    let request = match rest {
        [l0, l1, l2, l3, ..] if flags & NLM_F_CAPPED == 0 => {
            u32::from_ne_bytes([*l0, *l1, *l2, *l3]) as usize
        }
        _ => HEADER,
    };
    rest.get(request.next_multiple_of(4)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_generic::constants::CTRL_CMD_NEWFAMILY;

    #[test]
    fn the_end_of_the_family_is_told_from_other_families() {
        let table = [
            (CTRL_CMD_DELFAMILY, 30, true),
            (CTRL_CMD_DELFAMILY, 31, false),
            (CTRL_CMD_NEWFAMILY, 30, false),
        ];
        for (operation, number, ends) in table {
            let attributes = Request::new()
                .bytes(2, b"oxib\0".to_vec())
                .u16(CTRL_ATTR_FAMILY_ID, number);
            let message = Message {
                operation,
                attributes: attributes.emitted(),
            };
            assert_eq!(
                ends_family(&message, 30).unwrap(),
                ends,
                "{operation} {number}"
            );
        }
    }
}
