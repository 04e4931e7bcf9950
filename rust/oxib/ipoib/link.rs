// SPDX-License-Identifier: GPL-2.0-only

//! Interface to the link below a net device, which there is in several kinds.
//!
//! On an InfiniBand port, paths and groups come from the subnet administrator (SA); on a RoCE port
//! they are made locally. The rest of `ipoib` sees this trait alone.
//!
//! The contract, for both kinds:
//!
//! - [`Link::refresh`] reads the port and says what the interface should be like. It is called
//!   when the interface is made, when it comes up, and after each event of the port; with the RTNL
//!   held, so it must not ask the device itself (`ib_query_port` takes the RTNL on RoCE).
//! - [`Link::resolve`] begins to find the path to a GID; the [`Search`] is told the end. It is
//!   called with a transmit queue locked, so it only notes the search or gives it to a worker. An
//!   InfiniBand link asks the SA for a path record, and for a group takes the parameters of the
//!   (send-only) membership.
//! - [`Link::carrier_group`] says which group of the link carries a group of RFC 4391. On
//!   InfiniBand that is the group itself.
//! - [`Link::join`] makes the port and the queue pair members of a group that `carrier_group` gave;
//!   [`Link::leave`] undoes it and cannot fail: what is gone is left. On InfiniBand a join is a
//!   request to the SA, and [`Join::UnderWay`] says that its answer is not there yet: `join` is
//!   called again when it has come. A membership may end from outside; [`Link::holds`] tells.
//! - [`Link::stop`] ends all searches and what the link keeps for them, when the interface goes
//!   down; [`Link::close`] waits for their last traces, before it goes away.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    address::Policy,
    infiniband::Infiniband,
    interface::Interface,
    receive::Receiver,
    roce::Roce,
    search::Search,
    transmit::Reaper, //
};
use crate::{
    acm::{
        local_service::{
            Program,
            Wanted, //
        },
        sources::Source, //
    },
    net::{
        napi::Instance,
        rtnl::Rtnl, //
    },
    rdma::{
        cq,
        device::Device,
        path::PathRecord,
        pd::ProtectionDomain,
        port::{
            LinkLayer,
            PortNumber, //
        },
        qp, //
    },
    wire::{
        gid::Gid,
        pkey::Pkey, //
    },
    work, //
};

/// The queue pairs of an interface: completions wake the polls.
pub(super) type QueuePair = qp::QueuePair<Arc<Instance<Reaper>>, Arc<Instance<Receiver>>>;

impl<P: crate::net::napi::Poll> cq::Notify for Arc<Instance<P>> {
    #[inline]
    fn completed(&self) {
        self.schedule();
    }
}

/// Outcome of a [`Link::join`] that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    /// The interface is a member.
    Member,
    /// The answer is not there yet.
    UnderWay,
}

/// A port's current offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// The GID that packets come from, and that the interface's address carries; `None` if the
    /// port has none that serves.
    pub(super) gid: Option<Gid>,
    /// The entries of the port's GID table that packets come from, by place and GID: the one of
    /// `gid`, and on RoCE the one for IPv6 destinations. Other changes of the table leave the paths
    /// as they are.
    pub(super) sources: [Option<(u32, Gid)>; 2],
    /// Whether the port's GIDs are being written: it is to be read again shortly.
    pub(super) is_unsettled: bool,
    /// The port's LID, by which others reach it; 0 on RoCE.
    pub(super) lid: u16,
    /// Largest payload of one packet in bytes that all members of the link take, the encapsulation
    /// header included.
    pub(super) mtu: u32,
    /// Largest payload that may ever arrive.
    pub(super) largest: u32,
    /// Largest payload that the port may come to carry, when its neighbour and the group allow it.
    pub(super) possible: u32,
    /// Index of the interface's P_Key in the port's table; `None` if the port is no member of the
    /// partition.
    pub(super) pkey_index: Option<u16>,
    /// The first P_Key of the port's table, of which the partition is that of the port's own
    /// interface; `None` if there is none now, and on RoCE.
    pub(super) first_pkey: Option<Pkey>,
    /// Whether the port carries packets.
    pub(super) active: bool,
}

impl Offer {
    /// Returns whether the paths that were found by the offer `old` are of use with this one.
    pub(super) fn keeps_paths_of(&self, old: &Self) -> bool {
        self.sources == old.sources
    }
}

/// A kind of link. See the module's documentation for the contract.
pub(super) trait Link: Send + Sync {
    /// The RDMA device below the link.
    fn rdma(&self) -> &Device;

    /// The key that all datagrams of the link carry.
    fn qkey(&self) -> u32;

    /// Reads the port.
    ///
    /// # Errors
    ///
    /// The device's error.
    fn refresh(&self) -> Result<Offer>;

    /// Returns advice for the administrator if [`Offer::gid`] is `None`.
    fn gid_advice(&self) -> &'static str;

    /// Advises the administrator how to get a larger MTU.
    fn mtu_advice(&self) -> &'static str;

    /// Has packets come from the port's GID with that GUID, as soon as the port has it; `None`:
    /// from the one that the port has by itself.
    fn choose_guid(&self, _guid: Option<[u8; 8]>) {}

    /// Returns the GID that packets come from where no GUID was chosen.
    fn own_gid(&self) -> Option<Gid> {
        None
    }

    /// Returns limits and lifetimes for the link's answers.
    fn policy(&self) -> Policy;

    /// Begins to find the path to a destination.
    fn resolve(&self, search: Search);

