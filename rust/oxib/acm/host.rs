// SPDX-License-Identifier: GPL-2.0-only

//! Interface between the resolution and the net device that it works for.

use core::net::IpAddr;

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    exchange::Exchange,
    local_service::{
        Program,
        Wanted, //
    },
    options::Mode,
    Cache,
    Counter, //
};
use crate::{
    cm::DeviceKey,
    net::skb::Skb,
    rdma::{
        path::PathRecord,
        port::PortNumber, //
    },
    wire::{
        gid::Gid,
        hwaddr::HwAddr,
        pkey::Pkey,
        qpn::Qpn,
        resolution::Request, //
    },
    work, //
};

/// An interface that finds its neighbours by the cache, and is found by them.
pub(crate) trait Host: Send + Sync + 'static {
    /// Changes how it uses the cache. Takes the RTNL.
    fn set_mode(self: Arc<Self>, mode: Mode);

    /// The port of the adapter that the interface is on.
    fn port(&self) -> PortNumber {
        self.location().1
    }

    /// Its exchanges with peers.
    fn exchange(&self) -> &Exchange;

    /// The cache of its namespace. Process context.
    fn cache(&self) -> Option<Arc<Cache>>;

    /// Returns whether a cache is that of its namespace. Process context.
    fn has_cache(&self, cache: &Arc<Cache>) -> bool {
        self.cache().is_some_and(|own| Arc::ptr_eq(&own, cache))
    }

    /// Counts in that cache. Any context.
    fn count(&self, counter: Counter, number: u64);

    /// The device, as the connection manager knows it, and the port.
    fn location(&self) -> (DeviceKey, PortNumber);

    /// The P_Key of its partition.
    fn pkey(&self) -> Pkey;

    /// Returns whether its port has that GID. Process context.
    fn has_gid(&self, gid: &Gid) -> bool;

    /// The stack's number for it.
    fn index(&self) -> u32;

    /// The stack's number for the bond that it is in, or for itself: routes name that one, and so
    /// does `rdma_cm`.
    fn route_index(&self) -> u32;

    /// Its address as the port at `gid` is told it.
    fn address_for(&self, gid: &Gid) -> HwAddr;

    /// The key that its packets carry.
    fn qkey(&self) -> u32;

    /// Returns whether the interface, or a bond that it is in, has this address.
    fn has(&self, address: IpAddr) -> bool;

    /// Returns the address that it sends from to this one: another interface's if it has none of
    /// its own of that family.
    fn source_for(&self, address: IpAddr) -> Option<IpAddr>;

    /// Returns whether IP goes to this address by a gateway behind the interface, or the bond that
    /// it is in, for programs in its namespace. Process context.
    fn has_gateway_to(&self, address: IpAddr) -> bool;

    /// Returns whether a GID is one of the port's own subnet.
    fn is_near(&self, gid: &Gid) -> bool;

    /// Returns whether two LIDs are those of one port, which has several if the LMC is not 0.
    fn is_same_port(&self, one: u32, other: u32) -> bool;

    /// The path to a port. Sleeps as long as the subnet administrator takes.
    ///
    /// # Errors
    ///
    /// `ENXIO` if there is none, `EAGAIN` without an answer.
    fn path(&self, gid: Gid) -> Result<PathRecord>;

    /// Returns whether the subnet administrator may be asked for the path to a port that asks this
    /// node something from LID `lid`. Takes its place among the searches of that source.
    fn may_search_for(&self, lid: u32) -> bool;

    /// Finds a path from the port for a program, which is told when it is known. Sleeps, but not
    /// as long as the subnet administrator takes.
    fn find_path(self: Arc<Self>, wanted: Wanted, program: Program);

    /// Has the subnet administrator asked again for the path to the port at `gid`, which may be
    /// wrong. Any context.
    fn invalidate_path(self: Arc<Self>, gid: &Gid);

    /// Notes that the port at `gid` has been heard of: if no path to it was found before, it is
    /// looked for as soon as it is wanted. Any context.
    fn is_there(&self, gid: &Gid);

    /// Reports to the stack that the target of `request` has the queue pair `qpn` at `gid`.
    fn answer(&self, request: &Request, gid: Gid, qpn: Qpn);

    /// Returns the GID at which the stack's neighbour table has an address.
    fn neighbour(&self, address: IpAddr) -> Option<Gid>;

    /// Has the stack ask whether the neighbour with an address is there: what it knows may be
    /// wrong.
    fn verify(&self, address: IpAddr);

    /// Has `rdma_cm` look again at the addresses that it waits for.
    fn wake_resolvers(&self);

    /// Sends a packet of the stack's that was held back.
    fn send(&self, packet: Skb);

    /// Drops a packet of the stack's that was held back, as nobody answers it, and counts that.
    fn discard(&self, packet: Skb);

    /// Finds out which destinations packets were sent to.
    fn note_used(&self);

    /// Returns whether packets go to the peer of `request` at `gid`, as was found out then, and
    /// nothing shows that they arrive.
    fn is_unconfirmed(&self, request: &Request, gid: &Gid) -> bool;

    /// Has [`Exchange::watch`] called in a moment.
    fn watch_soon(self: Arc<Self>);

    /// The work queue for tasks that sleep.
    fn tasks(&self) -> &work::Queue;

    /// Milliseconds since the interface was made.
    fn now_ms(&self) -> u64;
}
