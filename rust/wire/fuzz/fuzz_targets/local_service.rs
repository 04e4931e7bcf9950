// SPDX-License-Identifier: GPL-2.0-only

//! Questions of the kernel to a local service. One that is taken is as long as it says; its device
//! has a name within the room for one; and answers to it have its number and are whole.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxib_wire::gid::Gid;
use oxib_wire::local_service::{
    address_answer,
    path_answer,
    path_refusal,
    question,
    Question, //
};
use oxib_wire::netlink::Attributes;

/// An answer of one attribute, or of none.
fn check(answer: &[u8], asked: &[u8], attributes: usize) {
    assert_eq!(answer[..4], (answer.len() as u32).to_ne_bytes());
    assert_eq!(answer[8..12], asked[8..12]);
    assert_eq!(Attributes::new(&answer[16..]).count(), attributes);
}

fuzz_target!(|bytes: &[u8]| {
    let Some((number, asked)) = question(bytes) else {
        return;
    };
    let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    assert!(length <= bytes.len());
    // What comes behind its end changes nothing.
    assert_eq!(question(&bytes[..length]), Some((number, asked)));
    match asked {
        Question::Path(path) => {
            assert!(path.device.len() < 64 && !path.device.contains(&0));
            assert_eq!(path.device, &bytes[16..16 + path.device.len()]);
            check(&path_answer(number, &[0xab; 64]), bytes, 1);
            check(&path_refusal(number), bytes, 0);
        }
        Question::Address(interface, _) => {
            assert_eq!(interface.to_ne_bytes(), bytes[16..20]);
            check(&address_answer(number, &Gid::ZERO), bytes, 1);
        }
    }
});
