// SPDX-License-Identifier: GPL-2.0-only

//! The files of a load, which are parsed together.

use crate::{
    diagnostic::{
        Diagnostic,
        Location, //
    },
    entry::Entry,
    line::{
        parse,
        Host,
        Statement, //
    },
    resolver::{
        resolve_all,
        Resolver, //
    },
};
use std::{
    collections::HashMap,
    net::IpAddr, //
};

/// The number of bytes that are parsed between two calls of a progress function.
const PROGRESS_STEP: usize = 1 << 20;

/// The content of the files added so far, and the errors in them.
#[derive(Debug, Default)]
pub struct FileSet {
    /// The names of the files, by [`Location::file`].
    files: Vec<String>,
    /// The entries in the order of the files. Those of hosts' names are added by
    /// [`FileSet::resolve_names`].
    entries: Vec<LocatedEntry>,
    /// The entries of hosts' names that are not resolved yet, with the index into `names`.
    unresolved: Vec<(u32, LocatedEntry)>,
    /// The hosts' names, without repetition.
    names: Vec<String>,
    /// The index of each name in `names`.
    name_indices: HashMap<String, u32>,
    /// The errors in lines of the files.
    line_errors: Vec<(Location, String)>,
    /// The errors that concern files as a whole.
    file_errors: Vec<Diagnostic>,
    /// The locations of link-local GIDs.
    link_local: Vec<Location>,
    /// Whether a file is not blank; a comment is enough.
    has_text: bool,
}

/// An entry, and the line that it comes from.
#[derive(Clone, Copy, Debug)]
struct LocatedEntry {
    entry: Entry,
    location: Location,
    /// Whether the line has a name in place of the address.
    from_name: bool,
}

/// The placeholder for the address of an entry whose name is not resolved yet.
const UNRESOLVED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

impl FileSet {
    /// Creates an empty set.
    pub fn new() -> FileSet {
        FileSet::default()
    }

    /// Adds a file and parses all of it. `progress` is called with the number of bytes that were
    /// parsed since the last call.
    pub fn add(&mut self, file: &str, text: &[u8], mut progress: impl FnMut(usize)) {
        let index = self.add_file_name(file);
        self.has_text |= !text.trim_ascii().is_empty();
        let mut location = Location {
            file: index,
            line: 0,
        };
        let mut unreported = 0;
        for whole in text.split_inclusive(|byte| *byte == b'\n') {
            location.line = location.line.saturating_add(1);
            let line = whole.strip_suffix(b"\n").unwrap_or(whole);
            match parse(line) {
                Ok(None) => {}
                Ok(Some(statement)) => self.add_statement(&statement, location),
                Err(error) => self.line_errors.push((location, error.to_string())),
            }
            unreported += whole.len();
            if unreported >= PROGRESS_STEP {
                progress(unreported);
                unreported = 0;
            }
        }
        progress(unreported);
    }

    /// Adds the error of a file that could not be read.
    pub fn add_unreadable(&mut self, file: &str, reason: impl ToString) {
        self.file_errors.push(Diagnostic {
            file: file.to_owned(),
            line: None,
            text: reason.to_string(),
        });
    }

    /// Stores the name of a file, and returns its index.
    fn add_file_name(&mut self, file: &str) -> u32 {
        self.files.push(file.to_owned());
        u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
    }

    /// Stores the statement of a line.
    fn add_statement(&mut self, statement: &Statement<'_>, location: Location) {
        if statement.gid.is_link_local() {
            self.link_local.push(location);
        }
        let located = |address, from_name| LocatedEntry {
            entry: Entry {
                address,
                gid: statement.gid,
                qpn: statement.qpn,
                pkey: statement.pkey,
                lifetime: statement.lifetime,
            },
            location,
            from_name,
        };
        match statement.host {
            Host::Address(address) => self.entries.push(located(address, false)),
            Host::Name(name) => {
                let index = self.name_index(name);
                self.unresolved.push((index, located(UNRESOLVED, true)));
            }
        }
    }

    /// Returns the index of a host's name, which is stored the first time.
    fn name_index(&mut self, name: &str) -> u32 {
        // DNS names are case-insensitive (RFC 4343).
        let name = name.to_ascii_lowercase();
        if let Some(index) = self.name_indices.get(&name) {
            return *index;
        }
        let index = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.name_indices.insert(name, index);
        index
    }

    /// Returns the number of names to be resolved.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// Returns whether all files are blank, without even a comment.
    pub fn is_blank(&self) -> bool {
        !self.has_text
    }

