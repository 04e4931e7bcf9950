// SPDX-License-Identifier: GPL-2.0-only

//! Properties of the messages of connection management: what is read and built again is the same
//! message, and what is no message is refused for the right reason.

use oxib_wire::cm::build::BuildError;
use oxib_wire::cm::kind::Kind;
use oxib_wire::cm::{
    Message,
    Parameters,
    ParseError,
    INFORMATION_LEN, //
};
use oxib_wire::mad;
use oxib_wire::mad::MadError;
use proptest::prelude::*;

mod cm_fields;

type Bytes = [u8; mad::LEN];

const WITH_INFORMATION: [Kind; 3] = [Kind::Rej, Kind::SidrRep, Kind::Apr];

/// Any bytes with the header of a message of one of these kinds; in one of three the rest is
/// sparse, so that fields which are zero are met.
fn message(kinds: &'static [Kind]) -> impl Strategy<Value = (Kind, Bytes)> {
    let fill = prop_oneof![
        2 => prop::collection::vec(any::<u8>(), mad::LEN),
        1 => prop::collection::vec(prop_oneof![7 => Just(0), 1 => any::<u8>()], mad::LEN),
    ];
    (prop::sample::select(kinds), fill, 0..=72_u8).prop_map(|(kind, fill, length)| {
        let mut bytes: Bytes = fill.try_into().unwrap();
        bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
        bytes[16..18].copy_from_slice(&kind.get().to_be_bytes());
        if let Some((at, shift)) = information_length(kind) {
            bytes[at] = (length << shift) | (bytes[at] & ((1 << shift) - 1));
        }
        (kind, bytes)
    })
}

/// Returns the offset of the additional information's length, and the number of bits below it.
fn information_length(kind: Kind) -> Option<(usize, u8)> {
    match kind {
        Kind::Rej => Some((24 + 9, 1)),
        Kind::Apr => Some((24 + 8, 0)),
        Kind::SidrRep => Some((24 + 5, 0)),
        _ => None,
    }
}

/// The bits of the data that have a meaning, by the tables of the specification: the others are
/// sent as zeros.
fn meaning(kind: Kind) -> Vec<(usize, u8)> {
    match kind {
        Kind::Req => vec![
            (4, 0),
            (24, 0),
            (25, 0),
            (26, 0),
            (27, 0),
            (90, 0xf0),
            (91, 0x3f),
            (94, 0xf8),
            (95, 0xf8),
            (134, 0xf0),
            (135, 0x3f),
            (138, 0xf8),
            (139, 0xfc),
        ],
        Kind::Mra => vec![(8, 0xc0), (9, 0xf8)],
        Kind::Rej => vec![(8, 0xc0), (9, 0xfe)],
        Kind::Rep => vec![(27, 0xf0)],
        Kind::Dreq => vec![(11, 0)],
        Kind::SidrReq => vec![(6, 0), (7, 0)],
        Kind::Lap => vec![
            (8, 0),
            (9, 0),
            (10, 0),
            (11, 0),
            (15, 0xf8),
            (16, 0),
            (17, 0),
            (18, 0),
            (19, 0),
            (58, 0xf0),
            (61, 0x3f),
            (62, 0xf8),
            (63, 0xf8),
        ],
        Kind::Apr => vec![(10, 0), (11, 0)],
        Kind::Rtu | Kind::Drep | Kind::SidrRep => vec![],
    }
}

/// The message as a sender with the same meaning would send it.
fn canonical(kind: Kind, mut bytes: Bytes) -> Bytes {
    bytes[4..8].fill(0);
    bytes[18..20].fill(0);
    if !matches!(kind, Kind::Req | Kind::Rep | Kind::SidrRep) {
        bytes[20..24].fill(0);
    }
    let data = &mut bytes[24..];
    for (at, mask) in meaning(kind) {
        data[at] &= mask;
    }
    if kind == Kind::Req {
        // The extended transport type without a reference to it.
        if data[43] & 0x06 != 0x06 {
            data[51] &= 0xf8;
        }
        // No alternate path: what is left is whether suggestions are taken.
        if data[96..98] == [0, 0] {
            data[96..139].fill(0);
            data[139] &= 0x04;
        }
    }
    if let Some((at, shift)) = information_length(kind) {
        let length = usize::from(bytes[at] >> shift);
        let end = mad::LEN - kind.private_data_len();
        bytes[end - INFORMATION_LEN + length..end].fill(0);
    }
    bytes
}

/// Returns the parameters with other private data.
fn with_private_data<'a>(mut parameters: Parameters<'a>, bytes: &'a [u8]) -> Parameters<'a> {
    *match &mut parameters {
        Parameters::Req(parameters) => &mut parameters.private_data,
        Parameters::Mra(parameters) => &mut parameters.private_data,
        Parameters::Rej(parameters) => &mut parameters.private_data,
        Parameters::Rep(parameters) => &mut parameters.private_data,
        Parameters::Rtu(parameters) => &mut parameters.private_data,
        Parameters::Dreq(parameters) => &mut parameters.private_data,
        Parameters::Drep(parameters) => &mut parameters.private_data,
        Parameters::SidrReq(parameters) => &mut parameters.private_data,
        Parameters::SidrRep(parameters) => &mut parameters.private_data,
        Parameters::Lap(parameters) => &mut parameters.private_data,
        Parameters::Apr(parameters) => &mut parameters.private_data,
    } = bytes;
    parameters
}

