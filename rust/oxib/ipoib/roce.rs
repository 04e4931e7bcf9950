// SPDX-License-Identifier: GPL-2.0-only

//! The RoCE link: no subnet administrator, GIDs that are IP addresses.
//!
//! Packets are UDP between the IP addresses of the Ethernet devices (RoCE version 2). A group of
//! RFC 4391 is carried by an IPv4 group that all nodes work out alike (`wire/roce.rs`).

use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::{
    address::Policy,
    interface::Interface,
    link::{
        Join,
        Link,
        Offer,
        QueuePair, //
    },
    search::Search,
    strangers::ROCE_SEARCHES, //
};
use crate::{
    acm::sources::{
        Source,
        Sources, //
    },
    net::{
        bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        rtnl::{
            Locked,
            Rtnl, //
        }, //
    },
    rdma::{
        ah::AddressHandle,
        device::Device,
        ethernet::Ipv4,
        gid::Entry,
        management::random,
        pd::ProtectionDomain,
        port::PortNumber, //
    },
    wire::{
        gid::Gid,
        roce, //
    },
    work, //
};

/// The key of the link's datagrams. InfiniBand has one per subnet, from the broadcast group; here
/// there is nobody to ask, so all nodes know it.
const QKEY: u32 = 0x0b1b;

/// The LID in calls that want one: on RoCE neither ports nor groups have any.
const NO_LID: u16 = 0;

/// Limits and lifetimes for results: a peer may have got another Ethernet address or another
/// router since, and one that did not answer may be there again soon. Each search holds a worker
/// until the peer answers or it times out.
const POLICY: Policy = Policy {
    searches: 512,
    // Half of the workers.
    strangers: 8,
    refresh: Some(60),
    memory: 1,
};

/// A RoCE port, as a link.
pub(super) struct Roce {
    port: Arc<Port>,
    /// The groups that the interface's queue pair is attached to: as long as the interface wants
    /// them, also while the Ethernet device has lost its membership. With each, the IPv4 of the
    /// Ethernet device that it was joined on, if it was.
    attached: Locked<RBTree<Gid, Option<Ipv4>>>,
}

/// State that is shared with the searches.
#[pin_data]
struct Port {
    pd: Arc<ProtectionDomain>,
    number: PortNumber,
    /// The work queue on which address handles are destroyed.
    queue: Arc<work::Queue>,
    #[pin]
    source: SpinLockBh<SourceEntries>,
    /// Budgets of the sources that have this node search by asking it something.
    #[pin]
    sources: SpinLockBh<Sources>,
}

/// Entries of the GID table that packets come from, by the IP version of their destination: the
/// place and the GID of each. They are not referenced, as `ib_core` enters nothing at the place of
/// an entry that is: with a reference to the default GID, which has a place of its own, the port
/// would get no other one with the Ethernet device's next MAC address.
#[derive(Clone, Copy, Default)]
struct SourceEntries {
    /// The entry of the GID that the interface's address carries.
    ipv4: Option<(u32, Gid)>,
    /// The entry for packets to IPv6 destinations.
    ipv6: Option<(u32, Gid)>,
}

impl Roce {
    /// Drives `port`; address handles end on `queue`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(
        pd: Arc<ProtectionDomain>,
        port: PortNumber,
        queue: Arc<work::Queue>,
    ) -> Result<Self> {
        let sources = Sources::new(ROCE_SEARCHES, random().into())?;
        let port = pin_init!(Port {
            pd,
            number: port,
            queue,
            source <- new_spinlock_bh!(SourceEntries::default(), "oxib_roce_source"),
            sources <- new_spinlock_bh!(sources, "oxib_roce_sources"),
        });
        Ok(Self {
            port: Arc::pin_init(port, GFP_KERNEL)?,
            attached: Locked::new(RBTree::new()),
        })
    }

    /// Attaches the queue pair to `group`, once: what ends a membership of the Ethernet device
    /// leaves the queue pair as it is.
    ///
    /// # Errors
    ///
    /// `ENOMEM` and the device's error; the queue pair is not attached then.
    fn attach(&self, rtnl: &mut Rtnl, qp: &QueuePair, group: Gid) -> Result {
        let attached = self.attached.get(rtnl);
        if attached.get(&group).is_some() {
            return Ok(());
        }
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        qp.attach(group, NO_LID)?;
        attached.insert(node.into_node(group, None));
        Ok(())
    }
}

impl Port {
    /// The entry at `index` of the GID table, if RoCE version 2 packets can come from it.
    fn entry(&self, index: u32) -> Option<ARef<Entry>> {
        let entry = self.pd.device().gid(self.number, index);
        entry.filter(|entry| entry.is_roce_v2() && !entry.has_vlan())
    }

