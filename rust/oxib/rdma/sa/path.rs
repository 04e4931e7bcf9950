// SPDX-License-Identifier: GPL-2.0-only

//! Asking for paths (IBTA 15.2.5.16).

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        Completion,
        SpinLock, //
    },
    types::ForeignOwnable, //
};

use super::{
    component,
    Client, //
};
use crate::{
    bindings,
    net::bh::{
        new_spinlock_bh,
        SpinLockBh, //
    },
    rdma::path::PathRecord, //
};

/// Components that every query names: the source GID, and one path.
const COMPONENTS: u64 = component(3) | component(12);

/// Components that a query names besides.
#[derive(Clone, Copy)]
pub(crate) struct Components(u64);

impl Components {
    /// The destination by its GID, in any partition.
    pub(crate) const TO_GID: Self = Self(component(2));
    /// The destination by its LID, in any partition.
    pub(crate) const TO_LID: Self = Self(component(4));
    /// The destination by its GID, the P_Key, and the traffic class, as the paths of a link have
    /// them.
    pub(crate) const LINK: Self = Self(component(2) | component(10) | component(13));
    /// The destination by its GID, the P_Key, and both halves of the service ID.
    pub(crate) const SERVICE: Self =
        Self(component(0) | component(1) | component(2) | component(13));
    /// The class of the quality of service.
    pub(crate) const QOS_CLASS: Self = Self(component(14));

    /// Adds `more`, if `is_named`.
    pub(crate) const fn and(self, is_named: bool, more: Self) -> Self {
        match is_named {
            true => Self(self.0 | more.0),
            false => self,
        }
    }
}

/// The user that asked for a path.
pub(crate) trait Asker: Send + Sized + 'static {
    /// The answer, once. Called in process context.
    fn answered(self: KBox<Self>, answer: Answer);
}

/// The SA's answer to a path query.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// The path that the SA names.
    Path(PathRecord),
    /// There is no such path.
    None,
    /// The SA did not answer, or cannot be asked at the moment.
    Silence,
}

/// The progress of a query.
enum State {
    /// `ib_sa` has not yet given the query its number.
    Beginning,
    /// The query has this number, and is not freed before its answer was taken.
    UnderWay {
        id: i32,
        query: *mut bindings::ib_sa_query,
    },
    /// The answer is being taken, or was.
    Over,
}

// SAFETY: The pointer is handed to `ib_sa` alone, which locks what it leads to.
unsafe impl Send for State {}

/// A query that is under way, or has ended.
///
/// # Invariants
///
/// The state is `Over` before `ib_sa` may free the query: its callback sees to that first, under
/// the lock.
#[pin_data]
struct QueryInner {
    #[pin]
    state: SpinLockBh<State>,
}

impl QueryInner {
    fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock_bh!(State::Beginning, "oxib_sa_query"),
            }),
            GFP_KERNEL,
        )
    }

    /// Notes what the query is called, unless the answer was faster.
    fn began(&self, id: i32, query: *mut bindings::ib_sa_query) {
        let mut state = self.state.lock();
        if let State::Beginning = *state {
            *state = State::UnderWay { id, query };
        }
    }

    fn over(&self) {
        *self.state.lock() = State::Over;
    }
}

/// A query that is under way, or has ended. Clones are of the same one.
#[derive(Clone)]
pub(crate) struct Query(Arc<QueryInner>);

impl Query {
    /// Calls the query off: the answer comes soon, unless it has come. Any context.
    pub(crate) fn cancel(&self) {
        let state = self.0.state.lock();
        if let State::UnderWay { id, query } = *state {
            // SAFETY: By the type invariant the query is not freed while the lock is held: that
            // comes after its callback, which waits for the lock. `ib_sa` calls no callback in
            // this call.
            unsafe { bindings::ib_sa_cancel_query(id, query) }
        }
    }
}

/// The context that the C side keeps the address of.
struct Context<A> {
    asker: KBox<A>,
    inner: Arc<QueryInner>,
}

/// A query that did not begin: the error, and the user that asked.
pub(crate) type NotBegun<A> = (Error, KBox<A>);

