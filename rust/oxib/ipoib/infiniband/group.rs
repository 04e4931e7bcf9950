// SPDX-License-Identifier: GPL-2.0-only

//! Joining groups by way of the SA.
//!
//! A group that the stack wants is joined as a full member, by the interface's control work. One
//! that packets go to, and that the stack does not want, is joined to send: that membership
//! belongs to the address handle, and ends with it.

use core::sync::atomic::{
    AtomicUsize,
    Ordering, //
};

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
    answer,
    Interface,
    Join,
    Port,
    QueuePair,
    Search, //
};
use crate::{
    ipoib::control::Trouble,
    net::bh::{
        new_spinlock_bh,
        SpinLockBh, //
    },
    rdma::{
        ah::AddressHandle,
        route::AddressVector,
        sa::multicast::{
            Answer,
            Membership,
            Record,
            Role,
            Watcher, //
        }, //
    },
    wire::gid::Gid, //
};

/// Most joins at a time.
const WINDOW: usize = 16;

/// Most of them that are joins to send, which any program can cause: the stack's own joins do not
/// wait for all of those.
const SENDING_WINDOW: usize = 12;

/// A membership that is renewed is given up when the SA has refused that so often: one that is busy
/// refuses, too.
const REFUSALS: u32 = 3;

/// Numbers of requests that are not answered.
#[derive(Default)]
struct UnderWay {
    full: AtomicUsize,
    sending: AtomicUsize,
}

impl UnderWay {
    fn of(&self, role: Role) -> &AtomicUsize {
        match role {
            Role::Full => &self.full,
            Role::SendOnly => &self.sending,
        }
    }

    /// Returns whether one more request may begin. Requests begin with the groups' table locked.
    fn has_turn(&self, role: Role) -> bool {
        // Relaxed: an end that is missed here has another look follow it.
        let sending = self.sending.load(Ordering::Relaxed);
        let all = sending + self.full.load(Ordering::Relaxed);
        all < WINDOW && (role == Role::Full || sending < SENDING_WINDOW)
    }
}

/// A share in [`UnderWay`], held from a request's beginning to its answer.
struct Turn {
    port: Arc<Port>,
    role: Role,
}

