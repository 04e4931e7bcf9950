// SPDX-License-Identifier: GPL-2.0-only

//! The ports of a device: what the subnet manager made of them, and what follows from that for packets.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::{
    impl_has_delayed_work,
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

use super::{
    address::{
        AddressVector,
        GlobalRoute, //
    },
    counters::Counter,
    link::Link,
    options::Options,
    queue_pairs::PORTS,
    Hca, //
};
use crate::{
    fabric::{
        events::{
            Changes,
            LinkCommand, //
        },
        node::{
            Identity,
            Node, //
        },
        port::{
            Port,
            Profile,
            MAX_GUIDS,
            MAX_PKEYS, //
        },
        Cabled,
        Events,
        Outcome,
        OUT_LEN, //
    },
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    net::frame::Frame,
    provider::device::Event,
    wire::{
        cm::mtu::Mtu,
        deth::Deth,
        gid::Gid,
        grh::Addresses,
        lid::Lid,
        mad,
        packet::{
            Global,
            Packet, //
        },
        pkey::Pkey,
        smp::{
            node::{
                NodeType,
                DESCRIPTION_LEN, //
            },
            notice::Culprit,
            port::{
                Physical,
                State, //
            }, //
        }, //
    }, //
};

/// Places of a P_Key table.
pub(crate) const PKEYS: usize = MAX_PKEYS;

/// Places of a GID table.
pub(crate) const GIDS: usize = MAX_GUIDS;

/// The work of a device that sends traps.
pub(super) const TRAPS: u64 = 1;

/// How a packet leaves by a port.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) slid: Lid,
    pub(crate) dlid: Lid,
    pub(crate) service_level: u8,
    pub(crate) global: Option<Global>,
    pub(crate) pkey: Pkey,
    /// Bytes of data of a packet.
    pub(crate) mtu: usize,
    pub(crate) up: bool,
    pub(crate) active: bool,
    /// It leads back to the same port.
    pub(crate) own: bool,
}

/// What a port says of itself, in the numbers of the verbs.
pub(crate) struct Attributes {
    pub(crate) state: u8,
    pub(crate) physical: u8,
    pub(crate) max_mtu: u8,
    pub(crate) active_mtu: u8,
    pub(crate) capabilities: u32,
    pub(crate) bad_pkeys: u32,
    pub(crate) bad_qkeys: u32,
    pub(crate) lid: u16,
    pub(crate) sm_lid: u16,
    pub(crate) lmc: u8,
    pub(crate) lanes: u8,
    pub(crate) sm_sl: u8,
    pub(crate) subnet_timeout: u8,
    pub(crate) width: u8,
    pub(crate) speed: u16,
}

/// What became of a management datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Processed {
    /// There is an answer.
    Reply,
    /// It is for who registered for its class.
    Agents,
    /// It is dealt with.
    Consumed,
}

/// What is locked of the ports.
struct Managed {
    node: Node<KVec<Port>>,
    /// What the kernel was told last: whether each port is active.
    active: [bool; PORTS],
}

impl Managed {
    /// Shows packets what the ports are now.
    fn show(&self, links: &[Link; PORTS]) {
        for (number, link) in (1..).zip(links) {
            if let Some(port) = self.node.port(number) {
                link.follow(port);
            }
        }
    }
}

/// The ports of a device.
#[pin_data]
pub(crate) struct Ports {
    #[pin]
    managed: IrqLock<Managed>,
    /// Follow the ports that are managed.
    links: [Link; PORTS],
    psn: AtomicU32,
}

/// A description in the form of the wire.
fn description(text: &[u8]) -> [u8; DESCRIPTION_LEN] {
    let mut description = [0; DESCRIPTION_LEN];
    for (place, byte) in description.iter_mut().zip(text) {
        *place = *byte;
    }
    description
}

/// What a node of softib is in a subnet.
pub(crate) fn identity(node_type: NodeType, guid: u64, name: &[u8]) -> Identity {
    Identity {
        node_type,
        node_guid: guid,
        system_guid: guid,
        device: 1,
        revision: 1,
        vendor: 0,
        description: description(name),
    }
}

