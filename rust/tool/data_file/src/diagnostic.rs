// SPDX-License-Identifier: GPL-2.0-only

//! Locations in files, and diagnostics about them.

use std::fmt;

/// A line of one of the files of a [`FileSet`](crate::FileSet).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    /// The index of the file, in the order in which they were added.
    pub(crate) file: u32,
    /// The number of the line, starting at 1.
    pub(crate) line: u32,
}

/// An error in a file, or a note about it. Written as `FILE:LINE: TEXT`, or `FILE: TEXT` if it
/// concerns the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file's name as it was given.
    pub file: String,
    /// The number of the line, starting at 1; `None` for the file as a whole.
    pub line: Option<u32>,
    /// The text of the error or the note.
    pub text: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}
