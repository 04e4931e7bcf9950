// SPDX-License-Identifier: GPL-2.0-only

//! The agent of subnet management (IBTA 14.2.3): what every kind of node answers.

use core::ops::DerefMut;

use super::events::{
    Changes,
    Events, //
};
use super::node::Node;
use super::port::{
    Port,
    MAX_GUIDS,
    MAX_PKEYS, //
};
use super::port_set::Side;
use super::wire::lid::Lid;
use super::wire::mad;
use super::wire::mad::{
    status,
    METHOD_GET,
    METHOD_GET_RESP,
    METHOD_RESPONSE,
    METHOD_SET,
    METHOD_TRAP,
    METHOD_TRAP_REPRESS, //
};
use super::wire::smp;
use super::wire::smp::attribute;
use super::wire::smp::guid::{
    self,
    GuidInfo, //
};
use super::wire::smp::lanes::{
    SlToVl,
    VlArbitration, //
};
use super::wire::smp::led::LedInfo;
use super::wire::smp::node::NodeInfo;
use super::wire::smp::notice::{
    self,
    BadMKey,
    Details,
    Kind,
    Notice, //
};
use super::wire::smp::partition::{
    self,
    PKeyTable, //
};
use super::wire::smp::port::{
    capability,
    PortInfo, //
};
use super::wire::smp::Smp;

/// A node that can be managed.
pub trait Managed {
    /// Storage of the node's ports.
    type Ports: DerefMut<Target = [Port]>;

    /// Returns the part that all kinds of nodes have in common.
    fn node(&self) -> &Node<Self::Ports>;

    /// Returns that common part, to be changed.
    fn node_mut(&mut self) -> &mut Node<Self::Ports>;

    /// Serves an attribute that other kinds of nodes do not have, or have otherwise: writes it
    /// into the packet, or answers with the status of its refusal. `None` if it is none.
    fn particular(
        &mut self,
        request: Request,
        set: bool,
        smp: &mut Smp,
    ) -> Option<Result<Events, u16>>;

    /// Returns the port by which a packet of the node's own leaves for `dlid`, if a packet that
    /// came by `in_port` caused it. `None` if no port leads there.
    fn leave_by(&self, in_port: u8, dlid: Lid) -> Option<u8>;
}

/// The origin of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The port that received it.
    pub(super) in_port: u8,
    /// The LID of its sender.
    pub(super) slid: Lid,
    /// The time of its arrival, in nanoseconds.
    pub(super) now: u64,
}

impl Request {
    pub(super) const fn new(in_port: u8, slid: Lid, now: u64) -> Request {
        Request { in_port, slid, now }
    }
}

/// Disposition of a management datagram: the party that handles it next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The sender: an answer has been written.
    Reply,
    /// The consumers on this node that have registered for it, a subnet manager for instance.
    Agents,
    /// Consumed by the agent, without an answer.
    Consumed,
    /// Dropped, as its M_Key was wrong.
    Refused,
}

/// Serves a packet that has come to its end here: turns it into its answer. What its sender needs
/// to find its way back is left to the caller.
pub(super) fn serve<M: Managed>(
    managed: &mut M,
    request: Request,
    smp: &mut Smp,
) -> (Outcome, Events) {
    let header = *smp.header();
    let nothing = Events::default();
    if header.base_version() != mad::BASE_VERSION {
        return (Outcome::Consumed, nothing);
    }
    // A response or a trap is for a manager on this node, not for its agent.
    if header.method() & METHOD_RESPONSE != 0 || header.method() == METHOD_TRAP {
        return (Outcome::Agents, nothing);
    }
    if header.class_version() != smp::CLASS_VERSION {
        return (refuse(smp, status::BAD_VERSION), nothing);
    }
    if header.attribute() == attribute::SM_INFO && is_for_manager(managed, request) {
        return (Outcome::Agents, nothing);
    }
    let addressed = managed.node().addressed(request.in_port);
    let other = managed.node().other_named(request, smp);
    for number in [Some(addressed), other].into_iter().flatten() {
        let Some(port) = managed.node_mut().port_mut(number) else {
            return (Outcome::Consumed, nothing);
        };
        if !port.admits(smp, request.now) {
            return (
                Outcome::Refused,
                tell_bad_key(managed, number, request, smp),
            );
        }
    }
    match header.method() {
        METHOD_GET | METHOD_SET => {
            let set = header.method() == METHOD_SET;
            match attribute(managed, request, set, smp) {
                Ok(events) => (finish(smp, status::OK), events),
                Err(status) => (refuse(smp, status), nothing),
            }
        }
        METHOD_TRAP_REPRESS if header.attribute() == attribute::NOTICE => {
            let notice: Notice = smp.get();
            let traps = &mut managed.node_mut().traps;
            traps.repress(header.tid(), notice.number());
            (Outcome::Consumed, nothing)
        }
        _ => (refuse(smp, status::BAD_METHOD), nothing),
    }
}

