// SPDX-License-Identifier: GPL-2.0-only

//! The command `oxib acm paths preload`.

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
    progress::progress_bar, //
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

/// The number of queries in flight, as the subnet administrator serves other nodes, too. It is also
/// the number of unanswered queries after which no more are sent.
const PARALLEL_QUERIES: usize = 16;

/// The outcome of a preload.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// The number of paths that the kernel knows now.
    known: usize,
    /// The GIDs to which there is no path.
    missing: Vec<String>,
    /// The GIDs for which no answer came.
    unanswered: Vec<String>,
    /// The number of GIDs to which no path was requested.
    not_asked: usize,
}

/// Makes the kernel resolve the paths to all GIDs of the cache. A missing path is no error: hosts
/// may be switched off. But if all are missing, there may be no subnet manager.
pub fn run(words: &[String], out: Output) -> Result {
    let named = interface::parse_device(words)?;
    let mut connection = Connection::open()?;
    let device = interface::choose(&mut connection, named)?;
    let all = cached_gids(&mut connection)?;
    // The kernel caches no more paths.
    let gids: Vec<Gid> = all.iter().copied().take(PATHS).collect();
    let bar = progress_bar(gids.len() as u64, "asking", "{pos}/{len} paths");
    let summary = resolve_paths(device, &gids, &bar);
    bar.finish_and_clear();
    let mut summary = summary?;
    summary.not_asked = all.len() - summary.asked();
    // The paths are known even if the summary cannot be printed, and a closed pipe must not turn a
    // failure into a success.
    let printed = out.print_item(&summary);
    match summary.failure() {
        None => output::tolerate_print_error(printed, "the paths are known"),
        Some(error) => {
            output::report_print_error(printed);
            Err(error)
        }
    }
}

impl Summary {
    /// Returns the number of paths that were requested.
    fn asked(&self) -> usize {
        self.known + self.missing.len() + self.unanswered.len()
    }

    /// Returns the failure, if it is one.
    fn failure(&self) -> Option<Error> {
        match (self.known, self.missing.len(), self.unanswered.len()) {
            (_, 0, 0) => None,
            // The kernel of a node on which a subnet manager has ended refuses all queries.
            (0, missing, 0) => Some(Error::NoPath(missing)),
            (_, _, 0) => None,
            (_, _, unanswered) => Some(Error::Unanswered(unanswered)),
        }
    }
}

impl fmt::Display for Summary {
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

/// Returns the GIDs of all entries of the address cache, without repetition.
fn cached_gids(connection: &mut Connection) -> Result<BTreeSet<Gid>> {
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

/// Makes the kernel resolve the paths to `gids`, several in parallel.
fn resolve_paths(device: u32, gids: &[Gid], bar: &ProgressBar) -> Result<Summary> {
    let (next, unanswered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<Summary> {
        let mut connection = Connection::open()?;
        let mut summary = Summary::default();
        while unanswered.load(Ordering::Relaxed) < PARALLEL_QUERIES {
            let Some(gid) = gids.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            match resolve_path(&mut connection, device, *gid)? {
                PathStatus::Known => summary.known += 1,
                PathStatus::Missing => summary.missing.push(ShortGid(*gid).to_string()),
                PathStatus::Unanswered => {
                    unanswered.fetch_add(1, Ordering::Relaxed);
                    summary.unanswered.push(ShortGid(*gid).to_string());
                }
            }
            bar.inc(1);
        }
        Ok(summary)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..PARALLEL_QUERIES.min(gids.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let mut all = Summary::default();
        for worker in workers {
            let summary = worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            all.known += summary.known;
            all.missing.extend(summary.missing);
            all.unanswered.extend(summary.unanswered);
        }
        all.missing.sort_unstable();
        all.unanswered.sort_unstable();
        Ok(all)
    })
}

/// The status of the path to a GID after its resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathStatus {
    /// The kernel knows the path now.
    Known,
    /// There is no path.
    Missing,
    /// The subnet administrator did not answer, or the interface is down.
    Unanswered,
}

/// Makes the kernel resolve the path to one GID, and waits for the outcome.
fn resolve_path(connection: &mut Connection, device: u32, gid: Gid) -> Result<PathStatus> {
    let request = Request::new()
        .bytes(path::DGID, gid.bytes().to_vec())
        .u32(path::IFINDEX, device);
    let each = |_: Attributes<'_>| Ok(());
    match connection.dump(operation::PATH_RESOLVE, &request, family::PATH_NAMES, each) {
        Ok(_) => Ok(PathStatus::Known),
        Err(Error::Refused(refusal)) if refusal.has_errno(Errno::NXIO) => Ok(PathStatus::Missing),
        Err(Error::Refused(refusal)) if refusal.has_errno(Errno::AGAIN) => {
            Ok(PathStatus::Unanswered)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_without_any_path_is_a_failure() {
        for (known, missing, unanswered, message) in [
            (0, 0, 0, None),
            (2, 0, 0, None),
            (1, 3, 0, None),
            (0, 3, 0, Some("gives none of 3 paths")),
            (0, 3, 1, Some("did not answer for 1 paths")),
            (2, 0, 4, Some("did not answer for 4 paths")),
        ] {
            let summary = Summary {
                known,
                missing: vec![String::new(); missing],
                unanswered: vec![String::new(); unanswered],
                not_asked: 0,
            };
            let failure = summary.failure().map(|error| error.to_string());
            match (failure, message) {
                (None, None) => {}
                (Some(text), Some(part)) => assert!(text.contains(part), "{part} in {text}"),
                (failure, _) => panic!("{failure:?} instead of {message:?}"),
            }
        }
    }
}
