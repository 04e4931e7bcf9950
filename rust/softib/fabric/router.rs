// SPDX-License-Identifier: GPL-2.0-only

//! A router: it joins subnets, each by a port (IBTA chapter 19).

use core::mem::replace;
use core::ops::DerefMut;

use super::agent::{
    Managed,
    Request, //
};
use super::discard::Discard;
use super::events::Events;
use super::node::{
    Identity,
    Node, //
};
use super::port::Port;
use super::receive::Cabled;
use super::routes::prefix;
pub use super::routes::{
    Neighbour,
    Route, //
};
use super::wire::gid::Gid;
use super::wire::grh::Grh;
use super::wire::lid::Lid;
use super::wire::lrh::{
    Link,
    Lrh,
    LEN as LRH_LEN, //
    VL_MANAGEMENT,
};
use super::wire::packet::Head;
use super::wire::smp::node::{
    NodeType,
    DESCRIPTION_LEN, //
};
use super::wire::smp::Smp;

/// The next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hop {
    /// The router itself: the packet is for [`Cabled::receive`].
    Own,
    /// A node behind one of the ports.
    Out(Out),
}

/// The output port of a packet, and the header fields that change. The invariant CRC of a packet
/// with a global route covers none of these fields, and stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Out {
    /// The number of the output port.
    pub port: u8,
    /// Its new local route header.
    pub lrh: [u8; LRH_LEN],
    /// Its new hop limit.
    pub hop_limit: u8,
}

/// Bytes of headers and CRC by which a packet may be longer than the MTU of its link (IBTA
/// 7.7.8).
const MAX_OVERHEAD: usize = 124;

/// A router, with its routes to other subnets and its neighbours in attached ones.
#[derive(Debug)]
pub struct Router<P, R, N> {
    node: Node<P>,
    routes: R,
    neighbours: N,
    /// Whether an address that no neighbour has is taken from the lowest 16 bits of the GID.
    algorithmic: bool,
}