/// Makes the packet an answer.
fn finish(smp: &mut Smp, status: u16) -> Outcome {
    smp.header_mut().set_method(METHOD_GET_RESP);
    smp.header_mut().set_status(status);
    Outcome::Reply
}

/// Makes the packet an answer with the attribute that came.
fn refuse(smp: &mut Smp, status: u16) -> Outcome {
    finish(smp, status)
}

/// Returns whether a subnet manager runs on the port by which its attribute is asked for.
fn is_for_manager<M: Managed>(managed: &M, request: Request) -> bool {
    let node = managed.node();
    node.port(node.addressed(request.in_port))
        .is_some_and(|port| port.info.capability_mask() & capability::SM != 0)
}

/// Tells the subnet manager of that port of a request with a wrong M_Key.
fn tell_bad_key<M: Managed>(managed: &mut M, number: u8, request: Request, smp: &Smp) -> Events {
    let header = smp.header();
    let bad = notice::Request {
        lid: request.slid,
        method: header.method(),
        attribute: header.attribute(),
        modifier: header.modifier(),
        m_key: smp.m_key(),
    };
    let mut back = [0; smp::PATH_LEN];
    let mut hops = 0;
    // The way back as far as it is written: the first entry is of no hop.
    for (place, hop) in back.iter_mut().zip(1..=smp.hop_count()) {
        *place = smp.return_hop(hop).unwrap_or(0);
        hops += 1;
    }
    let path = back.get(..hops).unwrap_or(&back);
    let directed = smp.is_directed().then(|| (smp.dr_slid(), path));
    let details = Details::BadMKey(BadMKey::new(bad, directed));
    managed
        .node_mut()
        .raise(number, Kind::Security, details, request.now)
}

/// Reads or sets an attribute.
fn attribute<M: Managed>(
    managed: &mut M,
    request: Request,
    set: bool,
    smp: &mut Smp,
) -> Result<Events, u16> {
    if let Some(answer) = managed.particular(request, set, smp) {
        return answer;
    }
    let node = managed.node_mut();
    match (smp.header().attribute(), set) {
        (attribute::NODE_DESCRIPTION, false) => {
            smp.put(&node.describe());
            Ok(Events::default())
        }
        (attribute::NODE_INFO, false) => node_info(node, request, smp),
        (attribute::PORT_INFO, set) => port_info(node, request, set, smp),
        (attribute::P_KEY_TABLE, set) => partitions(node, request, set, smp),
        (attribute::GUID_INFO, set) => guids(node, request, set, smp),
        (attribute::SL_TO_VL, set) => lanes(node, request, set, smp),
        (attribute::VL_ARBITRATION, set) => arbitration(node, request, set, smp),
        (attribute::LED_INFO, set) => led(node, request, set, smp),
        _ => Err(status::BAD_ATTRIBUTE),
    }
}

impl<P: DerefMut<Target = [Port]>> Node<P> {
    /// The port that a modifier names: of a switch any, else 0 for the one that was asked.
    fn named(&self, number: u32, request: Request) -> Result<u8, u16> {
        let number = u8::try_from(number).map_err(|_| status::BAD_FIELD)?;
        let number = if number == 0 {
            self.addressed(request.in_port)
        } else {
            number
        };
        match self.port(number) {
            Some(_) => Ok(number),
            None => Err(status::BAD_FIELD),
        }
    }

