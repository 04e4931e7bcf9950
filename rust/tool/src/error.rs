// SPDX-License-Identifier: GPL-2.0-only

//! What can go wrong, in words for who typed the command.

use crate::netlink::refusal::Refusal;
use oxib_data_file::Complaint;
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
    #[error("the kernel's answer is not understood ({0}): this oxib and the module may be of different versions")]
    Answer(String),
    /// The resolution of an address failed; what is known has been printed.
    #[error("{0} cannot be reached: {1}")]
    Unresolved(std::net::IpAddr, String),
    /// Files with mistakes in them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<Complaint>),
    /// Something of the operating system.
    #[error("{what}: {source}")]
    System {
        /// What was to be done, and with what.
        what: String,
        /// Why it could not be.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was to be done when the error came.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        |source| Error::System {
            what: what.into(),
            source,
        }
    }

    /// Whether who reads our output has gone.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::System { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<netlink_packet_core::DecodeError> for Error {
    fn from(error: netlink_packet_core::DecodeError) -> Error {
        Error::Answer(error.to_string())
    }
}

/// The result of a command, or of a part of one.
pub type Result<T = ()> = std::result::Result<T, Error>;
