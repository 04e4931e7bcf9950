// SPDX-License-Identifier: GPL-2.0-only

//! The files of a load, read together.

use crate::{
    entry::Entry,
    line::{
        parse,
        Statement,
        Subject, //
    },
    place::{
        Complaint,
        Place, //
    },
    resolve::{
        resolve_all,
        Resolver, //
    },
};
use std::{
    collections::HashMap,
    net::IpAddr, //
};

/// The number of bytes that are read between two calls of a progress function.
const STRIDE: usize = 1 << 20;

/// The content of the files read so far, and the mistakes in them.
#[derive(Debug, Default)]
pub struct Reading {
    /// The files' names, by [`Place::file`].
    files: Vec<String>,
    /// Entries in the order of the files, but those of names, which come when they are resolved.
    entries: Vec<Placed>,
    /// Lines that give names, by index into `names`.
    named: Vec<(u32, Placed)>,
    /// The hosts' names, each of them once.
    names: Vec<String>,
    /// The index of each name in `names`.
    name_numbers: HashMap<String, u32>,
    /// The mistakes in lines of the files.
    complaints: Vec<(Place, String)>,
    /// About files as a whole.
    file_complaints: Vec<Complaint>,
    /// The places of GIDs that do not leave their subnet.
    link_local: Vec<Place>,
    /// Whether a file has something else than blanks in it, be it a comment.
    has_text: bool,
}

/// An entry and where it comes from.
#[derive(Clone, Copy, Debug)]
struct Placed {
    entry: Entry,
    place: Place,
    /// Whether its address is a name's.
    from_name: bool,
}

/// The address of an entry with a name that is not yet resolved: it is always replaced.
const UNRESOLVED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

impl Reading {
    /// Creates a reading of no files yet.
    pub fn new() -> Reading {
        Reading::default()
    }

    /// Reads a whole file. `progress` is called with numbers of bytes that have been read since it
    /// was last called.
    pub fn add(&mut self, file: &str, text: &[u8], mut progress: impl FnMut(usize)) {
        let number = self.file_number(file);
        self.has_text |= !text.trim_ascii().is_empty();
        let mut place = Place {
            file: number,
            line: 0,
        };
        let mut unreported = 0;
        for whole in text.split_inclusive(|byte| *byte == b'\n') {
            place.line = place.line.saturating_add(1);
            let line = whole.strip_suffix(b"\n").unwrap_or(whole);
            match parse(line) {
                Ok(None) => {}
                Ok(Some(statement)) => self.take(&statement, place),
                Err(error) => self.complaints.push((place, error.to_string())),
            }
            unreported += whole.len();
            if unreported >= STRIDE {
                progress(unreported);
                unreported = 0;
            }
        }
        progress(unreported);
    }

    /// A file that could not be read.
    pub fn add_unreadable(&mut self, file: &str, why: impl ToString) {
        self.file_complaints.push(Complaint {
            file: file.to_owned(),
            line: None,
            text: why.to_string(),
        });
    }

    /// Gives a file its number.
    fn file_number(&mut self, file: &str) -> u32 {
        self.files.push(file.to_owned());
        u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
    }

    /// Keeps what a line says.
    fn take(&mut self, statement: &Statement<'_>, place: Place) {
        if statement.gid.is_link_local() {
            self.link_local.push(place);
        }
        let placed = |address, from_name| Placed {
            entry: Entry {
                address,
                gid: statement.gid,
                qpn: statement.qpn,
                pkey: statement.pkey,
                lifetime: statement.lifetime,
            },
            place,
            from_name,
        };
        match statement.subject {
            Subject::Address(address) => self.entries.push(placed(address, false)),
            Subject::Name(name) => {
                let number = self.name_number(name);
                self.named.push((number, placed(UNRESOLVED, true)));
            }
        }
    }

