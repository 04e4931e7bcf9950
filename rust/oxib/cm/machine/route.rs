// SPDX-License-Identifier: GPL-2.0-only

//! Addresses that a connection uses when its ends may be in different subnets.
//!
//! Within a subnet a REQ names the LIDs of both ends. Across a router the sender knows neither the
//! LID by which the passive end reaches it nor the passive end's own: it says that the path is not
//! local to the subnet and gives the permissive LID for what it does not know, and the passive end
//! takes it from the packet's own header (IBTA 12.7).

use super::wire::cm::path::Path as ReqPath;
use super::wire::gid::Gid;
use super::wire::lid::Lid;

/// The fields of a receive completion that describe a packet's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Source LID: the sender's, or that of the router by which the packet came.
    pub slid: Lid,
    /// Service level of the packet.
    pub sl: u8,
    /// The low bits of the destination LID, by which it differs from the port's first one.
    pub dlid_path_bits: u8,
    /// The route header, if there is one.
    pub grh: Option<RouteHeader>,
    /// The port is one of RoCE, which has no LIDs.
    pub roce: bool,
}

/// The fields of a global route header that the machine reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteHeader {
    /// GID of the sender.
    pub sgid: Gid,
    /// GID of the receiver.
    pub dgid: Gid,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Traffic class of the route header.
    pub traffic_class: u8,
    /// Routers the packet might still have passed.
    pub hop_limit: u8,
}

/// A path as the end that sends on it has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// LID that packets are sent to.
    pub dlid: Lid,
    /// LID that packets are sent from. After a permissive LID in the REQ only its low bits count.
    pub slid: Lid,
    /// GID of the peer.
    pub dgid: Gid,
    /// GID of our port.
    pub sgid: Gid,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Traffic class of the route header.
    pub traffic_class: u8,
    /// Hop limit of the route header.
    pub hop_limit: u8,
    /// Service level of packets.
    pub sl: u8,
    /// LID that the queue pair's packets are sent to, if it differs from that of the connection
    /// manager's.
    pub data_dlid: Option<Lid>,
}

/// The way back to the sender of a packet, by that packet alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// LID that packets are sent to.
    pub dlid: Lid,
    /// The low bits of our LID.
    pub path_bits: u8,
    /// Service level of packets.
    pub sl: u8,
    /// The route header to send with, if the packet had one.
    pub grh: Option<RouteHeader>,
}

/// The LIDs that a REQ gives for a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReqLids {
    /// LID of the sender's port.
    pub local: Lid,
    /// LID of the receiver's port.
    pub remote: Lid,
    /// Both ends are in one subnet.
    pub subnet_local: bool,
}

/// Returns the LIDs that the active end gives for a path in its REQ: its own if both ends are in
/// one subnet, and else the permissive LID, which says that it does not know them.
///
/// `inbound_dlid` is the destination of an inbound path that the caller knows, as it may for the
/// primary path.
pub fn req_lids(slid: Lid, dlid: Lid, hop_limit: u8, inbound_dlid: Option<Lid>) -> ReqLids {
    // Routers forward no packet with a hop limit of 0 or 1.
    let subnet_local = hop_limit <= 1;
    if subnet_local {
        ReqLids {
            local: slid,
            remote: dlid,
            subnet_local,
        }
    } else {
        ReqLids {
            local: inbound_dlid.unwrap_or(Lid::PERMISSIVE),
            remote: Lid::PERMISSIVE,
            subnet_local,
        }
    }
}

impl Completion {
    /// The hop limit of answers by a route header: no router may be known, so as many as possible.
    const HOP_LIMIT: u8 = 0xff;

    /// The way back to the sender, for every answer before a path is known.
    pub fn response(&self) -> Response {
        Response {
            dlid: self.slid,
            path_bits: self.dlid_path_bits,
            sl: self.sl,
            grh: self.grh.map(|grh| RouteHeader {
                sgid: grh.dgid,
                dgid: grh.sgid,
                hop_limit: Self::HOP_LIMIT,
                ..grh
            }),
        }
    }

    /// The hop limit of the passive end's primary path.
    fn hop_limit(&self) -> u8 {
        if self.grh.is_some() {
            Self::HOP_LIMIT
        } else {
            0
        }
    }
}

