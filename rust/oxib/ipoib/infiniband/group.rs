// SPDX-License-Identifier: GPL-2.0-only

//! Joining groups by way of the SA.
//!
//! A group that the stack wants is joined as a full member, by the interface's control work. One
//! that packets go to, and that the stack does not want, is joined to send: that membership
//! belongs to the path to the group, and ends when the interface forgets that.

use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    Interface,
    Join,
    Port,
    QueuePair,
    Search, //
};
use crate::{
    ipoib::control::{
        News,
        Trouble, //
    },
    net::bh::{
        new_spinlock_bh,
        SpinLockBh, //
    },
    rdma::sa::multicast::{
        Answer,
        Record,
        Role, //
    },
    wire::gid::Gid,
    work, //
};

mod join;
mod sending;

use join::{
    has_moved,
    JoinRequest,
    Outcome,
    Request,
    Rounds,
    Turn,
    UnderWay, //
};
use sending::Sending;

/// Time for which the SA refuses to renew a membership until it is given up, in milliseconds: a
/// subnet manager that restarts refuses for seconds, and one that is busy refuses, too.
const REFUSED_MS: u64 = 60_000;

/// Time for which the end of a membership by a former source GID is waited for, in milliseconds. It
/// comes soon, as the paths that share it were forgotten, unless a program shares it.
const LEAVING_MS: u64 = 10_000;

/// Time between two looks for that end, in milliseconds.
const LEAVING_AGAIN_MS: u64 = 20;

/// Refusals of the SA to renew a membership, since the port was a member.
#[derive(Default)]
struct Refusals {
    /// Time of the first of them, in milliseconds.
    since: Option<u64>,
}

impl Refusals {
    /// Notes at time `now` that a membership was not renewed, and whether there is an SA as far as
    /// is known. Returns whether it is given up.
    fn note(&mut self, error: Error, has_sa: bool, now: u64) -> bool {
        // Other errors say that nobody answered, and nothing of the membership.
        if error != EINVAL {
            return false;
        }
        if !has_sa {
            // It was not the SA that refused, and perhaps not before either.
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        now >= since + REFUSED_MS
    }
}

/// Returns whether it is logged that a join has failed with `error`, after which the port is no
/// member of the group any more, or not yet (`is_lost`), or still hears it.
fn is_worth_a_line(error: Error, is_broadcast: bool, is_lost: bool) -> bool {
    match error {
        // There is no subnet manager to ask, as one restarts.
        EAGAIN => false,
        // It is busy, which matters to an interface that waits for its broadcast group alone.
        ETIMEDOUT => is_broadcast && is_lost,
        // As one that is busy, or has ended, says of a membership that is renewed.
        EINVAL => is_lost,
        _ => true,
    }
}

/// The full membership in a group.
enum Standing {
    /// A membership that was asked for; it may have been granted, or have ended from outside.
    Asked(JoinRequest),
    /// A membership that was left at this time, in milliseconds, as the source GID has changed.
    Left(u64),
}

/// A group that the stack wants.
struct Full {
    standing: Standing,
    /// The LID with which the queue pair was attached.
    attached: Option<u16>,
    refusals: Refusals,
}

impl Full {
    /// Returns the SA's answer, once there is one. A membership that was left has ended.
    fn outcome(&self) -> Option<Answer> {
        match &self.standing {
            Standing::Asked(join) => join.request.outcome(),
            Standing::Left(_) => Some(Answer::Ended),
        }
    }

    /// Takes the SA's answer for something past.
    fn forget_answer(&self) {
        if let Standing::Asked(join) = &self.standing {
            join.request.forget();
        }
    }

    /// Leaves the group at time `now` if the membership is by another GID than `source`: the SA
    /// would go on to count that GID in. The queue pair stays attached.
    fn leave_former(&mut self, source: Option<Gid>, now: u64) {
        let is_former = match &self.standing {
            Standing::Asked(join) => has_moved(join.request.joined_from, source),
            Standing::Left(_) => false,
        };
        if is_former {
            // Waits for an answer that is being taken, which takes no lock of ours.
            self.standing = Standing::Left(now);
        }
    }

