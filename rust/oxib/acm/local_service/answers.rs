// SPDX-License-Identifier: GPL-2.0-only

//! Answers to questions for addresses, and the wakes after which `rdma_cm` looks at them.
//!
//! A wake has `rdma_cm` look at all addresses that programs of the node wait for. For each that it
//! has no answer for it asks again. So answers go out together, with one wake for all, and a
//! question that comes again before its answer is one question: else each answer made as many
//! questions as there were programs. For the same reason there is no wake while questions are to be
//! heard: on a node that hears them slowly, each wake adds questions that are behind all of these.
//! Questions of `ib_sa` for paths come to the same socket, and count with them.

use kernel::{
    prelude::*,
    rbtree::RBTree,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use super::LocalService;
use crate::{
    acm::{
        Counter,
        Host, //
    },
    net::netlink_socket::Socket,
    wire::{
        gid::Gid,
        local_service::{
            address_answer,
            Sequence, //
        }, //
    }, //
};

/// Time after its question at which `rdma_cm` waits for an answer, at the earliest: before, it is
/// lost.
const DELAY: Delta = Delta::from_millis(1);

/// Time from one wake to the next. With that `rdma_cm` asks again where an answer was too early all
/// the same.
const AGAIN: Delta = Delta::from_millis(15);

/// Milliseconds after which a wake is not put off any more while questions are still to be heard: a
/// program that goes on asking holds up others for a second at most, with the sleep in between.
const LATEST_MS: i64 = 950;

/// The number of questions that wait for their answers, at most. `rdma_cm` asks for the others
/// again after the next wake.
const MOST: usize = 4096;

/// The answers that wait.
#[pin_data]
pub(super) struct Answers {
    #[pin]
    waiting: Mutex<Waiting<Answer>>,
}

/// The GID of an address, and the interface that leads there.
pub(super) struct Answer {
    pub(super) host: Arc<dyn Host>,
    pub(super) gid: Gid,
}

/// Answers by the number of their question.
struct Waiting<A> {
    answers: RBTree<Sequence, A>,
    number: usize,
    /// A job sends what waits.
    is_running: bool,
}

impl<A> Waiting<A> {
    fn new() -> Self {
        Self {
            answers: RBTree::new(),
            number: 0,
            is_running: false,
        }
    }

    /// Adds an answer, unless there is one for that question.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if too many wait, and `ENOMEM`.
    fn add(&mut self, sequence: Sequence, answer: A) -> Result {
        if self.answers.get(&sequence).is_some() {
            return Ok(());
        }
        if self.number >= MOST {
            return Err(ENOSPC);
        }
        self.answers
            .try_create_and_insert(sequence, answer, GFP_KERNEL)?;
        self.number += 1;
        Ok(())
    }

    /// Takes all of them.
    fn take(&mut self) -> RBTree<Sequence, A> {
        self.number = 0;
        core::mem::replace(&mut self.answers, RBTree::new())
    }

    /// Notes that there is no job that sends. Returns what waited for it: kept, it would keep
    /// interfaces of which nobody asks anything more.
    fn abandon(&mut self) -> RBTree<Sequence, A> {
        self.is_running = false;
        self.take()
    }

    /// Ends the job that sends, unless an answer waits. Returns whether it has ended.
    fn ends(&mut self) -> bool {
        self.is_running = self.number != 0;
        !self.is_running
    }
}

/// Decides when programs are woken. Times are in milliseconds.
struct Wakes {
    /// Time since which a wake is put off.
    put_off_since: Option<i64>,
}

impl Wakes {
    fn new() -> Self {
        Self {
            put_off_since: None,
        }
    }

    /// Returns whether programs are to be woken now; else it is to be asked again later.
    fn is_due(&mut self, has_heard_all: bool, now: i64) -> bool {
        let since = *self.put_off_since.get_or_insert(now);
        let is_due = has_heard_all || now - since >= LATEST_MS;
        if is_due {
            self.put_off_since = None;
        }
        is_due
    }
}

impl Answers {
    /// Makes the place for answers.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                waiting <- new_mutex!(Waiting::new(), "oxib_address_answers"),
            }),
            GFP_KERNEL,
        )
    }

    /// Answers a question as soon as `rdma_cm` waits for it. Without room or memory it hears
    /// nothing; it asks again after the next wake, until its time runs out.
    pub(super) fn add(
        self: &Arc<Self>,
        socket: &Arc<Socket<LocalService>>,
        sequence: Sequence,
        answer: Answer,
    ) {
        let is_running = {
            let mut waiting = self.waiting.lock();
            if waiting.add(sequence, answer).is_err() {
                return;
            }
            core::mem::replace(&mut waiting.is_running, true)
        };
        if is_running {
            return;
        }
        let (this, own) = (self.clone(), socket.clone());
        // On the slow queue: answers about paths do not wait for its sleeps.
        if socket.spawn_slow(move || this.send(&own)).is_err() {
            let abandoned = self.waiting.lock().abandon();
            // Without the lock: an interface may go with its answer.
            drop(abandoned);
        }
    }

    /// Sends what waits, until there is nothing more and `rdma_cm` was woken once more.
    fn send(&self, socket: &Socket<LocalService>) {
        let begin = Instant::<Monotonic>::now();
        fsleep(DELAY);
        let mut wakes = Wakes::new();
        let mut waker = None;
        loop {
            let answers = self.waiting.lock().take();
            for (sequence, answer) in &answers {
                if socket.send(&address_answer(*sequence, &answer.gid)).is_ok() {
                    answer.host.count(Counter::ProgramsAnswered, 1);
                }
                waker = Some(answer.host.clone());
            }
            if wakes.is_due(socket.has_heard_all(), begin.elapsed().as_millis()) {
                if let Some(host) = &waker {
                    host.wake_resolvers();
                }
                if answers.is_empty() && self.waiting.lock().ends() {
                    return;
                }
            }
            fsleep(AGAIN);
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_address_answers)]
mod tests {
    use super::*;