    /// Returns the port that a modifier names, for a request that sets if `set`: the ports of a
    /// channel adapter and of a router may be in subnets of different managers, and are set only
    /// through themselves.
    fn named_to_set(&self, number: u32, request: Request, set: bool) -> Result<u8, u16> {
        let number = self.named(number, request)?;
        if set && !self.is_switch() && number != request.in_port {
            return Err(status::BAD_FIELD);
        }
        Ok(number)
    }

    /// Returns the port that a request names, if that is another one than the port that received
    /// it, and has an M_Key of its own. The ports of a switch have that of port 0.
    fn other_named(&self, request: Request, smp: &Smp) -> Option<u8> {
        let modifier = smp.header().modifier();
        let named = match smp.header().attribute() {
            attribute::PORT_INFO => port_of_info(modifier),
            attribute::VL_ARBITRATION => port_of_arbitration(modifier),
            attribute::LED_INFO => modifier,
            _ => return None,
        };
        let number = self.named(named, request).ok()?;
        (!self.is_switch() && number != request.in_port).then_some(number)
    }

    fn side(&self, number: u8) -> Side {
        match (self.is_switch(), number) {
            (false, _) => Side::End,
            (true, 0) => Side::SwitchOwn,
            (true, _) => Side::SwitchExternal,
        }
    }
}

/// Returns the port in the modifier of a PortInfo.
const fn port_of_info(modifier: u32) -> u32 {
    // The highest bit only says that the manager knows of extended speeds.
    modifier & !(1 << 31)
}

/// Returns the port in the modifier of a VLArbitrationTable.
const fn port_of_arbitration(modifier: u32) -> u32 {
    modifier & 0xffff
}

fn node_info<P: DerefMut<Target = [Port]>>(
    node: &mut Node<P>,
    request: Request,
    smp: &mut Smp,
) -> Result<Events, u16> {
    let identity = &node.identity;
    let port = node
        .port(node.addressed(request.in_port))
        .ok_or(status::BAD_FIELD)?;
    let mut info = NodeInfo::new(identity.node_type);
    info.set_ports(node.port_count());
    info.set_system_guid(identity.system_guid);
    info.set_node_guid(identity.node_guid);
    info.set_port_guid(port.guid());
    info.set_partitions(port.pkey_cap.into());
    info.set_device(identity.device);
    info.set_revision(identity.revision);
    info.set_vendor(identity.vendor);
    info.set_local_port(request.in_port);
    smp.put(&info);
    Ok(Events::default())
}

fn port_info<P: DerefMut<Target = [Port]>>(
    node: &mut Node<P>,
    request: Request,
    set: bool,
    smp: &mut Smp,
) -> Result<Events, u16> {
    let named = port_of_info(smp.header().modifier());
    let number = node.named_to_set(named, request, set)?;
    let side = node.side(number);
    let has_traps = node.traps.has_any(number);
    let port = node.port_mut(number).ok_or(status::BAD_FIELD)?;
    let mut events = Events::new(number, Changes::NONE);
    let mut reregister = false;
    if set {
        let wanted: PortInfo = smp.get();
        reregister = wanted.client_reregister();
        events = port
            .set(number, side, &wanted)
            .map_err(|_| status::BAD_FIELD)?;
        // Traps that could not be sent before may have a manager now.
        events = events.and(Changes::TRAP.when(has_traps));
    }
    let mut found = *port.info();
    found.set_m_key(port.visible_key(smp));
    found.set_local_port(request.in_port);
    // o14-12.2.1: the answer shows that the request was understood.
    found.set_client_reregister(reregister);
    smp.put(&found);
    Ok(events)
}

