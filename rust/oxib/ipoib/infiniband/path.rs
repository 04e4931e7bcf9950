// SPDX-License-Identifier: GPL-2.0-only

//! Queries to the SA for the paths to ports.
//!
//! Searches wait in a queue; a few queries are under way at a time, so that a subnet administrator
//! is not buried under those of all nodes after a change. Queries of tasks and of programs have
//! bounds of their own: neither many connections nor a job that resolves thousands of peers keep a
//! new neighbour of IP waiting.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    answer,
    shared::{
        Alarm,
        Signal,
        Waiter, //
    },
    Interface,
    Port,
    Search, //
};
use crate::{
    acm::{
        fifo::Fifo,
        paths::{
            Claim,
            Duty, //
        },
        Counter, //
    },
    rdma::{
        ah::AddressHandle,
        path::{
            PathKind,
            PathRecord, //
        },
        route::AddressVector,
        sa::path::{
            Answer,
            Asker,
            Components,
            Query, //
        }, //
    },
    wire::gid::Gid,
    work, //
};

/// Most queries of searches at a time.
const WINDOW: usize = 64;

/// Most queries of tasks at a time: of connections, exchanges and administrators. The work queue of
/// an interface runs fewer of these at once.
const TASKS: usize = 64;

/// Most queries of programs at a time. The kernel asks the SA itself for what is beyond.
const PROGRAMS: usize = 1024;

/// Most queries at a time that find out whether there is an SA: one tells for all.
const CHECKS: usize = 1;

/// Longest wait for the SA, in milliseconds; it is asked again after each tenth of that.
pub(super) const TIMEOUT: u32 = 5000;

/// Number of claims to a path before a task gives up: the queries that it waited for found none.
const CLAIMS: usize = 4;

/// A query that is under way.
struct PendingQuery {
    number: u64,
    /// The query, once it is known: the answer may come before.
    query: Option<Query>,
}

/// The queries of one kind that are under way.
struct Pending {
    queries: KVec<PendingQuery>,
    /// Most of them at a time.
    most: usize,
}

impl Pending {
    /// Creates a list without queries.
    fn new(most: usize) -> Self {
        Self {
            queries: KVec::new(),
            most,
        }
    }

    /// Returns whether another query may begin.
    fn has_room(&self) -> bool {
        self.queries.len() < self.most
    }

    /// Adds a query, with the number behind `last`; `None` if there are as many as there may be, or
    /// without memory.
    fn start(&mut self, last: &mut u64) -> Option<u64> {
        if !self.has_room() {
            return None;
        }
        self.queries.reserve(1, GFP_ATOMIC).ok()?;
        *last += 1;
        let pending = PendingQuery {
            number: *last,
            query: None,
        };
        let _ = self.queries.push_within_capacity(pending);
        Some(*last)
    }
}

/// The searches of a port for paths to other ports.
pub(super) struct Paths {
    fifo: Fifo<Search>,
    /// Queries that find out whether there is an SA.
    checks: Pending,
    /// Queries of searches.
    searches: Pending,
    /// Queries of tasks, which wait for the answer.
    tasks: Pending,
    /// Queries of programs.
    programs: Pending,
    /// Number of the last query.
    last: u64,
    /// The interface is up.
    is_open: bool,
}