impl Ports {
    /// A port for each GUID.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `EINVAL` without ports.
    pub(crate) fn new(name: &CStr, guids: &[u64], options: &Options) -> Result<impl PinInit<Self>> {
        let mut ports = KVec::with_capacity(guids.len(), GFP_KERNEL)?;
        // The aliases are the first port's.
        let mut aliases: &[u64] = &options.alias_guids;
        for guid in guids {
            let profile = Profile {
                mtu: Mtu::new(options.mtu),
                ..Profile::new(*guid)
            };
            ports.push(Port::new(&profile).with_aliases(aliases), GFP_KERNEL)?;
            aliases = &[];
        }
        let guid = guids.first().copied().ok_or(EINVAL)?;
        let identity = identity(NodeType::ChannelAdapter, guid, name.to_bytes());
        let managed = Managed {
            node: Node::new(identity, ports).ok_or(EINVAL)?,
            active: [false; PORTS],
        };
        let links = [const { Link::new() }; PORTS];
        managed.show(&links);
        Ok(pin_init!(Self {
            managed <- new_irq_lock!(managed, "softib_ports"),
            links,
            psn: AtomicU32::new(0),
        }))
    }

    /// Runs `look` on a port, if there is one of that number.
    fn look<R>(&self, port: u8, look: impl FnOnce(&Port) -> R) -> Option<R> {
        self.managed
            .with(|managed| managed.node.port(port).map(look))
    }

    /// The sequence number of the next datagram, which nobody looks at.
    pub(crate) fn next_psn(&self) -> u32 {
        self.psn.fetch_add(1, Ordering::Relaxed)
    }

    /// A port, as packets see it.
    #[inline]
    fn link(&self, port: u8) -> Option<&Link> {
        self.links.get(usize::from(port).wrapping_sub(1))
    }

    /// How packets leave for an address; `None` if the port, its source GID or its P_Key is not there.
    #[inline]
    pub(crate) fn way(&self, port: u8, address: &AddressVector, pkey_index: u16) -> Option<Way> {
        let global = match &address.global {
            None => None,
            Some(global) => Some(self.global(port, global)?),
        };
        let link = self.link(port)?;
        let view = link.look();
        Some(Way {
            slid: Lid::new(
                view.lid().get() | u16::from(view.path_bits(Lid::new(address.path_bits.into()))),
            ),
            dlid: address.lid,
            service_level: address.service_level,
            global,
            pkey: link.pkey(pkey_index)?,
            mtu: view.mtu(),
            up: view.is_linked(),
            active: view.is_active(),
            own: view.owns(address.lid),
        })
    }

    /// The same for a global address.
    fn global(&self, port: u8, global: &GlobalRoute) -> Option<Global> {
        let place = usize::from(global.source_index);
        Some(Global {
            traffic_class: global.traffic_class,
            flow_label: global.flow_label,
            hop_limit: global.hop_limit,
            addresses: Addresses {
                sgid: self.look(port, |port| port.gid(place))??,
                dgid: global.destination,
            },
        })
    }

    /// Whether a port takes packets to that address, and the low bits of the address that tell the port's from each
    /// other.
    ///
    /// # Errors
    ///
    /// Why not.
    #[inline]
    pub(crate) fn accepts(&self, port: u8, lid: Lid, management: bool) -> Result<u8, Counter> {
        let view = self.link(port).ok_or(Counter::NotActive)?.look();
        let (up, others) = if management {
            (view.is_linked(), lid == Lid::PERMISSIVE)
        } else {
            let multicast = !lid.is_unicast() && lid != Lid::PERMISSIVE && lid != Lid::ZERO;
            (view.is_active(), multicast)
        };
        if !up {
            Err(Counter::NotActive)
        } else if others || view.owns(lid) {
            Ok(view.path_bits(lid))
        } else {
            Err(Counter::WrongLid)
        }
    }

    /// Whether an address is the port's own.
    #[inline]
    pub(crate) fn is_own(&self, port: u8, lid: Lid) -> bool {
        self.link(port).is_some_and(|link| link.look().owns(lid))
    }

    /// Whether a port takes packets of a key to that unicast address, for who has the key at that place: the low bits of
    /// the address, as above.
    #[inline]
    pub(crate) fn admits(&self, port: u8, lid: Lid, index: u16, pkey: Pkey) -> Option<u8> {
        let link = self.link(port)?;
        let view = link.look();
        let takes = view.is_active() && view.owns(lid) && link.pkey(index)?.matches(pkey);
        takes.then(|| view.path_bits(lid))
    }

    /// Where in the table the key is that lets a packet of that key in.
    pub(crate) fn find_pkey(&self, port: u8, pkey: Pkey) -> Option<u16> {
        self.link(port)?.find_pkey(pkey)
    }

    /// Whether the key at that place lets a packet of that key in.
    #[inline]
    pub(crate) fn pkey_matches(&self, port: u8, index: u16, pkey: Pkey) -> bool {
        let own = self.link(port).and_then(|link| link.pkey(index));
        own.is_some_and(|own| own.matches(pkey))
    }

