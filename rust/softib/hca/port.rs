// SPDX-License-Identifier: GPL-2.0-only

//! The ports of a device, as packets and queries see them.

use core::sync::atomic::{
    AtomicU32,
    Ordering, //
};

use kernel::prelude::*;

use super::{
    address::{
        AddressVector,
        GlobalRoute, //
    },
    closing::Closing,
    counters::Counter,
    link::Link,
    options::Options,
    queue_pairs::PORTS, //
};
use crate::{
    fabric::{
        node::Node,
        port::{
            Port,
            Profile,
            MAX_GUIDS,
            MAX_PKEYS, //
        }, //
    },
    identity::identity,
    lock::{
        new_irq_lock,
        IrqLock, //
    },
    transport::source::Address,
    wire::{
        cm::mtu::Mtu,
        gid::Gid,
        grh::Addresses,
        lid::Lid,
        packet::{
            Global,
            Head, //
        },
        pkey::Pkey,
        smp::node::NodeType, //
    }, //
};

pub(crate) mod attributes;

/// Places of a P_Key table.
pub(crate) const PKEYS: usize = MAX_PKEYS;

/// Places of a GID table.
pub(crate) const GIDS: usize = MAX_GUIDS;

/// The path by which a packet leaves a port.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) slid: Lid,
    pub(crate) dlid: Lid,
    pub(crate) service_level: u8,
    pub(crate) global: Option<Global>,
    pub(crate) pkey: Pkey,
    /// Bytes of data of a packet.
    pub(crate) mtu: usize,
    pub(crate) up: bool,
    pub(crate) active: bool,
    /// Whether it leads back to the same port.
    pub(crate) own: bool,
}

/// The part of the ports that is under a lock.
pub(super) struct Managed {
    pub(super) node: Node<KVec<Port>>,
    /// The states that the kernel was told last: whether each port is active.
    pub(super) active: [bool; PORTS],
    /// The ports whose other ends are still to be told that the link was disabled.
    pub(super) closing: Closing,
}

impl Managed {
    /// Copies what the ports are now to where packets see it.
    pub(super) fn show(&self, links: &[Link; PORTS]) {
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
    pub(super) managed: IrqLock<Managed>,
    /// The ports as packets see them; they follow those that are managed.
    pub(super) links: [Link; PORTS],
    psn: AtomicU32,
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
            closing: Closing::new(),
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
    pub(super) fn look<R>(&self, port: u8, look: impl FnOnce(&Port) -> R) -> Option<R> {
        self.managed
            .with(|managed| managed.node.port(port).map(look))
    }

    /// The sequence number of the next datagram, which no receiver looks at.
    pub(crate) fn next_psn(&self) -> u32 {
        self.psn.fetch_add(1, Ordering::Relaxed)
    }

    /// A port, as packets see it.
    #[inline]
    fn link(&self, port: u8) -> Option<&Link> {
        self.links.get(usize::from(port).wrapping_sub(1))
    }

    /// Returns the path of packets to an address; `None` if the port, its source GID or its P_Key
    /// is not there.
    #[inline]
    pub(crate) fn path(&self, port: u8, address: &AddressVector, pkey_index: u16) -> Option<Path> {
        let global = match &address.global {
            None => None,
            Some(global) => Some(self.global(port, global)?),
        };
        let link = self.link(port)?;
        let view = link.look();
        Some(Path {
            // Of the handle's path bits those count that the port's LMC allows.
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

    /// Returns the global route of packets to an address; `None` if the port or its source GID is
    /// not there.
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

    /// Returns the low bits of an address that tell a port's addresses from each other, if the
    /// port takes packets to that address.
    ///
    /// # Errors
    ///
    /// The counter of the cause for which it takes none.
    #[inline]
    pub(crate) fn accepts(&self, port: u8, lid: Lid, management: bool) -> Result<u8, Counter> {
        let view = self.link(port).ok_or(Counter::NotActive)?.look();
        // A subnet manager has to reach ports that are not active yet, and that have no LID.
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

    /// Returns whether an address is the port's own.
    #[inline]
    pub(crate) fn is_own(&self, port: u8, lid: Lid) -> bool {
        self.link(port).is_some_and(|link| link.look().owns(lid))
    }

    /// Returns these low bits of a unicast address, if a port takes packets of a key to it for
    /// the owner of the P_Key at `index`.
    #[inline]
    pub(crate) fn admits(&self, port: u8, lid: Lid, index: u16, pkey: Pkey) -> Option<u8> {
        let link = self.link(port)?;
        let view = link.look();
        let takes = view.is_active() && view.owns(lid) && link.pkey(index)?.matches(pkey);
        takes.then(|| view.path_bits(lid))
    }

    /// Returns whether a packet of a connection comes from the peer at an address.
    #[inline]
    pub(crate) fn is_from(&self, port: u8, peer: &AddressVector, head: &Head<'_>) -> bool {
        let peer = Address {
            lid: peer.lid,
            gid: peer.global.as_ref().map(|global| global.destination),
        };
        let source = Address {
            lid: head.lrh.link().slid,
            gid: head.grh.map(|grh| grh.addresses().sgid),
        };
        let link = self.link(port);
        link.is_some_and(|link| peer.is_source(&source, link.prefix()))
    }

    /// Returns the index of the P_Key that lets a packet of that key in.
    pub(crate) fn find_pkey(&self, port: u8, pkey: Pkey) -> Option<u16> {
        self.link(port)?.find_pkey(pkey)
    }

    /// Returns whether the key at that place lets a packet of that key in.
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
}

/// A GID of which only the prefix is known.
fn unset_gid(prefix: u64) -> Gid {
    Gid::from_bytes((u128::from(prefix) << 64).to_be_bytes())
}
