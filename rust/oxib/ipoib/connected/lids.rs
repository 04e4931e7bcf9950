// SPDX-License-Identifier: GPL-2.0-only

//! The LIDs of connections, and the end of connections whose LIDs are no longer right.
//!
//! A connection carries nothing once the subnet manager has given one of its ports another LID,
//! but it fails only when its retries end, seconds later. It is closed as soon as the change shows:
//!
//! - An event of the port announces another LID.
//! - The subnet administrator's path to a peer leads to another LID.
//! - A peer or the subnet administrator names another LID of this port than is known, for a new
//!   connection. The LID is read from the device then, before the connection is refused.
//! - A peer asks for a connection, or ends one, from another LID than a connection to it leads to.
//!   The subnet administrator is asked then, as anybody can claim to be a peer.
//!
//! Announcements of neighbours cause path queries (`ipoib/neighbour.rs`), with a budget and spread
//! over time; a new path closes connections in the same way.

use core::sync::atomic::{
    AtomicU16,
    Ordering, //
};

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    active::Outbound,
    passive::Inbound,
    peer::Fate,
    session::Session,
    Mode, //
};
use crate::{
    ipoib::interface::Interface,
    net::rtnl::Rtnl,
    rdma::path::PathRecord,
    reclaim::WithoutIo,
    wire::{
        cm::req::Req,
        gid::Gid,
        lid::Lid, //
    }, //
};

/// The LIDs of the ports that a connection is between; 0 for one that is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lids {
    local: u16,
    remote: u16,
}

impl Lids {
    /// LIDs of a connection that is not made yet.
    pub(super) const UNKNOWN: Self = Self {
        local: 0,
        remote: 0,
    };

    /// Returns the LIDs of a connection along `path`.
    pub(super) fn along(path: &PathRecord) -> Self {
        Self::new(path.slid() as u16, path.dlid() as u16)
    }

    /// Returns the LIDs of the connection that a peer asks for.
    pub(super) fn of_request(req: &Req) -> Self {
        let path = req.primary();
        Self::new(path.remote_lid.get(), path.local_lid.get())
    }

    fn new(local: u16, remote: u16) -> Self {
        // A peer in another subnet gives no LIDs.
        let known = |lid: u16| if lid == Lid::PERMISSIVE.get() { 0 } else { lid };
        Self {
            local: known(local),
            remote: known(remote),
        }
    }

    /// Takes LIDs out of a number of [`Lids::number`].
    pub(super) fn from_number(number: u32) -> Self {
        Self {
            local: (number >> 16) as u16,
            remote: number as u16,
        }
    }

    /// Returns both as one number.
    pub(super) fn number(self) -> u32 {
        u32::from(self.local) << 16 | u32::from(self.remote)
    }

    /// Returns whether the connection may begin at the port that has `lid` now.
    fn may_begin_at(self, lid: u16, is_same_port: impl Fn(u16, u16) -> bool) -> bool {
        self.local == 0 || lid == 0 || is_same_port(self.local, lid)
    }

    /// Returns whether the connection may lead to the port that has `lid` now.
    fn may_lead_to(self, lid: u16, is_same_port: impl Fn(u16, u16) -> bool) -> bool {
        self.remote == 0 || lid == 0 || is_same_port(self.remote, lid)
    }
}

/// The LID of the port as it was read last; 0 if it has none.
pub(super) struct KnownLid(AtomicU16);

impl KnownLid {
    pub(super) fn new(lid: u16) -> Self {
        Self(AtomicU16::new(lid))
    }

    fn get(&self) -> u16 {
        // Relaxed: the members' lock orders it before the look for what begins elsewhere.
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that the port has `lid`. Returns whether it had another one.
    fn update(&self, lid: u16) -> bool {
        self.0.swap(lid, Ordering::Relaxed) != lid
    }

    /// Returns whether a connection may begin at the port's LID, of which `may_begin_at` decides.
    /// One that is known may be old: before the answer is no, it is read from the device by
    /// `read`, and `changed` is called if it is another one.
    fn admits(
        &self,
        may_begin_at: impl Fn(u16) -> bool,
        read: impl FnOnce() -> Result<u16>,
        changed: impl FnOnce(),
    ) -> bool {
        if may_begin_at(self.get()) {
            return true;
        }
        let Ok(lid) = read() else {
            return false;
        };
        if self.update(lid) {
            changed();
        }
        may_begin_at(lid)
    }
}

impl Session {
    fn is_same_port(&self, one: u16, other: u16) -> bool {
        self.interface.link().is_same_port(one, other)
    }

