// SPDX-License-Identifier: GPL-2.0-only

//! Rejections of our requests for a connection (REJ), by reason.
//!
//! A peer that takes no connections is one thing. A request that reached another node than the
//! peer, as its LID changed hands, or that the path does not suit, is another: it says nothing of
//! the peer, and the path is asked for again.

use super::peer::Fate;
use crate::wire::cm::Reason;

/// Returns the consequence of a rejection for the next try.
pub(super) fn fate_of(reason: Reason) -> Fate {
    match reason {
        // The peer may be coming up, or going down, or another node may have its LID.
        Reason::INVALID_SERVICE_ID | Reason::CONSUMER_DEFINED => Fate::Unwilling,
        // The next try is another matter.
        Reason::TIMEOUT
        | Reason::STALE_CONNECTION
        | Reason::INVALID_COMM_ID
        | Reason::INVALID_COMM_INSTANCE
        | Reason::DUPLICATE_LOCAL_COMM_ID => Fate::Failed,
        _ if is_about_path(reason) => Fate::Failed,
        _ => Fate::Declined,
    }
}

/// Returns whether a rejection makes the path to the peer doubtful: it names a part of the path, or
/// its sender may be another node than the peer. The latter is only asked at the first such
/// rejection since there was a connection: the peer is asked for one every few seconds for as long
/// as it takes none, and each doubt costs the subnet administrator a query.
pub(super) fn doubts_path(reason: Reason, is_first: bool) -> bool {
    let may_be_another_node =
        reason == Reason::CONSUMER_DEFINED || reason == Reason::INVALID_SERVICE_ID;
    is_about_path(reason) || (is_first && may_be_another_node)
}

/// Returns whether the reason is a part of the path in the request, or that another port is to be
/// asked.
fn is_about_path(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::INVALID_GID
            | Reason::INVALID_LID
            | Reason::INVALID_SL
            | Reason::INVALID_TRAFFIC_CLASS
            | Reason::INVALID_HOP_LIMIT
            | Reason::INVALID_PACKET_RATE
            | Reason::INVALID_FLOW_LABEL
            | Reason::INVALID_ALTERNATE_GID
            | Reason::INVALID_ALTERNATE_LID
            | Reason::INVALID_ALTERNATE_SL
            | Reason::INVALID_ALTERNATE_TRAFFIC_CLASS
            | Reason::INVALID_ALTERNATE_HOP_LIMIT
            | Reason::INVALID_ALTERNATE_PACKET_RATE
            | Reason::INVALID_ALTERNATE_FLOW_LABEL
            | Reason::CM_REDIRECT
            | Reason::PORT_REDIRECT
            | Reason::INVALID_MTU
    )
}

#[kernel::prelude::kunit_tests(oxib_connected_rejections)]
mod tests {
    use super::*;

    /// Each reason of IBTA 12.6.7.2 by its number, and one that is not defined.
    #[test]
    fn reasons_about_the_path_are_no_refusals() {
        use Fate::{
            Declined,
            Failed,
            Unwilling, //
        };
        for (number, fate, first, later) in [
            (1, Declined, false, false),
            (2, Declined, false, false),
            (3, Declined, false, false),
            (4, Failed, false, false),
            (5, Declined, false, false),
            (6, Failed, false, false),
            (7, Failed, false, false),
            (8, Unwilling, true, false),
            (9, Declined, false, false),
            (10, Failed, false, false),
            (11, Declined, false, false),
            (12, Failed, true, true),
            (13, Failed, true, true),
            (14, Failed, true, true),
            (15, Failed, true, true),
            (16, Failed, true, true),
            (17, Failed, true, true),
            (18, Failed, true, true),
            (19, Failed, true, true),
            (20, Failed, true, true),
            (21, Failed, true, true),
            (22, Failed, true, true),
            (23, Failed, true, true),
            (24, Failed, true, true),
            (25, Failed, true, true),
            (26, Failed, true, true),
            (27, Declined, false, false),
            (28, Unwilling, true, false),
            (29, Declined, false, false),
            (30, Failed, false, false),
            (31, Declined, false, false),
            (32, Failed, true, true),
            (33, Failed, true, true),
            (35, Declined, false, false),
            (999, Declined, false, false),
        ] {
            let reason = Reason::new(number);
            assert_eq!(fate_of(reason), fate);
            assert_eq!(doubts_path(reason, true), first);
            assert_eq!(doubts_path(reason, false), later);
        }
    }
}
