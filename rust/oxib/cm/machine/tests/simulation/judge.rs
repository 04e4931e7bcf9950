// SPDX-License-Identifier: GPL-2.0-only

//! Conditions that hold when everything is over.

use std::collections::BTreeMap;

use oxib_cm_machine::actions::Report;
use oxib_cm_machine::state::StateName;
use oxib_wire::cm::kind::Kind;

use super::network::Origin;
use super::node::{
    Id,
    Node, //
};
use super::world::World;

impl World {
    /// Checks that nothing is left, whatever has happened.
    pub fn judge_every_schedule(&self) {
        for node in [&self.active, &self.passive] {
            for id in node.ids.values() {
                assert_eq!(id.machine.name(), StateName::Idle, "{id:?}");
                assert_eq!(id.timer, None, "{id:?}");
                assert!(id.request.is_none(), "{id:?}");
                assert!(id.destroyed, "{id:?}");
            }
            assert_eq!(node.by_remote_id.len(), 0, "{node:?}");
            assert_eq!(node.by_remote_qpn.len(), 0, "{node:?}");
            assert_eq!(node.half_open, 0);
        }
    }

    /// Checks a schedule in which both consumers want the connection, and lost messages are sent
    /// again: both had it, and both were told of its end.
    pub fn judge_willing(&self) {
        let (active, passive) = (first(&self.active), first(&self.passive));
        assert!(active.reports.contains(Report::RepReceived), "{active:?}");
        // Where one RTU after the other is lost, a DREQ says as well that the peer was ready.
        let ready = [Report::RtuReceived, Report::DreqReceived];
        let was_ready = ready.into_iter().any(|r| passive.reports.contains(r));
        assert!(was_ready, "{passive:?}");
        for id in [active, passive] {
            assert!(!id.reports.failed(), "{id:?}");
            let told = [Report::DreqReceived, Report::DrepReceived];
            assert!(
                told.into_iter().any(|end| id.reports.contains(end)),
                "{id:?}"
            );
            assert!(id.reports.contains(Report::TimewaitExit), "{id:?}");
        }
    }

    /// Checks a schedule without losses: no message was sent more often than needed.
    pub fn judge_fair(&self) {
        self.judge_willing();
        assert_eq!((self.active.ids.len(), self.passive.ids.len()), (1, 1));
        let once = [(Kind::Req, 1), (Kind::Rep, 1), (Kind::Rtu, 1)];
        let with = |dreqs, dreps| {
            let ends = [(Kind::Dreq, dreqs), (Kind::Drep, dreps)];
            BTreeMap::from_iter(once.into_iter().chain(ends))
        };
        // Both may disconnect before they know of each other's wish.
        let expected = [with(1, 1), with(2, 1), with(2, 2)];
        assert!(expected.contains(&self.sent), "{:?}", self.sent);
    }
}

/// The first identifier of an end, with the other end as its peer; later ones are made by messages
/// that come too late.
fn first(node: &Node) -> &Id {
    node.ids
        .values()
        .find(|id| id.peer == Origin::Peer)
        .expect("each end has an identifier")
}