    /// Gives a name its number.
    fn name_number(&mut self, name: &str) -> u32 {
        // Names do not depend on the case of their letters (RFC 4343).
        let name = name.to_ascii_lowercase();
        if let Some(number) = self.name_numbers.get(&name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.name_numbers.insert(name, number);
        number
    }

    /// Returns the number of names that are to be resolved.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// Returns whether the files have nothing in them, not even a comment.
    pub fn is_blank(&self) -> bool {
        !self.has_text
    }

    /// Returns notes on the GIDs of fe80::/64, which do not leave their subnet: not wrong, but
    /// worth a note.
    pub fn notes(&self) -> Vec<Complaint> {
        let text =
            "a GID of fe80::/64 does not leave its subnet: no node behind a router has this one";
        self.link_local
            .iter()
            .map(|place| self.complaint(*place, text.to_owned()))
            .collect()
    }

    /// Resolves the names and looks for addresses that are there twice. `step` is called after each
    /// name.
    ///
    /// Gives the entries in the order of the files, or everything that is wrong with any of them.
    pub fn finish(
        mut self,
        resolver: &impl Resolver,
        step: impl Fn() + Sync,
    ) -> Result<Vec<Entry>, Vec<Complaint>> {
        self.resolve(resolver, step);
        self.find_duplicates();
        if self.complaints.is_empty() && self.file_complaints.is_empty() {
            return Ok(self.entries.iter().map(|placed| placed.entry).collect());
        }
        self.complaints.sort_by_key(|(place, _)| *place);
        let mut all = std::mem::take(&mut self.file_complaints);
        all.extend(
            self.complaints
                .iter()
                .map(|(place, text)| self.complaint(*place, text.clone())),
        );
        Err(all)
    }

    /// Replaces lines with names by entries for the names' addresses.
    fn resolve(&mut self, resolver: &impl Resolver, step: impl Fn() + Sync) {
        if self.named.is_empty() {
            return;
        }
        let answers = resolve_all(&self.names, resolver, step);
        for (number, placed) in std::mem::take(&mut self.named) {
            let name = self.names.get(number as usize);
            match name.and_then(|name| answers.get(name)) {
                Some(Ok(addresses)) => self.entries.extend(addresses.iter().map(|address| {
                    let mut placed = placed;
                    placed.entry.address = *address;
                    placed
                })),
                Some(Err(why)) => self.complaints.push((placed.place, why.clone())),
                None => {}
            }
        }
        self.entries.sort_by_key(|placed| placed.place);
    }

    /// Complains of addresses that are there more than once.
    ///
    /// A file may have a node by its address and by its name, as ibacm keeps both: what a name's
    /// address repeats word for word is left out.
    fn find_duplicates(&mut self) {
        let mut order: Vec<u32> = (0..self.entries.len() as u32).collect();
        let entries = &self.entries;
        let address = |index: u32| {
            entries
                .get(index as usize)
                .map(|placed| placed.entry.address)
        };
        order.sort_unstable_by_key(|index| (address(*index), *index));
        let mut repeated = Vec::new();
        let mut wrong = Vec::new();
        for same in order.chunk_by(|one, other| address(*one) == address(*other)) {
            let [first, rest @ ..] = same else { continue };
            let Some(first) = entries.get(*first as usize) else {
                continue;
            };
            // The line that has the address itself: there may be one beside those that name it.
            let mut written = Some(first).filter(|first| !first.from_name);
            for index in rest {
                let Some(other) = entries.get(*index as usize) else {
                    continue;
                };
                let before = written.filter(|_| !other.from_name).unwrap_or(first);
                if first.entry != other.entry || !(before.from_name || other.from_name) {
                    wrong.push((other.place, before.place, other.entry.address));
                } else {
                    repeated.push(*index);
                }
                if !other.from_name {
                    written.get_or_insert(other);
                }
            }
        }
        for (place, first, address) in wrong {
            let text = format!("{address} is there already: {}", self.shown(first));
            self.complaints.push((place, text));
        }
        self.leave_out(repeated);
    }

    /// Drops entries by their indices.
    fn leave_out(&mut self, mut indices: Vec<u32>) {
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

    /// A place as people are shown it.
    fn shown(&self, place: Place) -> String {
        format!("{}:{}", self.file_name(place), place.line)
    }

    /// The name of a place's file.
    fn file_name(&self, place: Place) -> &str {
        self.files
            .get(place.file as usize)
            .map_or("?", String::as_str)
    }

    /// A complaint about a place.
    fn complaint(&self, place: Place, text: String) -> Complaint {
        Complaint {
            file: self.file_name(place).to_owned(),
            line: Some(place.line),
            text,
        }
    }
}
