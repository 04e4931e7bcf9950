// SPDX-License-Identifier: GPL-2.0-only

//! The entry that a line gives, and the text of such a line.

use oxib_wire::gid::Gid;
use std::{
    fmt,
    net::{
        IpAddr,
        Ipv6Addr, //
    }, //
};

/// An address and what is known of the port that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The IP address, never an IPv4-mapped one: that is IPv4.
    pub address: IpAddr,
    /// The GID of the port that has the address.
    pub gid: Gid,
    /// The queue pair that receives the address's packets, if it is known beforehand.
    pub qpn: Option<u32>,
    /// The partition, if the entry holds in one alone.
    pub pkey: Option<u16>,
    /// The lifetime in seconds from now; 0 for ever.
    pub lifetime: u32,
}

/// Writes the entry as a line that is read as the same entry.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.address, ShortGid(self.gid))?;
        if let Some(qpn) = self.qpn {
            write!(f, " qpn {qpn}")?;
        }
        if let Some(pkey) = self.pkey {
            write!(f, " pkey {pkey:#06x}")?;
        }
        if self.lifetime != 0 {
            write!(f, " lifetime {}", self.lifetime)?;
        }
        Ok(())
    }
}

/// A GID as an IPv6 address is written, zeros left out (RFC 5952), as the diagnostic programs and
/// ibacm have it.
#[derive(Clone, Copy, Debug)]
pub struct ShortGid(pub Gid);

impl fmt::Display for ShortGid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0.bytes()).fmt(f)
    }
}
