// SPDX-License-Identifier: GPL-2.0-only

//! Properties of what the kernel asks a local service for paths and addresses.

use oxib_wire::gid::Gid;
use oxib_wire::local_service::{
    address_answer,
    path_answer,
    path_refusal,
    question,
    PathQuestion,
    Question, //
};
use oxib_wire::netlink::Attributes;
use proptest::prelude::*;
use std::net::IpAddr;

const RESOLVE: u16 = 4 << 10;
const IP_RESOLVE: u16 = 4 << 10 | 2;

/// An attribute: its number, with the flag that it is mandatory or without, and its value.
type Attribute = (u16, bool, Vec<u8>);

fn message(of_type: u16, sequence: u32, fixed: &[u8], attributes: &[Attribute]) -> Vec<u8> {
    let mut body = fixed.to_vec();
    for (number, is_mandatory, value) in attributes {
        body.extend((4 + value.len() as u16).to_ne_bytes());
        body.extend((number | u16::from(*is_mandatory) << 13).to_ne_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(of_type.to_ne_bytes());
    message.extend(1_u16.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

fn fixed(device: &[u8], port: u8, path_use: u8) -> Vec<u8> {
    let mut fixed = device.to_vec();
    fixed.resize(64, 0);
    fixed.extend([port, path_use, 0, 0]);
    fixed
}

/// Attributes that no question has, and an order of all.
fn with_others() -> impl Strategy<Value = (Vec<Attribute>, u64)> {
    let other = (
        11..4096_u16,
        any::<bool>(),
        proptest::collection::vec(any::<u8>(), 0..40),
    );
    (proptest::collection::vec(other, 0..4), any::<u64>())
}

/// Puts them into an order that a number chooses.
fn shuffle(attributes: &mut [Attribute], mut order: u64) {
    for end in (1..attributes.len()).rev() {
        let choices = end as u64 + 1;
        attributes.swap(end, (order % choices) as usize);
        order /= choices;
    }
}

proptest! {
    #[test]
    fn a_path_is_asked_for_in_any_order(
        device in "[a-z0-9_]{1,63}",
        (port, path_use, sequence) in any::<(u8, u8, u32)>(),
        (service_id, pkey) in any::<(Option<u64>, Option<u16>)>(),
        (sgid, dgid) in any::<(Option<[u8; 16]>, Option<[u8; 16]>)>(),
        (traffic_class, qos_class) in any::<(Option<u8>, Option<u16>)>(),
        (mut attributes, order) in with_others(),
    ) {
        let said = [
            service_id.map(|id| (3, true, id.to_ne_bytes().to_vec())),
            dgid.map(|gid| (4, true, gid.to_vec())),
            sgid.map(|gid| (5, false, gid.to_vec())),
            traffic_class.map(|class| (6, true, vec![class])),
            pkey.map(|pkey| (7, true, pkey.to_ne_bytes().to_vec())),
            qos_class.map(|class| (8, false, class.to_ne_bytes().to_vec())),
        ];
        attributes.extend(said.into_iter().flatten());
        shuffle(&mut attributes, order);
        let fixed = fixed(device.as_bytes(), port, path_use);
        let message = message(RESOLVE, sequence, &fixed, &attributes);
        let (number, asked) = question(&message).unwrap();
        prop_assert_eq!(asked, Question::Path(PathQuestion {
            device: device.as_bytes(),
            port,
            reversible: path_use == 0,
            service_id,
            dgid: dgid.map(Gid::from_bytes),
            sgid: sgid.map(Gid::from_bytes),
            pkey,
            traffic_class,
            qos_class,
        }));
        prop_assert_eq!(&path_refusal(number)[8..12], &message[8..12]);
        // One that is cut is none.
        prop_assert_eq!(question(&message[..message.len() - 1]), None);
    }

    #[test]
    fn an_address_is_asked_for(
        address in any::<IpAddr>(),
        (interface, sequence) in any::<(u32, u32)>(),
        gid in any::<[u8; 16]>(),
        (mut attributes, order) in with_others(),
    ) {
        attributes.push(match address {
            IpAddr::V4(address) => (9, true, address.octets().to_vec()),
            IpAddr::V6(address) => (10, true, address.octets().to_vec()),
        });
        shuffle(&mut attributes, order);
        let message = message(IP_RESOLVE, sequence, &interface.to_ne_bytes(), &attributes);
        let (number, asked) = question(&message).unwrap();
        prop_assert_eq!(asked, Question::Address(interface, address));
        let answer = address_answer(number, &Gid::from_bytes(gid));
        prop_assert_eq!(&answer[8..12], &message[8..12]);
        prop_assert_eq!(Attributes::new(&answer[16..]).get(4).unwrap().value, &gid);
    }

    /// Values that are too short or too long for what they are to be are as if not said.
    #[test]
    fn values_of_other_lengths_are_not_taken(
        number in 3..=10_u16,
        value in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let attributes = [(number, true, value.clone())];
        let message = message(RESOLVE, 7, &fixed(b"hca0", 1, 0), &attributes);
        let Some((_, Question::Path(asked))) = question(&message) else {
            return Err(TestCaseError::fail("it is a question"));
        };
        prop_assert_eq!(asked.service_id.is_some(), number == 3 && value.len() == 8);
        prop_assert_eq!(asked.dgid.is_some(), number == 4 && value.len() == 16);
        prop_assert_eq!(asked.sgid.is_some(), number == 5 && value.len() == 16);
        prop_assert_eq!(asked.traffic_class.is_some(), number == 6 && value.len() == 1);
        prop_assert_eq!(asked.pkey.is_some(), number == 7 && value.len() == 2);
        prop_assert_eq!(asked.qos_class.is_some(), number == 8 && value.len() == 2);
    }

    #[test]
    fn answers_are_whole_messages(record in any::<[u8; 64]>(), sequence in any::<u32>()) {
        let message = message(RESOLVE, sequence, &fixed(b"hca0", 1, 0), &[]);
        let (number, _) = question(&message).unwrap();
        let answer = path_answer(number, &record);
        prop_assert_eq!(&answer[..4], &(answer.len() as u32).to_ne_bytes());
        prop_assert_eq!(&answer[8..12], &message[8..12]);
        let attributes: Vec<_> = Attributes::new(&answer[16..]).collect();
        prop_assert_eq!(attributes.len(), 1);
        prop_assert_eq!(attributes[0].number, 1);
        prop_assert_eq!(&attributes[0].value[8..], &record);
    }
}
