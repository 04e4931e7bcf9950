// SPDX-License-Identifier: GPL-2.0-only

//! The 40 bytes that a datagram queue pair writes before each received message: the global route
//! header (IBTA 8.3), or what a RoCE v2 device puts in its place (IBTA annex A17).

use core::fmt;
use zerocopy::byteorder::big_endian::{
    U16,
    U32, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::gid::Gid;

/// Length in bytes of the space before a received message, used or not.
pub const LEN: usize = 40;

/// `NxtHdr` of a packet with, as its next header, an InfiniBand transport header (IBTA 8.3.5).
pub const NEXT_HEADER_IBA: u8 = 0x1b;

/// Protocol number of UDP, which carries RoCE v2.
pub const NEXT_HEADER_UDP: u8 = 17;

const _: () = assert!(size_of::<Grh>() == LEN);
const _: () = assert!(size_of::<Ipv4Space>() == LEN);

/// The network that carries packets between ports, as a completion reports it
/// (`rdma_network_type` in the kernel's verbs).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NetworkType {
    /// InfiniBand: packets of a subnet, with or without a GRH.
    Infiniband,
    /// RoCE v1: a GRH straight over Ethernet.
    RoceV1,
    /// RoCE v2: UDP over IPv4.
    Ipv4,
    /// RoCE v2: UDP over IPv6.
    Ipv6,
}

/// The first word of a GRH: version, traffic class and flow label (IBTA 8.3.1 to 8.3.3).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
struct VersionClassFlow(U32);

impl VersionClassFlow {
    const FLOW_BITS: u32 = 20;
    const FLOW_MASK: u32 = (1 << Self::FLOW_BITS) - 1;
    const VERSION_SHIFT: u32 = 28;

    const fn new(version: u8, traffic_class: u8, flow_label: u32) -> VersionClassFlow {
        // Lossless widening; `u32::from` is not const.
        VersionClassFlow(U32::new(
            ((version as u32 & 0xf) << Self::VERSION_SHIFT)
                | ((traffic_class as u32) << Self::FLOW_BITS)
                | (flow_label & Self::FLOW_MASK),
        ))
    }

    const fn version(self) -> u8 {
        (self.0.get() >> Self::VERSION_SHIFT) as u8
    }

    const fn traffic_class(self) -> u8 {
        ((self.0.get() >> Self::FLOW_BITS) & 0xff) as u8
    }

    const fn flow_label(self) -> u32 {
        self.0.get() & Self::FLOW_MASK
    }
}

/// A global route header (IBTA 8.3): in form the header of IPv6.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Grh {
    version_class_flow: VersionClassFlow,
    payload_length: U16,
    next_header: u8,
    hop_limit: u8,
    sgid: Gid,
    dgid: Gid,
}

/// The fields of a GRH besides its addresses. Values too large for a field lose their high bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Traffic class, 8 bits.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes after the header, up to and with the invariant CRC (IBTA 8.3.4).
    pub payload_length: u16,
    /// Routers the packet may still pass.
    pub hop_limit: u8,
    /// [`NEXT_HEADER_IBA`], or [`NEXT_HEADER_UDP`] on RoCE v2.
    pub next_header: u8,
}

impl Grh {
    /// The version that every GRH has (IBTA 8.3.1).
    pub const VERSION: u8 = 6;

    /// A header between two ports.
    pub const fn new(route: Route, addresses: Addresses) -> Grh {
        Grh {
            version_class_flow: VersionClassFlow::new(
                Self::VERSION,
                route.traffic_class,
                route.flow_label,
            ),
            payload_length: U16::new(route.payload_length),
            next_header: route.next_header,
            hop_limit: route.hop_limit,
            sgid: addresses.sgid,
            dgid: addresses.dgid,
        }
    }

    /// A view of the 40 bytes before a message, unjudged.
    pub fn from_bytes(bytes: &[u8; LEN]) -> &Grh {
        zerocopy::transmute_ref!(bytes)
    }

    /// The 40 bytes as they stand on the wire.
    pub const fn bytes(self) -> [u8; LEN] {
        zerocopy::transmute!(self)
    }

    /// The version field, which should be [`Grh::VERSION`].
    pub const fn version(&self) -> u8 {
        self.version_class_flow.version()
    }

