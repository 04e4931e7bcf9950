// SPDX-License-Identifier: GPL-2.0-only

//! Membership in multicast groups (IBTA 15.2.5.17).

use core::ptr::NonNull;

use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::{
        impl_has_work,
        new_work,
        Work,
        WorkItem, //
    }, //
};

use super::{
    component,
    Client, //
};
use crate::{
    bindings,
    rdma::path::EXACTLY,
    wire::{
        gid::Gid,
        pkey::Pkey, //
    },
    work, //
};

/// The components that every join names: both GIDs, the P_Key and the join state.
const GROUP: u64 = component(0) | component(1) | component(7) | component(16);

/// The components that a join names besides, if the group may have to be created: Q_Key, exact
/// MTU, traffic class, exact rate, service level, flow label, hop limit.
const PARAMETERS: u64 = component(2)
    | component(4)
    | component(5)
    | component(6)
    | component(8)
    | component(9)
    | component(12)
    | component(13)
    | component(14);

/// The error by which `ib_sa` reports that a membership has ended.
const ENDED: i32 = -(bindings::ENETRESET as i32);

/// The kind of membership (`JoinState`, IBTA 15.2.5.17).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A member that sends and receives.
    Full,
    /// A member that only sends; the group exists even if it has no other member
    /// (`SendOnlyFullMember`).
    SendOnly,
}

impl Role {
    fn join_state(self) -> u8 {
        match self {
            Self::Full => 1,
            Self::SendOnly => 8,
        }
    }
}

/// A group's parameters (`MCMemberRecord`).
#[derive(Clone, Copy)]
pub(crate) struct Record(bindings::ib_sa_mcmember_rec);

impl Record {
    /// Creates the record of a group of which nothing is known but its MGID, for a port with the
    /// GID `port`.
    pub(crate) fn new(mgid: Gid, port: Gid, pkey: Pkey, role: Role) -> Self {
        let mut raw: bindings::ib_sa_mcmember_rec = pin_init::zeroed();
        raw.mgid.raw = mgid.bytes();
        raw.port_gid.raw = port.bytes();
        raw.pkey = pkey.get().to_be();
        raw.join_state = role.join_state();
        Self(raw)
    }

    /// Adds the parameters of `other`, for a group that has to be created.
    pub(crate) fn like(mut self, other: &Self) -> Self {
        self.0.qkey = other.0.qkey;
        self.0.mtu_selector = EXACTLY;
        self.0.mtu = other.0.mtu;
        self.0.traffic_class = other.0.traffic_class;
        self.0.rate_selector = EXACTLY;
        self.0.rate = other.0.rate;
        self.0.sl = other.0.sl;
        self.0.flow_label = other.0.flow_label;
        self.0.hop_limit = other.0.hop_limit;
        self
    }

    /// Returns the component mask of a join with this record.
    fn components(&self) -> u64 {
        if self.0.mtu_selector == EXACTLY {
            GROUP | PARAMETERS
        } else {
            GROUP
        }
    }

    /// The group's GID (MGID).
    pub(crate) fn mgid(&self) -> Gid {
        // SAFETY: `raw` is the union's plain view.
        Gid::from_bytes(unsafe { self.0.mgid.raw })
    }

    /// Returns the record with another GID of the port.
    pub(in crate::rdma) fn with_port(mut self, port: Gid) -> Self {
        self.0.port_gid.raw = port.bytes();
        self
    }

    /// Returns the GID of the port, if it is a member: the record of a group that is joined for the
    /// first time, or was left, has no join state.
    fn member_gid(&self) -> Option<Gid> {
        // SAFETY: `raw` is the union's plain view.
        let port = Gid::from_bytes(unsafe { self.0.port_gid.raw });
        (self.0.join_state != 0).then_some(port)
    }

    /// The group's LID (MLID), in host byte order; 0 before the SA has assigned one.
    pub(crate) fn mlid(&self) -> u16 {
        u16::from_be(self.0.mlid)
    }

    /// The traffic class of packets to it.
    pub(crate) fn traffic_class(&self) -> u8 {
        self.0.traffic_class
    }

    /// The key of its datagrams.
    pub(crate) fn qkey(&self) -> u32 {
        u32::from_be(self.0.qkey)
    }

    /// Its MTU in bytes.
    pub(crate) fn mtu(&self) -> Option<u32> {
        match self.0.mtu {
            code @ 1..=5 => Some(128 << code),
            _ => None,
        }
    }

