// SPDX-License-Identifier: GPL-2.0-only

//! A socket of the family: requests and their answers, dumps, notifications.

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
        family::{
            self,
            Names, //
        },
        family_check::{
            verify_family_id,
            FamilyCheck,
            Received, //
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

/// The acknowledgement repeats only the header of the request.
const NLM_F_CAPPED: u16 = 0x100;
/// The acknowledgement has attributes.
const NLM_F_ACK_TLVS: u16 = 0x200;

/// The length of netlink's message header in bytes.
const HEADER_LEN: usize = 16;

/// The length of the buffer for one datagram in bytes: more than the kernel puts into a datagram of
/// a dump.
const DATAGRAM_LEN: usize = 1 << 16;

/// The size of the socket's receive buffer for notifications, in bytes. A file load can announce
/// more entries at once than any buffer holds, so that overruns remain possible.
const RECEIVE_BUFFER: usize = 8 << 20;

/// The controller's multicast group, which announces that families are registered and removed. Its
/// ID is that of the controller itself.
const CONTROLLER_GROUP: u32 = GENL_ID_CTRL as u32;

/// A generic netlink socket, with the ID of the family `oxib`.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    family: u16,
    changes_group: Option<u32>,
    sequence: u32,
    family_check: FamilyCheck,
}

/// The kernel's answer to a request that it carried out.
#[derive(Debug)]
pub struct Answer {
    /// The attributes of the reply; empty if only an acknowledgement was sent.
    pub attributes: Vec<u8>,
    /// The message of the acknowledgement, if it has one.
    pub note: Option<Refusal>,
}

/// A change of the cache that the kernel announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An entry was added or changed.
    New,
    /// An entry was deleted.
    Del,
    /// The socket's receive buffer was full: some notifications are lost.
    Lost,
}

impl Connection {
    /// Opens a socket and looks the family up.
    pub fn open() -> Result<Connection> {
        let set_up = |socket: &mut Socket| {
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            socket.set_ext_ack(true)?;
            socket.set_cap_ack(true)
        };
        let mut socket = Socket::new(NETLINK_GENERIC)
            .map_err(Error::system("opening a generic netlink socket"))?;
        set_up(&mut socket).map_err(Error::system("setting a generic netlink socket up"))?;
        let mut connection = Connection {
            socket,
            family: 0,
            changes_group: None,
            sequence: 0,
            family_check: FamilyCheck::new(),
        };
        connection.find_family()?;
        Ok(connection)
    }

