// SPDX-License-Identifier: GPL-2.0-only

//! Whether there is a subnet administrator (SA).
//!
//! If a subnet manager ends and its node stays up, the kernel of that node refuses all queries.
//! `ib_sa` reports this as it reports that there is no path, or that the SA is busy: `EINVAL`. A
//! path in use and a membership are not lost for that. So after the refusal of one that was good
//! before, the SA is asked for the path to its subnet manager's port. As long as it does not give
//! that one or another, further refusals say nothing.
//!
//! That path is asked for by the LID, and in any partition: the subnet manager's port is a full
//! member of the default partition, so each port that reaches it has a path there. There is none
//! between limited members, and none from such a port to itself.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    path::TIMEOUT,
    Interface,
    Port, //
};
use crate::{
    acm::budget::{
        self,
        Budget, //
    },
    rdma::{
        path::{
            PathKind,
            PathRecord, //
        },
        sa::path::{
            Answer,
            Asker,
            Components, //
        }, //
    },
    wire::gid::Gid,
    work, //
};

/// Knowledge of the SA, which all interfaces of a port share.
pub(super) struct Presence {
    has_sa: bool,
    checks: Budget,
}

impl Presence {
    /// Assumes that there is an SA, until a check says otherwise.
    pub(super) const fn new() -> Self {
        Self {
            has_sa: true,
            checks: Budget::new(budget::SA_CHECKS),
        }
    }

    /// Returns whether there is an SA that gives paths, as far as is known.
    pub(super) fn has_sa(&self) -> bool {
        self.has_sa
    }

    /// Returns whether a check may begin at time `now` (milliseconds), and counts that.
    fn take_check(&mut self, now: u64) -> bool {
        self.checks.take(now)
    }

    /// Notes that the SA has given a path.
    pub(super) fn note_path(&mut self) {
        self.has_sa = true;
    }

    /// Notes the answer to a check. One that was not answered, or was called off, says nothing.
    fn note_check(&mut self, answer: &Answer) {
        match answer {
            Answer::Path(_) => self.has_sa = true,
            Answer::None => self.has_sa = false,
            Answer::Silence => {}
        }
    }
}

/// The query that finds out whether there is an SA, as long as it is under way.
struct Check {
    port: Arc<Port>,
    number: u64,
}

impl Asker for Check {
    fn answered(self: KBox<Self>, answer: Answer) {
        let Self { port, number } = KBox::into_inner(self);
        port.paths.lock().ended(number);
        port.known_paths.presence.lock().note_check(&answer);
    }
}

/// Returns what the error of a search says of a path that is in use: a refusal says nothing of it
/// if there is no SA.
fn of_refresh(error: Error, has_sa: bool) -> Error {
    match error {
        ENXIO if !has_sa => EAGAIN,
        _ => error,
    }
}

impl Port {
    /// Returns what the error of a search says of a path that is in use. After a refusal it is
    /// found out whether there is an SA.
    pub(super) fn error_of_refresh(
        self: &Arc<Self>,
        interface: &Arc<Interface>,
        error: Error,
    ) -> Error {
        if error == ENXIO {
            self.check_sa(interface);
        }
        let has_sa = self.known_paths.presence.lock().has_sa();
        of_refresh(error, has_sa)
    }

    /// Finds out soon whether there is an SA, unless that was begun a moment ago. Any context.
    pub(super) fn check_sa(self: &Arc<Self>, interface: &Arc<Interface>) {
        let now = work::milliseconds();
        let may_begin = self.known_paths.presence.lock().take_check(now);
        if !may_begin {
            return;
        }
        let (port, interface) = (self.clone(), interface.clone());
        // Without memory at the moment, the next refusal will do.
        let _ = self
            .queue
            .spawn(move || port.ask_path_to_manager(&interface));
    }

    /// Returns the record to ask for: the path to the port of the subnet manager.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while the port has no GID, or knows no subnet manager; the device's error.
    fn path_to_manager(&self) -> Result<PathRecord> {
        let manager = self.device().infiniband_port(self.number)?.sm_lid;
        // Not the source GID: that can be an alias, which the SA may not know any more.
        let own = self.device().gid(self.number, 0).ok_or(EAGAIN)?.gid();
        if manager == 0 || own == Gid::ZERO {
            return Err(EAGAIN);
        }
        let mut wanted = PathRecord::new(PathKind::Infiniband);
        wanted.set_sgid(own);
        wanted.set_dlid(manager);
        Ok(wanted)
    }

    /// Asks the SA for the path to the port of its subnet manager. Sleeps.
    fn ask_path_to_manager(self: &Arc<Self>, interface: &Interface) {
        let Ok(wanted) = self.path_to_manager() else {
            return;
        };
        let Some(number) = self.paths.lock().start_check() else {
            return;
        };
        let check = Check {
            port: self.clone(),
            number,
        };
        let begun = KBox::new(check, GFP_KERNEL)
            .map_err(Error::from)
            .and_then(|check| {
                let begun = self.sa.ask_path(wanted, Components::TO_LID, TIMEOUT, check);
                begun.map_err(|(error, _)| error)
            });
        match begun {
            Ok(query) => self.began(interface, number, query),
            Err(_) => self.paths.lock().ended(number),
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_infiniband_presence)]
mod tests {
    use super::*;

    #[test]
    fn refusals_without_an_administrator_say_nothing() {
        for (error, has_sa, expected) in [
            (ENXIO, true, ENXIO),
            (ENXIO, false, EAGAIN),
            (EAGAIN, true, EAGAIN),
            (EAGAIN, false, EAGAIN),
            (ENOMEM, false, ENOMEM),
        ] {
            assert_eq!(of_refresh(error, has_sa), expected);
        }
    }

    #[test]
    fn only_answers_say_whether_there_is_an_administrator() {
        let path = Answer::Path(PathRecord::new(PathKind::Infiniband));
        let mut presence = Presence::new();
        assert!(presence.has_sa());
        for (answer, expected) in [
            (Answer::Silence, true),
            (Answer::None, false),
            (Answer::Silence, false),
            (path, true),
            (Answer::Silence, true),
            (Answer::None, false),
        ] {
            presence.note_check(&answer);
            assert_eq!(presence.has_sa(), expected);
        }
        presence.note_path();
        assert!(presence.has_sa());
    }

    #[test]
    fn checks_have_a_rate() {
        let (mut presence, now) = (Presence::new(), 1_000_000);
        assert!(presence.take_check(now));
        assert!(!presence.take_check(now));
        assert!(!presence.take_check(now + 999));
        assert!(presence.take_check(now + 1000));
        assert!(!presence.take_check(now + 1000));
    }
}
