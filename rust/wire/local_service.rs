// SPDX-License-Identifier: GPL-2.0-only

//! Netlink messages by which the kernel asks a local service for paths and addresses, so that the
//! subnet administrator need not be asked (`RDMA_NL_LS` of `uapi/rdma/rdma_netlink.h`).
//!
//! A message is a netlink header, a fixed part, and attributes, in the byte order of the machine.
//! An answer has the number of its request, no fixed part, and the attribute that was wanted.

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};

use super::{
    gid::Gid,
    netlink::Attributes, //
};

/// Length of the netlink header: length, type, flags, sequence number, sender.
const HEADER: usize = 16;

/// The client of RDMA netlink that this is (`RDMA_NL_LS`), as it stands in a type.
const CLIENT: u16 = 4 << 10;

/// Types of messages: requests for a path, and for the GID of an IP address.
const RESOLVE: u16 = CLIENT;
const IP_RESOLVE: u16 = CLIENT | 2;

/// Flag of an answer that says that there is nothing to say (`RDMA_NL_LS_F_ERR`).
const REFUSED: u16 = 0x0100;

/// The fixed part of a request for a path (`struct rdma_ls_resolve_header`), padded: a name,
/// padded with zeros; the port; what the path is for.
const NAME: usize = 64;
const PATH_FIXED: usize = 68;

/// The fixed part of a request for an address (`struct rdma_ls_ip_resolve_header`): an interface's
/// number.
const ADDRESS_FIXED: usize = 4;

/// A path for both directions, and for management too (`LS_RESOLVE_PATH_USE_ALL`).
const USE_ALL: u8 = 0;

/// Flag in an attribute's number: a receiver that does not know it must not ignore it.
const MANDATORY: u16 = 1 << 13;

/// Numbers of attributes (`LS_NLA_TYPE_*`).
mod attribute {
    pub(super) const PATH_RECORD: u16 = 1;
    pub(super) const SERVICE_ID: u16 = 3;
    pub(super) const DGID: u16 = 4;
    pub(super) const SGID: u16 = 5;
    pub(super) const TRAFFIC_CLASS: u16 = 6;
    pub(super) const PKEY: u16 = 7;
    pub(super) const QOS_CLASS: u16 = 8;
    pub(super) const IPV4: u16 = 9;
    pub(super) const IPV6: u16 = 10;
}

/// Length of a path record (IBTA 15.2.5.16).
pub const PATH_RECORD: usize = 64;

/// Flags of a path record in an answer: the first choice, for management too, in both directions.
const PATH_FLAGS: u32 = 1 | 2 | 8 | 32;

/// Length of an answer with a path record: header, the attribute's header, flags, a reserved word,
/// the record.
pub const PATH_ANSWER: usize = HEADER + 4 + 8 + PATH_RECORD;

/// Length of an answer with a GID.
pub const ADDRESS_ANSWER: usize = HEADER + 4 + Gid::LEN;

/// Length of an answer that says nothing.
pub const REFUSAL: usize = HEADER;

/// The number by which the kernel knows its request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Sequence(u32);

impl Sequence {
    /// The number as it stands in messages.
    pub const fn new(number: u32) -> Sequence {
        Sequence(number)
    }
}

/// The path that is wanted. A field that is `None` was not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathQuestion<'a> {
    /// The RDMA device's name.
    pub device: &'a [u8],
    /// The number of its port, from 1.
    pub port: u8,
    /// Whether the way back has to be the same.
    pub reversible: bool,
    /// The service at its end.
    pub service_id: Option<u64>,
    /// The GID at which the path ends.
    pub dgid: Option<Gid>,
    /// The GID at which the path begins.
    pub sgid: Option<Gid>,
    /// The P_Key of the partition.
    pub pkey: Option<u16>,
    /// The traffic class, 8 bits.
    pub traffic_class: Option<u8>,
    /// The class of the quality of service.
    pub qos_class: Option<u16>,
}

/// A question of `ib_sa` or `rdma_cm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question<'a> {
    /// A question for the path to a GID or a service.
    Path(PathQuestion<'a>),
    /// A question for the GID of an address, behind the interface of that number.
    Address(u32, IpAddr),
}

/// Takes what the kernel asks; `None` if it is no such question.
pub fn question(message: &[u8]) -> Option<(Sequence, Question<'_>)> {
    let (header, rest) = message.split_first_chunk::<HEADER>()?;
    let [l0, l1, l2, l3, t0, t1, _, _, s0, s1, s2, s3, ..] = *header;
    let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
    let body = rest.get(..length.checked_sub(HEADER)?)?;
    let asked = match u16::from_ne_bytes([t0, t1]) {
        RESOLVE => path_question(body)?,
        IP_RESOLVE => address_question(body)?,
        _ => return None,
    };
    Some((Sequence(u32::from_ne_bytes([s0, s1, s2, s3])), asked))
}

