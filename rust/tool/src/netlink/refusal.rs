// SPDX-License-Identifier: GPL-2.0-only

//! The kernel's reason for refusing a request: an error number, and the extended acknowledgement
//! that explains it.

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

/// `NLMSGERR_ATTR_MSG`: a message for people.
const MSG: u16 = 1;
/// `NLMSGERR_ATTR_OFFS`: the offset in the request of the attribute at fault.
const OFFS: u16 = 2;
/// `NLMSGERR_ATTR_MISS_TYPE`: the type of a missing attribute.
const MISS_TYPE: u16 = 5;

/// The length of a request's headers in bytes: netlink's and generic netlink's.
const HEADERS_LEN: usize = 20;

/// The advice for each error, unless the kernel explains it.
const ADVICE: &[(Errno, &str)] = &[
    (
        Errno::PERM,
        "changes need CAP_NET_ADMIN in this network namespace: run it as root",
    ),
    (
        Errno::OPNOTSUPP,
        "the module and this command may be of different versions",
    ),
    (Errno::EXIST, "there is an entry already: use `replace`"),
    (Errno::NOENT, "there is no such entry"),
    (Errno::NOMEM, "the kernel has no memory for it"),
    (
        Errno::NOSPC,
        "the cache is full: see the module parameter acm_entries",
    ),
];

/// Errors whose advice is shown even if the kernel explains them.
const ALWAYS_ADVISED: &[Errno] = &[Errno::PERM];

/// An error number and its extended acknowledgement. A request that was carried out may have one,
/// too: a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The error number, positive; 0 for a note.
    pub errno: i32,
    /// The kernel's message.
    pub text: Option<String>,
    /// The name of the attribute at fault.
    pub attribute: Option<String>,
    /// The name of a mandatory attribute that the request lacks.
    pub missing: Option<String>,
}

/// Returns an attribute's name, or its number.
fn attribute_name(kind: u16, names: Names) -> String {
    names.iter().find(|(known, _)| *known == kind).map_or_else(
        || format!("attribute {kind}"),
        |(_, name)| (*name).to_owned(),
    )
}

/// Returns the type of the attribute of `request` that covers `offset`.
fn attribute_at(request: &[u8], offset: usize) -> Option<u16> {
    let mut at = HEADERS_LEN;
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
    /// Reads the attributes of the extended acknowledgement of `request`.
    pub fn new(errno: i32, extended_ack: &[u8], request: &[u8], names: Names) -> Refusal {
        let attributes = Attributes::new(extended_ack);
        let offset = attributes.u32(OFFS).ok().flatten();
        Refusal {
            errno,
            text: attributes.text(MSG).ok().flatten(),
            attribute: offset
                .and_then(|offset| attribute_at(request, offset as usize))
                .map(|kind| attribute_name(kind, names)),
            missing: attributes
                .u32(MISS_TYPE)
                .ok()
                .flatten()
                .map(|kind| attribute_name(kind as u16, names)),
        }
    }

    /// Returns whether the error is `errno`.
    pub fn has_errno(&self, errno: Errno) -> bool {
        self.errno == errno.raw_os_error()
    }

    /// Returns the advice for the error, unless the kernel's explanation makes it superfluous.
    fn advice(&self) -> Option<&'static str> {
        let is_explained = self.text.is_some() || self.missing.is_some();
        ADVICE
            .iter()
            .find(|(errno, _)| self.has_errno(*errno))
            .filter(|(errno, _)| !is_explained || ALWAYS_ADVISED.contains(errno))
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

/// Returns the system's message for an error number.
fn error_text(errno: i32) -> String {
    error::message(&io::Error::from_raw_os_error(errno))
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
        [vec![0; HEADERS_LEN], attributes.emitted()].concat()
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
            let extended_ack = Request::new()
                .bytes(MSG, b"it is zero\0".to_vec())
                .u32(OFFS, offset)
                .emitted();
            let refusal = Refusal::new(22, &extended_ack, &request(), ENTRY_NAMES);
            assert_eq!(refusal.attribute.as_deref(), wanted, "{offset}");
        }
    }

    #[test]
    fn refusals_are_written() {
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
                "File exists; there is an entry already: use `replace`",
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
        for (errno, extended_ack, wanted) in table {
            let refusal = Refusal::new(*errno, &extended_ack.emitted(), &request(), ENTRY_NAMES);
            assert_eq!(refusal.to_string(), *wanted);
        }
    }
}
