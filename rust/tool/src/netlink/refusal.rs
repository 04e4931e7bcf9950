// SPDX-License-Identifier: GPL-2.0-only

//! Why the kernel refused a request: an error number, and what its extended acknowledgement adds.

use crate::{
    error,
    netlink::{
        attribute::Attributes,
        family::Names, //
    }, //
};
use rustix::io::Errno;
use std::{
    fmt,
    io, //
};

/// A text for people.
const MSG: u16 = 1;
/// The offset of the attribute at fault in the request.
const OFFS: u16 = 2;
/// The kind of an attribute that is missing.
const MISS_TYPE: u16 = 5;

/// Bytes of a request before its attributes: netlink's header and generic netlink's.
const BEFORE_ATTRIBUTES: usize = 20;

/// The advice for each error.
const ADVICE: &[(Errno, &str)] = &[
    (
        Errno::PERM,
        "changes need CAP_NET_ADMIN in this network namespace: run it as root",
    ),
    (
        Errno::OPNOTSUPP,
        "the module and this command may be of different versions",
    ),
    (Errno::EXIST, "there is one already: use `replace`"),
    (Errno::NOENT, "there is none"),
    (Errno::NOMEM, "the kernel has no memory for it"),
    (
        Errno::NOSPC,
        "the cache is full: see the module parameter acm_entries",
    ),
];

/// Errors with which that is said besides the kernel's own words.
const ALWAYS: &[Errno] = &[Errno::PERM];

/// The kernel's words about a request that it refused, or carried out with a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The error's number, positive; 0 for a note about something that was done.
    pub errno: i32,
    /// The kernel's own words.
    pub text: Option<String>,
    /// The attribute at fault.
    pub attribute: Option<String>,
    /// The attribute that should have been there.
    pub missing: Option<String>,
}

/// Returns an attribute's name, or its number.
fn name_of(kind: u16, names: Names) -> String {
    names.iter().find(|(known, _)| *known == kind).map_or_else(
        || format!("attribute {kind}"),
        |(_, name)| (*name).to_owned(),
    )
}

/// The kind of the attribute that begins at an offset in a request, or that has it inside.
fn kind_at(request: &[u8], offset: usize) -> Option<u16> {
    let mut at = BEFORE_ATTRIBUTES;
    while let Some(&[l0, l1, k0, k1]) = request.get(at..at + 4) {
        let length = usize::from(u16::from_ne_bytes([l0, l1])).max(4);
        if (at..at + length).contains(&offset) {
            return Some(u16::from_ne_bytes([k0, k1]) & 0x3fff);
        }
        at += length.next_multiple_of(4);
    }
    None
}

impl Refusal {
    /// Reads the attributes of an acknowledgement of `request`.
    pub fn new(errno: i32, extended: &[u8], request: &[u8], names: Names) -> Refusal {
        let said = Attributes::new(extended);
        let offset = said.u32(OFFS).ok().flatten();
        Refusal {
            errno,
            text: said.text(MSG).ok().flatten(),
            attribute: offset
                .and_then(|offset| kind_at(request, offset as usize))
                .map(|kind| name_of(kind, names)),
            missing: said
                .u32(MISS_TYPE)
                .ok()
                .flatten()
                .map(|kind| name_of(kind as u16, names)),
        }
    }

    /// Returns whether it is that error.
    pub fn is(&self, errno: Errno) -> bool {
        self.errno == errno.raw_os_error()
    }

    /// Returns the advice, where it does not follow from the kernel's words.
    fn advice(&self) -> Option<&'static str> {
        let said = self.text.is_some() || self.missing.is_some();
        ADVICE
            .iter()
            .find(|(errno, _)| self.is(*errno))
            .filter(|(errno, _)| !said || ALWAYS.contains(errno))
            .map(|(_, advice)| *advice)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text, &self.missing) {
            (Some(text), _) => f.write_str(text)?,
            (None, Some(name)) => write!(f, "{name} is missing")?,
            (None, None) => f.write_str(&error_text(self.errno))?,
        }
        match (&self.missing, &self.text) {
            (Some(name), Some(text)) if !text.contains(name) => write!(f, " (missing: {name})")?,
            _ => {}
        }
        if let Some(name) = &self.attribute {
            write!(f, " (in: {name})")?;
        }
        if self.text.is_some() && self.errno != 0 {
            write!(f, " [{}]", error_text(self.errno))?;
        }
        if let Some(advice) = self.advice() {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// The system's words for an error's number.
fn error_text(errno: i32) -> String {
    error::words(&io::Error::from_raw_os_error(errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{
        attribute::Request,
        family::{
            entry,
            ENTRY_NAMES, //
        },
    };

    /// A request with an address and a GID, behind the headers.
    fn request() -> Vec<u8> {
        let attributes = Request::new()
            .address(entry::ADDRESS, "10.0.0.1".parse().unwrap())
            .bytes(entry::GID, vec![0; 16]);
        [vec![0; BEFORE_ATTRIBUTES], attributes.emitted()].concat()
    }

    #[test]
    fn the_attribute_at_fault_is_named() {
        for (offset, wanted) in [
            (20, Some("address")),
            (28, Some("gid")),
            (32, Some("gid")),
            (48, None),
            (0, None),
        ] {
            let extended = Request::new()
                .bytes(MSG, b"it is zero\0".to_vec())
                .u32(OFFS, offset)
                .emitted();
            let refusal = Refusal::new(22, &extended, &request(), ENTRY_NAMES);
            assert_eq!(refusal.attribute.as_deref(), wanted, "{offset}");
        }
    }

    #[test]
    fn words() {
        let table: &[(i32, Request, &str)] = &[
            (22, Request::new(), "Invalid argument"),
            (
                22,
                Request::new()
                    .bytes(MSG, b"the GID is zero\0".to_vec())
                    .u32(OFFS, 28),
                "the GID is zero (in: gid) [Invalid argument]",
            ),
            (22, Request::new().u32(MISS_TYPE, 2), "gid is missing"),
            (
                22,
                Request::new()
                    .bytes(MSG, b"attribute is required\0".to_vec())
                    .u32(MISS_TYPE, 2),
                "attribute is required (missing: gid) [Invalid argument]",
            ),
            (
                22,
                Request::new().u32(MISS_TYPE, 77),
                "attribute 77 is missing",
            ),
            (
                17,
                Request::new(),
                "File exists; there is one already: use `replace`",
            ),
            (
                1,
                Request::new(),
                "Operation not permitted; changes need CAP_NET_ADMIN in this network namespace: \
                 run it as root",
            ),
            (
                0,
                Request::new().bytes(MSG, b"it stays here\0".to_vec()),
                "it stays here",
            ),
        ];
        for (errno, said, wanted) in table {
            let refusal = Refusal::new(*errno, &said.emitted(), &request(), ENTRY_NAMES);
            assert_eq!(refusal.to_string(), *wanted);
        }
    }
}
