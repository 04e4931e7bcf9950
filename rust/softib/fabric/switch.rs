// SPDX-License-Identifier: GPL-2.0-only

//! A switch: its tables and how a subnet manager sets them (IBTA 18.2).

use core::ops::DerefMut;

use super::agent::{
    Managed,
    Request, //
};
use super::events::{
    Changes,
    Events, //
};
use super::node::{
    Identity,
    Node, //
};
use super::port::Port;
use super::receive::Cabled;
use super::wire::lid::Lid;
use super::wire::mad::status;
use super::wire::smp::attribute;
use super::wire::smp::forwarding::{
    Linear,
    Multicast,
    MulticastBlock,
    LINEAR_BLOCK,
    MULTICAST_BLOCK,
    MULTICAST_PORTS,
    NO_PORT, //
};
use super::wire::smp::lanes::SlToVl;
use super::wire::smp::node::{
    NodeType,
    DESCRIPTION_LEN, //
};
use super::wire::smp::notice::{
    Culprit,
    Details,
    Kind,
    SwitchBadPKey, //
};
use super::wire::smp::port::capability;
use super::wire::smp::switch::SwitchInfo;
use super::wire::smp::Smp;

/// The largest number of external ports of a switch: a [`PortMask`] has a bit for each, and one
/// for the switch itself.
pub const MAX_PORTS: u8 = 63;

/// The longest linear forwarding table: an entry for each unicast address.
pub const MAX_LINEAR: usize = 0xc000;

/// The longest multicast forwarding table: an entry for each multicast address.
pub const MAX_MULTICAST: usize = 0x3fe0;

/// The LifeTimeValue until a manager sets another: a packet may stay in the switch for about a
/// second (4.096 µs shifted left so often).
const LIFE_TIME: u8 = 18;

/// A set of ports; port 0 is the switch itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PortMask(u64);

impl PortMask {
    /// The set without ports.
    pub const NONE: PortMask = PortMask(0);

    /// Port 0, the switch itself.
    pub const OWN: PortMask = PortMask(1);

    /// Returns the set of one port; the empty one if the number is too large.
    pub const fn of(port: u8) -> PortMask {
        if port <= MAX_PORTS {
            PortMask(1 << port)
        } else {
            PortMask::NONE
        }
    }

    /// Returns the set with that port in it.
    pub const fn with(self, port: u8) -> PortMask {
        PortMask(self.0 | PortMask::of(port).0)
    }

    /// Returns the set without that port.
    pub const fn without(self, port: u8) -> PortMask {
        PortMask(self.0 & !PortMask::of(port).0)
    }

    /// Returns whether that port is in it.
    pub const fn has(self, port: u8) -> bool {
        self.0 & PortMask::of(port).0 != 0
    }

    /// Returns whether there is none in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of ports in it.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// The 16 ports of that position, which is below 4.
    const fn part(self, position: u8) -> u16 {
        (self.0 >> (position * MULTICAST_PORTS)) as u16
    }

    /// Replaces the 16 ports of that position, which is below 4.
    const fn set_part(&mut self, position: u8, part: u16) {
        let shift = position * MULTICAST_PORTS;
        self.0 = (self.0 & !(0xffff << shift)) | ((part as u64) << shift);
    }
}

/// Iterates from the lowest port to the highest.
impl Iterator for PortMask {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        // Below 64.
        let port = self.0.trailing_zeros() as u8;
        *self = self.without(port);
        Some(port)
    }
}

/// The storage of a switch's tables.
pub trait Storage {
    /// Its ports, the first its own ([`Port::of_switch`]).
    type Ports: DerefMut<Target = [Port]>;
    /// The linear forwarding table: a multiple of 64 entries, at most [`MAX_LINEAR`].
    type Linear: DerefMut<Target = [u8]>;
    /// The multicast forwarding table: a multiple of 32 entries, at most [`MAX_MULTICAST`].
    type Multicast: DerefMut<Target = [PortMask]>;
    /// The levels' lanes for each pair of ports, as many as the square of their number; empty if
    /// no port has more than one data lane.
    type Lanes: DerefMut<Target = [SlToVl]>;
}

/// The tables of a new switch.
#[derive(Debug)]
pub struct Tables<S: Storage> {
    /// The ports, port 0 first: [`Storage::Ports`].
    pub ports: S::Ports,
    /// The linear forwarding table: [`Storage::Linear`].
    pub linear: S::Linear,
    /// The multicast forwarding table: [`Storage::Multicast`].
    pub multicast: S::Multicast,
    /// The SL-to-VL tables: [`Storage::Lanes`].
    pub lanes: S::Lanes,
}