impl Paths {
    /// Creates the state of an interface that is down, with room for a window of queries: a search
    /// waits for its turn until a query ends, and while there is none, nothing else would give it
    /// another try.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            fifo: Fifo::default(),
            checks: Pending::new(CHECKS),
            searches: Pending {
                queries: KVec::with_capacity(WINDOW, GFP_KERNEL)?,
                most: WINDOW,
            },
            tasks: Pending::new(TASKS),
            programs: Pending::new(PROGRAMS),
            last: 0,
            is_open: false,
        })
    }

    /// Lets queries begin, as the interface is up.
    pub(super) fn open(&mut self) {
        self.is_open = true;
    }

    /// Takes the first search of the queue if a query may begin, with its number.
    fn begin(&mut self) -> Option<(Search, u64)> {
        if self.fifo.is_empty() {
            return None;
        }
        // The number first: a search that cannot begin stays in the queue.
        let number = self.start_search_query()?;
        let search = self.fifo.pop()?;
        Some((search, number))
    }

    /// Returns the number of a query that begins now for a search; `None` while the interface is
    /// down, or if there are as many as there may be.
    fn start_search_query(&mut self) -> Option<u64> {
        if !self.is_open {
            return None;
        }
        self.searches.start(&mut self.last)
    }

    /// Returns the number of a query that begins now for a task; `None` while the interface is
    /// down, if there are as many as there may be, or without memory.
    fn start_task_query(&mut self) -> Option<u64> {
        if !self.is_open {
            return None;
        }
        self.tasks.start(&mut self.last)
    }

    /// Returns the number of a query that begins now to find out whether there is an SA; `None`
    /// while the interface is down, while another one finds that out, or without memory.
    pub(super) fn start_check(&mut self) -> Option<u64> {
        if !self.is_open {
            return None;
        }
        self.checks.start(&mut self.last)
    }

    /// Returns the number of a query that begins now for a program; `None` while the interface is
    /// down, if there are as many as there may be, or without memory.
    pub(super) fn start_program_query(&mut self) -> Option<u64> {
        if !self.is_open {
            return None;
        }
        self.programs.start(&mut self.last)
    }

    /// Returns all queries that are under way.
    fn pending(&self) -> impl Iterator<Item = &PendingQuery> {
        let kinds = [&self.checks, &self.searches, &self.tasks, &self.programs];
        kinds.into_iter().flat_map(|kind| kind.queries.iter())
    }

    /// Notes how query `number` can be called off, or does that if the interface has gone down.
    fn began(&mut self, number: u64, query: Query) {
        if !self.is_open {
            query.cancel();
        }
        // Not found if the answer was faster: `ended` has taken it out.
        let kinds = self.kinds();
        let mut pending = kinds.into_iter().flat_map(|kind| kind.queries.iter_mut());
        if let Some(pending) = pending.find(|pending| pending.number == number) {
            pending.query = Some(query);
        }
    }

    /// Notes the end of query `number`.
    pub(super) fn ended(&mut self, number: u64) {
        for kind in self.kinds() {
            kind.queries.retain(|pending| pending.number != number);
        }
    }

    /// Returns the queries of each kind, to change them.
    fn kinds(&mut self) -> [&mut Pending; 4] {
        [
            &mut self.checks,
            &mut self.searches,
            &mut self.tasks,
            &mut self.programs,
        ]
    }
}

/// A query, as long as it is under way.
struct PathQuery {
    port: Arc<Port>,
    number: u64,
    /// Others may wait for the answer.
    duty: Option<Duty>,
    /// The path that was asked for, to compare the answer with.
    wanted: PathRecord,
    search: Search,
}

impl Asker for PathQuery {
    fn answered(self: KBox<Self>, answer: Answer) {
        let Self {
            port,
            number,
            duty,
            wanted,
            search,
        } = KBox::into_inner(self);
        port.paths.lock().ended(number);
        let path = port.checked(search.interface(), &wanted, answer);
        port.done(duty, path.as_ref().ok());
        let path = path.map_err(|error| match search.is_refresh() {
            true => port.error_of_refresh(search.interface(), error),
            false => error,
        });
        search.end(path.and_then(|path| port.handle_along(path)));
        // The next one's turn.
        port.advance_soon();
    }
}

impl Port {
    /// Queues a search. Any context.
    pub(super) fn note_path(&self, search: Search) {
        let refused = {
            let mut paths = self.paths.lock();
            // Under the lock in which `stop_paths` closes it: nothing is left in an emptied queue.
            if paths.is_open {
                paths.fifo.push(search).err()
            } else {
                Some(search)
            }
        };
        // Ends with its drop, which takes other locks.
        drop(refused);
    }

    /// Asks for paths until the queue is empty or the window of queries is full.
    pub(super) fn ask_paths(self: &Arc<Self>) {
        loop {
            let Some((search, number)) = self.paths.lock().begin() else {
                return;
            };
            let claimed = if search.is_wanted() {
                // What cannot be asked for ends with its drop.
                self.claim(search).ok().flatten()
            } else {
                None
            };
            match claimed {
                Some((search, wanted, duty)) => self.ask_path(search, wanted, number, duty),
                None => self.paths.lock().ended(number),
            }
        }
    }

