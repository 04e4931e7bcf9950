// SPDX-License-Identifier: GPL-2.0-only

//! The private data of the exchange of queue pairs, and what the stack asks for: what is parsed
//! is what is built again, and an answer to a request is about what it asks for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::encap::EtherType;
use oxib_wire::exchange::{
    is_of_interface,
    Answer,
    Question, //
};
use oxib_wire::hwaddr::HwAddr;
use oxib_wire::resolution::Request;

fuzz_target!(|input: &[u8]| {
    if let Ok(question) = Question::parse(input) {
        assert_eq!(question.bytes(), input[..Question::LEN]);
        assert_eq!(question.asker.is_ipv4(), question.asked.is_ipv4());
        assert!(is_of_interface(&question.asker) && is_of_interface(&question.asked));
    }
    if let Ok(answer) = Answer::parse(input) {
        assert_eq!(Answer::parse(&answer.bytes()), Ok(answer));
    }
    let (own, peer) = (HwAddr::from_bytes([1; 20]), HwAddr::from_bytes([2; 20]));
    for ethertype in [EtherType::Arp, EtherType::Ipv6, EtherType::Ipv4] {
        let Some(request) = Request::of(ethertype, input) else {
            continue;
        };
        assert_ne!(request.asker, request.target);
        let reply = request.answer(own, peer, false).unwrap();
        assert_eq!(reply.ethertype(), ethertype);
        // An answer asks for nothing.
        assert_eq!(Request::of(ethertype, reply.bytes()), None);
    }
});
