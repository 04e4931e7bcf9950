// SPDX-License-Identifier: GPL-2.0-only

//! The InfiniBand link: paths and groups come from the subnet administrator (SA).
//!
//! - [`path`] asks for the paths to ports: so many queries at a time, one for a destination.
//! - [`presence`] tells a refusal of the SA from one of a node on which a subnet manager has ended.
//! - [`program`] finds paths for programs, by the same queries.
//! - [`group`] joins groups: as a full member those that the stack wants, to send only those that
//!   packets go to. The first is the broadcast group (RFC 4391 §5), which gives the Q_Key and the
//!   MTU of the link; all others are made like it.
//!
//! Answers of the SA are handled in work of their own ([`Port::advance`]), never where the stack
//! waits.

use core::sync::atomic::{
    AtomicBool,
    AtomicU16,
    AtomicU32,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    },
    workqueue::{
        impl_has_delayed_work,
        new_delayed_work,
        DelayedWork,
        WorkItem, //
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
    search::Search, //
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
        bh::{
            new_spinlock_bh,
            SpinLockBh, //
        },
        rtnl::Rtnl, //
    },
    rdma::{
        device::Device,
        gid::Entry,
        path::PathRecord,
        pd::ProtectionDomain,
        port::PortNumber,
        sa::{
            self,
            multicast::Record, //
        }, //
    },
    registry,
    wire::{
        gid::Gid,
        lid::Lid,
        mgid,
        mgid::Scope,
        pkey::Pkey, //
    },
    work, //
};

mod answer;
mod gids;
mod group;
mod path;
mod presence;
mod program;
mod shared;

use answer::RefusalLines;
use gids::Unrest;
use group::Groups;
use path::Paths;

pub(crate) use shared::{
    PortPaths,
    Shown, //
};

/// The Q_Key until the broadcast group's is known: nobody sends with it.
const NO_QKEY: u32 = 0x7fff_0b1b;

/// Limits and lifetimes for results of the SA, which reports most changes.
const POLICY: Policy = Policy {
    searches: 4096,
    strangers: 2048,
    refresh: None,
    memory: 30,
};

/// Number of the work that ends searches for groups which have waited too long.
const DEADLINE_WORK: u64 = 1;

/// An InfiniBand port, in one partition.
pub(super) struct Infiniband(Arc<Port>);

/// State that is shared with waiters for answers.
#[pin_data]
struct Port {
    pd: Arc<ProtectionDomain>,
    number: PortNumber,
    /// The P_Key of the partition, as a full member has it.
    pkey: AtomicU16,
    /// The work queue on which answers are handled, and on which address handles and memberships
    /// end.
    queue: Arc<work::Queue>,
    sa: Arc<sa::Client>,
    /// The GID that the interface's address carries.
    #[pin]
    source: SpinLockBh<Option<ARef<Entry>>>,
    /// The GUID that an administrator chose for it.
    #[pin]
    guid: SpinLockBh<Option<[u8; 8]>>,
    /// Whether the port's GID table is being written.
    #[pin]
    unrest: SpinLockBh<Unrest>,
    #[pin]
    paths: SpinLockBh<Paths>,
    /// Paths that are known, which all interfaces of the port share.
    known_paths: Arc<PortPaths>,
    /// The share in these paths was given back.
    closed: AtomicBool,
    #[pin]
    groups: Groups,
    /// The MTU of the broadcast group as it was known last, in bytes; 0 if it never was.
    group_mtu: AtomicU32,
    /// The prefixes of the port's GIDs: those of its subnet.
    #[pin]
    prefixes: SpinLockBh<Prefixes>,
    /// Time before which no wrong answer is logged, in seconds since the interface was made.
    #[pin]
    quiet_until: SpinLockBh<u64>,
    #[pin]
    refusal_lines: SpinLockBh<RefusalLines>,
    #[pin]
    work: DelayedWork<Port>,
    #[pin]
    deadline_work: DelayedWork<Port, DEADLINE_WORK>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for Port { self.work }
    impl HasDelayedWork<Self, DEADLINE_WORK> for Port { self.deadline_work }
}