    /// Sets what only an answer has: the group's LID, and its encoded MTU.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(crate) fn set_answer(&mut self, mlid: u16, mtu: u8) {
        self.0.mlid = mlid.to_be();
        self.0.mtu = mtu;
    }

    /// The C object, for the wrappers.
    pub(in crate::rdma) fn as_raw(&mut self) -> *mut bindings::ib_sa_mcmember_rec {
        &raw mut self.0
    }
}

/// Changes of a membership that its watcher is told.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// The port is a member of a group with these parameters.
    Granted(Record),
    /// The port is no member: the SA refuses (`EINVAL`), or does not answer.
    Refused(Error),
    /// The port was a member, but the subnet has changed: it must join again.
    Ended,
}

/// A receiver of the changes of a membership. Called in process context.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// Takes the SA's answer, or the end of the membership from outside.
    fn answered(&self, answer: Answer);
}

/// The context that the C side keeps the address of.
struct Context(Arc<dyn Watcher>);

/// A membership, asked for or granted. Dropping it leaves the group, and waits for an answer that
/// is being taken: it sleeps, and is not done in one.
///
/// # Invariants
///
/// The pointer is a membership of `_client`. Its context is `_context`.
pub(crate) struct Membership {
    multicast: NonNull<bindings::ib_sa_multicast>,
    _context: KBox<Context>,
    _client: Arc<Client>,
}

// SAFETY: Memberships are locked by the C side.
unsafe impl Send for Membership {}
// SAFETY: The C side locks memberships, so threads may share them.
unsafe impl Sync for Membership {}

impl Client {
    /// Asks to be a member of the group that `record` names. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENODEV` after [`Client::close`], `ENOMEM`.
    pub(crate) fn join(
        self: &Arc<Self>,
        mut record: Record,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Membership> {
        let context = KBox::new(Context(watcher), GFP_KERNEL)?;
        let multicast = self.begin(|client| {
            // SAFETY: The client is registered, the device too and has that port; the record is
            // copied. The callback gets the context that it expects, which lives until
            // `ib_sa_free_multicast`.
            let multicast = unsafe {
                bindings::ib_sa_join_multicast(
                    client,
                    self.device().as_raw(),
                    self.port().get(),
                    record.as_raw(),
                    record.components(),
                    bindings::GFP_KERNEL,
                    Some(answered),
                    core::ptr::from_ref(&*context).cast_mut().cast(),
                )
            };
            kernel::error::from_err_ptr(multicast)
        })?;
        // INVARIANT: Just made, by this client and with this context.
        Ok(Membership {
            multicast: NonNull::new(multicast).ok_or(ENOMEM)?,
            _context: context,
            _client: self.clone(),
        })
    }

    /// Returns whether this port is a member of a group, perhaps for a program in user space.
    pub(crate) fn is_member(&self, mgid: Gid) -> bool {
        self.membership(mgid).is_some()
    }

    /// Returns the GID by which this port is a member of a group, whoever asked for that. `ib_sa`
    /// lets a port join a group by one GID at a time.
    pub(crate) fn member_gid(&self, mgid: Gid) -> Option<Gid> {
        self.membership(mgid)?.member_gid()
    }

    /// Returns the GID by which this port is a full member of a group, whoever asked for that.
    pub(crate) fn full_member_gid(&self, mgid: Gid) -> Option<Gid> {
        let record = self.membership(mgid)?;
        let is_full = record.0.join_state & Role::Full.join_state() != 0;
        record.member_gid().filter(|_| is_full)
    }

    /// Returns the record that `ib_sa` has of this port and a group.
    fn membership(&self, mgid: Gid) -> Option<Record> {
        let mut gid = bindings::ib_gid { raw: mgid.bytes() };
        let mut record: bindings::ib_sa_mcmember_rec = pin_init::zeroed();
        // SAFETY: The device is registered and has that port; GID and record are ours.
        let status = unsafe {
            bindings::ib_sa_get_mcmember_rec(
                self.device().as_raw(),
                self.port().get(),
                &mut gid,
                &mut record,
            )
        };
        (status == 0).then_some(Record(record))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // SAFETY: By the type invariant ours; no callback runs after this returns.
        unsafe { bindings::ib_sa_free_multicast(self.multicast.as_ptr()) }
    }
}

/// A share in a membership, which ends with the last of its shares. It may be dropped anywhere: the
/// end of a membership sleeps, and comes on a work queue.
pub(crate) struct Share {
    held: Option<Pin<KBox<Held>>>,
    queue: Arc<work::Queue>,
}

/// A share in a membership in a form that can be queued.
#[pin_data]
struct Held {
    membership: Arc<Membership>,
    #[pin]
    work: Work<Held>,
}

impl_has_work! {
    impl HasWork<Self> for Held { self.work }
}

impl WorkItem for Held {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        drop(this);
    }
}

