// SPDX-License-Identifier: GPL-2.0-only

//! The entry that a line has, and the text of such a line.

use oxib_wire::gid::Gid;
use std::{
    fmt,
    net::{
        IpAddr,
        Ipv6Addr, //
    }, //
};

/// An address, and the properties of the port that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The IP address, never an IPv4-mapped IPv6 address.
    pub address: IpAddr,
    /// The GID of the port that has the address.
    pub gid: Gid,
    /// The number of the queue pair that receives the address's packets, if it is configured.
    pub qpn: Option<u32>,
    /// The P_Key of the only partition for which the entry is valid; `None` for all partitions.
    pub pkey: Option<u16>,
    /// The lifetime in seconds from now; 0 for an entry that does not expire.
    pub lifetime: u32,
}

/// Writes the entry as a line; parsing it gives the same entry.
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

/// A GID in the notation of an IPv6 address, zeros compressed (RFC 5952), as infiniband-diags and
/// ibacm write it.
#[derive(Clone, Copy, Debug)]
pub struct ShortGid(pub Gid);

impl fmt::Display for ShortGid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0.bytes()).fmt(f)
    }
}