    /// Returns whether at time `now` the end of a former membership may be on its way.
    fn is_leaving(&self, now: u64) -> bool {
        matches!(self.standing, Standing::Left(at) if now < at + LEAVING_MS)
    }
}

/// State that the control work and the work of answers share.
#[derive(Default)]
struct Table {
    full: RBTree<Gid, Full>,
    sending: KVec<Sending>,
    /// The parameters of the broadcast group, as last heard.
    known: Option<Record>,
    /// Joining the broadcast group.
    joining: Trouble,
    /// Attaching the queue pair to the broadcast group.
    attaching: Trouble,
    /// Detaching the queue pair from any group.
    detaching: Trouble,
}

/// The groups of a port.
#[pin_data]
pub(super) struct Groups {
    /// Searches that were begun since the last look.
    #[pin]
    noted: SpinLockBh<KVec<Search>>,
    #[pin]
    table: Mutex<Table>,
    under_way: UnderWay,
    rounds: Rounds,
}

impl Table {
    /// Returns the parameters of a group of which the port is a full member.
    fn granted(&self, group: &Gid) -> Option<Record> {
        match self.full.get(group)?.outcome()? {
            Answer::Granted(record) => Some(record),
            Answer::Refused(_) | Answer::Ended => None,
        }
    }
}

impl Groups {
    /// Creates the state of a port without groups.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            noted <- new_spinlock_bh!(KVec::new(), "oxib_noted_groups"),
            table <- new_mutex!(Table::default(), "oxib_groups"),
            under_way: UnderWay::default(),
            rounds: Rounds::new(),
        })
    }

    /// Notes a search for the path to a group. Any context.
    pub(super) fn note(&self, search: Search) {
        let mut noted = self.noted.lock();
        let refused = if noted.reserve(1, GFP_ATOMIC).is_ok() {
            noted
                .push_within_capacity(search)
                .err()
                .map(|error| error.0)
        } else {
            Some(search)
        };
        drop(noted);
        // Ends with its drop, which takes other locks.
        drop(refused);
    }

    /// Returns the parameters of the broadcast group `broadcast`, also while the membership is
    /// renewed.
    pub(super) fn known(&self, broadcast: &Gid) -> Option<Record> {
        let table = self.table.lock();
        table.granted(broadcast).or(table.known)
    }

    /// Forgets the parameters of the broadcast group, as the port is down: they may be others
    /// when it is up again.
    pub(super) fn forget_known(&self) {
        self.table.lock().known = None;
    }

    /// Returns whether the queue pair hears the broadcast group `broadcast`: it is attached, and
    /// the membership holds or is being renewed.
    pub(super) fn hears(&self, broadcast: &Gid) -> bool {
        let table = self.table.lock();
        let full = table.full.get(broadcast);
        let is_attached = full.is_some_and(|full| full.attached.is_some());
        is_attached && table.granted(broadcast).or(table.known).is_some()
    }

    /// Returns whether the port is a full member of `group`, and the queue pair hears it.
    pub(super) fn holds(&self, group: &Gid) -> bool {
        let table = self.table.lock();
        let full = table.full.get(group);
        full.is_some_and(|full| full.attached.is_some()) && table.granted(group).is_some()
    }

    /// Ends all searches for paths to groups.
    pub(super) fn stop(&self) {
        let noted = core::mem::take(&mut *self.noted.lock());
        drop(noted);
        // Dropped without the table's lock: memberships end with the searches, which sleeps.
        let sending = core::mem::take(&mut self.table.lock().sending);
        drop(sending);
    }
}