    /// Entries of the GID table that RoCE version 2 packets can come from.
    fn entries(&self) -> impl Iterator<Item = ARef<Entry>> + '_ {
        let places = 0..self.pd.device().gids(self.number);
        places.filter_map(move |index| self.entry(index))
    }

    /// Chooses the entries that packets come from: the first of each IP version.
    fn choose_sources(&self) -> SourceEntries {
        let first = |is_ipv4: bool| {
            self.entries()
                .find(|entry| entry.gid().ipv4().is_some() == is_ipv4)
                .map(|entry| entry.place())
        };
        SourceEntries {
            ipv4: first(true),
            ipv6: first(false),
        }
    }

    /// The entry to send from to `destination`, of its IP version. One that is not as `refresh` has
    /// seen it is not used: nothing would tell that it is gone again.
    fn source_for(&self, destination: &Gid) -> Result<ARef<Entry>> {
        let sources = *self.source.lock();
        let noted = match destination.ipv4() {
            Some(_) => sources.ipv4,
            None => sources.ipv6,
        };
        let (index, gid) = noted.ok_or(ENXIO)?;
        // Referenced until the address handle refers to it: if it goes while the peer is resolved,
        // its GID comes again at another place, and the path is forgotten.
        let entry = self.entry(index).filter(|entry| entry.gid() == gid);
        entry.ok_or(ENXIO)
    }

    /// Finds the path to `gid`. Sleeps.
    fn find(&self, gid: Gid) -> Result<AddressHandle> {
        if gid.is_multicast() {
            let group = roce::group_gid(&gid);
            let source = self.source_for(&group)?;
            AddressHandle::to_roce_group(&self.pd, self.number, &self.queue, &source, group)
        } else {
            let source = self.source_for(&gid)?;
            AddressHandle::to_roce_peer(&self.pd, self.number, &self.queue, &source, gid)
        }
    }
}

impl Link for Roce {
    fn rdma(&self) -> &Device {
        self.port.pd.device()
    }

    fn qkey(&self) -> u32 {
        QKEY
    }

    fn refresh(&self) -> Result<Offer> {
        let device = self.port.pd.device();
        // As `ib_core` has it cached: asking the device would take the RTNL, which is held.
        let active = device.is_active(self.port.number)?;
        let mtu = device.ethernet_mtu(self.port.number).ok_or(ENODEV)?;
        let chosen = self.port.choose_sources();
        *self.port.source.lock() = chosen;
        Ok(Offer {
            // Groups are IPv4 ones, so an IPv4 GID is needed.
            gid: chosen.ipv4.map(|(_, gid)| gid),
            sources: [chosen.ipv4, chosen.ipv6],
            is_unsettled: false,
            lid: NO_LID,
            mtu,
            largest: mtu,
            possible: mtu,
            // A RoCE port has the default P_Key alone.
            pkey_index: Some(0),
            first_pkey: None,
            active,
        })
    }

    fn gid_advice(&self) -> &'static str {
        "give the Ethernet device below it an IPv4 address"
    }

    fn mtu_advice(&self) -> &'static str {
        "raise the MTU of the Ethernet device below it"
    }

    fn policy(&self) -> Policy {
        POLICY
    }

    fn may_search_for(&self, source: Source) -> bool {
        self.port.sources.lock().take(source, work::milliseconds())
    }

    fn resolve(&self, search: Search) {
        // In a worker: a transmit queue may be locked here, and resolving sleeps.
        let port = self.port.clone();
        // Without memory the search ends with the closure.
        let _ = self.port.queue.spawn(move || {
            if search.is_wanted() {
                let found = port.find(search.gid());
                search.end(found);
            }
        });
    }

    fn carrier_group(&self, mgid: Gid) -> Gid {
        roce::group_gid(&mgid)
    }

    fn join(
        &self,
        rtnl: &mut Rtnl,
        _interface: &Arc<Interface>,
        qp: &QueuePair,
        group: Gid,
    ) -> Result<Join> {
        let address = group.ipv4().ok_or(EINVAL)?;
        let device = self.port.pd.device();
        // Attached first and detached last: no packet of the group comes without a receiver.
        self.attach(rtnl, qp, group)?;
        // The port may have come to another Ethernet device: the one before would stay a member,
        // and be one twice when the port comes back.
        let before = self.attached.get(rtnl).get_mut(&group);
        if let Some(before) = before.and_then(Option::take) {
            before.leave_group(rtnl, address);
        }
        let joined = device.join_group(rtnl, self.port.number, address);
        if joined.is_err() && self.attached.get(rtnl).remove(&group).is_some() {
            // Half a membership receives nothing: undone, for a later try. The first error says
            // why there is none.
            let _ = qp.detach(group, NO_LID);
        }
        let ipv4 = joined?;
        if let Some(joined) = self.attached.get(rtnl).get_mut(&group) {
            *joined = Some(ipv4);
        }
        Ok(Join::Member)
    }

    fn holds(&self, rtnl: &mut Rtnl, group: Gid) -> bool {
        // A device loses its groups with its IPv4, which an MTU that is too small for that ends,
        // and the port may have come to another device. Nothing tells of either.
        let device = self.port.pd.device();
        let ipv4 = device.ipv4(rtnl, self.port.number);
        // One that another interface has joined since is not ours.
        self.attached.get(rtnl).get(&group) == Some(&ipv4)
            && group
                .ipv4()
                .is_some_and(|address| device.is_member(rtnl, self.port.number, address))
    }

    fn leave(&self, rtnl: &mut Rtnl, interface: &Arc<Interface>, qp: &QueuePair, group: Gid) {
        let Some(address) = group.ipv4() else { return };
        let Some(joined) = self.attached.get(rtnl).remove(&group) else {
            // A membership that ended, and could not be renewed.
            return;
        };
        if let Some(ipv4) = joined {
            ipv4.leave_group(rtnl, address);
        }
        let device = self.port.pd.device();
        if let Err(error) = qp.detach(group, NO_LID) {
            dev_warn!(
                device.as_dev(),
                "{}: the queue pair cannot be detached from {group:?}: {error:?}\n",
                interface.device().name()
            );
        }
    }
}