impl WorkItem for Port {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.advance();
    }
}

impl WorkItem<DEADLINE_WORK> for Port {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.advance_soon();
    }
}

impl Infiniband {
    /// Drives `port` in the partition `pkey`; address handles end on `queue`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(
        pd: Arc<ProtectionDomain>,
        number: PortNumber,
        pkey: Pkey,
        queue: Arc<work::Queue>,
    ) -> Result<Self> {
        let paths = Paths::new()?;
        let sa = sa::Client::new(pd.device(), number)?;
        let known_paths = registry::paths(pd.device(), number)?;
        let users = known_paths.clone();
        let port = pin_init!(Port {
            pd,
            number,
            pkey: AtomicU16::new(pkey.get()),
            queue,
            sa,
            source <- new_spinlock_bh!(None, "oxib_source"),
            guid <- new_spinlock_bh!(None, "oxib_guid"),
            unrest <- new_spinlock_bh!(Unrest::default(), "oxib_unrest"),
            known_paths,
            closed: AtomicBool::new(false),
            paths <- new_spinlock_bh!(paths, "oxib_paths"),
            groups <- Groups::new(),
            group_mtu: AtomicU32::new(0),
            prefixes <- new_spinlock_bh!(Prefixes::default(), "oxib_prefixes"),
            quiet_until <- new_spinlock_bh!(0, "oxib_wrong_answers"),
            refusal_lines <- new_spinlock_bh!(RefusalLines::default(), "oxib_refusal_lines"),
            work <- new_delayed_work!("oxib_answers"),
            deadline_work <- new_delayed_work!("oxib_deadline"),
        });
        let port = Arc::pin_init(port, GFP_KERNEL);
        // The registry has counted a user, which nothing else would take back.
        Ok(Self(port.inspect_err(|_| registry::release(&users))?))
    }
}

impl Port {
    fn device(&self) -> &Device {
        self.pd.device()
    }

    fn pkey(&self) -> Pkey {
        Pkey::new(self.pkey.load(Ordering::Relaxed))
    }

    /// MGID of the partition's broadcast group (RFC 4391 §4).
    fn broadcast(&self) -> Gid {
        mgid::broadcast(self.pkey(), Scope::LinkLocal)
    }

    /// The first P_Key of the port's table, if it names a partition.
    fn first_pkey(&self) -> Option<Pkey> {
        let key = self.device().pkey(self.number, 0).ok()?;
        Some(Pkey::new(key)).filter(|pkey| pkey.is_valid())
    }

    /// The GID that packets come from.
    fn source(&self) -> Option<ARef<Entry>> {
        self.source.lock().clone()
    }

    /// The GID that packets come from, by which groups are joined.
    fn source_gid(&self) -> Option<Gid> {
        self.source.lock().as_ref().map(|entry| entry.gid())
    }

    /// Returns the parameters of the broadcast group, also while the membership is renewed.
    fn known(&self) -> Option<Record> {
        self.groups.known(&self.broadcast())
    }

    /// Returns the MTU that the broadcast group has, or had when it was known last: 0 if it never
    /// was. A port that is down, or between two memberships, has no other, so the interface's does
    /// not change for that.
    fn follow_group_mtu(&self) -> u32 {
        if let Some(mtu) = self.known().and_then(|record| record.mtu()) {
            self.group_mtu.store(mtu, Ordering::Relaxed);
        }
        self.group_mtu.load(Ordering::Relaxed)
    }

    /// Handles what there is to be asked, and answers, soon. Any context.
    fn advance_soon(self: &Arc<Self>) {
        self.queue.schedule::<_, 0>(self.clone(), 0);
    }

    fn advance(self: &Arc<Self>) {
        self.ask_paths();
        self.advance_groups();
    }
}