    /// The key at a place of the table.
    pub(crate) fn pkey(&self, port: u8, index: usize) -> Option<Pkey> {
        self.look(port, |port| port.pkeys().get(index).copied())?
    }

    /// The GID at a place of the table; its GUID is zero if none is there.
    pub(crate) fn gid(&self, port: u8, index: usize) -> Option<Gid> {
        // One without a GUID has the prefix all the same: from the last the kernel takes it.
        let gid = |port: &Port| {
            port.gid(index)
                .unwrap_or_else(|| unset_gid(port.info().gid_prefix()))
        };
        (index < GIDS).then(|| self.look(port, gid))?
    }

    /// What a port says of itself.
    pub(crate) fn attributes(&self, port: u8) -> Option<Attributes> {
        self.look(port, |port| {
            let info = port.info();
            Attributes {
                state: state_number(info.state()),
                physical: physical_number(info.physical()),
                max_mtu: info.mtu_cap().get(),
                active_mtu: info.neighbor_mtu().get(),
                capabilities: info.capability_mask(),
                bad_pkeys: info.p_key_violations().into(),
                bad_qkeys: info.q_key_violations().into(),
                lid: info.lid().get(),
                sm_lid: info.sm_lid().get(),
                lmc: info.lmc(),
                lanes: info.vl_cap(),
                sm_sl: info.sm_sl(),
                subnet_timeout: info.subnet_timeout(),
                width: info.width_active(),
                speed: info.speed_active().into(),
            }
        })
    }
}

/// A GID of which only the prefix is known.
fn unset_gid(prefix: u64) -> Gid {
    Gid::from_bytes((u128::from(prefix) << 64).to_be_bytes())
}

/// A state by its number in the verbs.
fn state_number(state: State) -> u8 {
    match state {
        State::NoChange => 0,
        State::Down => 1,
        State::Init => 2,
        State::Armed => 3,
        State::Active => 4,
        State::Reserved(other) => other,
    }
}

/// A link's state by its number in the verbs.
fn physical_number(physical: Physical) -> u8 {
    match physical {
        Physical::NoChange => 0,
        Physical::Sleep => 1,
        Physical::Polling => 2,
        Physical::Disabled => 3,
        Physical::Training => 4,
        Physical::LinkUp => 5,
        Physical::Recovery => 6,
        Physical::Reserved(other) => other,
    }
}

