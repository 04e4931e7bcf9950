// SPDX-License-Identifier: GPL-2.0-only

//! The link-layer address of an IPoIB interface (RFC 4391 §9.1.1).

use core::fmt;
use zerocopy::FromBytes as _;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout,
    Unaligned, //
};

use super::gid::Gid;
use super::mgid;
use super::mgid::Scope;
use super::pkey::Pkey;
use super::qpn::Qpn;

/// A 20-byte link-layer address: what ARP and neighbour discovery carry, and what `ip link` shows
/// as the address of the interface.
///
/// The layout is ABI: `rdma_cm` reads the GID at byte 4, and, in a broadcast address, the P_Key at
/// byte 8.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct HwAddr {
    /// Connected modes on offer (RFC 4755 §3.1); the other bits are reserved.
    flags: u8,
    /// Queue pair number, network byte order.
    qpn: [u8; 3],
    /// GID of the port or of the multicast group.
    gid: Gid,
}

const _: () = assert!(size_of::<HwAddr>() == HwAddr::LEN);

impl HwAddr {
    /// The length of an address in bytes.
    pub const LEN: usize = 20;

    /// Flag: the interface takes reliable connections (RFC 4755 §3.1).
    pub const RC: u8 = 0x80;

    /// Flag: the interface takes unreliable connections (RFC 4755 §3.1).
    pub const UC: u8 = 0x40;

    /// The address of a queue pair behind a port or group, without flags: datagrams only.
    pub const fn new(qpn: Qpn, gid: Gid) -> HwAddr {
        HwAddr {
            flags: 0,
            qpn: qpn.bytes(),
            gid,
        }
    }

    /// Sees the 20 bytes of an address where they are.
    #[inline]
    pub fn from_ref(bytes: &[u8; Self::LEN]) -> &HwAddr {
        zerocopy::transmute_ref!(bytes)
    }

    /// The 16 bytes of the GID, where they are.
    #[inline]
    pub fn gid_bytes(&self) -> &[u8; Gid::LEN] {
        zerocopy::transmute_ref!(&self.gid)
    }

    /// Takes the 20 bytes of an address as they stand on the wire: any are one.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> HwAddr {
        zerocopy::transmute!(bytes)
    }

    /// Takes the bytes of an address as they stand in a packet or in a net device.
    ///
    /// # Errors
    ///
    /// [`AddrError`] if there are not exactly 20 of them.
    pub fn from_slice(bytes: &[u8]) -> Result<HwAddr, AddrError> {
        HwAddr::read_from_bytes(bytes).map_err(|_| AddrError {
            length: bytes.len(),
        })
    }

    /// The broadcast address of the IPoIB link of a partition (RFC 4391 §4).
    pub const fn broadcast(pkey: Pkey, scope: Scope) -> HwAddr {
        HwAddr::new(Qpn::MULTICAST, mgid::broadcast(pkey, scope))
    }

    /// The 20 bytes as they stand on the wire.
    pub fn as_bytes(&self) -> &[u8; Self::LEN] {
        zerocopy::transmute_ref!(self)
    }

    /// The first byte: [`HwAddr::RC`], [`HwAddr::UC`] and reserved bits.
    pub const fn flags(&self) -> u8 {
        self.flags
    }

    /// The queue pair number. [`Qpn::MULTICAST`] for a group.
    pub const fn qpn(&self) -> Qpn {
        Qpn::from_bytes(self.qpn)
    }

    /// The GID of the port or group.
    pub const fn gid(&self) -> Gid {
        self.gid
    }

    /// Returns the address with other flags.
    pub const fn with_flags(self, flags: u8) -> HwAddr {
        HwAddr { flags, ..self }
    }

    /// Returns the address with another queue pair.
    pub const fn with_qpn(self, qpn: Qpn) -> HwAddr {
        HwAddr {
            qpn: qpn.bytes(),
            ..self
        }
    }

    /// Returns the address with another GID, as an interface's address changes when its port gets
    /// a new one.
    pub const fn with_gid(self, gid: Gid) -> HwAddr {
        HwAddr { gid, ..self }
    }

    /// Returns whether both are of one queue pair behind one GID, whatever connections they offer.
    pub fn is_same_endpoint(&self, other: &HwAddr) -> bool {
        self.with_flags(0) == other.with_flags(0)
    }

    /// Returns whether packets to this address go to a multicast group, broadcast included.
    pub fn is_multicast(&self) -> bool {
        self.gid.is_multicast()
    }
}

