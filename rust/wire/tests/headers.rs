// SPDX-License-Identifier: GPL-2.0-only

//! Properties of what stands before a received packet: the route header and the encapsulation
//! header. The judges here read byte offsets, as the standards' pictures show them.

use oxib_wire::encap::{
    EncapError,
    EtherType,
    Header, //
};
use oxib_wire::gid::Gid;
use oxib_wire::grh;
use oxib_wire::grh::{
    Addresses,
    Grh,
    GrhError,
    NetworkType,
    Route, //
};
use proptest::prelude::*;

fn network() -> impl Strategy<Value = NetworkType> {
    prop::sample::select(vec![
        NetworkType::Infiniband,
        NetworkType::RoceV1,
        NetworkType::Ipv4,
        NetworkType::Ipv6,
    ])
}

/// Forty bytes that are right in most of the fields that are checked, so that each check is met.
fn space() -> impl Strategy<Value = [u8; 40]> {
    let version = prop::sample::select(vec![0x60, 0x65, 0x45, 0x46, 0x00, 0xff]);
    let next = prop::sample::select(vec![0x1b, 17, 6, 0]);
    (
        prop::array::uniform32(any::<u8>()),
        any::<[u8; 8]>(),
        (version.clone(), next.clone()),
        (version, next),
    )
        .prop_map(|(head, tail, (version6, next6), (version4, next4))| {
            let mut bytes = [0; 40];
            bytes[..32].copy_from_slice(&head);
            bytes[32..].copy_from_slice(&tail);
            bytes[0] = version6;
            bytes[6] = next6;
            bytes[20] = version4;
            bytes[29] = next4;
            bytes
        })
}

/// Judges a header as the table in the documentation of [`grh::parse`] does, by byte offsets.
fn judge(bytes: &[u8; 40], network: NetworkType) -> Result<Addresses, GrhError> {
    let over_ipv4 = network == NetworkType::Ipv4;
    let (start, version, next) = if over_ipv4 { (20, 4, 29) } else { (0, 6, 6) };
    let transport = match network {
        NetworkType::Infiniband | NetworkType::RoceV1 => 0x1b,
        NetworkType::Ipv4 | NetworkType::Ipv6 => 17,
    };
    if bytes[start] >> 4 != version {
        return Err(GrhError::Version(bytes[start] >> 4));
    }
    if over_ipv4 && bytes[20] & 0xf != 5 {
        return Err(GrhError::HeaderLength(bytes[20] & 0xf));
    }
    if bytes[next] != transport {
        return Err(GrhError::NextHeader(bytes[next]));
    }
    let gid = |ipv4: usize, native: usize| {
        let mut gid = [0; 16];
        if over_ipv4 {
            gid[10..12].fill(0xff);
            gid[12..].copy_from_slice(&bytes[ipv4..][..4]);
        } else {
            gid.copy_from_slice(&bytes[native..][..16]);
        }
        Gid::from_bytes(gid)
    };
    let addresses = Addresses {
        sgid: gid(32, 8),
        dgid: gid(36, 24),
    };
    if addresses.sgid.is_multicast() {
        return Err(GrhError::MulticastSource(addresses.sgid));
    }
    Ok(addresses)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn route_header_is_read_as_the_table_says(bytes in space(), network in network()) {
        prop_assert_eq!(grh::parse(&bytes, network), judge(&bytes, network));
    }

    #[test]
    fn route_header_keeps_its_bytes(mut bytes in space()) {
        let grh = Grh::from_bytes(&bytes);
        prop_assert_eq!(grh.version(), bytes[0] >> 4);
        let rebuilt = Grh::new(grh.route(), grh.addresses()).bytes();
        // All but the version, of which only one can be built.
        bytes[0] = (bytes[0] & 0xf) | 0x60;
        prop_assert_eq!(rebuilt, bytes);
    }

    #[test]
    fn built_route_header_is_accepted(
        traffic_class: u8,
        flow_label in 0..1_u32 << 20,
        payload_length: u16,
        hop_limit: u8,
        gids: ([u8; 16], [u8; 16]),
    ) {
        let addresses = Addresses {
            sgid: Gid::from_bytes(gids.0),
            dgid: Gid::from_bytes(gids.1),
        };
        prop_assume!(!addresses.sgid.is_multicast());
        let route = Route {
            traffic_class,
            flow_label,
            payload_length,
            hop_limit,
            next_header: grh::NEXT_HEADER_IBA,
        };
        let grh = Grh::new(route, addresses);
        prop_assert_eq!(grh.route(), route);
        prop_assert_eq!(grh::parse(&grh.bytes(), NetworkType::Infiniband), Ok(addresses));
    }

    #[test]
    fn datagram_is_its_header_and_the_rest(
        number in prop_oneof![
            any::<u16>(),
            prop::sample::select(vec![0x0800, 0x0806, 0x8035, 0x86dd, 0x88ca]),
        ],
        reserved: [u8; 2],
        packet in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let [high, low] = number.to_be_bytes();
        let datagram = [&[high, low][..], &reserved, &packet].concat();
        let known = [0x0800, 0x0806, 0x8035, 0x86dd, 0x88ca].contains(&number);
        match Header::parse(&datagram) {
            Ok((ethertype, rest)) => {
                prop_assert!(known);
                prop_assert_eq!(ethertype.get(), number);
                prop_assert_eq!(rest, &packet);
                prop_assert_eq!(Header::new(ethertype).bytes(), [high, low, 0, 0]);
            }
            Err(error) => {
                prop_assert!(!known);
                prop_assert_eq!(error, EncapError::EtherType(number));
            }
        }
    }

    #[test]
    fn short_datagram_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..4)) {
        prop_assert_eq!(Header::parse(&bytes), Err(EncapError::Short(bytes.len())));
    }
}

#[test]
fn every_number_is_a_protocol_or_an_error() {
    let known = (0..=u16::MAX).filter(|number| {
        let ethertype = EtherType::try_from(*number);
        assert!(
            ethertype.is_ok_and(|known| known.get() == *number)
                || ethertype == Err(EncapError::EtherType(*number))
        );
        ethertype.is_ok()
    });
    assert_eq!(known.count(), 5);
}
