// SPDX-License-Identifier: GPL-2.0-only

//! The steps of building that all messages have in common.

use core::fmt;

use super::super::mad;
use super::super::mad::{
    Header,
    Subject, //
};
use super::kind::Kind;
use super::{
    CLASS_VERSION,
    INFORMATION_LEN, //
};

impl Kind {
    /// Begins a message of this kind: its header, and zeros.
    pub(super) fn begin<'a>(
        self,
        out: impl Into<mad::Blank<'a>>,
        tid: u64,
        modifier: u32,
    ) -> &'a mut [u8; mad::LEN] {
        let mad: &mut mad::Mad = zerocopy::transmute_mut!(out.into().into_bytes());
        *mad.header_mut() = Header::new(Subject {
            class: mad::CLASS_CM,
            class_version: CLASS_VERSION,
            method: mad::METHOD_SEND,
            tid,
            attribute: self.get(),
            modifier,
        });
        zerocopy::transmute_mut!(mad)
    }

    /// Refuses private data that the message has no room for.
    pub(super) fn check_private_data(self, bytes: &[u8]) -> Result<(), BuildError> {
        if bytes.len() > self.private_data_len() {
            return Err(BuildError::PrivateData {
                kind: self,
                length: bytes.len(),
            });
        }
        Ok(())
    }

    /// The length of additional information as the message says it; refuses what it has no room
    /// for.
    pub(super) fn check_information(self, bytes: &[u8]) -> Result<u8, BuildError> {
        u8::try_from(bytes.len())
            .ok()
            .filter(|length| usize::from(*length) <= INFORMATION_LEN)
            .ok_or(BuildError::Information {
                kind: self,
                length: bytes.len(),
            })
    }
}

/// Puts bytes that were found to fit at the beginning of a field.
pub(super) fn place(bytes: &[u8], field: &mut [u8]) {
    if let Some(start) = field.get_mut(..bytes.len()) {
        start.copy_from_slice(bytes);
    }
}

/// Why a message cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuildError {
    /// There is more private data than the message has room for.
    PrivateData {
        /// The kind of the message.
        kind: Kind,
        /// The number of bytes that were given.
        length: usize,
    },
    /// There is more additional information than the message has room for.
    Information {
        /// The kind of the message.
        kind: Kind,
        /// The number of bytes that were given.
        length: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::PrivateData { kind, length } => write!(
                f,
                "{length} bytes of private data, where a {kind} has room for {}",
                kind.private_data_len()
            ),
            BuildError::Information { kind, length } => write!(
                f,
                "{length} bytes of additional information, where a {kind} has room for \
                 {INFORMATION_LEN}"
            ),
        }
    }
}

impl core::error::Error for BuildError {}