impl Port {
    /// Makes the port a full member of `group`, which `qp` is to hear; see
    /// [`Link::join`](super::Link::join).
    pub(super) fn join(
        self: &Arc<Self>,
        interface: &Arc<Interface>,
        qp: &QueuePair,
        group: Gid,
    ) -> Result<Join> {
        let mut table = self.groups.table.lock();
        let Some(full) = table.full.get_mut(&group) else {
            let may_be_left = group != self.broadcast() && interface.leaves_user_groups();
            if may_be_left && self.sa.is_member(group) {
                return Err(EBUSY);
            }
            return self.ask_full(&mut table, interface, group);
        };
        match full.outcome() {
            None => Ok(Join::UnderWay),
            Some(Answer::Ended) => self.ask_full(&mut table, interface, group),
            Some(Answer::Granted(record)) => {
                full.refusals = Refusals::default();
                let attached = self.attach(&mut table, interface, qp, &record);
                let is_broadcast = group == self.broadcast();
                let news = is_broadcast.then(|| {
                    let of_join = table.joining.note(&Ok(()));
                    (of_join, table.attaching.note(&attached))
                });
                drop(table);
                match (news, attached) {
                    (Some((of_join, of_attachment)), _) => {
                        self.tell_of_broadcast(interface, of_join);
                        self.tell_of_attachment(interface, of_attachment);
                    }
                    (None, Err(error)) => self.tell_not_attached(interface, group, error),
                    (None, Ok(())) => {}
                }
                self.note_joined(&group);
                attached?;
                if is_broadcast {
                    interface.destinations.lock().retry_failed();
                }
                // Its address handle may be of the membership before.
                interface.invalidate_destination(&group);
                Ok(Join::Member)
            }
            Some(Answer::Refused(error)) => {
                let has_sa = self.known_paths.has_sa();
                let is_refused = full.refusals.note(error, has_sa, work::milliseconds());
                // The next time it is asked for again.
                full.forget_answer();
                let is_lost = full.attached.is_none() || is_refused;
                if error == EINVAL && !is_lost {
                    self.check_sa(interface);
                }
                // Under the lock, which makes this the only writer.
                interface.statistics().sa_joins_failed.add(1);
                let is_broadcast = group == self.broadcast();
                if is_lost && is_broadcast {
                    table.known = None;
                }
                let is_logged = is_worth_a_line(error, is_broadcast, is_lost);
                let news = match is_broadcast && is_logged {
                    true => table.joining.note::<()>(&Err(error)),
                    false => None,
                };
                let lost = if is_lost {
                    table.full.remove(&group)
                } else {
                    None
                };
                // Without the lock: to leave a group waits for `ib_sa`.
                drop(table);
                self.end(interface, qp, group, lost);
                if is_broadcast {
                    self.tell_of_broadcast(interface, news);
                } else if is_logged {
                    self.tell_refused(interface, group, error);
                }
                Err(error)
            }
        }
    }

    /// Asks for a full membership as soon as that may be: the broadcast group comes first.
    fn ask_full(
        self: &Arc<Self>,
        table: &mut Table,
        interface: &Arc<Interface>,
        group: Gid,
    ) -> Result<Join> {
        let is_broadcast = group == self.broadcast();
        let now = work::milliseconds();
        if let Some(full) = table.full.get_mut(&group) {
            full.leave_former(self.source_gid(), now);
        }
        if !self.device().is_active(self.number)? {
            // There is no SA to ask. The event of the active port has the groups reconciled.
            return Ok(Join::UnderWay);
        }
        let like = match table.granted(&self.broadcast()) {
            _ if is_broadcast => None,
            Some(record) if self.groups.under_way.has_turn(Role::Full) => Some(record),
            // Answers to others come, and then this one's turn.
            _ => return Ok(Join::UnderWay),
        };
        let is_leaving = table
            .full
            .get(&group)
            .is_some_and(|full| full.is_leaving(now));
        if is_leaving && self.is_member_by_another_gid(group) {
            // `ib_sa` would refuse it, and nothing tells when it would not.
            interface.retry_in(LEAVING_AGAIN_MS);
            return Ok(Join::UnderWay);
        }
        // Before the SA is asked: a membership that finds no place would have to be left at once.
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let join = self.ask(interface, group, Role::Full, like.as_ref())?;
        let standing = Standing::Asked(join);
        let old = match table.full.get_mut(&group) {
            Some(full) => Some(core::mem::replace(&mut full.standing, standing)),
            None => {
                let full = Full {
                    standing,
                    attached: None,
                    refusals: Refusals::default(),
                };
                table.full.insert(node.into_node(group, full));
                None
            }
        };
        // What the subnet ended; waits for an answer that is being taken, which takes no lock of
        // ours.
        drop(old);
        Ok(Join::UnderWay)
    }