    /// Returns whether `connection` leads to the port at `gid` by another LID than `lid`.
    fn leads_elsewhere(&self, connection: &Outbound, gid: &Gid, lid: u16) -> bool {
        let is_same_port = |one, other| self.is_same_port(one, other);
        connection.gid() == *gid && !connection.lids().may_lead_to(lid, is_same_port)
    }

    /// Closes the connections that begin at other LIDs than the port has now. Sleeps.
    fn close_from_elsewhere(&self) {
        // One at a time, without the members' lock: an end takes it to leave the list.
        while let Some(connection) = self.find_outbound(|connection| {
            !self.is_from_here(connection.lids()) && connection.leaving.begin()
        }) {
            connection.close_as(Fate::Moved);
        }
        while let Some(id) = self.find_inbound(|connection| {
            !self.is_from_here(connection.lids()) && connection.leaving.begin()
        }) {
            if let Some(connection) = Inbound::of(&id) {
                connection.close();
            }
        }
    }

    /// Closes the connections that lead to the port at `gid` by other LIDs than `lid`. Sleeps.
    fn close_to_elsewhere(&self, gid: &Gid, lid: u16) {
        while let Some(connection) = self.find_outbound(|connection| {
            self.leads_elsewhere(connection, gid, lid) && connection.leaving.begin()
        }) {
            connection.close_as(Fate::Moved);
        }
    }

    /// Takes notice that the port at `gid` asked for a connection from `lid`. Sleeps.
    pub(super) fn requested_from(self: &Arc<Self>, gid: &Gid, lid: u16) {
        let found = self.find_outbound(|connection| self.leads_elsewhere(connection, gid, lid));
        if found.is_some() && self.interface.link().take_query_token() {
            self.verify(*gid);
        }
    }

    /// Takes notice that the peer of `connection` ends it from `lid`, and returns the consequence
    /// for the next one.
    ///
    /// A DREQ from another LID than the path leads to removes the path: a REQ along the old path
    /// would be repeated for up to a minute. So the next connection costs the subnet administrator
    /// a query. Within the budget for hints the path is asked for at once; beyond it, the next
    /// connection has to wait, as a peer could have one made and end it as fast as it answers, and
    /// the path of datagrams, unless it leads to that LID already, is asked for when there is time
    /// for it.
    pub(super) fn ended_from(self: &Arc<Self>, connection: &Outbound, lid: u16) -> Fate {
        let gid = connection.gid();
        let has_moved = self.leads_elsewhere(connection, &gid, lid);
        if has_moved {
            self.interface.forget_paths_to(&gid);
        }
        let is_granted = has_moved && self.interface.link().take_query_token();
        if is_granted {
            self.verify(gid);
        } else if has_moved && self.interface.is_elsewhere(&gid, lid) {
            self.interface.follow_move_later(&gid);
        }
        fate_of_end(has_moved, is_granted)
    }

    /// Returns whether a connection between `lids` may begin at the port as far as its LID is
    /// known.
    fn is_from_here(&self, lids: Lids) -> bool {
        let lid = self.lid.get();
        lids.may_begin_at(lid, |one, other| self.is_same_port(one, other))
    }

    /// Returns whether a connection between `lids` may begin at the port. The interface reads the
    /// port's LID some time after the subnet manager has set it; a peer or the subnet administrator
    /// may name the new one before. Sleeps.
    pub(super) fn may_begin_here(self: &Arc<Self>, lids: Lids) -> bool {
        let interface = &self.interface;
        self.lid.admits(
            |lid| lids.may_begin_at(lid, |one, other| self.is_same_port(one, other)),
            || {
                let _scope = WithoutIo::begin();
                let device = interface.link().rdma();
                Ok(device.infiniband_port(interface.port())?.lid)
            },
            || {
                self.close_from_elsewhere_soon();
                // Reads the LID after this: an old one does not stay if the two readers met.
                interface.kick();
            },
        )
    }

    /// Closes the connections that begin at other LIDs than the port has now: soon, as that
    /// sleeps.
    fn close_from_elsewhere_soon(self: &Arc<Self>) {
        let this = self.clone();
        // Without memory, they end by themselves.
        let _ = self
            .interface
            .searches
            .spawn(move || this.close_from_elsewhere());
    }

