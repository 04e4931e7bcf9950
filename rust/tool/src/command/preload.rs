// SPDX-License-Identifier: GPL-2.0-only

//! `oxib acm paths preload`

use crate::{
    command::interface,
    error::{
        Error,
        Result, //
    },
    netlink::{
        attribute::{
            Attributes,
            Request, //
        },
        connection::Connection,
        family::{
            self,
            entry,
            operation,
            path,
            PATHS, //
        },
    },
    output::{
        self,
        Output, //
    },
    progress::bar, //
};
use indicatif::ProgressBar;
use oxib_data_file::entry::ShortGid;
use oxib_wire::gid::Gid;
use rustix::io::Errno;
use serde::Serialize;
use std::{
    collections::BTreeSet,
    fmt,
    sync::atomic::{
        AtomicUsize,
        Ordering, //
    },
    thread,
};

/// The number of paths that are asked for at a time, as the subnet administrator has others to
/// serve, too. If it does not answer for so many, it is not asked for more.
const AT_A_TIME: usize = 16;

/// The outcome of the questions.
#[derive(Debug, Default, Serialize)]
struct Found {
    /// Paths that the kernel knows now.
    known: usize,
    /// GIDs to which there is no path.
    missing: Vec<String>,
    /// GIDs without an answer.
    unanswered: Vec<String>,
    /// GIDs that were left out.
    not_asked: usize,
}

/// Has the kernel resolve the paths to all GIDs of the cache. A missing path is no error: hosts
/// may be switched off.
pub fn run(words: &[String], out: Output) -> Result {
    let named = interface::parse_device(words)?;
    let mut connection = Connection::open()?;
    let device = interface::chosen(&mut connection, named)?;
    let all = gids(&mut connection)?;
    // More would not be kept.
    let gids: Vec<Gid> = all.iter().copied().take(PATHS).collect();
    let bar = bar(gids.len() as u64, "asking", "{pos}/{len} paths");
    let found = ask_for_all(device, &gids, &bar);
    bar.finish_and_clear();
    let mut found = found?;
    found.not_asked = all.len() - found.asked();
    // What is known is known, even where that cannot be printed; a reader that has gone does not
    // make a success of a failure either.
    let printed = out.print_item(&found);
    match found.unanswered.len() {
        0 => output::tolerate_print_error(printed, "the paths are known"),
        number => {
            output::report_print_error(printed);
            Err(Error::Unanswered(number))
        }
    }
}

impl Found {
    /// Returns the number of paths for which the subnet administrator was asked.
    fn asked(&self) -> usize {
        self.known + self.missing.len() + self.unanswered.len()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} paths are known", self.known)?;
        for gid in &self.missing {
            write!(f, "\nno path to {gid}")?;
        }
        for gid in &self.unanswered {
            write!(f, "\nno answer about {gid}")?;
        }
        if self.not_asked != 0 {
            write!(f, "\n{} were not asked for", self.not_asked)?;
        }
        Ok(())
    }
}

/// The GIDs of all entries, once each.
fn gids(connection: &mut Connection) -> Result<BTreeSet<Gid>> {
    let mut gids = BTreeSet::new();
    let each = |attributes: Attributes<'_>| {
        gids.insert(attributes.gid(entry::GID)?);
        Ok(())
    };
    connection.dump(
        operation::ENTRY_GET,
        &Request::new(),
        family::ENTRY_NAMES,
        each,
    )?;
    Ok(gids)
}

/// Asks for the paths to `gids`, several at a time.
fn ask_for_all(device: u32, gids: &[Gid], bar: &ProgressBar) -> Result<Found> {
    let (next, unanswered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<Found> {
        let mut connection = Connection::open()?;
        let mut found = Found::default();
        while unanswered.load(Ordering::Relaxed) < AT_A_TIME {
            let Some(gid) = gids.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            match ask_for(&mut connection, device, *gid)? {
                Said::NoPath => found.missing.push(ShortGid(*gid).to_string()),
                Said::Nothing => {
                    unanswered.fetch_add(1, Ordering::Relaxed);
                    found.unanswered.push(ShortGid(*gid).to_string());
                }
                Said::Path => found.known += 1,
            }
            bar.inc(1);
        }
        Ok(found)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME.min(gids.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let mut all = Found::default();
        for worker in workers {
            let found = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all.known += found.known;
            all.missing.extend(found.missing);
            all.unanswered.extend(found.unanswered);
        }
        all.missing.sort_unstable();
        all.unanswered.sort_unstable();
        Ok(all)
    })
}

/// The subnet administrator's answer about the path to a GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// The path is known now.
    Path,
    /// There is no path.
    NoPath,
    /// No answer has come.
    Nothing,
}

/// Asks for the path to one GID, and waits.
fn ask_for(connection: &mut Connection, device: u32, gid: Gid) -> Result<Said> {
    let request = Request::new()
        .bytes(path::DGID, gid.bytes().to_vec())
        .u32(path::IFINDEX, device);
    let each = |_: Attributes<'_>| Ok(());
    match connection.dump(operation::PATH_RESOLVE, &request, family::PATH_NAMES, each) {
        Ok(_) => Ok(Said::Path),
        Err(Error::Refused(refusal)) if refusal.has_errno(Errno::NXIO) => Ok(Said::NoPath),
        Err(Error::Refused(refusal)) if refusal.has_errno(Errno::AGAIN) => Ok(Said::Nothing),
        Err(error) => Err(error),
    }
}