/// The first halves of a port's GIDs (IBTA 4.1.1).
#[derive(Clone, Copy, Default)]
struct Prefixes([Option<u64>; Self::MOST]);

impl Prefixes {
    /// Most prefixes that count: a subnet has one, and perhaps the one that it had before.
    const MOST: usize = 4;

    fn of(gid: &Gid) -> u64 {
        (u128::from_be_bytes(gid.bytes()) >> 64) as u64
    }

    fn add(&mut self, gid: &Gid) {
        if !gid.is_routable() || self.have(gid) {
            return;
        }
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none()) {
            *place = Some(Self::of(gid));
        }
    }

    fn have(&self, gid: &Gid) -> bool {
        self.0.contains(&Some(Self::of(gid)))
    }
}

/// Returns the rank of a GID as a source, the higher the better: that an administrator chose its
/// GUID comes first, then that other subnets reach it.
fn worth(gid: &Gid, chosen: Option<[u8; 8]>) -> (bool, bool) {
    let is_chosen = chosen.is_some_and(|guid| gid.with_guid(guid) == *gid);
    (is_chosen, is_routable(gid))
}

/// Returns whether packets to a port's GID come from other subnets: it is one, with a GUID.
fn is_routable(gid: &Gid) -> bool {
    gid.is_routable() && gid.guid() != [0; 8]
}

impl Link for Infiniband {
    fn rdma(&self) -> &Device {
        self.0.device()
    }

    fn qkey(&self) -> u32 {
        self.0.known().map_or(NO_QKEY, |record| record.qkey())
    }

    fn refresh(&self) -> Result<Offer> {
        let port = &*self.0;
        let device = port.device();
        let active = device.is_active(port.number)?;
        if !active {
            port.groups.forget_known();
        }
        // Only RoCE devices take the RTNL for a query, so this one may be asked.
        let state = device.infiniband_port(port.number)?;
        let largest = state.mtu;
        let is_unsettled = port.follow_gids();
        let of_group = port.follow_group_mtu();
        let source = port.source().map(|entry| entry.place());
        Ok(Offer {
            gid: source.map(|(_, gid)| gid),
            sources: [source, None],
            is_unsettled,
            lid: state.lid,
            mtu: match of_group {
                0 => largest,
                mtu => mtu.min(largest),
            },
            largest,
            possible: state.max_mtu.max(largest),
            pkey_index: device.pkey_index(port.number, port.pkey()),
            first_pkey: port.first_pkey(),
            active,
        })
    }