fn path_question(body: &[u8]) -> Option<Question<'_>> {
    let (fixed, rest) = body.split_first_chunk::<PATH_FIXED>()?;
    let (name, [port, path_use, ..]) = fixed.split_first_chunk::<NAME>()? else {
        return None;
    };
    let end = name.iter().position(|byte| *byte == 0)?;
    let find = |number| find(rest, number);
    let gid = |number| {
        let bytes = <[u8; Gid::LEN]>::try_from(find(number)?).ok()?;
        Some(Gid::from_bytes(bytes))
    };
    Some(Question::Path(PathQuestion {
        device: name.get(..end)?,
        port: *port,
        reversible: *path_use == USE_ALL,
        service_id: find(attribute::SERVICE_ID)
            .and_then(|id| id.try_into().ok().map(u64::from_ne_bytes)),
        dgid: gid(attribute::DGID),
        sgid: gid(attribute::SGID),
        pkey: find(attribute::PKEY).and_then(word),
        traffic_class: find(attribute::TRAFFIC_CLASS)
            .and_then(|class| class.try_into().ok().map(u8::from_ne_bytes)),
        qos_class: find(attribute::QOS_CLASS).and_then(word),
    }))
}

fn address_question(body: &[u8]) -> Option<Question<'_>> {
    let (interface, rest) = body.split_first_chunk::<ADDRESS_FIXED>()?;
    let v4 = find(rest, attribute::IPV4)
        .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
        .map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
    let v6 = find(rest, attribute::IPV6)
        .and_then(|bytes| <[u8; 16]>::try_from(bytes).ok())
        .map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
    Some(Question::Address(
        u32::from_ne_bytes(*interface),
        v4.or(v6)?,
    ))
}

/// The value of the attribute of that number.
fn find(attributes: &[u8], number: u16) -> Option<&[u8]> {
    Attributes::new(attributes)
        .find(|attribute| attribute.number & !MANDATORY == number)
        .map(|attribute| attribute.value)
}

fn word(value: &[u8]) -> Option<u16> {
    value.try_into().ok().map(u16::from_ne_bytes)
}

/// Returns the answer that this is the path, by its record as the subnet administrator sends it.
pub fn path_answer(to: Sequence, record: &[u8; PATH_RECORD]) -> [u8; PATH_ANSWER] {
    let mut message = [0; PATH_ANSWER];
    begin(&mut message, RESOLVE, 0, to);
    put(
        &mut message,
        HEADER,
        &(4 + 8 + PATH_RECORD as u16).to_ne_bytes(),
    );
    put(
        &mut message,
        HEADER + 2,
        &attribute::PATH_RECORD.to_ne_bytes(),
    );
    put(&mut message, HEADER + 4, &PATH_FLAGS.to_ne_bytes());
    put(&mut message, HEADER + 12, record);
    message
}

/// Returns the answer that nothing is known of the path: the subnet administrator is to be asked.
pub fn path_refusal(to: Sequence) -> [u8; REFUSAL] {
    let mut message = [0; REFUSAL];
    begin(&mut message, RESOLVE, REFUSED, to);
    message
}

/// Returns the answer that this GID has the address.
pub fn address_answer(to: Sequence, gid: &Gid) -> [u8; ADDRESS_ANSWER] {
    let mut message = [0; ADDRESS_ANSWER];
    begin(&mut message, IP_RESOLVE, 0, to);
    put(&mut message, HEADER, &(4 + Gid::LEN as u16).to_ne_bytes());
    put(&mut message, HEADER + 2, &attribute::DGID.to_ne_bytes());
    put(&mut message, HEADER + 4, &gid.bytes());
    message
}

fn begin(message: &mut [u8], of_type: u16, flags: u16, to: Sequence) {
    let length = message.len() as u32;
    put(message, 0, &length.to_ne_bytes());
    put(message, 4, &of_type.to_ne_bytes());
    put(message, 6, &flags.to_ne_bytes());
    put(message, 8, &to.0.to_ne_bytes());
}