    /// All but the version and the addresses.
    pub const fn route(&self) -> Route {
        Route {
            traffic_class: self.version_class_flow.traffic_class(),
            flow_label: self.version_class_flow.flow_label(),
            payload_length: self.payload_length.get(),
            hop_limit: self.hop_limit,
            next_header: self.next_header,
        }
    }

    /// The GIDs that the packet came from and went to.
    pub const fn addresses(&self) -> Addresses {
        Addresses {
            sgid: self.sgid,
            dgid: self.dgid,
        }
    }

    /// Checks the fields that do not depend on the packet against what the network must deliver.
    #[inline]
    fn check(&self, next_header: u8) -> Result<Addresses, GrhError> {
        if self.version() != Self::VERSION {
            return Err(GrhError::Version(self.version()));
        }
        if self.next_header != next_header {
            return Err(GrhError::NextHeader(self.next_header));
        }
        self.addresses().check()
    }
}

/// The space as a RoCE v2 device fills it for a packet that came over IPv4: the IPv4 header in the
/// last 20 bytes, without options (IBTA annex A17).
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
struct Ipv4Space {
    /// Undefined: rxe writes zeros, other devices leave what was there.
    undefined: [u8; 20],
    /// Version in the high half, header length in words in the low half.
    version_length: u8,
    type_of_service: u8,
    total_length: U16,
    identification: U16,
    flags_fragment: U16,
    time_to_live: u8,
    protocol: u8,
    checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

impl Ipv4Space {
    const VERSION: u8 = 4;

    /// The length in 32-bit words of an IPv4 header without options.
    const HEADER_WORDS: u8 = 5;

    /// Checks the header that has passed the receiver's IP layer (or the hardware's) and was then
    /// copied here.
    ///
    /// The checksum is not one of the fields: a packet that rxe loops back within the host has
    /// never been through the IP layer and carries none.
    #[inline]
    fn check(&self) -> Result<Addresses, GrhError> {
        let version = self.version_length >> 4;
        if version != Self::VERSION {
            return Err(GrhError::Version(version));
        }
        let words = self.version_length & 0xf;
        if words != Self::HEADER_WORDS {
            return Err(GrhError::HeaderLength(words));
        }
        if self.protocol != NEXT_HEADER_UDP {
            return Err(GrhError::NextHeader(self.protocol));
        }
        Addresses {
            sgid: Gid::from_ipv4(self.source),
            dgid: Gid::from_ipv4(self.destination),
        }
        .check()
    }

    /// Returns whether there is an IPv4 header without options, and its checksum is right.
    fn is_intact(&self) -> bool {
        let words: &[U16; LEN / 2] = zerocopy::transmute_ref!(self);
        let header = words
            .iter()
            .skip(words.len() - 2 * usize::from(Self::HEADER_WORDS));
        let sum: u32 = header.map(|word| u32::from(word.get())).sum();
        // In ones' complement arithmetic the sum is a zero then (RFC 791 §3.1).
        self.version_length == (Self::VERSION << 4) | Self::HEADER_WORDS && sum % 0xffff == 0
    }
}

/// The two ends of a packet's way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Addresses {
    /// The GID of the sender's port.
    pub sgid: Gid,
    /// The receiver's port, or the multicast group.
    pub dgid: Gid,
}

impl Addresses {
    #[inline]
    fn check(self) -> Result<Addresses, GrhError> {
        if self.sgid.is_multicast() {
            return Err(GrhError::MulticastSource(self.sgid));
        }
        Ok(self)
    }
}

/// Reads the addresses out of the 40 bytes before a received message, which the completion said to
/// be filled in the way of this network.
///
/// Each network delivers these fields, which are therefore demanded:
///
/// | network | version | header length | next header |
/// | --- | --- | --- | --- |
/// | InfiniBand, RoCE v1 | 6 | – | 0x1b |
/// | RoCE v2 over IPv6 | 6 | – | UDP |
/// | RoCE v2 over IPv4 | 4 | 5 words | UDP |
///
/// # Errors
///
/// [`GrhError`], for the first field from the left of the table that is wrong, and last for a
/// source that is a multicast group.
#[inline]
pub fn parse(bytes: &[u8; LEN], network: NetworkType) -> Result<Addresses, GrhError> {
    match network {
        NetworkType::Infiniband | NetworkType::RoceV1 => {
            Grh::from_bytes(bytes).check(NEXT_HEADER_IBA)
        }
        NetworkType::Ipv6 => Grh::from_bytes(bytes).check(NEXT_HEADER_UDP),
        NetworkType::Ipv4 => {
            let space: &Ipv4Space = zerocopy::transmute_ref!(bytes);
            space.check()
        }
    }
}