    /// Ends a search if its path is known, or has it wait for the query for it. Returns one for
    /// which the SA is to be asked, with what to ask.
    fn claim(
        self: &Arc<Self>,
        search: Search,
    ) -> Result<Option<(Search, PathRecord, Option<Duty>)>> {
        let wanted = self.wanted(search.gid())?;
        let interface = search.interface().clone();
        let waiter = Waiter::Search(self.clone(), search);
        match self.known_paths.claim(&wanted, waiter) {
            Claim::Known(path, Waiter::Search(_, search)) => {
                interface.count_acm(Counter::PathHits, 1);
                search.end(self.handle_along(path));
                Ok(None)
            }
            Claim::Ask(duty, Waiter::Search(_, search)) => {
                interface.count_acm(Counter::PathMisses, 1);
                Ok(Some((search, wanted, duty)))
            }
            _ => {
                interface.count_acm(Counter::PathMisses, 1);
                Ok(None)
            }
        }
    }

    fn ask_path(
        self: &Arc<Self>,
        search: Search,
        wanted: PathRecord,
        number: u64,
        duty: Option<Duty>,
    ) {
        let interface = search.interface().clone();
        let query = PathQuery {
            port: self.clone(),
            number,
            duty,
            wanted,
            search,
        };
        let begun = KBox::new(query, GFP_KERNEL)
            .map_err(Error::from)
            .and_then(|query| {
                // What could not be asked ends with its drop.
                let begun = self.sa.ask_path(wanted, Components::LINK, TIMEOUT, query);
                begun.map_err(|(error, _)| error)
            });
        match begun {
            Ok(query) => self.began(&interface, number, query),
            Err(_) => {
                self.paths.lock().ended(number);
                // The waiters must not wait for a query that never began.
                self.done(duty, None);
            }
        }
    }

    /// Notifies the waiters of the outcome of a query.
    pub(super) fn done(&self, duty: Option<Duty>, found: Option<&PathRecord>) {
        if let Some(duty) = duty {
            self.known_paths.ended(duty, found);
        }
    }

    pub(super) fn began(&self, interface: &Interface, number: u64, query: Query) {
        let mut paths = self.paths.lock();
        // Under the lock, which makes this the only writer.
        interface.statistics().sa_path_queries.add(1);
        interface.count_acm(Counter::PathQueries, 1);
        paths.began(number, query);
    }

    /// Returns the record to ask for: the path from our GID in our partition, with the link's
    /// traffic class.
    fn wanted(&self, gid: Gid) -> Result<PathRecord> {
        let source = self.source().ok_or(EAGAIN)?;
        let mut wanted = PathRecord::new(PathKind::Infiniband);
        wanted.set_sgid(source.gid());
        wanted.set_dgid(gid);
        wanted.set_pkey(self.pkey().get());
        if let Some(link) = self.known() {
            wanted.set_traffic_class(link.traffic_class());
        }
        Ok(wanted)
    }

    /// The record of the path to `gid`; see [`Link::path_record`](super::Link::path_record).
    pub(super) fn path_record(
        self: &Arc<Self>,
        interface: &Interface,
        gid: Gid,
    ) -> Result<PathRecord> {
        let wanted = self.wanted(gid)?;
        // The waiter that learns that there is no query any more makes one.
        for _ in 0..CLAIMS {
            let signal = Signal::new()?;
            match self
                .known_paths
                .claim(&wanted, Waiter::Task(Alarm(signal.clone())))
            {
                Claim::Known(path, _) => {
                    interface.count_acm(Counter::PathHits, 1);
                    return Ok(path);
                }
                Claim::Ask(duty, _) => {
                    interface.count_acm(Counter::PathMisses, 1);
                    let found = self.query(interface, &wanted);
                    self.done(duty, found.as_ref().ok());
                    return found;
                }
                Claim::Waits => signal.done.wait_for_completion(),
            }
        }
        Err(EAGAIN)
    }

