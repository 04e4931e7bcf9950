// SPDX-License-Identifier: GPL-2.0-only

//! Whether a message may be from a connection's peer, as far as names and addresses tell.

use super::wire::cm::comm_id::CommId;

/// The two names of a connection: ours and the peer's.
pub type Names = (CommId, CommId);

/// Returns whether the peer of the connection that we know by the names `known` may have sent a
/// message that says `named`. Nobody else knows both names; a peer with both may have got another
/// address meanwhile. Before the connection has both, what counts is where the message came from.
pub fn may_be(known: Names, named: Names, is_from_peer: impl FnOnce() -> bool) -> bool {
    (known.1 != CommId::ZERO && known == named) || is_from_peer()
}

#[cfg_attr(CONFIG_RUST, kernel::prelude::kunit_tests(oxib_cm_peer))]
#[cfg_attr(not(CONFIG_RUST), cfg(test))]
mod tests {
    use super::*;

    #[test]
    fn senders_that_may_be_the_peer() {
        let [ours, theirs, other] = [1, 2, 3].map(CommId::new);
        let nobody = CommId::ZERO;
        // The names that we know, those in the message, and whether an address of the peer's is
        // needed.
        let table = [
            ((ours, theirs), (ours, theirs), false),
            ((ours, theirs), (ours, other), true),
            ((ours, theirs), (other, theirs), true),
            ((ours, theirs), (ours, nobody), true),
            ((ours, nobody), (ours, nobody), true),
            ((ours, nobody), (ours, theirs), true),
        ];
        for (known, named, is_needed) in table {
            assert_eq!(may_be(known, named, || false), !is_needed);
            assert!(may_be(known, named, || true));
        }
    }
}