impl Turn {
    fn new(port: &Arc<Port>, role: Role) -> Self {
        let under_way = port.groups.under_way.of(role);
        under_way.fetch_add(1, Ordering::Relaxed);
        Self {
            port: port.clone(),
            role,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let under_way = self.port.groups.under_way.of(self.role);
        under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Rounds in which memberships are asked for, numbered from 1. A round begins with a request for
/// the broadcast group, and all other groups of the round are asked for like that one.
///
/// Events of the port end all memberships of a round, and `ib_sa` says so of each by itself, in
/// the order of the groups' GIDs: of most before the broadcast group. A group that is asked for
/// like the broadcast group of an earlier round is refused, or is made with parameters that
/// refuse all others.
struct Rounds {
    /// The last round that has begun.
    begun: AtomicUsize,
    /// The last round of which a membership has ended from outside.
    ended: AtomicUsize,
}

impl Rounds {
    /// Creates a sequence without a round.
    const fn new() -> Self {
        Self {
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        }
    }

    /// Begins a round and returns its number. Called with the groups' table locked.
    fn begin(&self) -> usize {
        self.begun.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of the last round that has begun.
    fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Ends `round`. Any context.
    fn end(&self, round: usize) {
        // Relaxed: the lock of `settle` comes after it, and readers of the outcome take that lock.
        self.ended.fetch_max(round, Ordering::Relaxed);
    }

    /// Returns whether memberships of `round` can hold: no later round has begun, and the round
    /// has not ended.
    fn is_current(&self, round: usize) -> bool {
        round == self.begun() && round > self.ended.load(Ordering::Relaxed)
    }
}

/// Outcome of a request.
enum Outcome {
    /// The SA has not answered.
    UnderWay {
        /// Counts the request as under way until the answer.
        _turn: Turn,
    },
    /// The SA has answered.
    Is(Answer),
}

/// A request to join, which is told of its answer.
#[pin_data]
struct Request {
    interface: Arc<Interface>,
    port: Arc<Port>,
    group: Gid,
    role: Role,
    /// The round in which the membership is asked for.
    round: usize,
    #[pin]
    outcome: SpinLockBh<Outcome>,
}

impl Request {
    /// Returns the SA's answer, once there is one. A request of an earlier round has ended,
    /// whatever the answer is or will be.
    fn outcome(&self) -> Option<Answer> {
        let mut outcome = self.outcome.lock();
        if !self.port.groups.rounds.is_current(self.round) {
            // Another request may have its turn.
            *outcome = Outcome::Is(Answer::Ended);
        }
        match *outcome {
            Outcome::UnderWay { .. } => None,
            Outcome::Is(answer) => Some(answer),
        }
    }

    fn settle(&self, answer: Answer) {
        *self.outcome.lock() = Outcome::Is(answer);
    }

    /// Checks that a granted membership is the one that was asked for; other answers stay as they
    /// are.
    fn checked(&self, answer: Answer) -> Answer {
        if let Answer::Granted(record) = answer {
            if let Err(wrong) = answer::check_group(&self.group, &record) {
                self.port.note_wrong(&self.interface, self.group, wrong);
                return Answer::Refused(EINVAL);
            }
        }
        answer
    }

    /// Takes a refusal for something past.
    fn forget(&self) {
        self.settle(Answer::Ended);
    }
}

impl Watcher for Request {
    fn answered(&self, answer: Answer) {
        if let Answer::Ended = answer {
            // Before anybody can see that this membership has ended, and ask for it.
            self.port.groups.rounds.end(self.round);
        }
        self.settle(self.checked(answer));
        if let (Role::SendOnly, Answer::Ended) = (self.role, answer) {
            // Its address handle is of no use without another one.
            self.interface.invalidate_destination(&self.group);
        }
        // Others may have waited for their turn.
        self.interface.kick();
        self.port.advance_soon();
    }
}

/// A request and what it is about.
struct JoinRequest {
    request: Arc<Request>,
    /// The request's, as long as the port is a member or wants to be.
    membership: Arc<Membership>,
}

/// A group that the stack wants.
struct Full {
    join: JoinRequest,
    /// The LID with which the queue pair was attached.
    attached: Option<u16>,
    /// Number of times in turn that the SA did not let the port become a member again.
    refused: u32,
}

/// A search for the path to a group.
struct Sending {
    search: Search,
    /// A join to send, if one is needed.
    join: Option<JoinRequest>,
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
        match self.full.get(group)?.join.request.outcome()? {
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

    /// Returns whether the port is a full member of `group`.
    pub(super) fn holds(&self, group: &Gid) -> bool {
        self.table.lock().granted(group).is_some()
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
        match full.join.request.outcome() {
            None => Ok(Join::UnderWay),
            Some(Answer::Ended) => self.ask_full(&mut table, interface, group),
            Some(Answer::Granted(record)) => {
                full.refused = 0;
                self.attach(&mut table, qp, &record)?;
                let is_broadcast = group == self.broadcast();
                let news = is_broadcast.then(|| table.joining.note(&Ok(())));
                drop(table);
                self.tell_of_broadcast(interface, news.flatten());
                // Its address handle may be of the membership before.
                interface.invalidate_destination(&group);
                Ok(Join::Member)
            }
            Some(Answer::Refused(error)) => {
                full.refused += u32::from(error == EINVAL);
                // The next time it is asked for again.
                full.join.request.forget();
                let is_lost = full.attached.is_none() || full.refused >= REFUSALS;
                // Under the lock, which makes this the only writer.
                interface.statistics().sa_joins_failed.add(1);
                let is_broadcast = group == self.broadcast();
                if is_lost && is_broadcast {
                    table.known = None;
                }
                // `EAGAIN`: there is no subnet manager to ask, as one restarts. `ETIMEDOUT`: it is
                // busy, which matters to an interface that waits for its broadcast group alone.
                let is_late = error == ETIMEDOUT && !(is_broadcast && is_lost);
                let is_worth_a_line = error != EAGAIN && !is_late;
                let news = match is_broadcast && is_worth_a_line {
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
                self.end(qp, group, lost);
                if is_broadcast {
                    self.tell_of_broadcast(interface, news);
                } else if is_worth_a_line {
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
        // Before the SA is asked: a membership that finds no place would have to be left at once.
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let join = self.ask(interface, group, Role::Full, like.as_ref())?;
        let old = match table.full.get_mut(&group) {
            Some(full) => Some(core::mem::replace(&mut full.join, join)),
            None => {
                let full = Full {
                    join,
                    attached: None,
                    refused: 0,
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
        let source = self.source().ok_or(EAGAIN)?;
        let record = Record::new(group, source.gid(), self.pkey(), role);
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

    /// Has `qp` hear the group of `record`, and the link be as its broadcast group.
    fn attach(&self, table: &mut Table, qp: &QueuePair, record: &Record) -> Result {
        let (group, lid) = (record.mgid(), record.mlid());
        if let Some(full) = table.full.get_mut(&group) {
            // Another subnet manager may give the group another LID: the old attachment is of no
            // use.
            if full.attached != Some(lid) {
                if let Some(old) = full.attached.take() {
                    self.detach(qp, group, old);
                }
                qp.attach(group, lid)?;
                full.attached = Some(lid);
            }
        }
        if group == self.broadcast() {
            table.known = Some(*record);
        }
        Ok(())
    }

    fn detach(&self, qp: &QueuePair, group: Gid, lid: u16) {
        if let Err(error) = qp.detach(group, lid) {
            dev_warn!(
                self.device().as_dev(),
                "port {}: group {:02x?} cannot be detached: {error:?}\n",
                self.number.get(),
                group.bytes()
            );
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
        self.end(qp, group, full);
        // Its address handle is a member, too.
        interface.forget_destination(&group);
        self.advance_soon();
    }

    fn end(&self, qp: &QueuePair, group: Gid, full: Option<Full>) {
        if let Some(lid) = full.as_ref().and_then(|full| full.attached) {
            self.detach(qp, group, lid);
        }
        drop(full);
    }

    /// Goes on with the searches for paths to groups.
    pub(super) fn advance_groups(self: &Arc<Self>) {
        self.take_noted();
        // Ended without the table's lock: packets go on, and other searches begin.
        let mut index = 0;
        while let Some((Sending { search, join }, found)) = self.next_ended(&mut index) {
            let interface = search.interface().clone();
            search.end(found);
            let is_answered = join.is_none_or(|join| join.request.outcome().is_some());
            if !is_answered {
                // Nobody waits for that answer; it is another one's turn.
                interface.kick();
                self.advance_soon();
            }
        }
    }

    fn take_noted(&self) {
        loop {
            let mut table = self.groups.table.lock();
            let room = table.sending.reserve(1, GFP_KERNEL).is_ok();
            // Lock order: the table, then `noted`. Any context takes `noted`, so it is a spinlock.
            let search = self.groups.noted.lock().pop();
            match search {
                Some(search) if room => {
                    let sending = Sending { search, join: None };
                    let _ = table.sending.push_within_capacity(sending);
                }
                // Without memory it ends with its drop.
                Some(search) => {
                    drop(table);
                    drop(search);
                }
                None => return,
            }
        }
    }

    /// Takes out a search that ends, of those from `index` on, with its result. Goes on there the
    /// next time.
    fn next_ended(self: &Arc<Self>, index: &mut usize) -> Option<(Sending, Result<AddressHandle>)> {
        let mut table = self.groups.table.lock();
        while *index < table.sending.len() {
            if let Some(found) = self.advance_one(&mut table, *index) {
                let last = table.sending.len() - 1;
                table.sending.swap(*index, last);
                return Some((table.sending.pop()?, found));
            }
            *index += 1;
        }
        None
    }

    /// Goes on with one search. Returns its result if it has one.
    fn advance_one(
        self: &Arc<Self>,
        table: &mut Table,
        index: usize,
    ) -> Option<Result<AddressHandle>> {
        let sending = table.sending.get(index)?;
        let search = &sending.search;
        if !search.is_wanted() {
            return Some(Err(ENODEV));
        }
        let group = search.gid();
        let full = table.full.get(&group).map(|full| &full.join);
        if let Some(join) = full.or(sending.join.as_ref()) {
            return match join.request.outcome()? {
                Answer::Granted(record) => Some(self.handle_for_group(&record, &join.membership)),
                // The control work asks again.
                Answer::Ended if join.request.role == Role::Full => None,
                Answer::Ended => Some(Err(EAGAIN)),
                Answer::Refused(_) => {
                    search.interface().statistics().sa_joins_failed.add(1);
                    Some(Err(EAGAIN))
                }
            };
        }
        if table.full.get(&self.broadcast()).is_none() {
            // The SA refuses it, or the interface goes down.
            return Some(Err(EAGAIN));
        }
        // The broadcast group comes first, and joins take turns.
        let like = table.granted(&self.broadcast())?;
        if !self.groups.under_way.has_turn(Role::SendOnly) {
            return None;
        }
        let interface = search.interface().clone();
        match self.ask(&interface, group, Role::SendOnly, Some(&like)) {
            Ok(join) => {
                table.sending.get_mut(index)?.join = Some(join);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn handle_for_group(
        &self,
        record: &Record,
        membership: &Arc<Membership>,
    ) -> Result<AddressHandle> {
        let vector = AddressVector::to_group(self.device(), self.number, record)?;
        AddressHandle::along(&self.pd, &self.queue, &vector, Some(membership.clone()))
    }
}

#[kernel::prelude::kunit_tests(oxib_infiniband_group)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_when_one_of_its_memberships_ends() {
        let rounds = Rounds::new();
        assert!(!rounds.is_current(0));
        let first = rounds.begin();
        assert!(rounds.is_current(first));
        // A group's membership ends before that of the broadcast group, which is asked for then.
        rounds.end(first);
        assert!(!rounds.is_current(first));
        let second = rounds.begin();
        assert_eq!(rounds.begun(), second);
        assert!(rounds.is_current(second) && !rounds.is_current(first));
        // The others of the first round end later.
        rounds.end(first);
        assert!(rounds.is_current(second));
        rounds.end(second);
        rounds.end(first);
        assert!(!rounds.is_current(second));
        // A round that begins again, though nothing was heard of an end.
        let third = rounds.begin();
        let fourth = rounds.begin();
        assert!(rounds.is_current(fourth) && !rounds.is_current(third));
    }

    #[test]
    fn joins_to_send_leave_room_for_others() {
        let under_way = UnderWay::default();
        // (full, to send; whether one more of each has its turn)
        for (full, sending, turns) in [
            (0, 0, (true, true)),
            (0, SENDING_WINDOW - 1, (true, true)),
            (0, SENDING_WINDOW, (true, false)),
            (WINDOW - SENDING_WINDOW, SENDING_WINDOW, (false, false)),
            (WINDOW - 1, 0, (true, true)),
            (WINDOW, 0, (false, false)),
        ] {
            under_way.of(Role::Full).store(full, Ordering::Relaxed);
            under_way
                .of(Role::SendOnly)
                .store(sending, Ordering::Relaxed);
            let turn = |role| under_way.has_turn(role);
            assert_eq!((turn(Role::Full), turn(Role::SendOnly)), turns);
        }
    }
}
