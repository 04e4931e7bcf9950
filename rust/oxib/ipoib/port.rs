// SPDX-License-Identifier: GPL-2.0-only

//! A port's own interface and its children: how they come and go with it, and which of them a
//! connection request is for.

use core::sync::atomic::Ordering;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    interface::{
        Interface,
        Origin,
        Place, //
    },
    options::{
        Options,
        MAX_TX_QUEUES, //
    }, //
};
use crate::{
    net::{
        device::{
            self,
            Device,
            Operations, //
        },
        rtnl,
        upper::Held, //
    },
    rdma::{
        client::Wanted,
        device::Device as RdmaDevice,
        event,
        port::PortNumber, //
    },
    wire::pkey::Pkey, //
};

/// Tells an interface of its port's events.
pub(super) struct PortEvents(pub(super) Arc<Interface>);

impl event::Listener for PortEvents {
    fn event(&self, event: event::Event) {
        let is_others = match event {
            event::Event::Port(port)
            | event::Event::Gids(port)
            | event::Event::Subnet(port)
            | event::Event::Handover(port) => port != self.0.port().get(),
            event::Event::Device => false,
        };
        if is_others {
            return;
        }
        // Before any search for a path begins again.
        self.0.forget_paths();
        match event {
            event::Event::Subnet(_) => {
                // The flag before the work: a run that is queued already must find it.
                self.0.subnet_changed.store(true, Ordering::Release);
                self.0.kick();
            }
            event::Event::Handover(_) => {
                self.0.handed_over.store(true, Ordering::Release);
                self.0.kick();
            }
            event::Event::Port(_) | event::Event::Gids(_) | event::Event::Device => self.0.kick(),
        }
    }
}

/// The interface of a port, which the world sees. Dropping it takes it away and all its children,
/// whatever they are doing.
pub(super) struct Attached(Arc<Interface>);

impl Attached {
    /// Makes an interface for partition `pkey` on `port` of `rdma` and shows it.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the device and the stack say.
    pub(super) fn new(
        rdma: &RdmaDevice,
        port: PortNumber,
        pkey: Pkey,
        options: Options,
    ) -> Result<Self> {
        let place = Place {
            rdma,
            port,
            pkey,
            parent: None,
            origin: Origin::Port,
        };
        let queues = kernel::cpu::nr_cpu_ids().min(MAX_TX_QUEUES);
        let device = Device::new(c"ib%d", queues)?;
        device.join_namespace_of_rdma(rdma);
        let mut rtnl = rtnl::lock();
        let interface = Interface::new(&mut rtnl, &device, place, options)?;
        interface.show(&mut rtnl)?;
        Ok(Self(interface))
    }

    /// Calls `use_it` for the port's interface and its children of which `matches` is true, and
    /// returns the first result.
    fn find<R>(
        &self,
        matches: impl Fn(&Interface) -> bool,
        mut use_it: impl FnMut(&Interface) -> Option<R>,
    ) -> Option<R> {
        if matches(&self.0) {
            if let Some(found) = use_it(&self.0) {
                return Some(found);
            }
        }
        // All in the list are registered: an interface that goes leaves the list first.
        let children = self.0.children.lock();
        children
            .iter()
            .filter(|child| matches(child))
            .find_map(|child| use_it(child))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let mut rtnl = rtnl::lock();
        // Taken out of the list: `leave_parent` locks it for each of them.
        let children = core::mem::take(&mut *self.0.children.lock());
        let all = Iterator::chain(children.iter(), Some(&self.0));
        device::remove(&mut rtnl, all.map(|interface| interface.device()));
    }
}

impl Interface {
    /// Shows a new interface.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and what the stack says; the interface is of no use then.
    pub(super) fn show(self: &Arc<Self>, rtnl: &mut rtnl::Rtnl) -> Result {
        self.prepare(rtnl)
            .and_then(|()| self.device().show(rtnl, self.clone()))
            .inspect_err(|_| self.leaving(rtnl))
    }
}

/// The net device that a connection request is for, among those of `ports`.
///
/// One that is alone in its partition, with the GID that the request came to, is it; its address
/// may be that of a bond. Of several, the one that has the address is.
pub(super) fn net_device(ports: &[Attached], wanted: &Wanted) -> Option<Held> {
    let in_partition = |interface: &Interface| {
        interface.port().get() == wanted.port && interface.pkey().base() == wanted.pkey.base()
    };
    let exact = |interface: &Interface| {
        let gid = interface.device().address().gid();
        in_partition(interface) && wanted.gid.is_none_or(|wanted| wanted == gid)
    };
    // A request may also have come to another of the port's GIDs.
    choose(ports, exact, wanted).or_else(|| choose(ports, in_partition, wanted))
}

fn choose(
    ports: &[Attached],
    matches: impl Fn(&Interface) -> bool,
    wanted: &Wanted,
) -> Option<Held> {
    let mut count = 0;
    for port in ports {
        port.find(&matches, |_| {
            count += 1;
            None::<()>
        });
    }
    ports.iter().find_map(|port| {
        port.find(&matches, |interface| match wanted.address {
            Some(address) if count > 1 => interface.device().owner_of(address),
            _ => interface.device().master(),
        })
    })
}