    #[test]
    fn a_question_has_one_answer() -> Result {
        let mut waiting = Waiting::<u32>::new();
        waiting.add(Sequence::new(1), 10)?;
        waiting.add(Sequence::new(1), 11)?;
        waiting.add(Sequence::new(2), 20)?;
        assert_eq!(waiting.take().values().sum::<u32>(), 30);
        waiting.add(Sequence::new(1), 12)?;
        assert_eq!(waiting.take().values().sum::<u32>(), 12);
        Ok(())
    }

    #[test]
    fn the_job_ends_when_nothing_waits() -> Result {
        let mut waiting = Waiting::new();
        waiting.is_running = true;
        waiting.add(Sequence::new(1), ())?;
        assert!(!waiting.ends());
        waiting.take();
        assert!(waiting.ends());
        assert!(!waiting.is_running);
        Ok(())
    }

    #[test]
    fn no_wake_adds_to_questions_that_are_to_be_heard() -> Result {
        let mut wakes = Wakes::new();
        for begin in [7, 5000] {
            assert!(!wakes.is_due(false, begin));
            assert!(!wakes.is_due(false, begin + LATEST_MS - 1));
            // Somebody asks on and on, however long each look takes.
            assert!(wakes.is_due(false, begin + LATEST_MS));
        }
        assert!(!wakes.is_due(false, 10_000));
        for now in [10_001, 10_002] {
            assert!(wakes.is_due(true, now));
        }
        // The time counts from when it is put off, not from the wake before.
        assert!(!wakes.is_due(false, 20_000));
        Ok(())
    }

    #[test]
    fn nothing_is_kept_without_a_job() -> Result {
        let mut waiting = Waiting::new();
        let host = Arc::new((), GFP_KERNEL)?;
        for number in 0..2 {
            waiting.is_running = true;
            waiting.add(Sequence::new(number), host.clone())?;
            drop(waiting.abandon());
            assert!(!waiting.is_running && waiting.number == 0);
        }
        // Nobody else has a reference.
        assert!(Arc::into_unique_or_drop(host).is_some());
        Ok(())
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() -> Result {
        let mut waiting = Waiting::new();
        for number in 0..MOST as u32 {
            waiting.add(Sequence::new(number), ())?;
        }
        assert_eq!(waiting.add(Sequence::new(MOST as u32), ()), Err(ENOSPC));
        // One that waits already is not refused.
        assert_eq!(waiting.add(Sequence::new(0), ()), Ok(()));
        waiting.take();
        assert_eq!(waiting.add(Sequence::new(MOST as u32), ()), Ok(()));
        Ok(())
    }
}
