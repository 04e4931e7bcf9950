// SPDX-License-Identifier: GPL-2.0-only

//! Detection of an unload that a listening socket was not notified of.
//!
//! The controller announces the removal of the family once, and the kernel then removes the socket
//! from the family's multicast group: a socket that missed the announcement would wait for ever.
//! The announcement is missed if it is sent before the socket joins the group, or while the receive
//! queue is full. After an overrun the kernel queues nothing more until all queued messages have
//! been read, even if ENOBUFS was returned long before. The socket is therefore drained without
//! blocking, and the family is then looked up. Any later removal is announced, or causes another
//! overrun.

use crate::error::{
    Error,
    Result, //
};
use rustix::{
    io::Errno,
    net::RecvFlags, //
};

/// Whether the family has to be looked up before the socket may block.
#[derive(Debug)]
pub struct FamilyCheck {
    is_due: bool,
}

/// The outcome of an attempt to receive.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<T> {
    /// Messages were received.
    Messages(T),
    /// The receive queue was full, and messages were lost.
    Overrun,
    /// The receive queue is empty, and the caller has to look the family up.
    Drained,
}

impl FamilyCheck {
    /// Creates the state of a new socket. A check is due: the family may be removed before the
    /// socket joins the group.
    pub fn new() -> FamilyCheck {
        FamilyCheck { is_due: true }
    }

    /// Returns the flags with which to receive: the socket does not block while a check is due.
    pub fn receive_flags(&self) -> RecvFlags {
        if self.is_due {
            RecvFlags::DONTWAIT
        } else {
            RecvFlags::empty()
        }
    }

    /// Classifies the result of an attempt to receive. An overrun makes a check due;
    /// [`Received::Drained`] makes the caller carry it out.
    pub fn record<T>(&mut self, result: Result<T>) -> Result<Received<T>> {
        match result {
            Ok(messages) => Ok(Received::Messages(messages)),
            Err(error) if error.has_errno(Errno::NOBUFS) => {
                self.is_due = true;
                Ok(Received::Overrun)
            }
            Err(error) if error.has_errno(Errno::AGAIN) => {
                self.is_due = false;
                Ok(Received::Drained)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks that the family still has the ID `expected`, given the outcome of a new look-up.
///
/// # Errors
///
/// [`Error::Unloaded`] if the family is gone, even if a new one was registered under its name.
pub fn verify_family_id(expected: u16, found: Result<u16>) -> Result {
    match found {
        Ok(id) if id == expected => Ok(()),
        Ok(_) | Err(Error::NotLoaded) => Err(Error::Unloaded),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the failure of an attempt to receive.
    fn failure(errno: Errno) -> Result<u32> {
        Err(Error::system("receiving")(errno.into()))
    }

    #[test]
    fn the_family_is_looked_up_before_the_first_wait() {
        let mut check = FamilyCheck::new();
        assert_eq!(check.receive_flags(), RecvFlags::DONTWAIT);
        assert_eq!(
            check.record(failure(Errno::AGAIN)).unwrap(),
            Received::Drained
        );
        assert_eq!(check.receive_flags(), RecvFlags::empty());
    }

    #[test]
    fn after_an_overrun_the_family_is_looked_up_once_all_is_read() {
        let mut check = FamilyCheck { is_due: false };
        assert_eq!(check.record(Ok(1)).unwrap(), Received::Messages(1));
        assert_eq!(check.receive_flags(), RecvFlags::empty());
        assert_eq!(
            check.record(failure(Errno::NOBUFS)).unwrap(),
            Received::Overrun
        );
        for waiting in [2, 3] {
            assert_eq!(check.receive_flags(), RecvFlags::DONTWAIT);
            assert_eq!(
                check.record(Ok(waiting)).unwrap(),
                Received::Messages(waiting)
            );
        }
        assert_eq!(check.receive_flags(), RecvFlags::DONTWAIT);
        assert_eq!(
            check.record(failure(Errno::AGAIN)).unwrap(),
            Received::Drained
        );
        assert_eq!(check.receive_flags(), RecvFlags::empty());
    }

    #[test]
    fn other_failures_are_returned() {
        for before in [false, true] {
            let mut check = FamilyCheck { is_due: before };
            let error = check.record(failure(Errno::NOMEM)).unwrap_err();
            assert!(error.has_errno(Errno::NOMEM), "{error}");
            assert_eq!(check.is_due, before);
        }
    }

    #[test]
    fn another_family_of_that_name_is_not_the_same() {
        assert!(verify_family_id(30, Ok(30)).is_ok());
        for found in [Ok(31), Err(Error::NotLoaded)] {
            assert!(matches!(verify_family_id(30, found), Err(Error::Unloaded)));
        }
        let failed = Err(Error::Answer("the family has no number".to_owned()));
        assert!(matches!(
            verify_family_id(30, failed),
            Err(Error::Answer(_))
        ));
    }
}