fn partitions<P: DerefMut<Target = [Port]>>(
    node: &mut Node<P>,
    request: Request,
    set: bool,
    smp: &mut Smp,
) -> Result<Events, u16> {
    let modifier = smp.header().modifier();
    let named = if node.is_switch() { modifier >> 16 } else { 0 };
    let number = node.named_to_set(named, request, set)?;
    let port = node.port_mut(number).ok_or(status::BAD_FIELD)?;
    // There is one block, since no table is longer.
    const { assert!(partition::BLOCK == MAX_PKEYS) }
    if modifier & 0xffff != 0 {
        return Err(status::BAD_FIELD);
    }
    let mut events = Events::default();
    if set {
        let wanted: PKeyTable = smp.get();
        events = port.set_pkeys(number, &wanted.keys());
    }
    smp.put(&PKeyTable::new(port.pkeys));
    Ok(events)
}

fn guids<P: DerefMut<Target = [Port]>>(
    node: &mut Node<P>,
    request: Request,
    set: bool,
    smp: &mut Smp,
) -> Result<Events, u16> {
    let number = node.addressed(request.in_port);
    let port = node.port_mut(number).ok_or(status::BAD_FIELD)?;
    let cap = usize::from(port.info.guid_cap()).min(MAX_GUIDS);
    let block = usize::try_from(smp.header().modifier()).map_err(|_| status::BAD_FIELD)?;
    let start = block
        .checked_mul(guid::BLOCK)
        .filter(|start| *start < cap)
        .ok_or(status::BAD_FIELD)?;
    let entries = port
        .guids
        .get_mut(start..cap)
        .ok_or(status::BAD_FIELD)?
        .iter_mut()
        .take(guid::BLOCK);
    let wanted = smp.get::<GuidInfo>().guids();
    let mut found = [0; guid::BLOCK];
    let mut changed = false;
    for (index, ((own, wanted), found)) in entries.zip(wanted).zip(&mut found).enumerate() {
        // The port's own is not the manager's to change.
        let is_own = start == 0 && index == 0;
        if set && !is_own && *own != wanted {
            *own = wanted;
            changed = true;
        }
        *found = *own;
    }
    smp.put(&GuidInfo::new(found));
    Ok(Events::new(number, Changes::GID.when(changed)))
}

/// Returns whether a port has more than one data lane.
fn maps_levels(port: &Port) -> bool {
    port.info.capability_mask() & capability::SL_MAPPING != 0
}

fn lanes<P: DerefMut<Target = [Port]>>(
    node: &mut Node<P>,
    request: Request,
    set: bool,
    smp: &mut Smp,
) -> Result<Events, u16> {
    let port = node
        .port_mut(request.in_port)
        .filter(|port| maps_levels(port))
        .ok_or(status::BAD_ATTRIBUTE)?;
    if set {
        port.lanes = smp.get::<SlToVl>();
    }
    smp.put(&port.lanes);
    Ok(Events::default())
}

fn arbitration<P: DerefMut<Target = [Port]>>(
    node: &mut Node<P>,
    request: Request,
    set: bool,
    smp: &mut Smp,
) -> Result<Events, u16> {
    let modifier = smp.header().modifier();
    let number = node.named_to_set(port_of_arbitration(modifier), request, set)?;
    let port = node
        .port_mut(number)
        .filter(|port| maps_levels(port))
        .ok_or(status::BAD_ATTRIBUTE)?;
    // The second halves of both tables are longer than these are.
    let half = match modifier >> 16 {
        1 => port.arbitration.first_mut(),
        3 => port.arbitration.last_mut(),
        _ => None,
    };
    let half = half.ok_or(status::BAD_FIELD)?;
    if set {
        *half = smp.get::<VlArbitration>();
    }
    smp.put(half);
    Ok(Events::default())
}

fn led<P: DerefMut<Target = [Port]>>(
    node: &mut Node<P>,
    request: Request,
    set: bool,
    smp: &mut Smp,
) -> Result<Events, u16> {
    let number = node.named_to_set(smp.header().modifier(), request, set)?;
    let port = node.port_mut(number).ok_or(status::BAD_FIELD)?;
    if set {
        port.led = smp.get::<LedInfo>().is_on();
    }
    let mut found = LedInfo::default();
    found.set_on(port.led);
    smp.put(&found);
    Ok(Events::default())
}