fn put(message: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = message.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_local_service))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// Room for a message in the making.
    struct Draft([u8; 256], usize);

    impl Draft {
        fn new(of_type: u16) -> Self {
            let mut draft = Self([0; 256], 0);
            draft.add(&[0; 4]);
            draft.add(&of_type.to_ne_bytes());
            draft.add(&1u16.to_ne_bytes());
            draft.add(&7u32.to_ne_bytes());
            draft.add(&[0; 4]);
            draft
        }

        fn add(&mut self, bytes: &[u8]) {
            put(&mut self.0, self.1, bytes);
            self.1 += bytes.len();
        }

        fn attribute(&mut self, number: u16, value: &[u8]) {
            self.add(&(4 + value.len() as u16).to_ne_bytes());
            self.add(&(number | MANDATORY).to_ne_bytes());
            self.add(value);
            self.1 = self.1.next_multiple_of(4);
        }

        fn end(&mut self) -> &[u8] {
            put(&mut self.0, 0, &(self.1 as u32).to_ne_bytes());
            self.0.get(..self.1).unwrap_or_default()
        }
    }

    fn gid(last: u8) -> Gid {
        Gid::from_bytes([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last])
    }

    /// A request for a path, as `rdma_cm` has one sent.
    fn path_request() -> Draft {
        let mut draft = Draft::new(RESOLVE);
        let mut name = [0; NAME];
        put(&mut name, 0, b"hca0");
        draft.add(&name);
        draft.add(&[2, USE_ALL, 0, 0]);
        draft.attribute(attribute::SERVICE_ID, &0x0106_1234u64.to_ne_bytes());
        draft.attribute(attribute::DGID, &gid(2).bytes());
        draft.attribute(attribute::SGID, &gid(1).bytes());
        draft.attribute(attribute::PKEY, &0x8001u16.to_ne_bytes());
        draft.attribute(attribute::QOS_CLASS, &3u16.to_ne_bytes());
        draft
    }

    #[test]
    fn a_question_for_a_path_is_read() {
        let mut draft = path_request();
        let wanted = Question::Path(PathQuestion {
            device: b"hca0",
            port: 2,
            reversible: true,
            service_id: Some(0x0106_1234),
            dgid: Some(gid(2)),
            sgid: Some(gid(1)),
            pkey: Some(0x8001),
            traffic_class: None,
            qos_class: Some(3),
        });
        assert_eq!(question(draft.end()), Some((Sequence(7), wanted)));
    }

    #[test]
    fn a_question_for_an_address_is_read() {
        for (number, address) in [
            (attribute::IPV4, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
            (attribute::IPV6, IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ] {
            let mut draft = Draft::new(IP_RESOLVE);
            draft.add(&5u32.to_ne_bytes());
            match address {
                IpAddr::V4(address) => draft.attribute(number, &address.octets()),
                IpAddr::V6(address) => draft.attribute(number, &address.octets()),
            }
            let asked = question(draft.end());
            assert_eq!(asked, Some((Sequence(7), Question::Address(5, address))));
        }
    }

    #[test]
    fn no_question_is_read_out_of_a_part_of_one_or_of_another_message() {
        let mut draft = path_request();
        let message = draft.end();
        for length in 0..message.len() {
            assert_eq!(question(message.get(..length).unwrap_or_default()), None);
        }
        let mut draft = Draft::new(CLIENT | 1);
        assert_eq!(question(draft.end()), None);
        // A name without an end.
        let mut draft = Draft::new(RESOLVE);
        draft.add(&[b'x'; PATH_FIXED]);
        assert_eq!(question(draft.end()), None);
    }

    #[test]
    fn answers_have_the_number_and_what_was_wanted() {
        let record = [0xab; PATH_RECORD];
        let answer = path_answer(Sequence(7), &record);
        let (header, rest) = answer.split_at(HEADER);
        let mut expected = Draft::new(RESOLVE);
        put(&mut expected.0, 6, &[0; 2]);
        put(&mut expected.0, 0, &(PATH_ANSWER as u32).to_ne_bytes());
        assert_eq!(Some(header), expected.0.get(..HEADER));
        let value = find(rest, attribute::PATH_RECORD).unwrap_or_default();
        assert_eq!(value.get(..4), Some(&43u32.to_ne_bytes()[..]));
        assert_eq!(value.get(8..), Some(&record[..]));

        let answer = address_answer(Sequence(7), &gid(3));
        let value = find(answer.get(HEADER..).unwrap_or_default(), attribute::DGID);
        assert_eq!(value, Some(&gid(3).bytes()[..]));

        let refusal = path_refusal(Sequence(9));
        assert_eq!(refusal.get(6..8), Some(&REFUSED.to_ne_bytes()[..]));
        assert_eq!(refusal.get(8..12), Some(&9u32.to_ne_bytes()[..]));
    }
}
