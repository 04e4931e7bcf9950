// SPDX-License-Identifier: GPL-2.0-only

//! Places in files, and complaints about them.

use std::fmt;

/// A line of one of the files of a [`Reading`](crate::Reading).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The number of the file, in the order they were added.
    pub(crate) file: u32,
    /// The number of the line, from 1 on.
    pub(crate) line: u32,
}

/// Something wrong, or worth a note, in a file. Written as `FILE:LINE: TEXT`, or `FILE: TEXT` if it
/// is about the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The file's name as it was given.
    pub file: String,
    /// The line, from 1 on.
    pub line: Option<u32>,
    /// A description of the mistake.
    pub text: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}
