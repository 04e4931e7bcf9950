// SPDX-License-Identifier: GPL-2.0-only

//! Whether there is a subnet administrator (SA).
//!
//! If a subnet manager ends and its node stays up, the kernel of that node refuses all queries.
//! `ib_sa` reports this as it reports that there is no path, or that the SA is busy: `EINVAL`. A
//! path in use and a membership are not lost for that. So after the refusal of one that was good
//! before, the SA is asked for the path from the port to itself. As long as it does not give that
//! one or another, further refusals say nothing.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    path::TIMEOUT,
    Interface,
    Port, //
};
use crate::rdma::sa::path::{
    Answer,
    Asker,
    Components, //
};

/// The query for the path from the port to itself, as long as it is under way.
struct OwnPathQuery {
    port: Arc<Port>,
    number: u64,
}

impl Asker for OwnPathQuery {
    fn answered(self: KBox<Self>, answer: Answer) {
        let Self { port, number } = KBox::into_inner(self);
        port.paths.lock().ended(number);
        port.known_paths.note_sa(matches!(answer, Answer::Path(_)));
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
        of_refresh(error, self.known_paths.has_sa())
    }

    /// Finds out soon whether there is an SA. Any context.
    pub(super) fn check_sa(self: &Arc<Self>, interface: &Arc<Interface>) {
        let (port, interface) = (self.clone(), interface.clone());
        // Without memory at the moment, the next refusal will do.
        let _ = self.queue.spawn(move || port.ask_own_path(&interface));
    }

    /// Asks the SA for the path from the port to itself. Sleeps.
    fn ask_own_path(self: &Arc<Self>, interface: &Interface) {
        let own = self.source_gid().ok_or(EAGAIN);
        let Ok(wanted) = own.and_then(|gid| self.wanted(gid)) else {
            return;
        };
        let Some(number) = self.paths.lock().start_check() else {
            return;
        };
        let query = OwnPathQuery {
            port: self.clone(),
            number,
        };
        let begun = KBox::new(query, GFP_KERNEL)
            .map_err(Error::from)
            .and_then(|query| {
                let begun = self.sa.ask_path(wanted, Components::LINK, TIMEOUT, query);
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
}