    /// Asks the SA and waits for it.
    fn query(self: &Arc<Self>, interface: &Interface, wanted: &PathRecord) -> Result<PathRecord> {
        let number = self.paths.lock().start_task_query().ok_or(EAGAIN)?;
        let answer = self.sa.find_path(*wanted, TIMEOUT, |query| {
            self.began(interface, number, query);
        });
        self.paths.lock().ended(number);
        self.checked(interface, wanted, answer?)
    }

    /// Returns the path of an answer, if it is the one that was asked for.
    pub(super) fn checked(
        &self,
        interface: &Interface,
        wanted: &PathRecord,
        answer: Answer,
    ) -> Result<PathRecord> {
        match answer {
            Answer::Path(path) => match answer::check_path(wanted, &path) {
                Ok(()) => {
                    let now = work::milliseconds();
                    self.known_paths.presence.lock().note_path(now);
                    Ok(path)
                }
                Err(wrong) => {
                    self.note_wrong(interface, wanted.dgid(), wrong);
                    Err(ENXIO)
                }
            },
            Answer::None => Err(ENXIO),
            Answer::Silence => Err(EAGAIN),
        }
    }

    /// Creates the address handle of a path.
    fn handle_along(&self, mut path: PathRecord) -> Result<AddressHandle> {
        let source = self.source().ok_or(EAGAIN)?;
        let vector =
            AddressVector::from_path(self.device(), self.number, &mut path, Some(&source))?;
        AddressHandle::along(&self.pd, &self.queue, &vector)
    }

    /// Ends all searches for paths.
    pub(super) fn stop_paths(&self) {
        self.paths.lock().is_open = false;
        loop {
            // Each is dropped without the lock: the end of a search takes others.
            let search = self.paths.lock().fifo.pop();
            if search.is_none() {
                break;
            }
        }
        self.cancel_paths();
    }

    /// Calls off the queries that are under way: their searches end, or begin again.
    pub(super) fn cancel_paths(&self) {
        // `cancel` calls no callback, so the lock may be held.
        let paths = self.paths.lock();
        for query in paths.pending().filter_map(|pending| pending.query.as_ref()) {
            query.cancel();
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_infiniband_path)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_the_window_take_no_memory() -> Result {
        let mut paths = Paths::new()?;
        assert_eq!(paths.start_search_query(), None);
        paths.open();
        let room = paths.searches.queries.capacity();
        assert!(room >= WINDOW);
        for _ in 0..2 {
            let first = paths.last + 1;
            for number in first..first + WINDOW as u64 {
                assert_eq!(paths.start_search_query(), Some(number));
            }
            assert_eq!(paths.searches.queries.capacity(), room);
            (first..=paths.last).for_each(|number| paths.ended(number));
            assert!(paths.searches.queries.is_empty());
        }
        Ok(())
    }

    #[test]
    fn queries_of_each_kind_leave_the_others_their_room() -> Result {
        let mut paths = Paths::new()?;
        // How many of a kind there may be, and how one of it begins.
        type Start = fn(&mut Paths) -> Option<u64>;
        let kinds: [(usize, Start); 4] = [
            (CHECKS, Paths::start_check),
            (PROGRAMS, Paths::start_program_query),
            (TASKS, Paths::start_task_query),
            (WINDOW, Paths::start_search_query),
        ];
        for (_, start) in kinds {
            assert_eq!(start(&mut paths), None);
        }
        paths.open();
        for (most, start) in kinds {
            for _ in 0..most {
                assert!(start(&mut paths).is_some());
            }
            assert_eq!(start(&mut paths), None);
        }
        assert_eq!(paths.pending().count(), CHECKS + PROGRAMS + TASKS + WINDOW);
        // The first query of a kind that ends makes room for another one of that kind alone.
        let mut first = 1;
        for (place, (most, start)) in kinds.into_iter().enumerate() {
            paths.ended(first);
            first += most as u64;
            for (other, (_, start)) in kinds.into_iter().enumerate() {
                if other != place {
                    assert_eq!(start(&mut paths), None);
                }
            }
            assert!(start(&mut paths).is_some());
            assert_eq!(start(&mut paths), None);
        }
        Ok(())
    }
}