    /// Asks the controller for the IDs of the family and of its multicast group.
    fn find_family(&mut self) -> Result {
        let request = GenlMessage::from_payload(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(family::NAME.to_owned())],
        });
        self.send(request, NLM_F_REQUEST)?;
        for message in self.receive::<GenlCtrl>(RecvFlags::empty())? {
            match message.payload {
                NetlinkPayload::InnerMessage(answer) => self.store_family(&answer.payload.nlas),
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

    /// Returns the family's current ID. The answer comes to a socket of its own: the receive buffer
    /// of one that listens may be full.
    fn current_family_id() -> Result<u16> {
        Ok(Connection::open()?.family)
    }

    /// Stores the IDs that the controller's answer has.
    fn store_family(&mut self, attributes: &[GenlCtrlAttrs]) {
        for attribute in attributes {
            match attribute {
                GenlCtrlAttrs::FamilyId(id) => self.family = *id,
                GenlCtrlAttrs::McastGroups(groups) => {
                    self.changes_group = groups.iter().find_map(|group| changes_group_id(group))
                }
                _ => {}
            }
        }
    }

    /// Sends a request, and returns the bytes of the message.
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

    /// Receives a datagram and returns the messages in it. Blocks unless `flags` has `DONTWAIT`.
    fn receive<F>(&self, flags: RecvFlags) -> Result<Vec<NetlinkMessage<GenlMessage<F>>>>
    where
        F: netlink_packet_core::ParseableParametrized<[u8], netlink_packet_generic::GenlHeader>
            + Debug,
    {
        let mut bytes = Vec::with_capacity(DATAGRAM_LEN);
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
            rest = rest.get(length.max(HEADER_LEN)..).unwrap_or_default();
            messages.push(message);
        }
        Ok(messages)
    }

    /// Sends a request and waits for its acknowledgement.
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
                        let extended = extended_ack(message.header.flags, &error.header);
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

    /// Requests a dump, and calls `each` with the attributes of each message. Returns whether the
    /// dump is consistent: if not, the cache was changed between two of its messages.
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
                        let extended = extended_ack(message.header.flags, &error.header);
                        return Err(Refusal::new(-error.raw_code(), extended, &sent, names).into());
                    }
                    _ => {}
                }
            }
        }
    }

    /// Joins the group that announces changes of the cache, and the controller's, which announces
    /// the removal of the family: the kernel then silently removes the socket from the first one.
    pub fn listen(&mut self) -> Result {
        let group = self
            .changes_group
            .ok_or_else(|| Error::Answer(format!("the family has no group {}", family::CHANGES)))?;
        // Limited to net.core.rmem_max. A smaller buffer overruns earlier, which is reported.
        let _ = self.socket.set_rx_buf_sz(RECEIVE_BUFFER);
        for group in [CONTROLLER_GROUP, group] {
            self.socket
                .add_membership(group)
                .map_err(Error::system("listening to changes of the cache"))?;
        }
        Ok(())
    }

    /// Receives notifications and calls `each` with each event and its attributes; there may be
    /// none. Fails with [`Error::Unloaded`] if the family is gone, as no more would come.
    pub fn next_events(&mut self, mut each: impl FnMut(Event, Attributes<'_>) -> Result) -> Result {
        let result = self.receive::<Message>(self.family_check.receive_flags());
        let messages = match self.family_check.record(result)? {
            Received::Messages(messages) => messages,
            Received::Overrun => return each(Event::Lost, Attributes::new(&[])),
            Received::Drained => return verify_family_id(self.family, Self::current_family_id()),
        };
        for message in messages {
            if let NetlinkPayload::InnerMessage(inner) = message.payload {
                if inner.resolved_family_id() == GENL_ID_CTRL {
                    if is_family_removal(&inner.payload, self.family)? {
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

/// Builds the message of a request.
fn message(operation: u8, attributes: &Request) -> GenlMessage<Message> {
    GenlMessage::from_payload(Message {
        operation,
        attributes: attributes.emitted(),
    })
}

/// Returns whether a message of the controller announces the removal of `family`.
fn is_family_removal(message: &Message, family: u16) -> Result<bool> {
    let removed = Attributes::new(&message.attributes).u16(CTRL_ATTR_FAMILY_ID)?;
    Ok(message.operation == CTRL_CMD_DELFAMILY && removed == Some(family))
}

/// Returns the ID of a multicast group if it is the one that announces changes.
fn changes_group_id(group: &[McastGrpAttrs]) -> Option<u32> {
    let is_it = group
        .iter()
        .any(|attribute| matches!(attribute, McastGrpAttrs::Name(name) if name == family::CHANGES));
    group.iter().find_map(|attribute| match attribute {
        McastGrpAttrs::Id(id) if is_it => Some(*id),
        _ => None,
    })
}

/// Returns the attributes of an extended acknowledgement. `rest` is what follows the error number:
/// the header of the request, then the rest of the request unless the acknowledgement is capped,
/// then the attributes.
fn extended_ack(flags: u16, rest: &[u8]) -> &[u8] {
    if flags & NLM_F_ACK_TLVS == 0 {
        return &[];
    }
    let request = match rest {
        [l0, l1, l2, l3, ..] if flags & NLM_F_CAPPED == 0 => {
            u32::from_ne_bytes([*l0, *l1, *l2, *l3]) as usize
        }
        _ => HEADER_LEN,
    };
    rest.get(request.next_multiple_of(4)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_generic::constants::CTRL_CMD_NEWFAMILY;

    #[test]
    fn the_removal_of_the_family_is_told_from_other_messages() {
        let table = [
            (CTRL_CMD_DELFAMILY, 30, true),
            (CTRL_CMD_DELFAMILY, 31, false),
            (CTRL_CMD_NEWFAMILY, 30, false),
        ];
        for (operation, id, is_removal) in table {
            let attributes = Request::new()
                .bytes(2, b"oxib\0".to_vec())
                .u16(CTRL_ATTR_FAMILY_ID, id);
            let message = Message {
                operation,
                attributes: attributes.emitted(),
            };
            assert_eq!(
                is_family_removal(&message, 30).unwrap(),
                is_removal,
                "{operation} {id}"
            );
        }
    }
}