/// A path of a REQ, with what the sender could not know taken from the packet.
pub fn completed(path: &ReqPath, completion: &Completion) -> ReqPath {
    let mut path = *path;
    if path.subnet_local || completion.roce {
        return path;
    }
    if path.local_lid == Lid::PERMISSIVE {
        path.local_lid = completion.slid;
        path.sl = completion.sl;
    }
    if path.remote_lid == Lid::PERMISSIVE {
        path.remote_lid = Lid::new(completion.dlid_path_bits.into());
    }
    path
}

/// The passive end's primary path: back to where the REQ came from.
pub fn primary(path: &ReqPath, completion: &Completion) -> Path {
    let path = completed(path, completion);
    Path {
        dlid: completion.slid,
        hop_limit: completion.hop_limit(),
        data_dlid: data_dlid(&path, completion),
        ..reversed(&path)
    }
}

/// The passive end's alternate path, as the REQ or a LAP describes it.
pub fn alternate(path: &ReqPath, completion: &Completion) -> Path {
    reversed(&completed(path, completion))
}

/// The sender's LID, if the queue pair is to use it.
fn data_dlid(path: &ReqPath, completion: &Completion) -> Option<Lid> {
    let known = path.local_lid != Lid::ZERO && path.local_lid != Lid::PERMISSIVE;
    (known && !completion.roce).then_some(path.local_lid)
}

