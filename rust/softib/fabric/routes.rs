// SPDX-License-Identifier: GPL-2.0-only

//! Entries of a router's tables, and the line of text that each is written as.

use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

use super::wire::gid::Gid;
use super::wire::lid::Lid;

/// A subnet that is reached through another router. As text: `fec0:0:0:3::/64 2 17`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The prefix of the subnet.
    pub prefix: u64,
    /// The port by which to leave for it.
    pub port: u8,
    /// The address of the next router there.
    pub router: Lid,
}

/// The LID of a port of an attached subnet. As text: `fec0:0:0:2::1:203 5`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// The GID of the port, with the prefix of its subnet.
    pub gid: Gid,
    /// The LID of the port in its subnet.
    pub lid: Lid,
}

/// A mistake in a line of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A route has other words.
    RouteWords,
    /// A neighbour has other words.
    NeighbourWords,
    /// The first word of a route is no prefix that a router forwards to.
    Prefix,
    /// The first word of a neighbour is no GID that a router forwards to.
    Gid,
    /// The port is no number that one has.
    Port,
    /// The LID is no number that one has.
    Lid,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mistake::RouteWords => {
                "a route is a subnet's prefix, a port, and the next router's LID: fec0:0:0:3::/64 \
                 2 17"
            }
            Mistake::NeighbourWords => "a neighbour is a GID and its LID: fec0:0:0:2::1:203 5",
            Mistake::Prefix => {
                "a prefix has 64 bits, as fec0:0:0:3::/64, and is neither link-local nor multicast"
            }
            Mistake::Gid => {
                "a GID has its subnet's prefix, as fec0:0:0:2::1:203, and is neither link-local \
                 nor multicast"
            }
            Mistake::Port => "a port is a number from 1 on",
            Mistake::Lid => "a LID is a number from 1 to 49151 (0xbfff)",
        })
    }
}

/// A GID that a router forwards to.
fn global(text: &str) -> Option<Gid> {
    let address: Ipv6Addr = text.parse().ok()?;
    let gid = Gid::from_bytes(address.octets());
    let stays = gid.is_multicast() || gid.is_link_local() || prefix(&gid) == 0;
    (!stays).then_some(gid)
}

/// The first half of a GID.
pub(super) fn prefix(gid: &Gid) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = gid.bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// An address of one port, in decimal, or in hexadecimal with `0x` before it.
fn lid(text: &str) -> Result<Lid, Mistake> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let lid = Lid::new(number.map_err(|_| Mistake::Lid)?);
    lid.is_unicast().then_some(lid).ok_or(Mistake::Lid)
}

impl FromStr for Route {
    type Err = Mistake;

    fn from_str(line: &str) -> Result<Route, Mistake> {
        let mut words = line.split_ascii_whitespace();
        let (Some(first), Some(port), Some(router), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Mistake::RouteWords);
        };
        let subnet = first
            .strip_suffix("/64")
            .and_then(global)
            .map(|gid| u128::from_be_bytes(gid.bytes()))
            .filter(|bits| *bits as u64 == 0)
            .ok_or(Mistake::Prefix)?;
        let port = port.parse().map_err(|_| Mistake::Port)?;
        if port == 0 {
            return Err(Mistake::Port);
        }
        Ok(Route {
            prefix: (subnet >> 64) as u64,
            port,
            router: lid(router)?,
        })
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = Ipv6Addr::from(u128::from(self.prefix) << 64);
        write!(f, "{prefix}/64 {} {}", self.port, self.router.get())
    }
}

impl FromStr for Neighbour {
    type Err = Mistake;

    fn from_str(line: &str) -> Result<Neighbour, Mistake> {
        let mut words = line.split_ascii_whitespace();
        let (Some(gid), Some(address), None) = (words.next(), words.next(), words.next()) else {
            return Err(Mistake::NeighbourWords);
        };
        Ok(Neighbour {
            gid: global(gid).ok_or(Mistake::Gid)?,
            lid: lid(address)?,
        })
    }
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gid = Ipv6Addr::from(self.gid.bytes());
        write!(f, "{gid} {}", self.lid.get())
    }
}