    fn gid_advice(&self) -> &'static str {
        "a subnet manager gives it one"
    }

    fn mtu_advice(&self) -> &'static str {
        "the subnet manager sets it for the partition's broadcast group, or use connected mode"
    }

    fn choose_guid(&self, guid: Option<[u8; 8]>) {
        *self.0.guid.lock() = guid;
    }

    fn own_gid(&self) -> Option<Gid> {
        self.0.own_gid()
    }

    fn policy(&self) -> Policy {
        POLICY
    }

    fn resolve(&self, search: Search) {
        if search.gid().is_multicast() {
            self.0.groups.note(search);
        } else {
            self.0.note_path(search);
        }
        // By work: the caller may hold a transmit queue's lock, and to ask the SA sleeps.
        self.0.advance_soon();
    }

    fn is_routed(&self) -> bool {
        true
    }

    fn is_near(&self, gid: &Gid) -> bool {
        gid.is_link_local() || self.0.prefixes.lock().have(gid)
    }

    fn connects(&self) -> bool {
        true
    }

    fn path_record(&self, interface: &Interface, gid: Gid) -> Result<PathRecord> {
        self.0.path_record(interface, gid)
    }

    fn find_path(&self, interface: Arc<Interface>, wanted: &Wanted, program: Program) {
        self.0.find_path(interface, wanted, program);
    }

    fn carrier_group(&self, mgid: Gid) -> Gid {
        mgid
    }

    fn join(
        &self,
        _rtnl: &mut Rtnl,
        interface: &Arc<Interface>,
        qp: &QueuePair,
        group: Gid,
    ) -> Result<Join> {
        self.0.join(interface, qp, group)
    }

    fn detach_groups(&self, interface: &Interface, qp: &QueuePair) {
        self.0.detach_all(interface, qp);
    }

    fn holds(&self, _rtnl: &mut Rtnl, group: Gid) -> bool {
        self.0.groups.holds(&group)
    }

    fn is_same_port(&self, one: u16, other: u16) -> bool {
        // Others have as many LIDs as this one: the subnet manager gives all the same LMC.
        Lid::new(one).is_same_port(Lid::new(other), self.0.device().lmc(self.0.number))
    }

    fn hears_broadcast(&self) -> bool {
        self.0.groups.hears(&self.0.broadcast())
    }

    fn leave(&self, _rtnl: &mut Rtnl, interface: &Arc<Interface>, qp: &QueuePair, group: Gid) {
        self.0.leave(interface, qp, group);
    }

    fn set_partition(&self, pkey: Pkey) {
        self.0.pkey.store(pkey.get(), Ordering::Relaxed);
    }

    fn port_changed(&self) -> usize {
        self.0.known_paths.forget_all()
    }

    fn invalidate_paths(&self, gid: &Gid) -> usize {
        self.0.known_paths.forget_to(gid)
    }

    fn take_query_token(&self) -> bool {
        self.0.known_paths.take_query_token()
    }

    fn source(&self, lid: u16, gid: Option<Gid>) -> Source {
        match gid {
            Some(gid) if lid == 0 => Source::gid(&gid),
            _ => Source::port(lid, self.0.device().lmc(self.0.number)),
        }
    }

    fn may_search_for(&self, source: Source) -> bool {
        self.0.known_paths.may_search_for(source)
    }

    fn may_ask_again(&self) -> bool {
        self.0.known_paths.may_ask_again()
    }

    fn subnet_changed(&self) {
        self.0.log_refusals_again();
        self.0.cancel_paths();
    }

    fn start(&self) {
        self.0.paths.lock().open();
    }

    fn stop(&self) {
        self.0.stop_paths();
        self.0.groups.stop();
    }

    fn close(&self) {
        if self.0.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.stop();
        // Before the client is closed: the work begins queries.
        work::disable::<_, 0>(&self.0);
        work::disable::<_, DEADLINE_WORK>(&self.0);
        self.0.sa.close();
        registry::release(&self.0.known_paths);
    }
}

/// For an interface that could not be made, which nothing closes. Nothing was begun then.
impl Drop for Infiniband {
    fn drop(&mut self) {
        self.close();
    }
}

#[kernel::prelude::kunit_tests(oxib_infiniband)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_guid_comes_first() {
        let gid = |prefix, guid| {
            Gid::from_bytes([prefix, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, guid])
        };
        let chosen = Some([0, 0, 0, 0, 0, 0, 0, 7]);
        let better = |one: Gid, other: Gid, chosen| worth(&one, chosen) > worth(&other, chosen);
        assert!(better(gid(0xfd, 1), gid(0xfe, 7), None));
        assert!(better(gid(0xfe, 7), gid(0xfd, 1), chosen));
        assert!(better(gid(0xfd, 7), gid(0xfe, 7), chosen));
        assert!(!better(gid(0xfd, 2), gid(0xfd, 1), chosen));
    }

    #[test]
    fn other_subnets_reach_a_guid_with_a_prefix_of_its_own() {
        let gid = |prefix: u8, guid: u8| {
            let mut bytes = [0; 16];
            bytes[0] = prefix;
            bytes[1] = 0x80;
            bytes[15] = guid;
            Gid::from_bytes(bytes)
        };
        for (prefix, guid, expected) in [
            (0xfe, 1, false),
            (0xfd, 1, true),
            (0xfd, 0, false),
            (0xff, 1, false),
        ] {
            assert_eq!(is_routable(&gid(prefix, guid)), expected);
        }
    }
}