/// Reverses a path: the other end sends on the result.
fn reversed(path: &ReqPath) -> Path {
    Path {
        dlid: path.local_lid,
        slid: path.remote_lid,
        dgid: path.local_gid,
        sgid: path.remote_gid,
        flow_label: path.flow_label,
        traffic_class: path.traffic_class,
        hop_limit: path.hop_limit,
        sl: path.sl,
        data_dlid: None,
    }
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_route))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::super::wire::cm::timeout::Timeout;
    use super::*;

    const ACTIVE: Gid = Gid::from_bytes([0xfd, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0xc9, 3, 0, 1, 1, 1]);
    const PASSIVE: Gid = Gid::from_bytes([0xfd, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0xc9, 3, 0, 2, 2, 2]);

    const HEADER: RouteHeader = RouteHeader {
        sgid: ACTIVE,
        dgid: PASSIVE,
        flow_label: 0x12345,
        traffic_class: 0x20,
        hop_limit: 63,
    };

    /// A packet from a port of the same subnet with LID 0x12, to the second LID of ours.
    const BY_LID: Completion = Completion {
        slid: Lid::new(0x12),
        sl: 3,
        dlid_path_bits: 1,
        grh: None,
        roce: false,
    };

    /// A packet from the same port, with a route header.
    const SAME_SUBNET: Completion = Completion {
        grh: Some(HEADER),
        ..BY_LID
    };

    /// A packet from another subnet, by the router's port with LID 7.
    const BY_ROUTER: Completion = Completion {
        slid: Lid::new(7),
        sl: 5,
        dlid_path_bits: 2,
        grh: Some(HEADER),
        roce: false,
    };

    /// A packet from a RoCE port, across an IP router.
    const BY_ETHERNET: Completion = Completion {
        slid: Lid::ZERO,
        sl: 0,
        dlid_path_bits: 0,
        grh: Some(HEADER),
        roce: true,
    };

    fn req(local_lid: u16, remote_lid: u16, hop_limit: u8) -> ReqPath {
        ReqPath {
            local_lid: Lid::new(local_lid),
            remote_lid: Lid::new(remote_lid),
            local_gid: ACTIVE,
            remote_gid: PASSIVE,
            flow_label: 0xabcde,
            packet_rate: 3,
            traffic_class: 0x40,
            hop_limit,
            sl: 1,
            subnet_local: hop_limit <= 1,
            local_ack_timeout: Timeout::saturating(15),
        }
    }

    #[test]
    fn primary_paths() {
        // What the REQ says, how it came; DLID, SLID, SL, hop limit, and the DLID of the data.
        let table = [
            (req(0x12, 0x21, 0), BY_LID, (0x12, 0x21, 1, 0, Some(0x12))),
            (req(0x12, 0x21, 1), BY_LID, (0x12, 0x21, 1, 0, Some(0x12))),
            (
                req(0x12, 0x21, 1),
                SAME_SUBNET,
                (0x12, 0x21, 1, 0xff, Some(0x12)),
            ),
            // The message came from another port than the connection's.
            (req(0x14, 0x21, 0), BY_LID, (0x12, 0x21, 1, 0, Some(0x14))),
            // The active end knows neither LID: the packet says.
            (req(0xffff, 0xffff, 64), BY_ROUTER, (7, 2, 5, 0xff, Some(7))),
            // It knows by which of the router's ports it is reached.
            (req(9, 0xffff, 64), BY_ROUTER, (7, 2, 1, 0xff, Some(9))),
            // It says that they are in one subnet: then permissive LIDs are taken as they are.
            (
                req(0xffff, 0xffff, 1),
                BY_ROUTER,
                (7, 0xffff, 1, 0xff, None),
            ),
            // No LIDs at all.
            (
                req(0xffff, 0xffff, 64),
                BY_ETHERNET,
                (0, 0xffff, 1, 0xff, None),
            ),
        ];
        for (path, completion, (dlid, slid, sl, hop_limit, data_dlid)) in table {
            let found = primary(&path, &completion);
            assert_eq!((found.dlid.get(), found.slid.get()), (dlid, slid));
            assert_eq!((found.sl, found.hop_limit), (sl, hop_limit));
            assert_eq!(found.data_dlid, data_dlid.map(Lid::new));
            assert_eq!((found.dgid, found.sgid), (ACTIVE, PASSIVE));
            assert_eq!((found.flow_label, found.traffic_class), (0xabcde, 0x40));
        }
    }

    #[test]
    fn alternate_paths() {
        // What the REQ says, how it came; DLID, SLID, SL, hop limit.
        let table = [
            (req(0x14, 0x25, 0), BY_LID, (0x14, 0x25, 1, 0)),
            (req(0xffff, 0xffff, 64), BY_ROUTER, (7, 2, 5, 64)),
            (req(9, 0x25, 64), BY_ROUTER, (9, 0x25, 1, 64)),
        ];
        for (path, completion, (dlid, slid, sl, hop_limit)) in table {
            let found = alternate(&path, &completion);
            assert_eq!((found.dlid.get(), found.slid.get()), (dlid, slid));
            assert_eq!((found.sl, found.hop_limit), (sl, hop_limit));
            assert_eq!(found.data_dlid, None);
        }
    }

    #[test]
    fn ways_back() {
        let back = RouteHeader {
            sgid: PASSIVE,
            dgid: ACTIVE,
            hop_limit: 0xff,
            ..HEADER
        };
        let table = [
            (BY_LID, (0x12, 1, 3, None)),
            (SAME_SUBNET, (0x12, 1, 3, Some(back))),
            (BY_ROUTER, (7, 2, 5, Some(back))),
            (BY_ETHERNET, (0, 0, 0, Some(back))),
        ];
        for (completion, (dlid, path_bits, sl, grh)) in table {
            let expected = Response {
                dlid: Lid::new(dlid),
                path_bits,
                sl,
                grh,
            };
            assert_eq!(completion.response(), expected);
        }
    }

    #[test]
    fn lids_of_a_request() {
        // Hop limit, the inbound path's DLID; local and remote LID, both in one subnet.
        let table = [
            (0, None, (0x12, 0x21, true)),
            (1, None, (0x12, 0x21, true)),
            (1, Some(9), (0x12, 0x21, true)),
            (2, None, (0xffff, 0xffff, false)),
            (64, Some(9), (9, 0xffff, false)),
        ];
        for (hop_limit, inbound, (local, remote, subnet_local)) in table {
            let (slid, dlid) = (Lid::new(0x12), Lid::new(0x21));
            let lids = req_lids(slid, dlid, hop_limit, inbound.map(Lid::new));
            assert_eq!((lids.local.get(), lids.remote.get()), (local, remote));
            assert_eq!(lids.subnet_local, subnet_local);
        }
    }
}