#[cfg(all(test, not(CONFIG_RUST)))]
mod tests {
    extern crate std;

    use std::format;

    use super::*;

    #[test]
    fn routes_are_read_and_told() {
        let table = [
            ("fec0:0:0:3::/64 2 17", 0xfec0_0000_0000_0003, 2, 17),
            (
                " 2001:db8::/64\t255 0xbfff ",
                0x2001_0db8_0000_0000,
                255,
                0xbfff,
            ),
            ("FEC0:0000:0:0::/64 1 1", 0xfec0_0000_0000_0000, 1, 1),
        ];
        for (text, prefix, port, router) in table {
            let route: Route = text.parse().expect(text);
            assert_eq!(
                (route.prefix, route.port, route.router.get()),
                (prefix, port, router)
            );
            assert_eq!(format!("{route}").parse(), Ok(route));
        }
        let route: Route = "fec0:0:0:3:0::/64 2 0x11".parse().unwrap();
        assert_eq!(format!("{route}"), "fec0:0:0:3::/64 2 17");
    }

    #[test]
    fn wrong_routes_are_refused() {
        let table = [
            ("", Mistake::RouteWords),
            ("fec0:0:0:3::/64 2", Mistake::RouteWords),
            ("fec0:0:0:3::/64 2 17 18", Mistake::RouteWords),
            ("fec0:0:0:3:: 2 17", Mistake::Prefix),
            ("fec0:0:0:3::/48 2 17", Mistake::Prefix),
            ("fec0:0:0:3::1/64 2 17", Mistake::Prefix),
            ("fe80::/64 2 17", Mistake::Prefix),
            ("ff00::/64 2 17", Mistake::Prefix),
            ("::/64 2 17", Mistake::Prefix),
            ("10.0.0.0/64 2 17", Mistake::Prefix),
            ("fec0:0:0:3::/64 0 17", Mistake::Port),
            ("fec0:0:0:3::/64 256 17", Mistake::Port),
            ("fec0:0:0:3::/64 -1 17", Mistake::Port),
            ("fec0:0:0:3::/64 2 0", Mistake::Lid),
            ("fec0:0:0:3::/64 2 0xc000", Mistake::Lid),
            ("fec0:0:0:3::/64 2 65536", Mistake::Lid),
            ("fec0:0:0:3::/64 2 x", Mistake::Lid),
        ];
        for (text, mistake) in table {
            assert_eq!(text.parse::<Route>(), Err(mistake), "{text}");
        }
    }

    #[test]
    fn neighbours_are_read_and_told() {
        let neighbour: Neighbour = "fec0:0:0:2:0:ff:fe00:203 0x5".parse().unwrap();
        assert_eq!(prefix(&neighbour.gid), 0xfec0_0000_0000_0002);
        assert_eq!(neighbour.lid.get(), 5);
        assert_eq!(format!("{neighbour}"), "fec0::2:0:ff:fe00:203 5");
    }

    #[test]
    fn wrong_neighbours_are_refused() {
        let table = [
            ("", Mistake::NeighbourWords),
            ("fec0::1", Mistake::NeighbourWords),
            ("fec0::1 5 6", Mistake::NeighbourWords),
            ("fec0::1/64 5", Mistake::Gid),
            ("fe80::1 5", Mistake::Gid),
            ("ff12::1 5", Mistake::Gid),
            ("::1 5", Mistake::Gid),
            ("h3 5", Mistake::Gid),
            ("fec0::1 0", Mistake::Lid),
            ("fec0::1 0xffff", Mistake::Lid),
        ];
        for (text, mistake) in table {
            assert_eq!(text.parse::<Neighbour>(), Err(mistake), "{text}");
        }
    }
}
