// SPDX-License-Identifier: GPL-2.0-only

//! Doubt whether a socket that listens to the family would hear of its end.
//!
//! The controller announces the end of the family once, and the kernel takes the socket out of the
//! family's group: a socket that missed the announcement would wait for ever. It misses it before
//! it listens, and while it is full. Once full it is given nothing until all that waits was read,
//! also when the loss was told long before that. So the family is asked for when nothing waits any
//! more. What is announced from then on is heard, or is told as another loss.

use crate::error::{
    Error,
    Result, //
};
use rustix::{
    io::Errno,
    net::RecvFlags, //
};

/// Whether the family may have ended without the socket having heard of it.
#[derive(Debug)]
pub struct Doubt(bool);

/// The outcome of listening.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// Messages were received.
    Messages(T),
    /// Messages were lost.
    Loss,
    /// Nothing waits to be received, and the family has to be asked for.
    Nothing,
}

impl Doubt {
    /// Creates the doubt of a socket that does not listen yet.
    pub fn new() -> Doubt {
        Doubt(true)
    }

    /// Returns the flags with which to receive: as long as there is doubt, nothing is waited for.
    pub fn flags(&self) -> RecvFlags {
        if self.0 {
            RecvFlags::DONTWAIT
        } else {
            RecvFlags::empty()
        }
    }

    /// Tells what an attempt to receive means. The doubt ends where the family has to be asked for.
    pub fn hear<T>(&mut self, received: Result<T>) -> Result<Heard<T>> {
        match received {
            Ok(messages) => Ok(Heard::Messages(messages)),
            Err(error) if error.is_of_system(Errno::NOBUFS) => {
                self.0 = true;
                Ok(Heard::Loss)
            }
            Err(error) if error.is_of_system(Errno::AGAIN) => {
                self.0 = false;
                Ok(Heard::Nothing)
            }
            Err(error) => Err(error),
        }
    }
}

/// Compares the family's number with what was found when it was asked for again.
///
/// # Errors
///
/// [`Error::Unloaded`] if the family has gone, even if another one of its name is there.
pub fn verify_number(family: u16, found: Result<u16>) -> Result {
    match found {
        Ok(number) if number == family => Ok(()),
        Ok(_) | Err(Error::NotLoaded) => Err(Error::Unloaded),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what receiving fails with, by its number.
    fn failure(errno: Errno) -> Result<u32> {
        Err(Error::system("receiving")(errno.into()))
    }

    #[test]
    fn the_family_is_asked_for_before_the_first_wait() {
        let mut doubt = Doubt::new();
        assert_eq!(doubt.flags(), RecvFlags::DONTWAIT);
        assert_eq!(doubt.hear(failure(Errno::AGAIN)).unwrap(), Heard::Nothing);
        assert_eq!(doubt.flags(), RecvFlags::empty());
    }

    #[test]
    fn after_a_loss_it_is_asked_for_when_all_was_read() {
        let mut doubt = Doubt(false);
        assert_eq!(doubt.hear(Ok(1)).unwrap(), Heard::Messages(1));
        assert_eq!(doubt.flags(), RecvFlags::empty());
        assert_eq!(doubt.hear(failure(Errno::NOBUFS)).unwrap(), Heard::Loss);
        for waiting in [2, 3] {
            assert_eq!(doubt.flags(), RecvFlags::DONTWAIT);
            assert_eq!(doubt.hear(Ok(waiting)).unwrap(), Heard::Messages(waiting));
        }
        assert_eq!(doubt.flags(), RecvFlags::DONTWAIT);
        assert_eq!(doubt.hear(failure(Errno::AGAIN)).unwrap(), Heard::Nothing);
        assert_eq!(doubt.flags(), RecvFlags::empty());
    }

    #[test]
    fn other_failures_are_told() {
        for begin in [false, true] {
            let mut doubt = Doubt(begin);
            let error = doubt.hear(failure(Errno::NOMEM)).unwrap_err();
            assert!(error.is_of_system(Errno::NOMEM), "{error}");
            assert_eq!(doubt.0, begin);
        }
    }

    #[test]
    fn another_family_of_that_name_is_not_the_same() {
        assert!(verify_number(30, Ok(30)).is_ok());
        for found in [Ok(31), Err(Error::NotLoaded)] {
            assert!(matches!(verify_number(30, found), Err(Error::Unloaded)));
        }
        let failed = Err(Error::Answer("the family has no number".to_owned()));
        assert!(matches!(verify_number(30, failed), Err(Error::Answer(_))));
    }
}