    /// Asks for a membership, like that of the broadcast group. Without one to be `like`, the
    /// group is the broadcast group, and a round begins.
    fn ask(
        self: &Arc<Self>,
        interface: &Arc<Interface>,
        group: Gid,
        role: Role,
        like: Option<&Record>,
    ) -> Result<JoinRequest> {
        let joined_from = self.source_gid().ok_or(EAGAIN)?;
        // `ib_sa` takes no second GID beside that of another interface or program: its membership
        // is shared.
        let member = self.sa.full_member_gid(group).unwrap_or(joined_from);
        let record = Record::new(group, member, self.pkey(), role);
        let record = like.map_or(record, |like| record.like(like));
        let turn = Turn::new(self, role);
        let round = match like {
            Some(_) => self.groups.rounds.begun(),
            None => self.groups.rounds.begin(),
        };
        let request = Arc::pin_init(
            pin_init!(Request {
                interface: interface.clone(),
                port: self.clone(),
                group,
                joined_from,
                role,
                round,
                outcome <- new_spinlock_bh!(Outcome::UnderWay { _turn: turn }, "oxib_join"),
            }),
            GFP_KERNEL,
        )?;
        let membership = self.sa.join(record, request.clone())?;
        interface.statistics().sa_joins.add(1);
        Ok(JoinRequest {
            request,
            membership: Arc::new(membership, GFP_KERNEL)?,
        })
    }

    /// Returns whether the port is a member of `group` by another GID than the source GID, and
    /// `ib_sa` has not asked the SA to end that.
    fn is_member_by_another_gid(&self, group: Gid) -> bool {
        let member = self.sa.member_gid(group);
        member.is_some_and(|member| has_moved(member, self.source_gid()))
    }

    /// Has `qp` hear the group of `record`, and the link be as its broadcast group.
    fn attach(
        &self,
        table: &mut Table,
        interface: &Interface,
        qp: &QueuePair,
        record: &Record,
    ) -> Result {
        let (group, lid) = (record.mgid(), record.mlid());
        if group == self.broadcast() {
            table.known = Some(*record);
        }
        let Some(full) = table.full.get_mut(&group) else {
            return Ok(());
        };
        // Another subnet manager may give the group another LID: the old attachment is of no use.
        if full.attached != Some(lid) {
            if let Some(old) = full.attached.take() {
                let detached = qp.detach(group, old);
                self.note_detached(&mut table.detaching, interface, group, detached);
            }
            qp.attach(group, lid)?;
            full.attached = Some(lid);
            // The device works, so its next failure is another one.
            table.detaching = Trouble::default();
        }
        Ok(())
    }

    /// Detaches `qp` from all groups. The memberships stay. After a failure the device is not asked
    /// again for each of the others: each command to it may take long.
    pub(super) fn detach_all(&self, interface: &Interface, qp: &QueuePair) {
        let mut guard = self.groups.table.lock();
        let table = &mut *guard;
        let mut has_failed = false;
        for (group, full) in table.full.iter_mut() {
            let Some(lid) = full.attached.take() else {
                continue;
            };
            if has_failed {
                qp.detach_later(*group, lid);
                continue;
            }
            let detached = qp.detach(*group, lid);
            has_failed = detached.is_err();
            self.note_detached(&mut table.detaching, interface, *group, detached);
        }
    }