/// A switch, with its forwarding tables.
#[derive(Debug)]
pub struct Switch<S: Storage> {
    node: Node<S::Ports>,
    pub(super) info: SwitchInfo,
    pub(super) linear: S::Linear,
    pub(super) multicast: S::Multicast,
    lanes: S::Lanes,
}

impl<S: Storage> Switch<S> {
    /// A switch with empty tables. `None` if one of them has a length that it cannot have, or if
    /// the identity is not that of a switch.
    pub fn new(identity: Identity, tables: Tables<S>) -> Option<Switch<S>> {
        let Tables {
            ports,
            mut linear,
            mut multicast,
            mut lanes,
        } = tables;
        let count = ports.len();
        let fits = identity.node_type == NodeType::Switch
            && count <= usize::from(MAX_PORTS) + 1
            && linear.len() <= MAX_LINEAR
            && linear.len() % LINEAR_BLOCK == 0
            && multicast.len() <= MAX_MULTICAST
            && multicast.len() % MULTICAST_BLOCK == 0
            && (lanes.is_empty() || lanes.len() == count * count);
        if !fits {
            return None;
        }
        linear.fill(NO_PORT);
        multicast.fill(PortMask::NONE);
        lanes.fill(SlToVl::default());
        let mut info = SwitchInfo::default();
        info.set_linear_cap(u16::try_from(linear.len()).ok()?);
        info.set_multicast_cap(u16::try_from(multicast.len()).ok()?);
        info.set_default_port(NO_PORT);
        info.set_default_multicast_primary(NO_PORT);
        info.set_default_multicast_other(NO_PORT);
        info.set_life_time_value(LIFE_TIME);
        info.set_inbound_enforcement_cap(true);
        info.set_outbound_enforcement_cap(true);
        let node = Node::new(identity, ports)?;
        let smallest = (1..=node.port_count())
            .filter_map(|number| node.port(number))
            .map(|port| u16::from(port.pkey_cap))
            .min();
        info.set_enforcement_cap(smallest?);
        Some(Switch {
            node,
            info,
            linear,
            multicast,
            lanes,
        })
    }

    /// Returns the part that all kinds of nodes have in common.
    pub const fn node(&self) -> &Node<S::Ports> {
        &self.node
    }

    /// Returns the SwitchInfo that a subnet manager reads.
    pub const fn info(&self) -> &SwitchInfo {
        &self.info
    }

    /// Tells the subnet manager of a packet that a port has dropped because of its partition, if
    /// the manager is to be told of that.
    pub fn bad_p_key(&mut self, number: u8, culprit: &Culprit, now: u64) -> Events {
        let tells = self
            .node
            .port(0)
            .is_some_and(|port| port.info().capability_mask() & capability::P_KEY_SWITCH_TRAP != 0);
        if !tells {
            return Events::default();
        }
        let seen = SwitchBadPKey::new(culprit, self.lid(), number);
        let details = Details::SwitchBadPKey(seen);
        self.node.raise(0, Kind::Security, details, now)
    }

    /// Changes what the switch is called.
    pub fn set_description(&mut self, description: [u8; DESCRIPTION_LEN], now: u64) -> Events {
        self.node.set_description(description, now)
    }

    fn lid(&self) -> Lid {
        self.node
            .port(0)
            .map_or(Lid::ZERO, |port| port.info().lid())
    }

    /// The lanes of packets from one port to another.
    pub(super) fn mapping(&self, in_port: u8, out_port: u8) -> Option<&SlToVl> {
        let index = self.lane_index(in_port, out_port)?;
        self.lanes.get(index)
    }

    fn lane_index(&self, in_port: u8, out_port: u8) -> Option<usize> {
        let count = usize::from(self.node.port_count()) + 1;
        let (row, column) = (usize::from(in_port), usize::from(out_port));
        (row < count && column < count).then(|| row * count + column)
    }

    fn set_info(&mut self, wanted: &SwitchInfo) -> Result<(), u16> {
        if usize::from(wanted.linear_top()) >= self.linear.len() {
            return Err(status::BAD_FIELD);
        }
        let info = &mut self.info;
        info.set_linear_top(wanted.linear_top());
        info.set_default_port(wanted.default_port());
        info.set_default_multicast_primary(wanted.default_multicast_primary());
        info.set_default_multicast_other(wanted.default_multicast_other());
        info.set_life_time_value(wanted.life_time_value());
        info.set_multicast_top(wanted.multicast_top());
        // A one says that the change has been seen.
        if wanted.port_state_change() {
            info.set_port_state_change(false);
        }
        Ok(())
    }

