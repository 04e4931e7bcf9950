// SPDX-License-Identifier: GPL-2.0-only

//! The text of addresses and errors: people compare the former with what other tools print and
//! act on the latter.

use oxib_wire::arp::ArpError;
use oxib_wire::encap::EncapError;
use oxib_wire::gid::Gid;
use oxib_wire::grh::GrhError;
use oxib_wire::hwaddr::{
    AddrError,
    HwAddr, //
};
use oxib_wire::mgid::Scope;
use oxib_wire::nd::NdError;
use oxib_wire::pkey::Pkey;
use oxib_wire::qpn::Qpn;
use std::error::Error;

#[test]
fn gids_read_as_in_sysfs() {
    let table = [
        (Gid::ZERO, "0000:0000:0000:0000:0000:0000:0000:0000"),
        (
            Gid::from_ipv4([192, 0, 2, 1]),
            "0000:0000:0000:0000:0000:ffff:c000:0201",
        ),
        (
            Gid::from_bytes([
                0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x02, 0xc9, 0x03, 0, 0x0f, 0xa1, 0xb1,
            ]),
            "fe80:0000:0000:0000:0002:c903:000f:a1b1",
        ),
    ];
    for (gid, text) in table {
        assert_eq!(gid.to_string(), text);
        assert_eq!(format!("{gid:?}"), text);
    }
}

#[test]
fn hardware_addresses_read_as_in_ip_link() {
    let broadcast = HwAddr::broadcast(Pkey::DEFAULT, Scope::LinkLocal);
    let text = "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff";
    assert_eq!(broadcast.to_string(), text);
    assert_eq!(format!("{broadcast:?}"), text);
}

#[test]
fn numbers() {
    let qpn = Qpn::from_bytes([0, 0x01, 0x23]);
    assert_eq!(qpn.to_string(), "291");
    assert_eq!(format!("{qpn:?}"), "0x000123");
    assert_eq!(format!("{:?}", Qpn::MULTICAST), "0xffffff");
    assert_eq!(Pkey::new(0x0001).to_string(), "0x0001");
    assert_eq!(format!("{:?}", Pkey::DEFAULT), "0xffff");
}

#[test]
fn errors() {
    let table: [(&dyn Error, &str); 17] = [
        (
            &AddrError { length: 6 },
            "an IPoIB hardware address has 20 bytes, not 6",
        ),
        (
            &EncapError::Short(3),
            "datagram of 3 bytes is shorter than the 4 bytes of the IPoIB header",
        ),
        (
            &EncapError::EtherType(0x8100),
            "IPoIB does not carry ethertype 0x8100",
        ),
        (&GrhError::Version(4), "route header of version 4"),
        (
            &GrhError::HeaderLength(6),
            "IPv4 route header of 6 words, not 5",
        ),
        (
            &GrhError::NextHeader(6),
            "route header before protocol 0x06",
        ),
        (
            &GrhError::MulticastSource(Gid::from_ipv4([224, 0, 0, 1])),
            "route header from the multicast group 0000:0000:0000:0000:0000:ffff:e000:0001",
        ),
        (
            &ArpError::Short(28),
            "ARP packet of 28 bytes, where IPoIB's has 56",
        ),
        (
            &ArpError::HardwareType(1),
            "ARP packet of hardware type 1, not 32",
        ),
        (
            &ArpError::ProtocolType(0x86dd),
            "ARP packet for protocol 0x86dd, not IPv4",
        ),
        (
            &ArpError::HardwareLength(6),
            "ARP packet with hardware addresses of 6 bytes, not 20",
        ),
        (
            &ArpError::ProtocolLength(16),
            "ARP packet with protocol addresses of 16 bytes, not 4",
        ),
        (&ArpError::Operation(9), "ARP packet with operation 9"),
        (
            &NdError::Short(5),
            "neighbour discovery message ends within option 5",
        ),
        (
            &NdError::ZeroLength(5),
            "neighbour discovery option 5 of length 0",
        ),
        (
            &NdError::AddressLength(1),
            "link-layer address option of length 1, where IPoIB's has 3",
        ),
        (
            &NdError::Short(0),
            "neighbour discovery message ends within option 0",
        ),
    ];
    for (error, text) in table {
        assert_eq!(error.to_string(), text);
    }
}