    /// Returns the SA's record of the path to a port, which `interface` wants to know. Sleeps as
    /// long as the SA takes, or until [`Link::stop`].
    ///
    /// # Errors
    ///
    /// `ENXIO` if there is none, `EAGAIN` without an answer; `ENOTSUPP` if the link has no SA.
    fn path_record(&self, _interface: &Interface, _gid: Gid) -> Result<PathRecord> {
        Err(ENOTSUPP)
    }

    /// Finds a path from the port for a program. Sleeps. A link without an SA leaves the question
    /// to `ib_sa`.
    fn find_path(&self, _interface: Arc<Interface>, _wanted: &Wanted, program: Program) {
        drop(program);
    }

    /// Returns the group of the link that carries `mgid`.
    fn carrier_group(&self, mgid: Gid) -> Gid;

    /// Makes `interface` a member of `group`.
    ///
    /// # Errors
    ///
    /// The device's or the SA's error; the interface is then not a member.
    fn join(
        &self,
        rtnl: &mut Rtnl,
        interface: &Arc<Interface>,
        qp: &QueuePair,
        group: Gid,
    ) -> Result<Join>;

    /// Detaches `qp` from all groups, of which `interface` stays a member: they do not hold until
    /// [`Link::join`] has attached a queue pair, for which the SA is not asked.
    fn detach_groups(&self, _interface: &Interface, _qp: &QueuePair) {}

    /// Returns whether a membership has not ended from outside, and the queue pair hears the group.
    fn holds(&self, rtnl: &mut Rtnl, group: Gid) -> bool;

    /// Returns whether two LIDs are the same port's, as far as that can be told.
    fn is_same_port(&self, _one: u16, _other: u16) -> bool {
        true
    }

    /// Returns whether packets to the broadcast group arrive, also while the membership is being
    /// renewed.
    fn hears_broadcast(&self) -> bool {
        false
    }

    /// Forgets the known paths, as the port or its subnet has changed. Returns how many were
    /// known.
    fn port_changed(&self) -> usize {
        0
    }

    /// Forgets the known paths to `gid`, which may be wrong. Returns how many were known.
    fn invalidate_paths(&self, _gid: &Gid) -> usize {
        0
    }

    /// Takes a token for one more search because of what a stranger says of a neighbour. Returns
    /// whether there was one.
    fn take_query_token(&self) -> bool {
        true
    }

    /// Returns whether one more search may begin for a path that most likely still leads there, or
    /// of which the last search learned nothing. Takes its place among those of the port.
    fn may_ask_again(&self) -> bool {
        true
    }

    /// Returns the port that a packet came from, by its LID (0 on RoCE) and its GID if it says
    /// that.
    fn source(&self, _lid: u16, gid: Option<Gid>) -> Source {
        gid.map_or(Source::UNKNOWN, |gid| Source::gid(&gid))
    }

    /// Returns whether one more search may begin because `source` asks this node something. Takes
    /// its place among those of the source.
    fn may_search_for(&self, source: Source) -> bool;

    /// Notes that the subnet has changed: requests under way may never be answered.
    fn subnet_changed(&self) {}

    /// Moves the interface, which is down, to the partition `pkey`.
    fn set_partition(&self, _pkey: Pkey) {}

    /// Ends the membership of `interface` in `group`; cannot fail.
    fn leave(&self, rtnl: &mut Rtnl, interface: &Arc<Interface>, qp: &QueuePair, group: Gid);

    /// Returns whether neighbours may be ports of other subnets, which the address cache knows.
    fn is_routed(&self) -> bool {
        false
    }

    /// Returns whether a GID is one of the port's own subnet. Any context.
    fn is_near(&self, _gid: &Gid) -> bool {
        true
    }

    /// Returns whether there can be connections over the link.
    fn connects(&self) -> bool {
        false
    }

    /// Lets searches begin, as the interface goes up.
    fn start(&self) {}

    /// Ends all searches, as the interface goes down.
    fn stop(&self) {}

    /// Waits for the end of all that was begun, as the interface goes away. Sleeps; called
    /// without the RTNL.
    fn close(&self) {}
}

/// The link for the kind of `port`, in the partition `pkey`; its address handles end on `queue`.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn new(
    pd: Arc<ProtectionDomain>,
    port: PortNumber,
    pkey: Pkey,
    queue: Arc<work::Queue>,
) -> Result<KBox<dyn Link>> {
    match pd.device().link_layer(port) {
        LinkLayer::Infiniband => {
            let link = Infiniband::new(pd, port, pkey, queue)?;
            Ok(KBox::new(link, GFP_KERNEL)?)
        }
        LinkLayer::Ethernet | LinkLayer::OmniPath | LinkLayer::Other => {
            Ok(KBox::new(Roce::new(pd, port, queue)?, GFP_KERNEL)?)
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_ipoib_link)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_kept_while_packets_come_from_the_same_entries() {
        let gid = |last| Gid::from_bytes([last; 16]);
        let offer = |sources: [Option<(u32, Gid)>; 2]| Offer {
            gid: sources[0].map(|(_, gid)| gid),
            sources,
            is_unsettled: false,
            lid: 0,
            mtu: 4096,
            largest: 4096,
            possible: 4096,
            pkey_index: Some(0),
            first_pkey: None,
            active: true,
        };
        let old = [Some((1, gid(1))), Some((0, gid(2)))];
        for (new, expected) in [
            (old, true),
            // Another GID, the same at another place, none.
            ([Some((1, gid(3))), old[1]], false),
            ([Some((2, gid(1))), old[1]], false),
            ([None, old[1]], false),
            ([old[0], Some((3, gid(2)))], false),
            ([old[0], None], false),
        ] {
            assert_eq!(offer(new).keeps_paths_of(&offer(old)), expected);
        }
    }
}