/// What a packet with a wrong key is told of by.
pub(crate) fn culprit(packet: &Packet<'_>, key: u32) -> Culprit {
    let link = packet.head.lrh.link();
    let none = Addresses {
        sgid: Gid::ZERO,
        dgid: Gid::ZERO,
    };
    let addresses = packet.head.grh.map_or(none, |grh| grh.addresses());
    let destination = packet.transport.destination;
    Culprit {
        slid: link.slid,
        dlid: link.dlid,
        key,
        sl: link.sl,
        source: packet
            .extension
            .deth
            .map_or(destination, |deth| deth.source()),
        destination,
        sgid: addresses.sgid,
        dgid: addresses.dgid,
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, 1> for Hca { self.traps }
}

impl WorkItem<1> for Hca {
    type Pointer = Arc<Hca>;

    fn run(this: Arc<Hca>) {
        this.send_traps();
    }
}

impl Hca {
    /// Changes the node, and tells the kernel and the subnet manager what that changed. Any context.
    fn manage<R>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Node<KVec<Port>>, u64) -> (Events, R),
    ) -> R {
        let now = self.now().get();
        let (events, active, result) = self.ports.managed.with(|managed| {
            let (events, result) = change(&mut managed.node, now);
            managed.show(&self.ports.links);
            if events.changes.contains(Changes::TRAP) {
                self.queue.reschedule::<_, TRAPS>(self, 0);
            }
            let active = managed.node.port(events.port).map(Port::is_active);
            let known = usize::from(events.port).checked_sub(1);
            let known = known.and_then(|place| managed.active.get_mut(place));
            // Steps on the way are not told of.
            let changed = match (active, known) {
                (Some(active), Some(known)) if active != *known => {
                    *known = active;
                    Some(active)
                }
                _ => None,
            };
            (events, changed, result)
        });
        self.tell(&events, active);
        if let Some(command) = events.link {
            if self.command(events.port, command) {
                self.set_carrier(events.port, true);
            }
        }
        result
    }

    /// Tells the kernel of what changed.
    fn tell(&self, events: &Events, active: Option<bool>) {
        let port = events.port;
        let table = [
            (Changes::LID, Event::Lid),
            (Changes::GID, Event::Gids),
            (Changes::PKEY, Event::Pkeys),
            (Changes::SM, Event::SubnetManager),
            (Changes::REREGISTER, Event::Reregister),
        ];
        if active == Some(false) {
            self.device.dispatch(port, Event::PortDown);
        }
        for (change, event) in table {
            if events.changes.contains(change) {
                self.device.dispatch(port, event);
            }
        }
        if active == Some(true) {
            self.device.dispatch(port, Event::PortActive);
        }
    }

    /// Sends the traps that are due.
    fn send_traps(self: &Arc<Self>) {
        let mut out = [0; OUT_LEN];
        loop {
            let now = self.now().get();
            let polled = self.ports.managed.with(|managed| {
                let polled = managed.node.poll(now, &mut out);
                if let (None, Some(next)) = (polled.send, polled.next) {
                    let delay = next.saturating_sub(now).div_ceil(1_000_000);
                    let delay = u32::try_from(delay).unwrap_or(u32::MAX);
                    self.queue
                        .reschedule::<_, TRAPS>(self, msecs_to_jiffies(delay));
                }
                polled
            });
            let Some(answer) = polled.send else {
                return;
            };
            if let Some(bytes) = out.get(..answer.len) {
                self.send_bytes(answer.port, bytes);
            }
        }
    }

    /// Sends a packet that is complete.
    fn send_bytes(self: &Arc<Self>, port: u8, bytes: &[u8]) {
        let Ok(mut frame) = Frame::new(bytes.len()) else {
            return;
        };
        if let Ok(room) = frame.bytes_mut() {
            room.copy_from_slice(bytes);
        }
        let own = Packet::parse(bytes)
            .is_ok_and(|packet| self.ports.is_own(port, packet.head.lrh.dlid()));
        if own {
            self.loop_back(port, frame);
        } else {
            self.transmit(port, frame);
        }
    }

    /// The cable of a port is live, or is no longer.
    pub(super) fn set_carrier(self: &Arc<Self>, port: u8, up: bool) {
        let changed = self.manage(|node, _now| {
            let events = node.carrier(port, up);
            (events, events.changes.contains(Changes::STATE))
        });
        // A port that a subnet manager disabled does not want the cable that was put in.
        let disabled = |port: &Port| port.info().physical() == Physical::Disabled;
        if up && self.ports.look(port, disabled) == Some(true) {
            self.command(port, LinkCommand::Disable);
        }
        if changed && !up {
            self.counters.add(port, Counter::LinkDowned, 1);
        }
    }

    /// Answers a management datagram, if it is for the device itself.
    pub(crate) fn process_mad(
        self: &Arc<Self>,
        port: u8,
        source: u16,
        question: &[u8; mad::LEN],
        answer: &mut [u8; mad::LEN],
    ) -> Processed {
        let counters = |port: u8| self.counters.of_port(port);
        let outcome = self.manage(|node, now| {
            let source = Lid::new(source);
            let processed = node.process(port, question, source, now, &counters, answer);
            (processed.events, processed.outcome)
        });
        match outcome {
            Outcome::Reply => Processed::Reply,
            Outcome::Agents => Processed::Agents,
            Outcome::Consumed | Outcome::Refused => Processed::Consumed,
        }
    }

    /// Changes what a port says that it can do.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such port.
    pub(crate) fn set_capabilities(self: &Arc<Self>, port: u8, set: u32, clear: u32) -> Result {
        if port == 0 || port > self.ports() {
            return Err(EINVAL);
        }
        self.manage(|node, now| (node.set_capability(port, set, clear, now), ()));
        Ok(())
    }

    /// Changes what the device is called in the subnet.
    pub(crate) fn set_description(self: &Arc<Self>, text: &[u8; DESCRIPTION_LEN]) {
        self.manage(|node, now| (node.set_description(*text, now), ()));
    }

    /// Counts a packet of another partition, and tells the subnet manager.
    pub(super) fn bad_pkey(self: &Arc<Self>, port: u8, packet: &Packet<'_>) {
        let culprit = culprit(packet, packet.transport.pkey.get().into());
        self.manage(|node, now| (node.bad_p_key(port, &culprit, now), ()));
    }

    /// Counts a packet with another Q_Key, and tells the subnet manager.
    pub(super) fn bad_qkey(self: &Arc<Self>, port: u8, packet: &Packet<'_>, deth: &Deth) {
        let culprit = culprit(packet, deth.qkey());
        self.manage(|node, now| (node.bad_q_key(port, &culprit, now), ()));
    }
}
