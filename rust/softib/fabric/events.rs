// SPDX-License-Identifier: GPL-2.0-only

//! What a call has changed that others want to know of.

/// What has changed at a port: a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Changes(u16);

impl Changes {
    /// Nothing.
    pub const NONE: Changes = Changes(0);
    /// The port has become active or stopped being so, or has come nearer to it.
    pub const STATE: Changes = Changes(1 << 0);
    /// Its local identifier, or how many it has.
    pub const LID: Changes = Changes(1 << 1);
    /// Its P_Key table.
    pub const PKEY: Changes = Changes(1 << 2);
    /// Its GIDs.
    pub const GID: Changes = Changes(1 << 3);
    /// Where the subnet manager is.
    pub const SM: Changes = Changes(1 << 4);
    /// The subnet manager has lost what consumers had registered.
    pub const REREGISTER: Changes = Changes(1 << 5);
    /// A trap is due: the node is to be polled.
    pub const TRAP: Changes = Changes(1 << 6);

    /// Whether all of those are among these.
    pub const fn contains(self, other: Changes) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing has changed.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Both.
    pub const fn and(self, other: Changes) -> Changes {
        Changes(self.0 | other.0)
    }

    /// These, if so.
    pub const fn when(self, so: bool) -> Changes {
        if so {
            self
        } else {
            Changes::NONE
        }
    }
}

/// What a subnet manager wants of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkCommand {
    /// To go down, and up again by itself: the far end has to see it.
    Down,
    /// To go down and stay so.
    Disable,
    /// To come up again if it can.
    Enable,
}

/// What a call has changed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Events {
    /// At which port; 0 is a switch's own.
    pub port: u8,
    /// What.
    pub changes: Changes,
    /// What is to be done to its link. When that is done and the link carries packets again, the
    /// node is to be told ([`super::Node::carrier`]).
    pub link: Option<LinkCommand>,
}

impl Events {
    /// Changes at a port.
    pub const fn new(port: u8, changes: Changes) -> Events {
        Events {
            port,
            changes,
            link: None,
        }
    }

    /// With these changes as well.
    pub const fn and(self, changes: Changes) -> Events {
        Events {
            changes: self.changes.and(changes),
            ..self
        }
    }
}