    fn switch_info(&mut self, set: bool, smp: &mut Smp) -> Result<(), u16> {
        if set {
            self.set_info(&smp.get())?;
        }
        smp.put(&self.info);
        Ok(())
    }

    fn linear_block(&mut self, set: bool, smp: &mut Smp) -> Result<(), u16> {
        let block = usize::try_from(smp.header().modifier()).map_err(|_| status::BAD_FIELD)?;
        let entries = block
            .checked_mul(LINEAR_BLOCK)
            .and_then(|start| self.linear.get_mut(start..))
            .and_then(|entries| entries.first_chunk_mut::<LINEAR_BLOCK>())
            .ok_or(status::BAD_FIELD)?;
        if set {
            *entries = smp.get::<Linear>().0;
        }
        let found = Linear(*entries);
        smp.put(&found);
        Ok(())
    }

    fn multicast_block(&mut self, set: bool, smp: &mut Smp) -> Result<(), u16> {
        let MulticastBlock { position, block } =
            MulticastBlock::from_modifier(smp.header().modifier());
        // Lossless: both are small. The positions of ports that there are not do not exist.
        let first = u16::from(position) * u16::from(MULTICAST_PORTS);
        if first > u16::from(self.node.port_count()) {
            return Err(status::BAD_FIELD);
        }
        let start = usize::from(block) * MULTICAST_BLOCK;
        let entries = self
            .multicast
            .get_mut(start..)
            .and_then(|entries| entries.first_chunk_mut::<MULTICAST_BLOCK>())
            .ok_or(status::BAD_FIELD)?;
        if set {
            let wanted = smp.get::<Multicast>().ports();
            for (entry, part) in entries.iter_mut().zip(wanted) {
                entry.set_part(position, part);
            }
        }
        smp.put(&Multicast::new(entries.map(|entry| entry.part(position))));
        Ok(())
    }

    fn lane_table(&mut self, set: bool, smp: &mut Smp) -> Result<(), u16> {
        if self.lanes.is_empty() {
            return Err(status::BAD_ATTRIBUTE);
        }
        let [flags, _reserved, in_port, out_port] = smp.header().modifier().to_be_bytes();
        // Only one table at a time: what would set many is not offered.
        let index = self
            .lane_index(in_port, out_port)
            .filter(|_| flags == 0)
            .ok_or(status::BAD_FIELD)?;
        let table = self.lanes.get_mut(index).ok_or(status::BAD_FIELD)?;
        if set {
            *table = smp.get();
        }
        smp.put(table);
        Ok(())
    }
}

impl<S: Storage> Cabled for Switch<S> {
    /// The subnet manager is told.
    fn carrier(&mut self, number: u8, up: bool, now: u64) -> Events {
        if number == 0 {
            return Events::default();
        }
        let events = self.node.carrier(number, up);
        if !events.changes.contains(Changes::STATE) {
            return events;
        }
        self.info.set_port_state_change(true);
        let lid = self.lid();
        let details = Details::LinkState { lid };
        let told = self.node.raise(0, Kind::Urgent, details, now);
        events.and(told.changes)
    }
}

impl<S: Storage> Managed for Switch<S> {
    type Ports = S::Ports;

    fn node(&self) -> &Node<S::Ports> {
        &self.node
    }

    fn node_mut(&mut self) -> &mut Node<S::Ports> {
        &mut self.node
    }

    fn particular(
        &mut self,
        _request: Request,
        set: bool,
        smp: &mut Smp,
    ) -> Option<Result<Events, u16>> {
        let served = match smp.header().attribute() {
            attribute::SWITCH_INFO => self.switch_info(set, smp),
            attribute::LINEAR_FORWARDING => self.linear_block(set, smp),
            attribute::MULTICAST_FORWARDING => self.multicast_block(set, smp),
            attribute::SL_TO_VL => self.lane_table(set, smp),
            _ => return None,
        };
        Some(served.map(|()| Events::default()))
    }

    fn leave_by(&self, _in_port: u8, dlid: Lid) -> Option<u8> {
        self.route(dlid)
    }
}