impl Client {
    /// Asks for a path from the source GID of `wanted` that has all that `named` names, as `wanted`
    /// has it. The SA is asked again a few times until `timeout` milliseconds are over. Sleeps.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while no SA is known, `ENODEV` after [`Client::close`], `ENOMEM`.
    pub(crate) fn ask_path<A: Asker>(
        &self,
        mut wanted: PathRecord,
        named: Components,
        timeout: u32,
        asker: KBox<A>,
    ) -> core::result::Result<Query, NotBegun<A>> {
        wanted.set_one_path();
        let inner = match QueryInner::new() {
            Ok(inner) => inner,
            Err(error) => return Err((error, asker)),
        };
        let room = match KBox::<Context<A>>::new_uninit(GFP_KERNEL) {
            Ok(room) => room,
            Err(_) => return Err((ENOMEM, asker)),
        };
        let context = KBox::write(
            room,
            Context {
                asker,
                inner: inner.clone(),
            },
        );
        let context = context.into_foreign();
        let begun = self.begin(|client| {
            let mut query = core::ptr::null_mut();
            // SAFETY: The client is registered, the device too and has that port; the record is
            // read before the call returns. The callback gets what it expects, and gets it once.
            let id = unsafe {
                bindings::ib_sa_path_rec_get(
                    client,
                    self.device().as_raw(),
                    self.port().get(),
                    wanted.as_raw(),
                    COMPONENTS | named.0,
                    timeout as usize,
                    bindings::GFP_KERNEL,
                    Some(answered::<A>),
                    context.cast(),
                    &mut query,
                )
            };
            let id = kernel::error::to_result(id.min(0)).map(|()| id)?;
            inner.began(id, query);
            Ok(())
        });
        match begun {
            Ok(()) => Ok(Query(inner)),
            Err(error) => {
                // SAFETY: From `into_foreign` above, and nobody else got it.
                let context = unsafe { KBox::<Context<A>>::from_foreign(context) };
                Err((error, KBox::into_inner(context).asker))
            }
        }
    }
}

/// A thread that waits for an answer, and the place of the answer.
#[pin_data]
struct Waiter {
    #[pin]
    done: Completion,
    #[pin]
    answer: SpinLock<Answer>,
}

/// The question of a thread that waits.
struct Question(Arc<Waiter>);

impl Asker for Question {
    fn answered(self: KBox<Self>, answer: Answer) {
        *self.0.answer.lock() = answer;
        self.0.done.complete_all();
    }
}

impl Client {
    /// Does what [`Client::ask_path`] does, and waits for the answer. `begun` gets the query, by
    /// which it can be cancelled.
    ///
    /// # Errors
    ///
    /// The errors of [`Client::ask_path`].
    pub(crate) fn find_path(
        &self,
        wanted: PathRecord,
        timeout: u32,
        begun: impl FnOnce(Query),
    ) -> Result<Answer> {
        let waiter = Arc::pin_init(
            pin_init!(Waiter {
                done <- Completion::new(),
                answer <- new_spinlock!(Answer::Silence, "oxib_sa_answer"),
            }),
            GFP_KERNEL,
        )?;
        let question = KBox::new(Question(waiter.clone()), GFP_KERNEL)?;
        let query = self
            .ask_path(wanted, Components::LINK, timeout, question)
            .map_err(|(error, _)| error)?;
        begun(query);
        waiter.done.wait_for_completion();
        let answer = *waiter.answer.lock();
        Ok(answer)
    }
}

/// The C face of [`Asker::answered`].
///
/// # Safety
///
/// Called by `ib_sa` once for each query, with its context; `record` is valid if `status` is 0.
unsafe extern "C" fn answered<A: Asker>(
    status: i32,
    record: *mut bindings::sa_path_rec,
    _paths: u32,
    context: *mut c_void,
) {
    // SAFETY: `ib_sa` passes the context of the query, which is from `into_foreign` in `ask_path`,
    // and gives it back once.
    let context = unsafe { KBox::<Context<A>>::from_foreign(context.cast()) };
    let Context { asker, inner } = KBox::into_inner(context);
    // From here on nobody calls it off.
    inner.over();
    // SAFETY: `ib_sa` gives a record that is valid until this returns, or null.
    let path = unsafe { PathRecord::borrow(record) };
    let answer = match (kernel::error::to_result(status), path) {
        (Ok(()), Some(path)) => Answer::Path(*path),
        // `ib_sa` makes this of every answer with a status that is not good.
        (Ok(()), None) | (Err(EINVAL), _) => Answer::None,
        (Err(_), _) => Answer::Silence,
    };
    asker.answered(answer);
}

#[kernel::prelude::kunit_tests(oxib_sa_path)]
mod tests {
    use super::*;

    #[test]
    fn queries_name_what_they_are_for() {
        for (named, expected) in [
            (Components::LINK, &[2, 3, 10, 12, 13][..]),
            (Components::SERVICE, &[0, 1, 2, 3, 12, 13][..]),
            (Components::TO_GID, &[2, 3, 12][..]),
            (Components::TO_LID, &[3, 4, 12][..]),
        ] {
            let expected = expected
                .iter()
                .fold(0, |mask, number| mask | component(*number));
            assert_eq!(COMPONENTS | named.0, expected);
        }
    }

    #[test]
    fn a_query_is_called_off_until_its_answer_alone() -> Result {
        let can_be_called_off = |inner: &QueryInner| {
            let state = inner.state.lock();
            matches!(*state, State::UnderWay { .. })
        };
        let inner = QueryInner::new()?;
        assert!(!can_be_called_off(&inner));
        inner.began(7, core::ptr::null_mut());
        assert!(can_be_called_off(&inner));
        inner.over();
        assert!(!can_be_called_off(&inner));
        // An answer that was faster.
        let inner = QueryInner::new()?;
        inner.over();
        inner.began(7, core::ptr::null_mut());
        assert!(!can_be_called_off(&inner));
        Ok(())
    }
}