impl<P, R, N> Router<P, R, N>
where
    P: DerefMut<Target = [Port]>,
    R: DerefMut<Target = [Route]>,
    N: DerefMut<Target = [Neighbour]>,
{
    /// A router between the subnets of its ports. `None` if the ports are too many or none, or if
    /// the identity is not that of a router.
    pub fn new(
        identity: Identity,
        ports: P,
        routes: R,
        neighbours: N,
        algorithmic: bool,
    ) -> Option<Router<P, R, N>> {
        if identity.node_type != NodeType::Router {
            return None;
        }
        Some(Router {
            node: Node::new(identity, ports)?,
            routes,
            neighbours,
            algorithmic,
        })
    }

    /// Returns the part that all kinds of nodes have in common.
    pub const fn node(&self) -> &Node<P> {
        &self.node
    }

    /// Replaces the routes to other subnets. Returns the old ones.
    pub fn set_routes(&mut self, routes: R) -> R {
        replace(&mut self.routes, routes)
    }

    /// Replaces the table of the ports of its subnets. Returns the old one.
    pub fn set_neighbours(&mut self, neighbours: N) -> N {
        replace(&mut self.neighbours, neighbours)
    }

    /// Changes the router's NodeDescription.
    pub fn set_description(&mut self, description: [u8; DESCRIPTION_LEN], now: u64) -> Events {
        self.node.set_description(description, now)
    }

    /// Returns the next hop of a packet that came by `in_port`.
    ///
    /// # Errors
    ///
    /// [`Discard`] if there is none.
    pub fn forward(&self, in_port: u8, head: &Head<'_>) -> Result<Hop, Discard> {
        let port = self.node.port(in_port).ok_or(Discard::NoPort)?;
        if !port.is_linked() {
            return Err(Discard::LinkDown);
        }
        // Subnet management does not pass routers: the router's own agent has it.
        if head.lrh.vl() == VL_MANAGEMENT {
            return Ok(Hop::Own);
        }
        if !port.is_active() {
            return Err(Discard::NotActive);
        }
        if !port.owns_lid(head.lrh.dlid()) {
            // A group's packets reach every port of the group's tree, routers among them.
            let unicast = head.lrh.dlid().is_unicast();
            return Err(if unicast {
                Discard::Destination
            } else {
                Discard::Multicast
            });
        }
        let Some(grh) = head.grh else {
            // Without one it can only be for the router itself.
            return if head.bth.destination().is_special() {
                Ok(Hop::Own)
            } else {
                Err(Discard::NoGlobalRoute)
            };
        };
        if port.owns_gid(&grh.addresses().dgid) {
            return Ok(Hop::Own);
        }
        self.route(in_port, head, grh).map(Hop::Out)
    }

    /// Passes a packet on to the subnet of its destination.
    fn route(&self, in_port: u8, head: &Head<'_>, grh: &Grh) -> Result<Out, Discard> {
        let addresses = grh.addresses();
        let dgid = addresses.dgid;
        if dgid.is_multicast() || addresses.sgid.is_multicast() {
            return Err(Discard::Multicast);
        }
        if dgid.is_link_local() || addresses.sgid.is_link_local() {
            return Err(Discard::LinkLocal);
        }
        let hop_limit = match grh.route().hop_limit {
            0 | 1 => return Err(Discard::HopLimit),
            limit => limit - 1,
        };
        let (number, dlid) = self.next(in_port, &dgid)?;
        let port = self.node.port(number).ok_or(Discard::NoSubnet)?;
        if !port.is_active() {
            return Err(Discard::OutNotActive);
        }
        let mtu = port.info().neighbor_mtu().bytes().unwrap_or(0);
        if head.bytes.len() > usize::from(mtu) + MAX_OVERHEAD {
            return Err(Discard::Mtu);
        }
        let link = Link {
            vl: 0,
            dlid,
            slid: port.info().lid(),
            ..head.lrh.link()
        };
        Ok(Out {
            port: number,
            lrh: Lrh::new(link).bytes(),
            hop_limit,
        })
    }

    /// Returns the port by which a packet for a GID leaves, and the LID that it is sent to.
    fn next(&self, in_port: u8, gid: &Gid) -> Result<(u8, Lid), Discard> {
        let prefix = prefix(gid);
        let has_prefix = |number: u8| {
            self.node.port(number).map(|port| port.info().gid_prefix()) == Some(prefix)
        };
        if has_prefix(in_port) {
            return Err(Discard::SameSubnet);
        }
        if let Some(number) = (1..=self.node.port_count()).find(|number| has_prefix(*number)) {
            return self.neighbour(gid).map(|lid| (number, lid));
        }
        let route = self
            .routes
            .iter()
            .find(|route| route.prefix == prefix)
            .ok_or(Discard::NoSubnet)?;
        if route.port == in_port {
            return Err(Discard::SameSubnet);
        }
        Ok((route.port, route.router))
    }

    /// The address of a port of an attached subnet.
    fn neighbour(&self, gid: &Gid) -> Result<Lid, Discard> {
        let known = self
            .neighbours
            .iter()
            .find(|neighbour| neighbour.gid == *gid)
            .map(|neighbour| neighbour.lid);
        let lid = match known {
            Some(lid) => lid,
            None if self.algorithmic => {
                let [.., high, low] = gid.bytes();
                Lid::new(u16::from_be_bytes([high, low]))
            }
            None => return Err(Discard::NoNeighbour),
        };
        if lid.is_unicast() {
            Ok(lid)
        } else {
            Err(Discard::NoNeighbour)
        }
    }
}

impl<P, R, N> Cabled for Router<P, R, N>
where
    P: DerefMut<Target = [Port]>,
    R: DerefMut<Target = [Route]>,
    N: DerefMut<Target = [Neighbour]>,
{
}

/// A router is managed as its node is.
impl<P, R, N> Managed for Router<P, R, N>
where
    P: DerefMut<Target = [Port]>,
    R: DerefMut<Target = [Route]>,
    N: DerefMut<Target = [Neighbour]>,
{
    type Ports = P;

    fn node(&self) -> &Node<P> {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node<P> {
        &mut self.node
    }

    fn particular(
        &mut self,
        request: Request,
        set: bool,
        smp: &mut Smp,
    ) -> Option<Result<Events, u16>> {
        self.node.particular(request, set, smp)
    }

    fn leave_by(&self, in_port: u8, dlid: Lid) -> Option<u8> {
        self.node.leave_by(in_port, dlid)
    }
}
