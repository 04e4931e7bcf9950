// SPDX-License-Identifier: GPL-2.0-only

//! Which addresses a connection uses when its ends may be in different subnets.
//!
//! Within a subnet a REQ names the LIDs of both ends. Across a router the sender knows neither the
//! LID by which the passive end reaches it nor the passive end's own: it says that the path is not
//! local to the subnet and gives the permissive LID for what it does not know, and the passive end
//! takes it from the packet's own header (IBTA 12.7).

use super::wire::cm::path::Path as ReqPath;
use super::wire::gid::Gid;
use super::wire::lid::Lid;

/// What a receive completion says about a packet's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Source LID: the sender's, or that of the router by which the packet came.
    pub slid: Lid,
    /// Service level.
    pub sl: u8,
    /// The low bits of the destination LID, by which it differs from the port's first one.
    pub dlid_path_bits: u8,
    /// The route header, if there is one.
    pub grh: Option<RouteHeader>,
    /// The port is one of RoCE, which has no LIDs.
    pub roce: bool,
}

/// What the machine reads of a route header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteHeader {
    /// The sender.
    pub sgid: Gid,
    /// The receiver.
    pub dgid: Gid,
    /// Flow label.
    pub flow_label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Routers the packet might still have passed.
    pub hop_limit: u8,
}

/// A path as the end that sends on it has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Where packets go.
    pub dlid: Lid,
    /// Where they come from. After a permissive LID in the REQ only its low bits count.
    pub slid: Lid,
    /// Where packets go in the end.
    pub dgid: Gid,
    /// Our GID.
    pub sgid: Gid,
    /// Flow label.
    pub flow_label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Service level.
    pub sl: u8,
    /// Where the queue pair's packets go, if that differs from where the connection manager's do.
    pub data_dlid: Option<Lid>,
}

/// The way back to the sender of a packet, by that packet alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response {
    /// Where packets go.
    pub dlid: Lid,
    /// The low bits of our LID.
    pub path_bits: u8,
    /// Service level.
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

/// What the active end says about a path of its REQ: its LIDs if both ends are in one subnet, and
/// else that it does not know them.
///
/// `inbound_dlid` is the destination of an inbound path that the caller knows, as it may for the
/// primary path.
pub fn req_lids(slid: Lid, dlid: Lid, hop_limit: u8, inbound_dlid: Option<Lid>) -> ReqLids {
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

/// The same path from the other end.
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
