// SPDX-License-Identifier: GPL-2.0-only

//! The errors of commands, in words for the user that typed them.

use crate::netlink::refusal::Refusal;
use oxib_data_file::Complaint;
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The words make no command.
    #[error("{0}")]
    Usage(String),
    /// The kernel has no family of that name.
    #[error(
        "the kernel does not know the address cache: oxib is not loaded, or is one without it; \
         load it with `modprobe oxib`, `dmesg` says why if that fails"
    )]
    NotLoaded,
    /// The kernel refused a request.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// The kernel's answer cannot be understood.
    #[error(
        "the kernel's answer is not understood ({0}): this oxib and the module may be of different \
         versions"
    )]
    Answer(String),
    /// The cache does not resolve an address; the steps have been printed. Neighbours may be
    /// found all the same.
    #[error("{0} is not resolved by the cache: {1}")]
    Unresolved(std::net::IpAddr, String),
    /// Files with mistakes in them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<Complaint>),
    /// A directory of files that has none.
    #[error(
        "the directory {0} has no file that ends in .data; `oxib acm flush source file` deletes \
         what files brought"
    )]
    NoFile(String),
    /// Files without a line in them, in place of all that earlier loads brought.
    #[error(
        "nothing was read that could replace what earlier loads brought: the cache is as it was; \
         `oxib acm flush source file` deletes what files brought"
    )]
    NothingRead,
    /// The namespace has no interface that could be meant.
    #[error(
        "no interface of oxib is up on an InfiniBand port in this network namespace: `ip link show \
         type ipoib`"
    )]
    NoInterface,
    /// The subnet administrator was silent when it was asked for so many paths.
    #[error(
        "the subnet administrator did not answer for {0} paths, or the interface is down: try \
         again"
    )]
    Unanswered(usize),
    /// The cache changed again and again while it was read to be saved.
    #[error("the cache changes faster than it is read: nothing was saved, try again")]
    Unsteady,
    /// The family has gone while its announcements were waited for.
    #[error("oxib was unloaded: no more changes are announced")]
    Unloaded,
    /// The standard output takes no more.
    #[error("writing to the standard output: {}", words(.0))]
    Output(#[source] io::Error),
    /// A failure of the operating system.
    #[error("{what}: {}", words(source))]
    System {
        /// The action that failed, and its object.
        what: String,
        /// The reason of the failure.
        source: io::Error,
    },
}

impl Error {
    /// Returns a function for `map_err` that adds the action that failed.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        |source| Error::System {
            what: what.into(),
            source,
        }
    }

    /// Returns whether it is that failure of the operating system.
    pub fn is_of_system(&self, errno: Errno) -> bool {
        let number = Some(errno.raw_os_error());
        matches!(self, Error::System { source, .. } if source.raw_os_error() == number)
    }

    /// Returns whether the reader of the standard output has gone. Any other pipe is one that the
    /// user named, to have all of what is written.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<netlink_packet_core::DecodeError> for Error {
    fn from(error: netlink_packet_core::DecodeError) -> Error {
        Error::Answer(error.to_string())
    }
}

/// The result of a command, or of a part of one.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// The system's words for an error, without the number behind them.
pub fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a failure of the system's, by its number.
    fn failure(errno: Errno) -> io::Error {
        errno.into()
    }

    #[test]
    fn only_the_reader_of_the_standard_output_may_go() {
        assert!(Error::Output(failure(Errno::PIPE)).is_closed_pipe());
        assert!(!Error::Output(failure(Errno::NOSPC)).is_closed_pipe());
        let other = Error::system("writing /tmp/pipe")(failure(Errno::PIPE));
        assert!(!other.is_closed_pipe());
        assert_eq!(other.to_string(), "writing /tmp/pipe: Broken pipe");
    }

    #[test]
    fn a_full_disk_is_told() {
        assert_eq!(
            Error::Output(failure(Errno::NOSPC)).to_string(),
            "writing to the standard output: No space left on device"
        );
    }
}