impl Share {
    /// Creates a share in `membership` that ends on `queue`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(membership: &Arc<Membership>, queue: &Arc<work::Queue>) -> Result<Self> {
        let membership = membership.clone();
        let held = KBox::pin_init(
            pin_init!(Held {
                membership,
                work <- new_work!("oxib_membership"),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self {
            held: Some(held),
            queue: queue.clone(),
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.queue.enqueue(held);
        }
    }
}

/// Compares the memberships: shares in one are equal.
impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        let membership = |this: &Self| {
            let held = this.held.as_ref();
            held.map(|held| Arc::as_ptr(&held.membership))
        };
        membership(self) == membership(other)
    }
}

/// The C face of [`Watcher::answered`]. Returns 0: the membership ends with its value alone.
///
/// # Safety
///
/// Called by `ib_sa` with a valid `multicast` made by [`Client::join`].
unsafe extern "C" fn answered(status: i32, multicast: *mut bindings::ib_sa_multicast) -> i32 {
    // SAFETY: `ib_sa` gives a valid membership that `join` made; the record does not change while
    // we are told of it, and the context lives until the membership was freed, which waits for us.
    let (record, context) = unsafe {
        (
            Record((*multicast).rec),
            &*(*multicast).context.cast::<Context>(),
        )
    };
    context.0.answered(match kernel::error::to_result(status) {
        Ok(()) => Answer::Granted(record),
        Err(_) if status == ENDED => Answer::Ended,
        Err(error) => Answer::Refused(error),
    });
    0
}

#[kernel::prelude::kunit_tests(oxib_sa_multicast)]
mod tests {
    use super::*;

    const MGID: Gid = Gid::from_bytes([0xff; 16]);
    const PORT: Gid = Gid::from_bytes([0xfe; 16]);

    #[test]
    fn the_broadcast_group_is_named_and_no_more() {
        let record = Record::new(MGID, PORT, Pkey::DEFAULT, Role::Full);
        assert_eq!(record.components(), 0x1_0083u64.to_be());
        assert_eq!(record.0.join_state, 1);
        assert_eq!(record.0.pkey.to_ne_bytes(), [0xff, 0xff]);
    }

    #[test]
    fn others_are_made_like_it() {
        let mut first = Record::new(MGID, PORT, Pkey::DEFAULT, Role::Full);
        first.0.qkey = 0x0b1b_u32.to_be();
        first.0.mtu = 4;
        first.0.rate = 3;
        first.0.sl = 2;
        let other = Record::new(MGID, PORT, Pkey::DEFAULT, Role::SendOnly).like(&first);
        assert_eq!(other.components(), 0x1_73f7u64.to_be());
        assert_eq!((other.qkey(), other.mtu()), (0x0b1b, Some(2048)));
        assert_eq!((other.0.rate, other.0.sl, other.0.join_state), (3, 2, 8));
        assert_eq!((other.0.mtu_selector, other.0.rate_selector), (2, 2));
    }

    #[test]
    fn members_have_a_join_state() {
        let mut record = Record::new(MGID, PORT, Pkey::DEFAULT, Role::Full);
        for (join_state, gid) in [(1, Some(PORT)), (8, Some(PORT)), (9, Some(PORT)), (0, None)] {
            record.0.join_state = join_state;
            assert_eq!(record.member_gid(), gid);
        }
    }

    #[test]
    fn packets_can_come_from_another_gid_than_the_member() {
        let record = Record::new(MGID, PORT, Pkey::DEFAULT, Role::Full);
        let other = Gid::from_bytes([0xfd; 16]);
        let from_other = record.with_port(other);
        assert_eq!(from_other.member_gid(), Some(other));
        assert_eq!(from_other.mgid(), MGID);
        assert_eq!(record.member_gid(), Some(PORT));
    }

    #[test]
    fn mtu_codes() {
        let mut record = Record::new(MGID, PORT, Pkey::DEFAULT, Role::Full);
        for (code, bytes) in [
            (0, None),
            (1, Some(256)),
            (5, Some(4096)),
            (6, None),
            (255, None),
        ] {
            record.0.mtu = code;
            assert_eq!(record.mtu(), bytes);
        }
    }
}
