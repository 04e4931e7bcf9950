// SPDX-License-Identifier: GPL-2.0-only

//! An entry of the address cache, and the limits of its fields.

use core::{
    fmt,
    net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr, //
    }, //
};

use super::super::gid::Gid;
use super::super::pkey::Pkey;
use super::super::qpn::Qpn;

/// An entry as an administrator gives it: an IP address, its GID and its attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The IP address, never an IPv4-mapped one.
    pub address: IpAddr,
    /// The GID of the port that has it.
    pub gid: Gid,
    /// The queue pair of the interface there, if it is known.
    pub qpn: Option<Qpn>,
    /// The partition, if the entry is for one alone.
    pub pkey: Option<Pkey>,
    /// Seconds for which it holds; 0 for ever.
    pub lifetime: u32,
}

impl Entry {
    /// Returns whether the GID does not leave its subnet: no error, but perhaps not what was
    /// meant.
    pub fn stays_in_subnet(&self) -> bool {
        self.gid.is_link_local()
    }
}

/// Why something cannot stand in an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// An address has neither 4 nor 16 bytes.
    AddressLength(usize),
    /// An IPv4 address as the IPv6 address that stands for it.
    AddressMapped,
    /// An address of "this network": 0.0.0.0/8 or `::`.
    AddressUnspecified,
    /// A loopback address: 127.0.0.0/8 or `::1`.
    AddressLoopback,
    /// A multicast address: 224.0.0.0/4 or `ff00::/8`.
    AddressMulticast,
    /// The limited broadcast address, 255.255.255.255.
    AddressBroadcast,
    /// A GID does not have 16 bytes.
    GidLength(usize),
    /// The reserved GID, all zeros (IBTA 4.1.1).
    GidZero,
    /// The loopback GID, `::1` (IBTA 4.1.1).
    GidLoopback,
    /// A multicast GID, which is a group's and no port's.
    GidMulticast,
    /// 0 or 1, or more than 24 bits.
    Qpn(u32),
    /// A key that names no partition.
    Pkey(u16),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::AddressLength(length) => {
                write!(f, "an address has 4 or 16 bytes, not {length}")
            }
            Fault::AddressMapped => {
                f.write_str("an IPv4 address is given as 4 bytes, not IPv4-mapped")
            }
            Fault::AddressUnspecified => f.write_str("the address is unspecified (zero)"),
            Fault::AddressLoopback => f.write_str("the address is a loopback address"),
            Fault::AddressMulticast => f.write_str("the address is a multicast address"),
            Fault::AddressBroadcast => f.write_str("the address is the broadcast address"),
            Fault::GidLength(length) => write!(f, "a GID has 16 bytes, not {length}"),
            Fault::GidZero => f.write_str("the GID is the reserved one (zero)"),
            Fault::GidLoopback => f.write_str("the GID is the loopback GID"),
            Fault::GidMulticast => f.write_str("the GID is a multicast GID"),
            Fault::Qpn(number) => {
                write!(f, "QPN {number:#x} is out of range: give 0x2 to 0xffffff")
            }
            Fault::Pkey(key) => write!(f, "P_Key {key:#06x} names no partition"),
        }
    }
}

/// Checks that an address can be that of one interface.
///
/// # Errors
///
/// For one that no single interface can have.
pub fn check_address(address: IpAddr) -> Result<IpAddr, Fault> {
    let unspecified = match address {
        // "This network" (RFC 1122 §3.2.1.3): no address of any node.
        IpAddr::V4(v4) => matches!(v4.octets(), [0, ..]),
        IpAddr::V6(v6) => v6.is_unspecified(),
    };
    if unspecified {
        Err(Fault::AddressUnspecified)
    } else if address.is_loopback() {
        Err(Fault::AddressLoopback)
    } else if address.is_multicast() {
        Err(Fault::AddressMulticast)
    } else if address == IpAddr::V4(Ipv4Addr::BROADCAST) {
        Err(Fault::AddressBroadcast)
    } else {
        Ok(address)
    }
}

/// Takes an address of 4 or 16 bytes, in network byte order, unchecked beside its form.
///
/// # Errors
///
/// For another length; for an IPv4-mapped address, so that there is one form of each.
pub fn parse_address(bytes: &[u8]) -> Result<IpAddr, Fault> {
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Ok(IpAddr::V4(octets.into()));
    }
    let octets = <[u8; 16]>::try_from(bytes).map_err(|_| Fault::AddressLength(bytes.len()))?;
    let address = Ipv6Addr::from(octets);
    match address.to_ipv4_mapped() {
        Some(_) => Err(Fault::AddressMapped),
        None => Ok(IpAddr::V6(address)),
    }
}

/// Takes the GID of a port.
///
/// # Errors
///
/// For a wrong length, and for a GID that no port can have.
pub fn parse_gid(bytes: &[u8]) -> Result<Gid, Fault> {
    let bytes = <[u8; 16]>::try_from(bytes).map_err(|_| Fault::GidLength(bytes.len()))?;
    let gid = Gid::from_bytes(bytes);
    if gid.is_zero() {
        Err(Fault::GidZero)
    } else if gid.is_multicast() {
        Err(Fault::GidMulticast)
    } else if gid.is_routable() || gid.is_link_local() {
        Ok(gid)
    } else {
        Err(Fault::GidLoopback)
    }
}

/// Takes the number of an interface's queue pair.
///
/// # Errors
///
/// For the special queue pairs, and what 24 bits do not hold.
pub fn parse_qpn(number: u32) -> Result<Qpn, Fault> {
    Qpn::new(number)
        .filter(|qpn| !qpn.is_special())
        .ok_or(Fault::Qpn(number))
}

/// Takes the key of a partition.
///
/// # Errors
///
/// For one with low 15 bits of zero.
pub fn parse_pkey(key: u16) -> Result<Pkey, Fault> {
    let pkey = Pkey::new(key);
    if pkey.is_valid() {
        Ok(pkey)
    } else {
        Err(Fault::Pkey(key))
    }
}

/// The 16 bytes by which an address is found: IPv4 in its mapped form.
#[inline]
pub fn to_key(address: IpAddr) -> [u8; 16] {
    // As numbers, which take registers: byte by byte it costs half a look-up.
    let number = match address {
        IpAddr::V4(v4) => 0xffff_0000_0000 | u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    };
    number.to_be_bytes()
}

/// The address of such 16 bytes.
pub fn from_key(key: [u8; 16]) -> IpAddr {
    IpAddr::V6(key.into()).to_canonical()
}