    /// Asks for the path to the port at `gid`, and closes the connections that it shows to be
    /// wrong: soon, as that sleeps. Any context.
    fn verify(self: &Arc<Self>, gid: Gid) {
        let this = self.clone();
        // Without memory, the connections end by themselves.
        let _ = self.interface.connects.spawn(move || {
            let interface = &this.interface;
            // The shared path is forgotten by that: the subnet administrator is asked.
            interface.invalidate_destination(&gid);
            if let Ok(path) = interface.link().path_record(interface, gid) {
                this.close_to_elsewhere(&gid, path.dlid() as u16);
            }
        });
    }
}

/// Returns the consequence of a DREQ for the next connection: whether the peer has moved, and
/// whether the query for its path was within the budget.
fn fate_of_end(has_moved: bool, is_granted: bool) -> Fate {
    if has_moved && !is_granted {
        Fate::Failed
    } else {
        Fate::Over
    }
}

impl Interface {
    /// Closes the connections that begin at an old LID of the port, which has `lid`, if that is
    /// another one than before: soon, as that sleeps.
    pub(in crate::ipoib) fn follow_lid(&self, rtnl: &mut Rtnl, lid: u16) {
        let Some(session) = self.session(rtnl) else {
            return;
        };
        if session.lid.update(lid) {
            session.close_from_elsewhere_soon();
        }
    }

    /// Closes the connections to the port at `gid` that its new path shows to be wrong. If none is
    /// known any more, those that the peer has not answered: a request would be repeated for up to
    /// a minute more.
    pub(in crate::ipoib) fn path_changed(self: &Arc<Self>, gid: Gid) {
        if self.mode() == Mode::Datagram {
            return;
        }
        let this = self.clone();
        // Without memory, they end by themselves.
        let _ = self.searches.spawn(move || {
            let Some(session) = this.session_of_queues() else {
                return;
            };
            let destinations = this.destinations.lock();
            let lid = destinations.handle(&gid).map(|handle| handle.lid());
            drop(destinations);
            if let Some(lid) = lid {
                return session.close_to_elsewhere(&gid, lid);
            }
            while let Some(connection) = session.find_outbound(|connection| {
                connection.gid() == gid && !connection.is_accepted() && connection.leaving.begin()
            }) {
                connection.close_as(Fate::Postponed);
            }
        });
    }
}

#[kernel::prelude::kunit_tests(oxib_connected_lids)]
mod tests {
    use super::*;

    /// Ports with two LIDs each.
    fn is_same_port(one: u16, other: u16) -> bool {
        (one ^ other) >> 1 == 0
    }

    #[test]
    fn connections_end_with_the_lids_that_they_are_between() {
        let lids = Lids::new(4, 8);
        for (lid, begins, leads) in [
            (4, true, false),
            (5, true, false),
            (6, false, false),
            (8, false, true),
            (9, false, true),
            (10, false, false),
            // The port has none at the moment.
            (0, true, true),
        ] {
            assert_eq!(lids.may_begin_at(lid, is_same_port), begins);
            assert_eq!(lids.may_lead_to(lid, is_same_port), leads);
        }
    }

    #[test]
    fn a_lid_is_read_before_a_connection_is_refused_for_it() {
        for (known, read, wanted, is_admitted, has_changed) in [
            // Not read.
            (4, Err(EIO), 4, true, false),
            (4, Err(EIO), 5, true, false),
            (0, Err(EIO), 4, true, false),
            // The subnet manager has just given the port another LID.
            (4, Ok(8), 8, true, true),
            (4, Ok(8), 9, true, true),
            // The connection is from an old one, or from one of another port.
            (8, Ok(8), 4, false, false),
            (4, Ok(8), 6, false, true),
            (4, Err(EIO), 8, false, false),
        ] {
            let lid = KnownLid::new(known);
            let mut is_told = false;
            let may_begin_at = |lid| Lids::new(wanted, 2).may_begin_at(lid, is_same_port);
            let admitted = lid.admits(may_begin_at, || read, || is_told = true);
            assert_eq!(admitted, is_admitted);
            assert_eq!(is_told, has_changed);
            assert_eq!(lid.get(), if has_changed { 8 } else { known });
        }
    }

    #[test]
    fn unknown_lids_are_never_wrong() {
        let permissive = Lid::PERMISSIVE.get();
        for lids in [Lids::UNKNOWN, Lids::new(permissive, permissive)] {
            assert!(lids.may_begin_at(7, is_same_port));
            assert!(lids.may_lead_to(7, is_same_port));
        }
        let lids = Lids::new(permissive, 8);
        assert!(lids.may_begin_at(7, is_same_port));
        assert!(!lids.may_lead_to(7, is_same_port));
    }

    #[test]
    fn peers_that_move_too_often_are_asked_later() {
        for (has_moved, is_granted, fate) in [
            (false, false, Fate::Over),
            (true, true, Fate::Over),
            (true, false, Fate::Failed),
        ] {
            assert_eq!(fate_of_end(has_moved, is_granted), fate);
        }
    }

    #[test]
    fn lids_fit_into_a_number() {
        let lids = Lids::new(0x1234, 0xbffe);
        assert_eq!(Lids::from_number(lids.number()), lids);
    }
}
