// SPDX-License-Identifier: GPL-2.0-only

//! The errors of commands, with messages for the user.

use crate::netlink::refusal::Refusal;
use oxib_data_file::Diagnostic;
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// The reason why a command failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The command line is wrong.
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
    /// The cache does not resolve an address; the steps have been printed. ARP or neighbour
    /// discovery may still find it.
    #[error("{0} is not resolved by the cache: {1}")]
    Unresolved(std::net::IpAddr, String),
    /// The files of a load have errors.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<Diagnostic>),
    /// A directory without a data file.
    #[error(
        "the directory {0} has no file that ends in .data; `oxib acm flush source file` deletes \
         what files brought"
    )]
    NoFile(String),
    /// The files are blank, and were to replace all entries of earlier loads.
    #[error(
        "nothing was read that could replace what earlier loads brought: the cache is as it was; \
         `oxib acm flush source file` deletes what files brought"
    )]
    NothingRead,
    /// The namespace has no interface to choose.
    #[error(
        "no interface of oxib is up on an InfiniBand port in this network namespace; `ip link show \
         type ipoib` lists interfaces"
    )]
    NoInterface,
    /// The subnet administrator did not answer the queries for so many paths.
    #[error(
        "the subnet administrator did not answer for {0} paths, or the interface is down: try \
         again"
    )]
    Unanswered(usize),
    /// The subnet administrator gives none of so many paths.
    #[error(
        "the subnet administrator gives none of {0} paths: `sminfo` shows whether there is a \
         subnet manager"
    )]
    NoPath(usize),
    /// No attempt to read the whole cache was consistent.
    #[error("the cache changes faster than it is read: nothing was saved, try again")]
    Inconsistent,
    /// The family was removed while the command waited for its notifications.
    #[error("oxib was unloaded: no more changes are announced")]
    Unloaded,
    /// Writing to the standard output failed.
    #[error("writing to the standard output: {}", message(.0))]
    Output(#[source] io::Error),
    /// A failure of the operating system.
    #[error("{what}: {}", message(source))]
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

    /// Returns whether it is a failure of the operating system with the error `errno`.
    pub fn has_errno(&self, errno: Errno) -> bool {
        let number = Some(errno.raw_os_error());
        matches!(self, Error::System { source, .. } if source.raw_os_error() == number)
    }

    /// Returns whether the reader of the standard output has closed it. Any other pipe was named by
    /// the user, who wants all of the output: its end is a failure.
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

/// Returns the system's message for an error, without the error number that Rust appends.
pub fn message(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the system's error of that number.
    fn failure(errno: Errno) -> io::Error {
        errno.into()
    }

    #[test]
    fn only_the_standard_output_is_a_closed_pipe() {
        assert!(Error::Output(failure(Errno::PIPE)).is_closed_pipe());
        assert!(!Error::Output(failure(Errno::NOSPC)).is_closed_pipe());
        let other = Error::system("writing /tmp/pipe")(failure(Errno::PIPE));
        assert!(!other.is_closed_pipe());
        assert_eq!(other.to_string(), "writing /tmp/pipe: Broken pipe");
    }

    #[test]
    fn a_full_disk_is_reported() {
        assert_eq!(
            Error::Output(failure(Errno::NOSPC)).to_string(),
            "writing to the standard output: No space left on device"
        );
    }
}
