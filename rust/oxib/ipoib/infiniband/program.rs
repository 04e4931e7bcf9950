// SPDX-License-Identifier: GPL-2.0-only

//! Paths for programs: found among those that are known, or asked for.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    path::TIMEOUT,
    shared::Waiter,
    Interface,
    Port, //
};
use crate::{
    acm::{
        local_service::{
            Program,
            Wanted, //
        },
        paths::{
            Claim,
            Duty, //
        },
        Counter, //
    },
    rdma::{
        path::PathRecord,
        sa::path::{
            Answer,
            Asker, //
        }, //
    }, //
};

/// A query for a program, as long as it is under way.
struct ProgramQuery {
    port: Arc<Port>,
    number: u64,
    /// Others may wait for the answer.
    duty: Duty,
    /// The path that is wanted.
    wanted: PathRecord,
    interface: Arc<Interface>,
    program: Program,
}

impl Asker for ProgramQuery {
    fn answered(self: KBox<Self>, answer: Answer) {
        let Self {
            port,
            number,
            duty,
            wanted,
            interface,
            program,
        } = KBox::into_inner(self);
        port.paths.lock().ended(number);
        let path = port.checked(&interface, &wanted, answer).ok();
        port.done(Some(duty), path.as_ref());
        tell(&interface, program, path.as_ref());
    }
}

/// Tells a program of its path, or has the SA asked for it.
pub(super) fn tell(interface: &Interface, program: Program, path: Option<&PathRecord>) {
    count(interface, path.is_some_and(|path| program.answer(path)));
}

/// Counts a question of a program, which was answered or left to the SA.
fn count(interface: &Interface, is_answered: bool) {
    let counter = match is_answered {
        true => Counter::ProgramsAnswered,
        false => Counter::ProgramsDeclined,
    };
    interface.count_acm(counter, 1);
}

/// Leaves the question of a program to the SA. Sleeps.
fn decline(interface: &Interface, program: Program) {
    program.decline_now();
    count(interface, false);
}

impl Port {
    /// Finds a path for a program: at once, or when the SA has answered the first query for
    /// it. Sleeps.
    pub(super) fn find_path(
        self: &Arc<Self>,
        interface: Arc<Interface>,
        wanted: &Wanted,
        program: Program,
    ) {
        let waiter = Waiter::Program(interface.clone(), program);
        let claim = self.known_paths.claim_for(wanted.key, waiter);
        let counter = match claim {
            Claim::Known(..) => Counter::PathHits,
            Claim::Ask(..) | Claim::Waits => Counter::PathMisses,
        };
        interface.count_acm(counter, 1);
        match claim {
            Claim::Known(path, Waiter::Program(_, program)) => {
                count(&interface, program.answer_now(&path));
            }
            Claim::Ask(Some(duty), Waiter::Program(_, program)) => {
                self.ask_for(interface, wanted, duty, program);
            }
            // There is no room to keep the question.
            Claim::Ask(None, Waiter::Program(_, program)) => decline(&interface, program),
            _ => {}
        }
    }

    fn ask_for(
        self: &Arc<Self>,
        interface: Arc<Interface>,
        wanted: &Wanted,
        duty: Duty,
        program: Program,
    ) {
        let started = self.paths.lock().start_program_query();
        let Some(number) = started else {
            self.done(Some(duty), None);
            return decline(&interface, program);
        };
        let query = ProgramQuery {
            port: self.clone(),
            number,
            duty,
            wanted: wanted.record,
            interface: interface.clone(),
            program,
        };
        let begun = KBox::new(query, GFP_KERNEL)
            .map_err(Error::from)
            .and_then(|query| {
                // What could not be asked ends with its drop.
                let begun = self
                    .sa
                    .ask_path(wanted.record, wanted.named, TIMEOUT, query);
                begun.map_err(|(error, _)| error)
            });
        match begun {
            Ok(query) => self.began(&interface, number, query),
            Err(_) => {
                self.paths.lock().ended(number);
                self.done(Some(duty), None);
                // The drop of the query has left the question to the SA.
                count(&interface, false);
            }
        }
    }
}