    /// Returns notes about link-local GIDs (fe80::/64): they are valid, but useless across routers.
    pub fn notes(&self) -> Vec<Diagnostic> {
        let text =
            "a GID of fe80::/64 does not leave its subnet: no node behind a router has this one";
        self.link_local
            .iter()
            .map(|location| self.diagnostic(*location, text.to_owned()))
            .collect()
    }

    /// Resolves the names and checks for duplicate addresses. `step` is called after each name.
    ///
    /// Returns the entries in the order of the files, or all errors in any of them.
    pub fn finish(
        mut self,
        resolver: &impl Resolver,
        step: impl Fn() + Sync,
    ) -> Result<Vec<Entry>, Vec<Diagnostic>> {
        self.resolve_names(resolver, step);
        self.check_duplicates();
        if self.line_errors.is_empty() && self.file_errors.is_empty() {
            return Ok(self.entries.iter().map(|located| located.entry).collect());
        }
        self.line_errors.sort_by_key(|(location, _)| *location);
        let mut all = std::mem::take(&mut self.file_errors);
        all.extend(
            self.line_errors
                .iter()
                .map(|(location, text)| self.diagnostic(*location, text.clone())),
        );
        Err(all)
    }

    /// Resolves the hosts' names, and adds an entry for each of their addresses.
    fn resolve_names(&mut self, resolver: &impl Resolver, step: impl Fn() + Sync) {
        if self.unresolved.is_empty() {
            return;
        }
        let results = resolve_all(&self.names, resolver, step);
        for (index, located) in std::mem::take(&mut self.unresolved) {
            let name = self.names.get(index as usize);
            match name.and_then(|name| results.get(name)) {
                Some(Ok(addresses)) => self.entries.extend(addresses.iter().map(|address| {
                    let mut located = located;
                    located.entry.address = *address;
                    located
                })),
                Some(Err(reason)) => self.line_errors.push((located.location, reason.clone())),
                None => {}
            }
        }
        self.entries.sort_by_key(|located| located.location);
    }

    /// Reports addresses that have more than one entry.
    ///
    /// A host may have a line for its address and one for its name, as in ibacm's files: an entry
    /// from a name that equals another entry is dropped without an error.
    fn check_duplicates(&mut self) {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        let entries = &self.entries;
        let address = |index: u32| {
            entries
                .get(index as usize)
                .map(|located| located.entry.address)
        };
        order.sort_unstable_by_key(|index| (address(*index), *index));
        let mut repeated = Vec::new();
        let mut conflicts = Vec::new();
        for same in order.chunk_by(|one, other| address(*one) == address(*other)) {
            let [first, rest @ ..] = same else { continue };
            let Some(first) = entries.get(*first as usize) else {
                continue;
            };
            // The entry whose line has the address itself: one may stand beside those from names.
            let mut literal = Some(first).filter(|first| !first.from_name);
            for index in rest {
                let Some(other) = entries.get(*index as usize) else {
                    continue;
                };
                let before = literal.filter(|_| !other.from_name).unwrap_or(first);
                if first.entry != other.entry || !(before.from_name || other.from_name) {
                    conflicts.push((other.location, before.location, other.entry.address));
                } else {
                    repeated.push(*index);
                }
                if !other.from_name {
                    literal.get_or_insert(other);
                }
            }
        }
        for (location, first, address) in conflicts {
            let text = format!("{address} is there already: {}", self.location_text(first));
            self.line_errors.push((location, text));
        }
        self.remove_entries(repeated);
    }

    /// Removes the entries at these indices.
    fn remove_entries(&mut self, mut indices: Vec<u32>) {
        if indices.is_empty() {
            return;
        }
        indices.sort_unstable();
        let mut index = 0;
        self.entries.retain(|_| {
            index += 1;
            indices.binary_search(&(index - 1)).is_err()
        });
    }

    /// Returns a location as `FILE:LINE`.
    fn location_text(&self, location: Location) -> String {
        format!("{}:{}", self.file_name(location), location.line)
    }

    /// Returns the name of a location's file.
    fn file_name(&self, location: Location) -> &str {
        self.files
            .get(location.file as usize)
            .map_or("?", String::as_str)
    }

    /// Creates a diagnostic about a line.
    fn diagnostic(&self, location: Location, text: String) -> Diagnostic {
        Diagnostic {
            file: self.file_name(location).to_owned(),
            line: Some(location.line),
            text,
        }
    }
}
