// SPDX-License-Identifier: GPL-2.0-only

//! What differs between the kinds of link below a net device.
//!
//! On an InfiniBand port, paths and groups come from the subnet administrator (SA); on a RoCE port
//! they are made locally. The rest of `ipoib` sees this trait alone.
//!
//! The contract, for both kinds:
//!
//! - [`Link::refresh`] reads the port anew and says what the interface should be like. It is called
//!   when the interface is made, when it comes up, and after each event of the port; with the RTNL
//!   held, so it must not ask the device itself (`ib_query_port` takes the RTNL on RoCE).
//! - [`Link::resolve`] finds the way to a GID and may sleep for seconds. It is called for one GID
//!   once at a time, for different ones in parallel. An InfiniBand link asks the SA for a path
//!   record, and for a group takes the parameters of the (send-only) membership.
//! - [`Link::carrier_group`] says which group of the link carries a group of RFC 4391. On
//!   InfiniBand that is the group itself.
//! - [`Link::join`] makes the port and the queue pair members of a group that `carrier_group` gave;
//!   [`Link::leave`] undoes it and cannot fail: what is gone is left. On InfiniBand a join is a
//!   request to the SA, and `EAGAIN` says that its answer is under way: `join` is called again when
//!   it has come.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    receive::Receiver,
    transmit::Reaper, //
};
use crate::{
    net::{
        napi::Instance,
        rtnl::Rtnl, //
    },
    rdma::{
        ah::AddressHandle,
        cq,
        device::Device,
        qp, //
    },
    wire::gid::Gid, //
};

/// The queue pairs of an interface: completions wake the polls.
pub(super) type QueuePair = qp::QueuePair<Arc<Instance<Reaper>>, Arc<Instance<Receiver>>>;

impl<P: crate::net::napi::Poll> cq::Notify for Arc<Instance<P>> {
    #[inline]
    fn completed(&self) {
        self.schedule();
    }
}

/// What a port offers at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// The GID that the interface's address carries; `None` if the port has none that serves.
    pub(super) gid: Option<Gid>,
    /// Largest payload of one packet in bytes, the encapsulation header included.
    pub(super) mtu: u32,
    /// Whether the port carries packets.
    pub(super) active: bool,
}

/// A kind of link. See the module's documentation for the contract.
pub(super) trait Link: Send + Sync {
    /// The RDMA device.
    fn rdma(&self) -> &Device;

    /// The key that all datagrams of the link carry.
    fn qkey(&self) -> u32;

    /// Reads the port anew.
    ///
    /// # Errors
    ///
    /// What the device says.
    fn refresh(&self) -> Result<Offer>;

    /// What the administrator should do if [`Offer::gid`] is `None`.
    fn gid_advice(&self) -> &'static str;

    /// Finds the way to `gid`. Sleeps.
    ///
    /// # Errors
    ///
    /// `EHOSTUNREACH`, `ETIMEDOUT` and their like: nobody there, now; `ENOMEM`.
    fn resolve(&self, gid: Gid) -> Result<AddressHandle>;

    /// The group of the link that carries `mgid`.
    fn carrier_group(&self, mgid: Gid) -> Gid;

    /// Makes the interface a member of `group`.
    ///
    /// # Errors
    ///
    /// What the device says; the interface is not a member.
    fn join(&self, rtnl: &mut Rtnl, qp: &QueuePair, group: Gid) -> Result;

    /// Ends the membership.
    fn leave(&self, rtnl: &mut Rtnl, qp: &QueuePair, group: Gid);
}
