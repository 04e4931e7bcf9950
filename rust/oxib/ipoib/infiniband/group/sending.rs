// SPDX-License-Identifier: GPL-2.0-only

//! Searches for paths to groups, and the joins to send that they take.

use kernel::{
    prelude::*,
    sync::Arc,
    time::msecs_to_jiffies, //
};

use super::{
    JoinRequest,
    Request,
    Standing,
    Table, //
};
use crate::{
    ipoib::{
        infiniband::{
            path,
            Port,
            DEADLINE_WORK, //
        },
        search::Search, //
    },
    rdma::{
        ah::AddressHandle,
        route::AddressVector,
        sa::multicast::{
            Answer,
            Record,
            Role,
            Share, //
        }, //
    },
    work, //
};

/// The result of a search: the address handle, the membership by which packets may go there, and
/// the request for that.
type Found = (AddressHandle, Share, Arc<Request>);

/// A search for the path to a group.
pub(super) struct Sending {
    pub(super) search: Search,
    /// Time until which the search waits, in milliseconds.
    until: u64,
    /// A join to send, if one is needed.
    pub(super) join: Option<JoinRequest>,
}

impl Sending {
    fn new(search: Search, now: u64) -> Self {
        let mut sending = Self {
            search,
            until: 0,
            join: None,
        };
        sending.begin_wait(now);
        sending
    }

    /// Begins at time `now` the wait that is limited. Packets wait for a group as long as for a
    /// path to a port.
    fn begin_wait(&mut self, now: u64) {
        self.until = now + u64::from(path::TIMEOUT);
    }

    /// Returns the time until which the search waits; `None` if it waits for the answer to a
    /// request of its own, which `ib_sa` limits.
    fn deadline(&self) -> Option<u64> {
        match &self.join {
            Some(join) if join.request.outcome().is_none() => None,
            _ => Some(self.until),
        }
    }
}

impl Port {
    /// Goes on with the searches for paths to groups.
    pub(in crate::ipoib::infiniband) fn advance_groups(self: &Arc<Self>) {
        self.take_noted();
        // Ended without the table's lock: packets go on, and other searches begin.
        let mut index = 0;
        while let Some((Sending { search, join, .. }, found)) = self.next_ended(&mut index) {
            let interface = search.interface().clone();
            Self::end_search(search, found);
            let is_answered = join.is_none_or(|join| join.request.outcome().is_some());
            if !is_answered {
                // Nobody waits for that answer; it is another one's turn.
                interface.kick();
                self.advance_soon();
            }
        }
        self.plan_deadline();
    }

    /// Ends a search with its result, and forgets the path if the membership has ended or was left
    /// meanwhile: the path could not be forgotten then, as it was still searched for.
    fn end_search(search: Search, found: Result<Found>) {
        let (interface, group) = (search.interface().clone(), search.gid());
        let (found, request) = match found {
            Ok((handle, share, request)) => (Ok((handle, share)), Some(request)),
            Err(error) => (Err(error), None),
        };
        search.end_for_group(found);
        if request.is_some_and(|request| !request.is_granted()) {
            interface.forget_destination(&group);
        }
    }

    /// Has the searches looked at when the first of those that wait has waited long enough: while
    /// the broadcast group is renewed, nothing else may happen.
    fn plan_deadline(self: &Arc<Self>) {
        let table = self.groups.table.lock();
        let first = table.sending.iter().filter_map(Sending::deadline).min();
        drop(table);
        if let Some(until) = first {
            let left = until.saturating_sub(work::milliseconds());
            // If it waits already, it is for a search that began before.
            self.queue
                .schedule::<_, DEADLINE_WORK>(self.clone(), msecs_to_jiffies(left as u32));
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
                    let sending = Sending::new(search, work::milliseconds());
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
    fn next_ended(self: &Arc<Self>, index: &mut usize) -> Option<(Sending, Result<Found>)> {
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

    /// Goes on with one search. Returns its result if it has one, or if nothing came of it in
    /// time.
    fn advance_one(self: &Arc<Self>, table: &mut Table, index: usize) -> Option<Result<Found>> {
        let found = self.try_to_end(table, index);
        let deadline = table.sending.get(index)?.deadline();
        let is_late = deadline.is_some_and(|until| until <= work::milliseconds());
        found.or_else(|| is_late.then_some(Err(EAGAIN)))
    }

    fn try_to_end(self: &Arc<Self>, table: &mut Table, index: usize) -> Option<Result<Found>> {
        let sending = table.sending.get(index)?;
        let search = &sending.search;
        if !search.is_wanted() {
            return Some(Err(ENODEV));
        }
        let group = search.gid();
        let full = match table.full.get(&group).map(|full| &full.standing) {
            Some(Standing::Asked(join)) => Some(join),
            // The control work asks again.
            Some(Standing::Left(_)) => return None,
            None => None,
        };
        if let Some(join) = full.or(sending.join.as_ref()) {
            return match join.request.outcome()? {
                Answer::Granted(record) => Some(self.handle_for_group(&record, join)),
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
            // That wait ends by itself, as those before this one are answered.
            let sending = table.sending.get_mut(index)?;
            sending.begin_wait(work::milliseconds());
            return None;
        }
        if self.sa.full_member_gid(group).is_none() && self.is_member_by_another_gid(group) {
            // The membership of the path before is on its way out. Another search comes after it.
            return Some(Err(EAGAIN));
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

    fn handle_for_group(&self, record: &Record, join: &JoinRequest) -> Result<Found> {
        let source = self.source_gid().ok_or(EAGAIN)?;
        let vector = AddressVector::to_group(self.device(), self.number, record, source)?;
        let handle = AddressHandle::along(&self.pd, &self.queue, &vector)?;
        let share = Share::new(&join.membership, &self.queue)?;
        Ok((handle, share, join.request.clone()))
    }
}
