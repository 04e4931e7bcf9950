// SPDX-License-Identifier: GPL-2.0-only

//! Changes that a call has made, for the shell to report to others.

/// A set of changes at a port.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Changes(u16);

impl Changes {
    /// The set without changes.
    pub const NONE: Changes = Changes(0);
    /// The port has become active or stopped being so, or has come nearer to it.
    pub const STATE: Changes = Changes(1 << 0);
    /// Its local identifier, or how many it has.
    pub const LID: Changes = Changes(1 << 1);
    /// The port's P_Key table.
    pub const PKEY: Changes = Changes(1 << 2);
    /// The port's GIDs: their prefix, or the table of GUIDs.
    pub const GID: Changes = Changes(1 << 3);
    /// The LID or the service level of the subnet manager.
    pub const SM: Changes = Changes(1 << 4);
    /// The subnet manager has lost what consumers had registered.
    pub const REREGISTER: Changes = Changes(1 << 5);
    /// A trap is due: the node is to be polled.
    pub const TRAP: Changes = Changes(1 << 6);

    /// Returns whether all of those are among these.
    pub const fn contains(self, other: Changes) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether nothing has changed.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns the union of both sets.
    pub const fn and(self, other: Changes) -> Changes {
        Changes(self.0 | other.0)
    }

    /// Returns this set if `so` holds, otherwise the empty one.
    pub const fn when(self, so: bool) -> Changes {
        if so {
            self
        } else {
            Changes::NONE
        }
    }
}

/// A command of a subnet manager to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkCommand {
    /// Go down, and up again without another command: the far end has to see it.
    Down,
    /// Go down, and stay down until another command.
    Disable,
    /// Come up again if possible.
    Enable,
}

/// Changes that a call has made at a port.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Events {
    /// The number of the port; 0 is a switch's own.
    pub port: u8,
    /// The set of these changes.
    pub changes: Changes,
    /// The command to the port's link, if there is one. After it is done and when the link
    /// carries packets again, the shell tells the node ([`super::Node::carrier`]).
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

    /// Adds changes to those of the call.
    pub const fn and(self, changes: Changes) -> Events {
        Events {
            changes: self.changes.and(changes),
            ..self
        }
    }
}