/// Writes the address as `ip link` does: 20 pairs of lowercase hexadecimal digits, by colons.
impl fmt::Display for HwAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for byte in self.as_bytes() {
            write!(f, "{separator}{byte:02x}")?;
            separator = ":";
        }
        Ok(())
    }
}

impl fmt::Debug for HwAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why bytes are not an IPoIB link-layer address: there are not 20 of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddrError {
    /// The number of bytes that there were.
    pub length: usize,
}

impl fmt::Display for AddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an IPoIB hardware address has {} bytes, not {}",
            HwAddr::LEN,
            self.length
        )
    }
}

impl core::error::Error for AddrError {}

#[cfg_attr(KUNIT_OF_SHARED, kernel::prelude::kunit_tests(oxib_wire_hwaddr))]
#[cfg_attr(not(KUNIT_OF_SHARED), cfg(test))]
mod tests {
    use super::*;

    /// A connected-mode interface on queue pair 0x123456 of a port under the default prefix.
    const UNICAST: [u8; 20] = [
        0x80, 0x12, 0x34, 0x56, // flags, queue pair
        0xfe, 0x80, 0, 0, 0, 0, 0, 0, // prefix
        0x00, 0x02, 0xc9, 0x03, 0x00, 0x0f, 0xa1, 0xb1, // GUID
    ];

    #[test]
    fn fields_of_a_unicast_address() {
        let [_, _, _, _, gid @ ..] = UNICAST;
        let address = HwAddr::from_slice(&UNICAST);
        assert_eq!(address, Ok(HwAddr::from_bytes(UNICAST)));
        assert_eq!(address.map(|a| *a.as_bytes()), Ok(UNICAST));
        assert_eq!(address.map(|a| a.flags()), Ok(HwAddr::RC));
        assert_eq!(
            address.map(|a| a.qpn()),
            Ok(Qpn::from_bytes([0x12, 0x34, 0x56]))
        );
        assert_eq!(address.map(|a| a.gid().bytes()), Ok(gid));
        assert_eq!(address.map(|a| a.is_multicast()), Ok(false));
    }

    #[test]
    fn built_addresses() {
        let [_, q0, q1, q2, gid @ ..] = UNICAST;
        let datagrams = HwAddr::new(Qpn::from_bytes([q0, q1, q2]), Gid::from_bytes(gid));
        assert_eq!(datagrams.flags(), 0);
        assert_eq!(datagrams.with_flags(HwAddr::RC).as_bytes(), &UNICAST);
        let mapped = Gid::from_ipv4([192, 0, 2, 1]);
        assert_eq!(
            *datagrams.with_flags(HwAddr::UC).with_gid(mapped).as_bytes(),
            [0x40, 0x12, 0x34, 0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]
        );
    }

    #[test]
    fn flags_are_no_part_of_the_endpoint() {
        let address = HwAddr::from_bytes(UNICAST);
        assert!(address.is_same_endpoint(&address));
        assert!(address.is_same_endpoint(&address.with_flags(0)));
        assert!(!address.is_same_endpoint(&address.with_qpn(Qpn::MULTICAST)));
        assert!(!address.is_same_endpoint(&address.with_gid(Gid::from_ipv4([192, 0, 2, 1]))));
    }

    #[test]
    fn broadcast_address() {
        let broadcast = HwAddr::broadcast(Pkey::new(0x0001), Scope::LinkLocal);
        assert_eq!(
            *broadcast.as_bytes(),
            [
                0x00, 0xff, 0xff, 0xff, 0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0xff,
                0xff, 0xff, 0xff
            ]
        );
        assert!(broadcast.is_multicast());
        assert_eq!(broadcast.qpn(), Qpn::MULTICAST);
    }

    #[test]
    fn wrong_lengths() {
        let long = [0; 64];
        for length in (0..=64).filter(|length| *length != HwAddr::LEN) {
            let bytes = long.get(..length).unwrap_or(&long);
            assert_eq!(HwAddr::from_slice(bytes), Err(AddrError { length }));
        }
    }
}
