// SPDX-License-Identifier: GPL-2.0-only

//! Properties of the messages that find neighbours: ARP, and the options of neighbour discovery.

use oxib_wire::arp;
use oxib_wire::arp::{
    ArpError,
    Operation,
    Packet,
    Party, //
};
use oxib_wire::hwaddr::HwAddr;
use oxib_wire::nd;
use oxib_wire::nd::{
    Kind,
    LinkLayerOption,
    NdError, //
};
use proptest::prelude::*;

fn party() -> impl Strategy<Value = Party> {
    any::<([u8; 20], [u8; 4])>().prop_map(|(hardware, protocol)| Party {
        hardware: HwAddr::from_slice(&hardware).unwrap(),
        protocol,
    })
}

fn address() -> impl Strategy<Value = HwAddr> {
    party().prop_map(|party| party.hardware)
}

/// An option as bytes: its type, and its body in units of eight bytes, of which the first two
/// bytes are type and length.
fn option() -> impl Strategy<Value = Vec<u8>> {
    (0..6_u8, 1..5_usize, any::<u8>()).prop_map(|(number, units, fill)| {
        let mut bytes = vec![fill; units * 8];
        bytes[0] = number;
        bytes[1] = units as u8;
        bytes
    })
}

/// A walk over the options by byte offsets, to judge by.
fn judge(options: &[u8], kind: u8) -> Result<Option<HwAddr>, NdError> {
    let mut at = 0;
    while at < options.len() {
        let number = options[at];
        if at + 1 == options.len() {
            return Err(NdError::Short(number));
        }
        let units = options[at + 1];
        let length = usize::from(units) * 8;
        if length == 0 {
            return Err(NdError::ZeroLength(number));
        }
        if at + length > options.len() {
            return Err(NdError::Short(number));
        }
        if number == kind {
            return if length == 24 {
                Ok(HwAddr::from_slice(&options[at + 4..at + 24]).ok())
            } else {
                Err(NdError::AddressLength(units))
            };
        }
        at += length;
    }
    Ok(None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn arp_packet_comes_back(
        sender in party(),
        target in party(),
        padding in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let reply = Packet::reply(sender, target);
        let bytes = [&reply.bytes()[..], &padding].concat();
        prop_assert_eq!(Packet::parse(&bytes), Ok((Operation::Reply, &reply)));
        prop_assert_eq!((reply.sender(), reply.target()), (sender, target));

        let request = Packet::request(sender, target.protocol);
        let bytes = [&request.bytes()[..], &padding].concat();
        prop_assert_eq!(Packet::parse(&bytes), Ok((Operation::Request, &request)));
        prop_assert_eq!(request.target().protocol, target.protocol);
        prop_assert_eq!(*request.target().hardware.as_bytes(), [0; 20]);
    }

    #[test]
    fn arp_header_has_one_right_form(
        sender in party(),
        target in party(),
        index in 0..8_usize,
        value: u8,
    ) {
        let mut bytes = Packet::reply(sender, target).bytes();
        bytes[index] = value;
        let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let error = match Packet::parse(&bytes) {
            Ok((operation, packet)) => {
                prop_assert_eq!(&bytes[..6], &[0, 32, 8, 0, 20, 4]);
                prop_assert_eq!(operation.get(), number(6));
                prop_assert_eq!(packet.bytes(), bytes);
                return Ok(());
            }
            Err(error) => error,
        };
        let named = match index {
            0 | 1 => ArpError::HardwareType(number(0)),
            2 | 3 => ArpError::ProtocolType(number(2)),
            4 => ArpError::HardwareLength(value),
            5 => ArpError::ProtocolLength(value),
            _ => ArpError::Operation(number(6)),
        };
        prop_assert_eq!(error, named);
    }

    #[test]
    fn arp_packet_that_ends_early_is_refused(sender in party(), length in 0..arp::LEN) {
        let bytes = Packet::request(sender, [192, 0, 2, 1]).bytes();
        prop_assert_eq!(Packet::parse(&bytes[..length]), Err(ArpError::Short(length)));
    }

    #[test]
    fn options_are_found_as_by_offsets(
        options in prop::collection::vec(option(), 0..5),
        cut in 0..16_usize,
        kind in prop::sample::select(vec![Kind::Source, Kind::Target]),
    ) {
        let mut bytes = options.concat();
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(8)));
        prop_assert_eq!(nd::find(&bytes, kind), judge(&bytes, kind.get()));
    }

    #[test]
    fn option_bytes_at_random(bytes in prop::collection::vec(0..6_u8, 0..80)) {
        for kind in [Kind::Source, Kind::Target] {
            prop_assert_eq!(nd::find(&bytes, kind), judge(&bytes, kind.get()));
        }
    }

    #[test]
    fn built_options_are_found(source in address(), target in address(), swapped: bool) {
        let mut options = [
            LinkLayerOption::new(Kind::Source, source).bytes(),
            LinkLayerOption::new(Kind::Target, target).bytes(),
        ];
        if swapped {
            options.reverse();
        }
        let bytes = options.concat();
        prop_assert_eq!(nd::find(&bytes, Kind::Source), Ok(Some(source)));
        prop_assert_eq!(nd::find(&bytes, Kind::Target), Ok(Some(target)));
    }
}