/// Returns the network by which a message came over Ethernet, as the 40 bytes before it look: some
/// devices do not report it in the completion (mlx4). [`parse`] judges the header.
///
/// The bytes before an IPv4 header may be anything. Where they look like a header of version 6,
/// the IPv4 header counts only if its checksum is right; otherwise it counts without one, which
/// rxe does not write into what it loops back.
pub fn network_over_ethernet(bytes: &[u8; LEN]) -> NetworkType {
    let grh = Grh::from_bytes(bytes);
    let space: &Ipv4Space = zerocopy::transmute_ref!(bytes);
    let is_ipv4 = match grh.version() {
        Grh::VERSION => space.is_intact(),
        _ => space.version_length >> 4 == Ipv4Space::VERSION,
    };
    match grh.next_header {
        _ if is_ipv4 => NetworkType::Ipv4,
        NEXT_HEADER_UDP => NetworkType::Ipv6,
        _ => NetworkType::RoceV1,
    }
}

/// The way in which the header before a received message contradicts the network that it came by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GrhError {
    /// The version field: not 4 over IPv4, not 6 over anything else.
    Version(u8),
    /// The length of the IPv4 header in 32-bit words: not 5, though RoCE v2 knows no options.
    HeaderLength(u8),
    /// The next header: not UDP over RoCE v2, not the InfiniBand transport over anything else.
    NextHeader(u8),
    /// The source is a multicast group, which cannot send (IBTA 4.1.1).
    MulticastSource(Gid),
}

impl fmt::Display for GrhError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GrhError::Version(version) => write!(f, "route header of version {version}"),
            GrhError::HeaderLength(words) => {
                write!(f, "IPv4 route header of {words} words, not 5")
            }
            GrhError::NextHeader(number) => write!(f, "route header before protocol {number:#04x}"),
            GrhError::MulticastSource(gid) => {
                write!(f, "route header from the multicast group {gid}")
            }
        }
    }
}