    /// Notes whether the queue pair was detached from `group`; the first failure is logged.
    fn note_detached(
        &self,
        detaching: &mut Trouble,
        interface: &Interface,
        group: Gid,
        detached: Result,
    ) {
        if let Some(News::Fails(error)) = detaching.note(&detached) {
            if !self.tell_not_detached(interface, group, error) {
                // The next failure is to be logged.
                *detaching = Trouble::default();
            }
        }
    }

    /// Ends a full membership, or a request for one.
    pub(super) fn leave(self: &Arc<Self>, interface: &Arc<Interface>, qp: &QueuePair, group: Gid) {
        let mut table = self.groups.table.lock();
        if group == self.broadcast() {
            table.known = None;
        }
        let full = table.full.remove(&group);
        drop(table);
        self.end(interface, qp, group, full);
        // The path to it has a share in the membership.
        interface.forget_destination(&group);
        self.advance_soon();
    }

    fn end(&self, interface: &Interface, qp: &QueuePair, group: Gid, full: Option<Full>) {
        if let Some(lid) = full.as_ref().and_then(|full| full.attached) {
            let detached = qp.detach(group, lid);
            let mut table = self.groups.table.lock();
            self.note_detached(&mut table.detaching, interface, group, detached);
        }
        if let Some(full) = &full {
            // For a search that is about to end by it.
            full.forget_answer();
        }
        // Without the lock: to leave a group waits for `ib_sa`.
        drop(full);
    }
}

#[kernel::prelude::kunit_tests(oxib_infiniband_group)]
mod tests {
    use super::*;

    #[test]
    fn refusals_for_a_minute_end_a_membership() {
        let mut refusals = Refusals::default();
        for (error, now, is_given_up) in [
            (ETIMEDOUT, 0, false),
            (EINVAL, 1000, false),
            (EINVAL, 2000, false),
            (EINVAL, 4000, false),
            (EINVAL, 1000 + REFUSED_MS - 1, false),
            // Nobody has answered.
            (ETIMEDOUT, 1000 + REFUSED_MS, false),
            (EAGAIN, 1000 + REFUSED_MS, false),
            (EINVAL, 1000 + REFUSED_MS, true),
        ] {
            assert_eq!(refusals.note(error, true, now), is_given_up);
        }
    }

    #[test]
    fn what_passes_is_not_logged() {
        // Whether a line is for the loss of the broadcast group, for its renewal, for the loss of
        // another group, and for the renewal of that.
        for (error, expected) in [
            (EAGAIN, [false, false, false, false]),
            (ETIMEDOUT, [true, false, false, false]),
            (EINVAL, [true, false, true, false]),
            (EIO, [true, true, true, true]),
        ] {
            let cases = [(true, true), (true, false), (false, true), (false, false)];
            let is_logged = |(is_broadcast, is_lost)| is_worth_a_line(error, is_broadcast, is_lost);
            assert_eq!(cases.map(is_logged), expected);
        }
    }

    #[test]
    fn refusals_without_an_administrator_end_no_membership() {
        let mut refusals = Refusals::default();
        // There was one of late.
        assert!(!refusals.note(EINVAL, true, 0));
        for now in [1000, REFUSED_MS, 100 * REFUSED_MS] {
            assert!(!refusals.note(EINVAL, false, now));
        }
        // There is one again: the minute begins anew.
        let back = 200 * REFUSED_MS;
        assert!(!refusals.note(EINVAL, true, back));
        assert!(!refusals.note(EINVAL, true, back + REFUSED_MS - 1));
        assert!(refusals.note(EINVAL, true, back + REFUSED_MS));
    }
}