/// Returns the parameters with other additional information, if they have any.
fn with_information<'a>(mut parameters: Parameters<'a>, bytes: &'a [u8]) -> Parameters<'a> {
    match &mut parameters {
        Parameters::Rej(parameters) => parameters.ari = bytes,
        Parameters::Apr(parameters) => parameters.information = bytes,
        Parameters::SidrRep(parameters) => parameters.information = bytes,
        _ => (),
    }
    parameters
}

/// Why bytes are no message, by offsets.
fn judge(bytes: &[u8]) -> Option<ParseError> {
    if bytes.len() < mad::LEN {
        return Some(ParseError::Mad(MadError::Short(bytes.len())));
    }
    let attribute = u16::from_be_bytes([bytes[16], bytes[17]]);
    let kind = Kind::ALL.into_iter().find(|kind| kind.get() == attribute);
    match *bytes {
        [version, ..] if version != 1 => Some(ParseError::Mad(MadError::BaseVersion(version))),
        [_, class, ..] if class != 7 => Some(ParseError::Class(class)),
        [_, _, version, ..] if version != 2 => Some(ParseError::ClassVersion(version)),
        [_, _, _, method, ..] if method != 3 => Some(ParseError::Method(method)),
        _ => match kind {
            None => Some(ParseError::Attribute(attribute)),
            Some(kind) => {
                let (at, shift) = information_length(kind)?;
                let length = bytes[at] >> shift;
                (length > 72).then_some(ParseError::Information { kind, length })
            }
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn every_bit_with_a_meaning_is_kept((kind, bytes) in message(&Kind::ALL)) {
        let message = Message::parse(&bytes).unwrap();
        prop_assert_eq!(message.kind(), kind);
        let parameters = cm_fields::read(message);
        let mut built = [0xee; mad::LEN];
        prop_assert_eq!(parameters.build(message.header().tid(), &mut built), Ok(()));
        prop_assert_eq!(&built[..], &canonical(kind, bytes)[..]);
        let again = Message::parse(&built).unwrap();
        prop_assert_eq!(cm_fields::read(again), parameters);
        prop_assert_eq!(again.header().tid(), message.header().tid());
    }

    /// The sender's communication ID is the first field of every message.
    #[test]
    fn the_sender_is_the_first_field((_, bytes) in message(&Kind::ALL)) {
        let name = u32::from_be_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]);
        prop_assert_eq!(Message::parse(&bytes).unwrap().sender().get(), name);
    }

    #[test]
    fn private_data_fits_or_is_refused(
        (kind, bytes) in message(&Kind::ALL),
        private_data in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let message = Message::parse(&bytes).unwrap();
        let parameters = with_private_data(cm_fields::read(message), &private_data);
        let mut built = [0xee; mad::LEN];
        let length = private_data.len();
        if length > kind.private_data_len() {
            let error = BuildError::PrivateData { kind, length };
            prop_assert_eq!(parameters.build(1, &mut built), Err(error));
            prop_assert_eq!(built, [0xee; mad::LEN]);
        } else {
            prop_assert_eq!(parameters.build(1, &mut built), Ok(()));
            let (start, zeros) = Message::parse(&built).unwrap().private_data().split_at(length);
            prop_assert_eq!(start, &private_data);
            prop_assert!(zeros.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn information_fits_or_is_refused(
        (kind, bytes) in message(&WITH_INFORMATION),
        information in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let message = Message::parse(&bytes).unwrap();
        let parameters = with_information(cm_fields::read(message), &information);
        let mut built = [0xee; mad::LEN];
        let length = information.len();
        if length > INFORMATION_LEN {
            let error = BuildError::Information { kind, length };
            prop_assert_eq!(parameters.build(1, &mut built), Err(error));
            prop_assert_eq!(built, [0xee; mad::LEN]);
        } else {
            prop_assert_eq!(parameters.build(1, &mut built), Ok(()));
            prop_assert_eq!(cm_fields::read(Message::parse(&built).unwrap()), parameters);
        }
    }

    #[test]
    fn what_is_no_message_is_refused(
        (_, bytes) in message(&Kind::ALL),
        at in prop::sample::select(vec![0, 1, 2, 3, 16, 17, 24 + 5, 24 + 8, 24 + 9]),
        value: u8,
        length in prop_oneof![3 => Just(mad::LEN), 1 => 0..mad::LEN],
    ) {
        let mut bytes = bytes;
        bytes[at] = value;
        prop_assert_eq!(Message::parse(&bytes[..length]).err(), judge(&bytes[..length]));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(Message::parse(&bytes).err(), judge(&bytes));
    }
}