impl core::error::Error for GrhError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_grh))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// A GRH to the broadcast group from fe80::2:c903:f:a1b1: class 0x5a, flow 0x12345, 64 bytes.
    const BROADCAST: [u8; LEN] = [
        0x65, 0xa1, 0x23, 0x45, 0x00, 0x40, 0x1b, 0x00, //
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1, //
        0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
    ];

    /// The IPv4 header of rxe from 192.0.2.1 to 239.64.0.1: don't fragment, time to live 64, a
    /// zero checksum.
    const OVER_IPV4: [u8; LEN] = [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, //
        0x45, 0x00, 0x00, 0x54, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, //
        192, 0, 2, 1, 239, 64, 0, 1,
    ];

    /// Replaces the byte at an index.
    fn with(mut bytes: [u8; LEN], index: usize, value: u8) -> [u8; LEN] {
        if let Some(byte) = bytes.get_mut(index) {
            *byte = value;
        }
        bytes
    }

    #[test]
    fn fields_of_a_header() {
        let grh = Grh::from_bytes(&BROADCAST);
        let route = Route {
            traffic_class: 0x5a,
            flow_label: 0x12345,
            payload_length: 64,
            hop_limit: 0,
            next_header: NEXT_HEADER_IBA,
        };
        assert_eq!(grh.version(), 6);
        assert_eq!(grh.route(), route);
        assert_eq!(Grh::new(route, grh.addresses()).bytes(), BROADCAST);
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        let addresses = Grh::from_bytes(&BROADCAST).addresses();
        let route = Route {
            traffic_class: 0xff,
            flow_label: u32::MAX,
            payload_length: 0,
            hop_limit: 0xff,
            next_header: 0,
        };
        let bytes = Grh::new(route, addresses).bytes();
        let fields = [0x6f, 0xff, 0xff, 0xff, 0, 0, 0, 0xff];
        assert!(bytes.starts_with(&fields));
        let route = Route {
            traffic_class: 0,
            flow_label: 0xfff0_0000,
            payload_length: 0xffff,
            hop_limit: 0,
            next_header: 0xff,
        };
        let bytes = Grh::new(route, addresses).bytes();
        let fields = [0x60, 0, 0, 0, 0xff, 0xff, 0xff, 0];
        assert!(bytes.starts_with(&fields));
    }

    #[test]
    fn addresses_by_network() {
        let [_, _, _, _, _, _, _, _, gids @ ..] = BROADCAST;
        let native = gids
            .first_chunk()
            .zip(gids.last_chunk())
            .map(|(sgid, dgid)| Addresses {
                sgid: Gid::from_bytes(*sgid),
                dgid: Gid::from_bytes(*dgid),
            });
        let udp = with(BROADCAST, 6, NEXT_HEADER_UDP);
        let over_ipv4 = Some(Addresses {
            sgid: Gid::from_ipv4([192, 0, 2, 1]),
            dgid: Gid::from_ipv4([239, 64, 0, 1]),
        });
        // Before the IPv4 header there may be anything, the version of a GRH too.
        let garbled = with(OVER_IPV4, 0, 0x60);
        let table = [
            (&BROADCAST, NetworkType::Infiniband, native),
            (&BROADCAST, NetworkType::RoceV1, native),
            (&udp, NetworkType::Ipv6, native),
            (&OVER_IPV4, NetworkType::Ipv4, over_ipv4),
            (&garbled, NetworkType::Ipv4, over_ipv4),
        ];
        for (bytes, network, addresses) in table {
            assert_eq!(parse(bytes, network).ok(), addresses);
        }
    }

    #[test]
    fn networks_over_ethernet() {
        let udp = with(BROADCAST, 6, NEXT_HEADER_UDP);
        // What is before the IPv4 header looks like the start of one of version 6.
        let garbled = with(with(OVER_IPV4, 0, 0x60), 6, NEXT_HEADER_UDP);
        let intact = with(with(garbled, 30, 0x77), 31, 0x22);
        let table = [
            (BROADCAST, NetworkType::RoceV1),
            (udp, NetworkType::Ipv6),
            (OVER_IPV4, NetworkType::Ipv4),
            (with(OVER_IPV4, 0, 0xff), NetworkType::Ipv4),
            (intact, NetworkType::Ipv4),
            // A checksum that is wrong, or of a header of another form.
            (garbled, NetworkType::Ipv6),
            (with(intact, 39, 2), NetworkType::Ipv6),
            (with(with(intact, 20, 0x46), 30, 0x76), NetworkType::Ipv6),
            (with(with(intact, 20, 0x55), 30, 0x67), NetworkType::Ipv6),
            // Nothing that is known: `parse` refuses it.
            ([0; LEN], NetworkType::RoceV1),
        ];
        for (bytes, network) in table {
            assert_eq!(network_over_ethernet(&bytes), network);
        }
    }

    #[test]
    fn lies() {
        let mapped_group = Gid::from_ipv4([224, 0, 2, 1]);
        let table = [
            // A version of another network's header.
            (
                with(BROADCAST, 0, 0x45),
                NetworkType::Infiniband,
                GrhError::Version(4),
            ),
            (
                with(BROADCAST, 0, 0x05),
                NetworkType::RoceV1,
                GrhError::Version(0),
            ),
            (OVER_IPV4, NetworkType::Ipv6, GrhError::Version(0)),
            (BROADCAST, NetworkType::Ipv4, GrhError::Version(0)),
            (
                with(OVER_IPV4, 20, 0x65),
                NetworkType::Ipv4,
                GrhError::Version(6),
            ),
            // Options, or less than a header.
            (
                with(OVER_IPV4, 20, 0x46),
                NetworkType::Ipv4,
                GrhError::HeaderLength(6),
            ),
            (
                with(OVER_IPV4, 20, 0x44),
                NetworkType::Ipv4,
                GrhError::HeaderLength(4),
            ),
            // Another transport.
            (BROADCAST, NetworkType::Ipv6, GrhError::NextHeader(0x1b)),
            (
                with(BROADCAST, 6, 17),
                NetworkType::Infiniband,
                GrhError::NextHeader(17),
            ),
            (
                with(BROADCAST, 6, 17),
                NetworkType::RoceV1,
                GrhError::NextHeader(17),
            ),
            (
                with(OVER_IPV4, 29, 6),
                NetworkType::Ipv4,
                GrhError::NextHeader(6),
            ),
            // Sent by a group.
            (
                with(OVER_IPV4, 32, 224),
                NetworkType::Ipv4,
                GrhError::MulticastSource(mapped_group),
            ),
        ];
        for (bytes, network, error) in table {
            assert_eq!(parse(&bytes, network), Err(error));
        }
    }
}
