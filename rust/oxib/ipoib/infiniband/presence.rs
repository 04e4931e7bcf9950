// SPDX-License-Identifier: GPL-2.0-only

//! Whether there is a subnet administrator (SA).
//!
//! If a subnet manager ends and its node stays up, the kernel of that node refuses all queries.
//! `ib_sa` reports this as it reports that there is no path, or that the SA is busy: `EINVAL`. A
//! path in use and a membership are not lost for that: a refusal of what was good before counts
//! only if the SA has given a path of late. If it has given none, it is asked for the path to its
//! subnet manager's port.
//!
//! That path is asked for in any partition: the subnet manager's port is a full member of the
//! default partition, so each port that reaches it has a path there. There is none between limited
//! members, and none from such a port to itself. The port is named by its LID, which is all that is
//! known of it at first, and then by the GID in the answer: OpenSM finds a GID in a table, and a
//! LID by a walk through all ports of the subnet.

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

/// Time for which an SA that has given a path is taken for present, in milliseconds. What is
/// refused is asked for again before.
const SEEN_MS: u64 = 60_000;

/// Time after which a refusal has the SA checked, in milliseconds: before that, a path is not
/// refused so often that it is dropped.
const CHECK_MS: u64 = 1000;

/// Port of a subnet manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Manager {
    lid: u16,
    /// Its GID, once the SA has said it.
    gid: Option<Gid>,
}

impl Manager {
    /// Returns whether `path` leads there.
    fn is_end_of(&self, path: &PathRecord) -> bool {
        match self.gid {
            Some(gid) => path.dgid() == gid,
            None => path.dlid() == u32::from(self.lid),
        }
    }
}

/// Knowledge of the SA, which all interfaces of a port share.
pub(super) struct Presence {
    /// Time at which the SA gave a path last, in milliseconds; `None` at first, and since it gave
    /// none to the subnet manager's port.
    seen: Option<u64>,
    /// The port to which it gave one.
    manager: Option<Manager>,
    checks: Budget,
}

impl Presence {
    /// Creates the knowledge of a port that has asked for no path.
    pub(super) const fn new() -> Self {
        Self {
            seen: None,
            manager: None,
            checks: Budget::new(budget::SA_CHECKS),
        }
    }

    /// Returns whether an SA gives paths at time `now` (milliseconds), as far as is known.
    pub(super) fn has_sa(&self, now: u64) -> bool {
        self.seen.is_some_and(|seen| now < seen + SEEN_MS)
    }

    /// Returns whether a check is to begin at time `now` (milliseconds), and counts that.
    fn take_check(&mut self, now: u64) -> bool {
        self.seen.is_none_or(|seen| now >= seen + CHECK_MS) && self.checks.take(now)
    }

    /// Returns the port to which a path is asked for, of the subnet manager at `lid`.
    fn manager_at(&self, lid: u16) -> Manager {
        match self.manager {
            Some(manager) if manager.lid == lid => manager,
            _ => Manager { lid, gid: None },
        }
    }

    /// Notes that the SA has given a path at time `now` (milliseconds).
    pub(super) fn note_path(&mut self, now: u64) {
        self.seen = Some(now);
    }

    /// Notes the answer to a check at time `now` (milliseconds), which was for the path to `asked`.
    /// One that was not answered, or with another path, or was called off, says nothing.
    fn note_check(&mut self, asked: Manager, answer: &Answer, now: u64) {
        match answer {
            Answer::Path(path) if asked.is_end_of(path) => {
                self.seen = Some(now);
                let (lid, gid) = (asked.lid, path.dgid());
                let is_port = !gid.is_zero() && !gid.is_multicast();
                self.manager = is_port.then_some(Manager {
                    lid,
                    gid: Some(gid),
                });
            }
            Answer::None => {
                self.seen = None;
                // Another port may have the LID by now.
                self.manager = None;
            }
            Answer::Path(_) | Answer::Silence => {}
        }
    }
}

/// The query that finds out whether there is an SA, as long as it is under way.
struct Check {
    port: Arc<Port>,
    number: u64,
    /// Port to which the path leads.
    asked: Manager,
}

