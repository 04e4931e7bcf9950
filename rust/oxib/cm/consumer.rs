// SPDX-License-Identifier: GPL-2.0-only

//! The users of identifiers: each is told what happens to its identifier.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    id::Id,
    machine::state::{
        LapState,
        StateName, //
    },
    notice::Notice, //
};
use crate::wire::{
    cm::{
        CommId,
        ServiceId, //
    },
    qpn::Qpn, //
};
/// The properties of an identifier that its consumer may see at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shown {
    /// The state of the machine.
    pub(crate) state: StateName,
    /// The state of path migration.
    pub(crate) lap: LapState,
    /// Our name for the connection.
    pub(crate) local: CommId,
    /// The peer's name for it; zero before we are told.
    pub(crate) remote: CommId,
    /// The service listened or asked for.
    pub(crate) service: ServiceId,
}

/// The user of an identifier.
pub(crate) trait Consumer: Send + Sync + 'static {
    /// Handles an event of an identifier. Called in process context, one notice at a time for
    /// each identifier.
    ///
    /// # Errors
    ///
    /// Any: the identifier is destroyed. After `ENOMEM` a REQ is not rejected.
    fn event(&self, id: &Arc<Id>, notice: &Notice) -> Result;

    /// The consumer of an identifier that is made for a request to this listener. One that does
    /// not listen is not asked.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn accept(&self) -> Result<Arc<dyn Consumer>> {
        Err(EINVAL)
    }

    /// Gives the consumer its identifier, one at a time. Called before anything else of that
    /// identifier, but for the first [`Consumer::show`].
    fn attach(&self, id: &Arc<Id>);

    /// Ends the identifier, so that its peer hears of that: the device is being removed, and
    /// messages still go out. Process context; the handler may be running in another thread.
    ///
    /// Does nothing by default: consumers in C lose the device before the connection manager does,
    /// and others have nothing to say.
    fn leave_device(&self) {}

    /// Takes the identifier, which has ended, from the consumer, which gets no event of it
    /// any more. Called once for each identifier, after everything else.
    fn detach(&self);

    /// Shows changed properties of the identifier to the consumer. Called with the identifier's
    /// lock held, and once before the consumer has it.
    fn show(&self, _shown: &Shown) {}

    /// Returns whether a listener of this consumer may also serve a consumer with the handler
    /// `handler`.
    fn is_shared_by(&self, _handler: usize) -> bool {
        false
    }

    /// The queue pair of the peer's connection manager: another one than that of general services
    /// if the peer has redirected the consumer there (reasons 24 and 25 of a REJ, IBTA 12.6.7.2).
    fn remote_manager(&self) -> Qpn {
        Qpn::GENERAL_SERVICES
    }

    /// The consumer, to be recognised by what made it.
    fn as_any(&self) -> &dyn core::any::Any;
}