impl Asker for Check {
    fn answered(self: KBox<Self>, answer: Answer) {
        let Self {
            port,
            number,
            asked,
        } = KBox::into_inner(self);
        port.paths.lock().ended(number);
        let mut presence = port.known_paths.presence.lock();
        presence.note_check(asked, &answer, work::milliseconds());
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
    /// Returns what the error of a search says of a path that is in use. After a refusal it may be
    /// found out whether there is an SA.
    pub(super) fn error_of_refresh(
        self: &Arc<Self>,
        interface: &Arc<Interface>,
        error: Error,
    ) -> Error {
        if error == ENXIO {
            self.check_sa(interface);
        }
        let has_sa = self.known_paths.has_sa();
        of_refresh(error, has_sa)
    }

    /// Finds out soon whether there is an SA, unless that is known or was begun a moment ago. Any
    /// context.
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

    /// Returns the subnet manager's port, and the path to it to ask for.
    ///
    /// # Errors
    ///
    /// `EAGAIN` while the port has no GID, or knows no subnet manager; the device's error.
    fn path_to_manager(&self) -> Result<(Manager, PathRecord)> {
        let lid = self.device().infiniband_port(self.number)?.sm_lid;
        // Not the source GID: that can be an alias, which the SA may not know any more.
        let own = self.device().gid(self.number, 0).ok_or(EAGAIN)?.gid();
        if lid == 0 || own == Gid::ZERO {
            return Err(EAGAIN);
        }
        let manager = self.known_paths.presence.lock().manager_at(lid);
        let mut wanted = PathRecord::new(PathKind::Infiniband);
        wanted.set_sgid(own);
        match manager.gid {
            Some(gid) => wanted.set_dgid(gid),
            None => wanted.set_dlid(lid),
        }
        Ok((manager, wanted))
    }

    /// Asks the SA for the path to the port of its subnet manager. Sleeps.
    fn ask_path_to_manager(self: &Arc<Self>, interface: &Interface) {
        let Ok((manager, wanted)) = self.path_to_manager() else {
            return;
        };
        let named = match manager.gid {
            Some(_) => Components::TO_GID,
            None => Components::TO_LID,
        };
        let Some(number) = self.paths.lock().start_check() else {
            return;
        };
        let check = Check {
            port: self.clone(),
            number,
            asked: manager,
        };
        let begun = KBox::new(check, GFP_KERNEL)
            .map_err(Error::from)
            .and_then(|check| {
                let begun = self.sa.ask_path(wanted, named, TIMEOUT, check);
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

    const NOW: u64 = 1_000_000;

    fn at(lid: u16, gid: Option<Gid>) -> Manager {
        Manager { lid, gid }
    }

    /// The path to a port.
    fn to(lid: u16, gid: Gid) -> Answer {
        let mut path = PathRecord::new(PathKind::Infiniband);
        path.set_dlid(lid);
        path.set_dgid(gid);
        Answer::Path(path)
    }

    #[test]
    fn answers_alone_say_whether_there_is_an_administrator() {
        let gid = Gid::from_bytes([7; 16]);
        let mut presence = Presence::new();
        for (answer, expected) in [
            (Answer::Silence, false),
            (to(2, gid), false),
            (to(1, gid), true),
            (Answer::Silence, true),
            (Answer::None, false),
            (Answer::Silence, false),
        ] {
            presence.note_check(at(1, None), &answer, NOW);
            assert_eq!(presence.has_sa(NOW), expected);
        }
        presence.note_path(NOW);
        assert!(presence.has_sa(NOW));
    }

    #[test]
    fn an_administrator_was_there_of_late_or_is_not_known() {
        let mut presence = Presence::new();
        presence.note_path(NOW);
        for (after, has_sa, is_checked) in [
            (0, true, false),
            (CHECK_MS - 1, true, false),
            (CHECK_MS, true, true),
            (SEEN_MS - 1, true, true),
            (SEEN_MS, false, true),
        ] {
            assert_eq!(presence.has_sa(NOW + after), has_sa);
            assert_eq!(presence.take_check(NOW + after), is_checked);
        }
    }

    #[test]
    fn checks_have_a_rate() {
        let mut presence = Presence::new();
        assert!(presence.take_check(NOW));
        assert!(!presence.take_check(NOW));
        assert!(!presence.take_check(NOW + 999));
        assert!(presence.take_check(NOW + 1000));
        assert!(!presence.take_check(NOW + 1000));
    }

    #[test]
    fn the_manager_is_named_by_its_gid_once_that_is_known() {
        let gid = Gid::from_bytes([7; 16]);
        let known = at(1, Some(gid));
        let mut presence = Presence::new();
        for (asked, answer, expected) in [
            (at(1, None), Answer::Silence, at(1, None)),
            // Answers that name no port, or another one.
            (at(1, None), to(1, Gid::ZERO), at(1, None)),
            (at(1, None), to(1, Gid::from_bytes([0xff; 16])), at(1, None)),
            (at(1, None), to(2, gid), at(1, None)),
            (at(1, None), to(1, gid), known),
            (known, Answer::Silence, known),
            (known, to(1, Gid::from_bytes([8; 16])), known),
            // It may be elsewhere by now.
            (known, to(2, gid), known),
            (known, Answer::None, at(1, None)),
        ] {
            presence.note_check(asked, &answer, NOW);
            assert_eq!(presence.manager_at(1), expected);
            assert_eq!(presence.manager_at(2), at(2, None));
        }
    }
}
